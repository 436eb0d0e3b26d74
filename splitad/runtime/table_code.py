"""The machine code of the tables of shadows; shadow_table.py says what they are.

A table's handle is three 64-bit integers: the address of its entries, how many there are, the bytes of one.
An entry is laid out as Numba's array struct: MemInfo, parent, element count, item size, data, then sizes and
strides; a MemInfo of 0 means that there is no array.  Entry 0 is for arrays that are never looked up again,
entry k + 1 for array number k.

    splitad_table_get(table, key, ndim, itemsize, sizes)   the address of the entry, with a C-contiguous array
                                                           of zeros where it had none; 0: no memory
    splitad_table_entry(table, key)                        the address of the entry, whatever it has
    splitad_table_drop(table, key)                         it has no array any more
    splitad_table_dtor(table, size, info)                  the table is dead (for Numba's runtime)
"""

from __future__ import annotations

from llvmlite import ir
from numba.core.runtime import _nrt_python

from splitad.tape.array_code import MEMINFO, emit_new, memset_of
from splitad.tape.machine_code import Emit, c_function, compiled, external, i32, i64, void

SYMBOLS = (
    "splitad_table_get", "splitad_table_entry", "splitad_table_drop", "splitad_table_dtor",
)  # fmt: skip

# in a handle: byte offsets
ENTRIES, COUNT, ENTRY_BYTES = 0, 8, 16


def _emit_entry(module: ir.Module, realloc: ir.Function, memset: ir.Function) -> ir.Function:
    e = Emit(module, "splitad_table_entry", i64, 2)
    b = e.b
    table, key = e.fn.args
    index = b.add(e.maximum(key, e.const(-1)), e.const(1))
    size, count = e.load(table, ENTRY_BYTES), e.load(table, COUNT)
    with b.if_then(b.icmp_signed(">=", index, count)):
        wanted = e.maximum(b.add(index, e.const(1)), b.mul(count, e.const(2)))
        grown = b.call(realloc, [e.load(table, ENTRIES), b.mul(wanted, size)])
        with b.if_then(e.is_zero(grown)):
            b.ret(grown)
        new = b.add(grown, b.mul(count, size))
        b.call(memset, [new, i32(0), b.mul(b.sub(wanted, count), size)])
        e.store(grown, table, ENTRIES)
        e.store(wanted, table, COUNT)
    b.ret(b.add(e.load(table, ENTRIES), b.mul(index, size)))
    return e.fn


def _emit_clear(module: ir.Module, release: ir.Function) -> ir.Function:
    """clear(entry)"""
    e = Emit(module, "splitad_table_clear", void, 1)
    meminfo = e.load(e.fn.args[0], MEMINFO)
    with e.b.if_then(e.not_zero(meminfo)):
        e.store(0, e.fn.args[0], MEMINFO)
        e.b.call(release, [meminfo])
    e.b.ret_void()
    return e.fn


def _emit_get(module: ir.Module, entry: ir.Function, clear: ir.Function, new: ir.Function) -> None:
    e = Emit(module, "splitad_table_get", i64, 5)
    b = e.b
    table, key, ndim, itemsize, sizes = e.fn.args
    found = b.call(entry, [table, key])
    with b.if_then(e.is_zero(found)):
        b.ret(found)
    with b.if_then(e.less(key, e.const(0))):
        b.call(clear, [found])
    with b.if_then(e.is_zero(e.load(found, MEMINFO))):
        wrong = b.call(new, [found, ndim, itemsize, sizes, e.const(1)])
        with b.if_then(e.not_zero(wrong)):
            e.store(0, found, MEMINFO)
            b.ret(e.const(0))
    b.ret(found)


def _emit_drop(module: ir.Module, clear: ir.Function) -> None:
    e = Emit(module, "splitad_table_drop", void, 2)
    b = e.b
    table, key = e.fn.args
    index = b.add(key, e.const(1))
    known = b.and_(e.less(e.const(0), index), e.less(index, e.load(table, COUNT)))
    with b.if_then(known):
        size = e.load(table, ENTRY_BYTES)
        b.call(clear, [b.add(e.load(table, ENTRIES), b.mul(index, size))])
    b.ret_void()


def _emit_dtor(module: ir.Module, clear: ir.Function, free: ir.Function) -> None:
    e = Emit(module, "splitad_table_dtor", void, 3)
    b, table = e.b, e.fn.args[0]
    entries, size = e.load(table, ENTRIES), e.load(table, ENTRY_BYTES)
    with e.loop(e.const(0), e.load(table, COUNT)) as i:
        b.call(clear, [b.add(entries, b.mul(i, size))])
    b.call(free, [entries])
    b.ret_void()


def _build() -> object:
    module = ir.Module(name="splitad_shadow_tables")
    realloc = external(module, "realloc", i64, [i64, i64], c_function("realloc"))
    memset = memset_of(module)
    free = external(module, "free", void, [i64], c_function("free"))
    release = external(module, "drop_kept", void, [i64], _nrt_python.c_helpers["MemInfo_release"])
    entry, clear = _emit_entry(module, realloc, memset), _emit_clear(module, release)
    _emit_get(module, entry, clear, emit_new(module, memset))
    _emit_drop(module, clear)
    _emit_dtor(module, clear, free)
    return compiled(module, SYMBOLS)


_engine = _build()  # owns the machine code
