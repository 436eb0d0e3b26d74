"""The machine code that makes zeros; zero_parts.py emits calls of it.

An array is given by the address of Numba's struct of it, and the number of its dimensions.

    splitad_zeros_like(array, ndim, fortran, out)           writes the struct of zeros of its shape to `out`
    splitad_zero_note(table, counters, array, ndim)         notes what the array spans
    splitad_zero_group(table, counters)                     groups what was noted (extents.py); starts again
    splitad_zero_shadow(table, counters, array, ndim, fortran, out)
                                                            the same of the next that was noted: zeros, or a
                                                            view of those of its group
    splitad_zero_drop(table, counters)                      gives up the table's references to the groups'
    splitad_zero_find(seen, counters, identity)             the row of a struct or list; -1: not met yet
    splitad_zero_enter(seen, counters, identity, shadow)    notes one and its shadow

What writes a struct returns 0, or what is wrong, as splitad_array_new does.  counters: the rows of table, the
rows of seen, and whether arrays may overlap.  A row of `seen` has two words.
"""

from __future__ import annotations

import ctypes

import numpy as np
from llvmlite import ir
from numba.core.runtime import _nrt_python

from splitad.runtime.extents import (
    COLUMNS,
    GROUP_LO,
    GROUP_SIZE,
    HI,
    LEADER,
    LO,
    MEMORY,
    groups,
)
from splitad.tape.array_code import (
    DATA,
    ITEMSIZE,
    MEMINFO,
    NITEMS,
    NO_MEMORY,
    PARENT,
    SHAPE,
    memset_of,
)
from splitad.tape.machine_code import (
    Emit,
    c_function,
    compiled,
    external,
    i32,
    i64,
    large_pages,
    void,
)

FEW = 32  # so many arrays are compared one by one
ROWS, SEEN, OVERLAP = 0, 8, 16  # in counters: byte offsets
ROW = 8 * COLUMNS

SYMBOLS = (
    "splitad_zeros_like", "splitad_zero_note", "splitad_zero_group", "splitad_zero_shadow",
    "splitad_zero_drop", "splitad_zero_find", "splitad_zero_enter",
)  # fmt: skip


class _Emit(Emit):
    """With the words of a table."""

    def row(self, table: ir.Value, index: ir.Value) -> ir.Value:
        return self.b.add(table, self.b.mul(index, self.const(ROW)))

    def word(self, row: ir.Value, column: int) -> ir.Value:
        return self.load(row, 8 * column)

    def next(self, counters: ir.Value, which: int) -> ir.Value:
        """``counters[which]++``"""
        row = self.load(counters, which)
        self.store(self.b.add(row, self.const(1)), counters, which)
        return row


def _emit_zeros_like(module: ir.Module) -> ir.Function:
    kind = ir.FunctionType(i64, [i64] * 5)
    new = ir.Function(module, kind, "splitad_array_new")
    e = Emit(module, "splitad_zeros_like", i64, 4)
    b = e.b
    array, ndim, fortran, out = e.fn.args
    itemsize = e.load(array, ITEMSIZE)
    sizes = b.add(array, e.const(SHAPE))
    wrong = b.call(new, [out, ndim, itemsize, sizes, e.const(1)])
    with b.if_then(b.and_(e.is_zero(wrong), e.not_zero(fortran))):
        stride = b.alloca(i64)
        b.store(itemsize, stride)
        strides = b.add(out, b.add(b.mul(ndim, e.const(8)), e.const(SHAPE)))
        with e.loop(e.const(0), ndim) as i:
            at = b.mul(i, e.const(8))
            e.store(b.load(stride), b.add(strides, at))
            b.store(b.mul(b.load(stride), e.load(b.add(sizes, at))), stride)
    b.ret(wrong)
    return e.fn


def _emit_note(module: ir.Module) -> None:
    e = _Emit(module, "splitad_zero_note", void, 4)
    b = e.b
    table, counters, array, ndim = e.fn.args
    index = e.next(counters, ROWS)
    low, high = b.alloca(i64), b.alloca(i64)
    for end in low, high:
        b.store(e.load(array, DATA), end)
    sizes = b.add(array, e.const(SHAPE))
    strides = b.add(sizes, b.mul(ndim, e.const(8)))
    with e.loop(e.const(0), ndim) as i:
        at = b.mul(i, e.const(8))
        steps = b.sub(e.load(b.add(sizes, at)), e.const(1))
        reach = b.mul(steps, e.load(b.add(strides, at)))
        b.store(b.add(b.load(low), e.minimum(reach, e.const(0))), low)
        b.store(b.add(b.load(high), e.maximum(reach, e.const(0))), high)
    lo = b.load(low)
    end = b.add(b.load(high), e.load(array, ITEMSIZE))
    hi = b.select(e.is_zero(e.load(array, NITEMS)), lo, end)
    row = e.row(table, index)
    e.store(lo, row, 8 * LO)
    e.store(hi, row, 8 * HI)
    with b.if_then(b.icmp_signed(">=", index, e.const(FEW))):  # sorting finds out
        e.store(1, counters, OVERLAP)
        b.ret_void()
    with e.loop(e.const(0), index) as k:
        other = e.row(table, k)
        meet = b.and_(e.less(lo, e.word(other, HI)), e.less(e.word(other, LO), hi))
        with b.if_then(meet):
            e.store(1, counters, OVERLAP)
    b.ret_void()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
def _fill_groups(address: int, rows: int) -> None:
    words = (ctypes.c_int64 * (rows * COLUMNS)).from_address(address)
    table = np.ctypeslib.as_array(words).reshape(rows, COLUMNS)
    table[:, LEADER] = np.arange(rows)
    for lo, hi, members in groups(table[:, : HI + 1].tolist()):
        if len(members) > 1:
            lo &= -64  # elements are aligned in the shadow as in the primal
            table[members, LEADER] = members[0]
            table[members[0], [GROUP_LO, GROUP_SIZE]] = lo, hi - lo


def _emit_group(module: ir.Module) -> None:
    """In Python: there is hardly ever anything to group."""
    address = ctypes.cast(_fill_groups, ctypes.c_void_p).value or 0
    fill = external(module, "fill_groups", void, [i64, i64], address)
    e = _Emit(module, "splitad_zero_group", void, 2)
    table, counters = e.fn.args
    with e.b.if_then(e.not_zero(e.load(counters, OVERLAP))):
        e.b.call(fill, [table, e.load(counters, ROWS)])
    e.store(0, counters, ROWS)
    e.store(0, counters, SEEN)
    e.b.ret_void()


def _emit_shadow(module: ir.Module, zeros_like: ir.Function) -> None:
    helpers = _nrt_python.c_helpers
    allocate = external(module, "new_meminfo", i64, [i64, i32], helpers["MemInfo_alloc_aligned"])
    data_of = external(module, "meminfo_data", i64, [i64], helpers["MemInfo_data"])
    memset = memset_of(module)
    memcpy = external(module, "memcpy", i64, [i64, i64, i64], c_function("memcpy"))
    e = _Emit(module, "splitad_zero_shadow", i64, 6)
    b = e.b
    table, counters, array, ndim, fortran, out = e.fn.args
    leader = e.row(table, e.word(e.row(table, e.next(counters, ROWS)), LEADER))
    size = e.word(leader, GROUP_SIZE)
    with b.if_then(e.is_zero(size)):
        b.ret(b.call(zeros_like, [array, ndim, fortran, out]))
    with b.if_then(e.is_zero(e.word(leader, MEMORY))):
        made = b.call(allocate, [size, i32(64)])
        with b.if_then(e.is_zero(made)):
            b.ret(e.const(NO_MEMORY))
        data = b.call(data_of, [made])
        large_pages(module)(e, data, size)
        b.call(memset, [data, i32(0), size])
        e.store(made, leader, 8 * MEMORY)
    memory = e.word(leader, MEMORY)
    b.atomic_rmw(
        "add", e.at(memory), e.const(1), "monotonic"
    )  # the count of references comes first
    nbytes = b.add(b.mul(ndim, e.const(16)), e.const(SHAPE))
    b.call(memcpy, [out, array, nbytes])
    offset = b.sub(e.load(array, DATA), e.word(leader, GROUP_LO))
    e.store(memory, out, MEMINFO)
    e.store(0, out, PARENT)
    e.store(b.add(b.call(data_of, [memory]), offset), out, DATA)
    b.ret(e.const(0))


def _emit_drop(module: ir.Module) -> None:
    release = external(
        module, "drop_meminfo", void, [i64], _nrt_python.c_helpers["MemInfo_release"]
    )
    e = _Emit(module, "splitad_zero_drop", void, 2)
    table, counters = e.fn.args
    with e.loop(e.const(0), e.load(counters, ROWS)) as k:
        memory = e.word(e.row(table, k), MEMORY)
        with e.b.if_then(e.not_zero(memory)):
            e.b.call(release, [memory])
    e.b.ret_void()


def _emit_seen(module: ir.Module) -> None:
    e = _Emit(module, "splitad_zero_find", i64, 3)
    b = e.b
    seen, counters, identity = e.fn.args
    with e.loop(e.const(0), e.load(counters, SEEN)) as k:
        known = e.load(b.add(seen, b.mul(k, e.const(16))))
        with b.if_then(b.icmp_signed("==", known, identity)):
            b.ret(k)
    b.ret(e.const(-1))
    e = _Emit(module, "splitad_zero_enter", void, 4)
    seen, counters, identity, shadow = e.fn.args
    row = e.b.add(seen, e.b.mul(e.next(counters, SEEN), e.const(16)))
    e.store(identity, row)
    e.store(shadow, row, 8)
    e.b.ret_void()


def _build() -> object:
    module = ir.Module(name="splitad_zeros")
    zeros_like = _emit_zeros_like(module)
    _emit_note(module)
    _emit_group(module)
    _emit_shadow(module, zeros_like)
    _emit_drop(module)
    _emit_seen(module)
    return compiled(module, SYMBOLS)


_engine = _build()  # owns the machine code
