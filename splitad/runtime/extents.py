"""Which arrays share memory: their extents, grouped, in njit code.

A table is an int64 array with one row per array: [lo, hi) of the bytes that it may touch, then what `group`
found: the row that leads its group, and in that leader's row where the group starts, how many bytes it
spans (0 where there is one array only), and the meminfo of what stands for it in the shadow.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from splitad.tape.ops import load_at, store_at

LO, HI, LEADER, GROUP_LO, GROUP_SIZE, MEMORY, COLUMNS = range(7)
_i64 = ir.IntType(64)


@intrinsic
def extent(typingctx: Any, array: Any) -> Any:
    """(lo, hi) of the bytes that an array spans; lo == hi where it has no elements."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = context.make_array(array)(context, builder, args[0])
        lo = hi = builder.ptrtoint(value.data, _i64)
        zero, one = _i64(0), _i64(1)
        shape = cgutils.unpack_tuple(builder, value.shape)
        strides = cgutils.unpack_tuple(builder, value.strides)
        for n, stride in zip(shape, strides, strict=True):
            reach = builder.mul(builder.sub(n, one), stride)
            backwards = builder.icmp_signed("<", reach, zero)
            lo = builder.select(backwards, builder.add(lo, reach), lo)
            hi = builder.select(backwards, hi, builder.add(hi, reach))
        hi = builder.add(hi, value.itemsize)
        empty = builder.icmp_signed("==", value.nitems, zero)
        hi = builder.select(empty, lo, hi)
        return context.make_tuple(builder, sig.return_type, [lo, hi])

    return types.UniTuple(types.int64, 2)(array), codegen


def groups(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """(lo, hi, members) of each group of spans that overlap one another; empty spans are in none."""
    ordered = sorted((lo, hi, k) for k, (lo, hi) in enumerate(spans) if lo < hi)
    members: list[int] = []
    start = end = 0
    for lo, hi, k in ordered:
        if members and lo >= end:
            yield start, end, members
            members = []
        if not members:
            start, end = lo, hi
        members.append(k)
        end = max(end, hi)
    if members:
        yield start, end, members


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


llvm.add_symbol("splitad_fill_groups", ctypes.cast(_fill_groups, ctypes.c_void_p).value)


@intrinsic
def group(typingctx: Any, table: Any, rows: Any) -> Any:
    """Fill in the groups of arrays whose extents overlap.  In Python: there are hardly ever any, and
    what is compiled takes its time with every program that makes zeros for two arrays."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(table)(context, builder, args[0]).data
        kind = ir.FunctionType(ir.VoidType(), [_i64, _i64])
        fill = cgutils.get_or_insert_function(builder.module, kind, "splitad_fill_groups")
        builder.call(fill, [builder.ptrtoint(data, _i64), args[1]])
        return context.get_dummy_value()

    return types.none(table, types.int64), codegen


@intrinsic
def data_address(typingctx: Any, array: Any) -> Any:
    """The address of the first element."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_array(array)(context, builder, args[0]).data, _i64)

    return types.int64(array), codegen


_BLOCK = types.Array(types.uint8, 1, "C")


def _zero_memory(context: Any, builder: Any, size: Any) -> tuple[Any, Any]:
    """(meminfo, pointer) of `size` bytes of zeros, 64-byte aligned."""
    meminfo = context.nrt.meminfo_alloc_aligned(builder, size, align=64)
    memory = context.nrt.meminfo_data(builder, meminfo)
    cgutils.memset(builder, memory, size, 0)
    return meminfo, memory


@intrinsic
def _new_block(typingctx: Any, size: Any) -> Any:
    """The meminfo of `size` bytes of zeros, with a reference that `drop_block` gives back."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(_zero_memory(context, builder, args[0])[0], _i64)

    return types.int64(types.int64), codegen


@intrinsic
def drop_block(typingctx: Any, meminfo: Any) -> Any:
    """Give back the table's own reference to a block (0: there is none); the views in it hold theirs.

    Only for a function that allocates arrays itself: from one that does not, Numba may remove every change
    of a reference count.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        block = context.make_array(_BLOCK)(context, builder)
        block.meminfo = builder.inttoptr(args[0], block.meminfo.type)
        context.nrt.decref(builder, _BLOCK, block._getvalue())
        return context.get_dummy_value()

    return types.none(types.int64), codegen


@njit
def place(table: Any, row: int, address: int) -> tuple[int, int]:
    """Where the shadow of this row's array, which starts at `address`, goes: (meminfo, byte offset) in the
    block of its group; (0, 0) where it has no group and gets memory of its own."""
    leader = load_at(table, (row, LEADER))
    size = load_at(table, (leader, GROUP_SIZE))
    if size == 0:
        return 0, 0
    if load_at(table, (leader, MEMORY)) == 0:
        store_at(table, (leader, MEMORY), _new_block(size))
    return load_at(table, (leader, MEMORY)), address - load_at(table, (leader, GROUP_LO))


@intrinsic
def shadow_array(typingctx: Any, array: Any, meminfo: Any, offset: Any) -> Any:
    """A shadow for `array`: a view at `offset` of that meminfo's block; zeros of its own where it is 0."""
    result = array.copy(readonly=False)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        old = context.make_array(array)(context, builder, args[0])
        out = cgutils.alloca_once(builder, context.get_value_type(result))
        own = builder.icmp_signed("==", args[1], _i64(0))
        with builder.if_else(own) as (then, otherwise):
            with then:
                builder.store(_own_zeros(context, builder, result, old), out)
            with otherwise:
                builder.store(_view_in_block(context, builder, result, old, *args[1:]), out)
        return builder.load(out)

    return result(array, types.int64, types.int64), codegen


@intrinsic
def zeros_like(typingctx: Any, array: Any) -> Any:
    """Zeros of an array's shape and type: C order, or Fortran order where the type says so."""
    result = array.copy(readonly=False)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        old = context.make_array(array)(context, builder, args[0])
        return _own_zeros(context, builder, result, old)

    return result(array), codegen


def _like(context: Any, builder: Any, result: Any, old: Any, meminfo: Any, data: Any) -> Any:
    """An array of old's shape and strides."""
    new = context.make_array(result)(context, builder)
    new.meminfo, new.data = meminfo, builder.bitcast(data, new.data.type)
    new.parent = cgutils.get_null_value(new.parent.type)
    new.nitems, new.itemsize = old.nitems, old.itemsize
    new.shape, new.strides = old.shape, old.strides
    return new


def _view_in_block(
    context: Any, builder: Any, result: Any, old: Any, address: Any, offset: Any
) -> Any:
    meminfo = builder.inttoptr(address, cgutils.voidptr_t)
    data = builder.gep(context.nrt.meminfo_data(builder, meminfo), [offset])
    view = _like(context, builder, result, old, meminfo, data)._getvalue()
    context.nrt.incref(builder, result, view)
    return view


def _own_zeros(context: Any, builder: Any, result: Any, old: Any) -> Any:
    size = builder.mul(old.nitems, old.itemsize)
    new = _like(context, builder, result, old, *_zero_memory(context, builder, size))
    fortran = result.layout == "F"
    shape = cgutils.unpack_tuple(builder, old.shape)
    strides, step = [], old.itemsize
    for n in shape if fortran else reversed(shape):
        strides.append(step)
        step = builder.mul(step, n)
    ordered = strides if fortran else strides[::-1]
    new.strides = cgutils.pack_array(builder, ordered, context.get_value_type(types.intp))
    return new._getvalue()


@intrinsic
def copy_items(typingctx: Any, to: Any, source: Any) -> Any:
    """``to[...] = source`` for arrays of equal shape and dtype, any layout."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = [
            context.make_array(typ)(context, builder, value)
            for typ, value in zip(sig.args, args, strict=True)
        ]
        shape = cgutils.unpack_tuple(builder, arrays[1].shape)
        with cgutils.loop_nest(builder, shape, context.get_value_type(types.intp)) as indices:
            there, here = (
                _item_pointer(context, builder, typ, array, shape, indices)
                for typ, array in zip(sig.args, arrays, strict=True)
            )
            cgutils.raw_memcpy(builder, there, here, arrays[1].itemsize, 1)
        return context.get_dummy_value()

    return types.none(to, source), codegen


def _item_pointer(
    context: Any, builder: Any, typ: Any, array: Any, shape: list[Any], indices: Any
) -> Any:
    strides = cgutils.unpack_tuple(builder, array.strides)
    return cgutils.get_item_pointer2(
        context, builder, array.data, shape, strides, typ.layout, indices
    )
