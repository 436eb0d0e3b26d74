"""Replaces what a kernel says of numba.cuda by the functions of ir/threads.py, before it is normalised.

    i = cuda.grid(1)                        i = cuda_grid(1)
    t = cuda.threadIdx.x                    t = cuda_thread_x()
    s = cuda.shared.array(32, float32)      s = cuda_shared_array(32, float32)
    y[i] = smooth(x, i)                     y[i] = cuda_smooth(x, i)        smooth: a cuda.jit device function

Works on names as they are written: `cuda` (or what it was imported as), and names imported from it.  What
is not known here is refused with its line.  numba.cuda itself is not imported: who has a kernel, has it.
"""

from __future__ import annotations

import ast
import copy
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numba
import numpy as np

from splitad.errors import Loc, UnsupportedError
from splitad.frontend.normal import NormalFunction, lookup, remember
from splitad.frontend.render import execute, render
from splitad.frontend.scopes import local_names
from splitad.frontend.source import Source
from splitad.ir import threads

_MISSING = object()
_CALLED: dict[str, Callable[..., Any]] = {
    "grid": threads.grid,
    "gridsize": threads.gridsize,
    "syncthreads": threads.syncthreads,
    "shared.array": threads.shared_array,
    "local.array": threads.local_array,
    **{f"atomic.{op}": fn for op, fn in threads.ATOMICS.items()},
    **{f"libdevice.{name}": fn for name, fn in threads.LIBDEVICE.items()},
}
_READ: dict[str, Callable[..., Any]] = {
    **{
        f"{name}.{axis}": fn
        for name, fns in threads.ATTRIBUTES.items()
        for axis, fn in zip("xyz", fns, strict=True)
    },
    "laneid": threads.LANE,
}
_PARTS = {"shared", "local", "atomic", *threads.ATTRIBUTES}
_CONSTANTS = {"warpsize": 32}
_HINT = (
    "Supported are grid, gridsize, threadIdx, blockIdx, blockDim, gridDim, laneid, warpsize, syncthreads, "
    "shared.array, local.array, atomic.add, sub, max, min, and libdevice's functions of floats."
)

Normalize = Callable[[Any], NormalFunction]


def names_cuda(pyfunc: Any) -> bool:
    """Whether a function may refer to numba.cuda, or call a function compiled for it."""
    return "numba.cuda" in sys.modules and bool(pyfunc.__code__.co_names or pyfunc.__closure__)


def without_cuda(
    source: Source, pyfunc: Any, read: Normalize
) -> tuple[Source, dict[str, Callable[..., Any]]]:
    """The source with the replacements made, and the names that it uses for them.

    read: normalises a device function that is called.
    """
    work = _Replace(source, pyfunc, read)
    node = copy.deepcopy(source.node)
    if not isinstance(node, ast.Lambda):
        node.decorator_list = []
    node = work.visit(node)
    if not work.helpers:
        return source, {}
    return replace(source, node=ast.fix_missing_locations(node)), work.helpers


class _Replace(ast.NodeTransformer):
    def __init__(self, source: Source, pyfunc: Any, read: Normalize) -> None:
        self.source, self.pyfunc, self.read = source, pyfunc, read
        self.cuda = sys.modules["numba.cuda"]
        self.locals = local_names(source.node)  # type: ignore[arg-type]
        self.helpers: dict[str, Callable[..., Any]] = {}

    def visit_Name(self, node: ast.Name) -> Any:
        return self.replaced(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self.replaced(node) or self.generic_visit(node)

    def replaced(self, node: ast.expr) -> ast.expr | None:
        path = self.path(node)
        if path is not None:
            return self.stand_in(node, path)
        value = self.value(node)
        if value is math.fmod:  # the CPU's Numba does not know it
            return self.helper(node, "cuda_fmod", np.fmod)
        if value is math.remainder:
            return self.helper(node, "cuda_remainder", threads.REMAINDER)
        if is_cuda_function(value):
            return self.helper(
                node, "cuda_" + value.py_func.__name__, device_function(value, self.read)
            )
        return None

    def stand_in(self, node: ast.expr, path: str) -> ast.expr:
        if path in _CALLED:
            return self.helper(node, "cuda_" + path.replace(".", "_"), _CALLED[path])
        if path in _READ:
            name = self.helper(node, "cuda_" + _READ[path].__name__, _READ[path])
            return ast.copy_location(ast.Call(name, [], []), node)
        if path in _CONSTANTS:
            return ast.copy_location(ast.Constant(_CONSTANTS[path]), node)
        what = f"cuda.{path}" if path else "cuda"
        raise UnsupportedError(f"{what} is not supported here.", self.loc(node), _HINT)

    def helper(self, node: ast.expr, name: str, value: Callable[..., Any]) -> ast.Name:
        while name in self.locals or self.helpers.get(name, value) is not value:
            name += "_"
        self.helpers[name] = value
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def loc(self, node: ast.expr) -> Loc:
        return Loc(self.source.file, node.lineno, self.pyfunc.__qualname__, node.col_offset)

    # ---- what a name stands for ------------------------------------------------------------------

    def path(self, node: ast.expr) -> str | None:
        """The dotted name within numba.cuda: "shared.array"; None where it is something else."""
        if isinstance(node, ast.Attribute):
            owner = self.path(node.value)
            if owner is not None:
                return f"{owner}.{node.attr}" if owner else node.attr
        value = self.value(node)
        if value is _MISSING:
            return None
        if value is self.cuda:
            return ""
        for name in (*_PARTS, *_CALLED, *_READ):
            if "." not in name and value is getattr(self.cuda, name, _MISSING):
                return name
        module = str(getattr(value, "__module__", ""))
        if module.startswith("numba.cuda") and not is_cuda_function(value):
            within = "libdevice." if module.endswith(".libdevice") else ""
            return within + getattr(value, "__name__", "")
        return None

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return (
                getattr(owner, node.attr, _MISSING) if isinstance(owner, ModuleType) else _MISSING
            )
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return _MISSING
        try:
            return lookup(node.id, self.pyfunc, {})
        except NameError:
            return _MISSING


# ---- device functions ----------------------------------------------------------------------------------


def is_cuda_function(value: Any) -> bool:
    """Whether it is what cuda.jit made of a function, also in the simulator."""
    return hasattr(value, "py_func") and type(value).__name__ in (
        "CUDADispatcher",
        "FakeCUDAKernel",
    )


@dataclass(eq=False)
class _Known:
    function: Any  # kept alive: it is known by its id
    made: Any = None


_device: dict[int, _Known] = {}


def device_function(function: Any, read: Normalize) -> Any:
    """A device function as one that Numba can type without CUDA, and that is inlined where it is called."""
    known = _device.setdefault(id(function), _Known(function))
    if known.made is None:
        _device[id(function)].made = _InProgress
        try:
            normal = read(function.py_func)
        except BaseException:
            del _device[id(function)]
            raise
        pyfunc = execute(normal, render(normal)[0], f"<device function {normal.name}>")
        pyfunc.__defaults__ = function.py_func.__defaults__
        own = replace(normal, pyfunc=pyfunc, globals=pyfunc.__globals__)
        remember(own)
        known.made = numba.njit(pyfunc)
    if known.made is _InProgress:
        code = function.py_func.__code__
        raise UnsupportedError(
            f"The device function {code.co_name} calls itself.",
            Loc(code.co_filename, code.co_firstlineno, code.co_qualname),
            "Write it as a loop.",
        )
    return known.made


class _InProgress:
    """Stands for a device function that is being read."""
