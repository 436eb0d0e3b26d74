"""Compiles CUDA kernels to machine code with no GPU and no driver, and reads what the assembler says of them.

    built = build(kernel, argtypes)
    built.registers, built.stack, built.spills, built.shared
    built.count("atom")

It is the way that a launch takes, up to loading the code.  Where numba-cuda asks the driver which GPU there
is, it is told one.  Needs numba-cuda with its compilers: the extra cuda12 or cuda13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest import mock

from numba import types

CAPABILITY = (9, 0)


@dataclass(frozen=True)
class Built:
    """A kernel's machine code.  stack, spills: bytes of local memory of a thread."""

    ptx: str
    cubin: bytes
    registers: int
    stack: int
    spills: int
    barriers: int

    def count(self, instruction: str) -> int:
        """How often an instruction stands in the PTX: "atom.global.add", "bar.sync", "st.global"."""
        return len(re.findall(rf"^\s*(?:@!?%p\d+ )?{re.escape(instruction)}\b", self.ptx, re.M))


def usable() -> bool:
    """Whether kernels can be compiled here."""
    from numba import config

    packages = ("numba_cuda", "cuda.bindings.nvrtc", "nvidia")
    return not config.ENABLE_CUDASIM and all(map(_is_there, packages))


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


@contextmanager
def pretended_device(capability: tuple[int, int] = CAPABILITY) -> Iterator[None]:
    """numba-cuda finds a GPU of this compute capability."""
    from numba.cuda import compiler, dispatcher
    from numba.cuda.cudadrv import devices

    gpu = SimpleNamespace(compute_capability=capability, id=0, name=b"none")
    context = SimpleNamespace(device=gpu)
    with ExitStack() as stack:
        for module in (compiler, dispatcher):
            stack.enter_context(mock.patch.object(module, "get_current_device", lambda: gpu))
        stack.enter_context(mock.patch.object(devices, "get_context", lambda devnum=None: context))
        yield


@contextmanager
def _talkative_linker() -> Iterator[None]:
    """The linker has its assembler say what a kernel takes."""
    from numba.cuda.cudadrv import driver

    plain = driver._Linker._get_linker_options

    def talkative(self: Any, ptx: Any) -> Any:
        options = plain(self, ptx)
        options.ptxas_options = "-v"
        return options

    with mock.patch.object(driver._Linker, "_get_linker_options", talkative):
        yield


def build(kernel: Any, argtypes: tuple[types.Type, ...], **options: Any) -> Built:
    """kernel: a Python function, or what cuda.jit made of one (with its options)."""
    from numba.cuda import dispatcher

    if hasattr(kernel, "py_func"):
        options = {**kernel.targetoptions, **options}
        kernel = kernel.py_func
    options.setdefault("opt", True)
    with pretended_device(), _talkative_linker():
        made = dispatcher._Kernel(kernel, argtypes, **options)
        library = made._codelibrary
        key = library._ensure_cc(None)
        cubin = library.get_cubin()
        log = library.get_linkerinfo(key)
        ptx = library.get_asm_str()

    def most(pattern: str) -> int:
        return max(map(int, re.findall(pattern, log)), default=0)

    spills = most(r"(\d+) bytes spill stores") + most(r"(\d+) bytes spill loads")
    return Built(
        ptx, bytes(cubin.code), most(r"Used (\d+) registers"), most(r"(\d+) bytes stack frame"), spills,
        most(r"used (\d+) barriers"),
    )  # fmt: skip
