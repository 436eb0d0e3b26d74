"""Small functions on 64-bit integers, written with llvmlite's builder and compiled when splitad is imported.

    e = Emit(module, "splitad_next", i64, 1)      i64 splitad_next(i64 x) { return x + 1; }
    e.b.ret(e.b.add(e.fn.args[0], e.const(1)))
    engine = compiled(module, ["splitad_next"])   generated code can call it by name from here on

The machine code is kept on disk, so the module's text must be the same in every process: what has an
address of its own in each is named (`external`, `variable`).

Not njit: what every pair calls would be compiled again with each, or take its time when it is first used.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from mmap import PAGESIZE

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from splitad import store
from splitad.errors import SplitadError

HUGE = 4 << 20  # bytes of a block, from which on large pages are worth the call
MADV_HUGEPAGE = 14
i32, i64, void = ir.IntType(32), ir.IntType(64), ir.VoidType()


class Emit:
    """A function, and the few words of C that its body is written in. Addresses are integers."""

    def __init__(self, module: ir.Module, name: str, result: ir.Type, args: int) -> None:
        self.fn = ir.Function(module, ir.FunctionType(result, [i64] * args), name=name)
        self.fn.attributes.add("nounwind")
        self.b = ir.IRBuilder(self.fn.append_basic_block("entry"))

    def const(self, value: int) -> ir.Constant:
        return ir.Constant(i64, value)

    def at(self, address: ir.Value, byte_offset: int = 0) -> ir.Value:
        where = self.b.add(address, self.const(byte_offset)) if byte_offset else address
        return self.b.inttoptr(where, i64.as_pointer())

    def load(self, address: ir.Value, byte_offset: int = 0) -> ir.Value:
        return self.b.load(self.at(address, byte_offset))

    def store(self, value: ir.Value | int, address: ir.Value, byte_offset: int = 0) -> None:
        value = self.const(value) if isinstance(value, int) else value
        self.b.store(value, self.at(address, byte_offset))

    def is_zero(self, value: ir.Value) -> ir.Value:
        return self.b.icmp_signed("==", value, self.const(0))

    def not_zero(self, value: ir.Value) -> ir.Value:
        return self.b.icmp_signed("!=", value, self.const(0))

    def less(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.icmp_signed("<", left, right)

    def minimum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.select(self.less(left, right), left, right)

    def maximum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.select(self.less(left, right), right, left)

    @contextmanager
    def loop(self, start: ir.Value, stop: ir.Value) -> Iterator[ir.Value]:
        """``for (i = start; i < stop; i++)``"""
        before = self.b.block
        head, body = self.fn.append_basic_block("head"), self.fn.append_basic_block("body")
        after = self.fn.append_basic_block("after")
        self.b.branch(head)
        self.b.position_at_end(head)
        i = self.b.phi(i64)
        i.add_incoming(start, before)
        self.b.cbranch(self.less(i, stop), body, after)
        self.b.position_at_end(body)
        yield i
        i.add_incoming(self.b.add(i, self.const(1)), self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)

    @contextmanager
    def repeat_while(self, test: Callable[[], ir.Value]) -> Iterator[None]:
        """``while (test()) { ... }``"""
        head, body = self.fn.append_basic_block("head"), self.fn.append_basic_block("body")
        after = self.fn.append_basic_block("after")
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(test(), body, after)
        self.b.position_at_end(body)
        yield
        self.b.branch(head)
        self.b.position_at_end(after)


def external(
    module: ir.Module, name: str, result: ir.Type, args: Sequence[ir.Type], address: int
) -> ir.Function:
    """A function of this process, such as one of the C library."""
    llvm.add_symbol("splitad_c_" + name, address)
    return ir.Function(module, ir.FunctionType(result, args), name="splitad_c_" + name)


def variable(module: ir.Module, name: str, address: int) -> ir.Constant:
    """The address of a variable of this process, as an integer."""
    llvm.add_symbol(name, address)
    return ir.GlobalVariable(module, i64, name).ptrtoint(i64)


def c_function(name: str) -> int:
    """The address of a function of the C library, 0 where there is none."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def large_pages(module: ir.Module) -> Callable[[Emit, ir.Value, ir.Value], None]:
    """A writer of code that asks for large pages for a block (address, size) that nothing was written to.

    Fresh memory costs a fault for each page, which for 4 KB pages is several times what filling it takes.
    Only Linux has to be asked; where it refuses, the pages are small.
    """
    found = c_function("madvise") if sys.platform == "linux" else 0
    if not found:
        return lambda e, address, size: None
    madvise = external(module, "madvise", i32, [i64, i64, i32], found)

    def write(e: Emit, address: ir.Value, size: ir.Value) -> None:
        b, mask = e.b, e.const(-PAGESIZE)
        with b.if_then(b.icmp_signed(">=", size, e.const(HUGE))):
            start = b.and_(b.add(address, e.const(PAGESIZE - 1)), mask)
            length = b.and_(b.sub(b.add(address, size), start), mask)
            b.call(madvise, [start, length, i32(MADV_HUGEPAGE)])

    return write


def compiled(module: ir.Module, symbols: Sequence[str]) -> llvm.ExecutionEngine:
    """The engine, which owns the machine code; `symbols` can be called by name from now on."""
    module.triple = llvm.get_process_triple()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    text = str(module)
    key = hashlib.sha256(repr((text, llvmlite.__version__, llvm.llvm_version_info)).encode())
    file = f"{key.hexdigest()[:40]}-machine-code"
    kept = _load(file)
    if kept is not None:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(kept))
    else:
        parsed = llvm.parse_assembly(text)
        parsed.verify()
        engine = llvm.create_mcjit_compiler(parsed, machine)
        engine.set_object_cache(lambda _, code: _save(file, code))
    engine.finalize_object()
    for name in symbols:
        llvm.add_symbol(name, engine.get_function_address(name))
    return engine


def _load(key: str) -> bytes | None:
    try:
        return store.load(key)
    except SplitadError:  # the folder is refused, which is said when a pair is compiled
        return None


def _save(key: str, code: bytes) -> None:
    with suppress(SplitadError):
        store.save(key, bytes(code))
