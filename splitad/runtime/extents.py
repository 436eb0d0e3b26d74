"""Which arrays share memory: their extents, grouped, in njit code.

A table is an int64 array with one row per array: [lo, hi) of the bytes that it may touch, then what `group`
found: the row that leads its group, and in that leader's row the hull [lo, hi) of the group, how many
arrays it has, and the address of the memory that stands for it in the shadow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LO, HI, LEADER, GROUP_LO, GROUP_HI, MEMBERS, MEMORY, COLUMNS = range(8)
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


@njit
def _sorted_rows(table: Any, rows: int) -> Any:
    """Row numbers by LO: a heap sort, since np.argsort takes a second to compile."""
    order = np.arange(rows)
    for step in range(rows + rows // 2):
        # first sift down from the last parent to the root, then take off the largest again and again
        if step < rows // 2:
            root, size = rows // 2 - 1 - step, rows
        else:
            root, size = 0, rows - 1 - (step - rows // 2)
            order[0], order[size] = order[size], order[0]
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and table[order[child], LO] < table[order[child + 1], LO]:
                child += 1
            if table[order[root], LO] >= table[order[child], LO]:
                break
            order[root], order[child] = order[child], order[root]
            root = child
    return order


@njit
def group(table: Any, rows: int) -> None:
    """Fill in the groups of arrays whose extents overlap."""
    leader = -1
    for row in _sorted_rows(table, rows):
        lo, hi = table[row, LO], table[row, HI]
        if leader >= 0 and lo < hi and lo < table[leader, GROUP_HI]:
            table[row, LEADER] = leader
            table[leader, GROUP_HI] = max(table[leader, GROUP_HI], hi)
            table[leader, MEMBERS] += 1
            continue
        table[row, LEADER] = row
        table[row, GROUP_LO], table[row, GROUP_HI] = lo, hi
        table[row, MEMBERS] = 1
        if lo < hi:  # an array without elements may lie amid a group
            leader = row


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
    leader = table[row, LEADER]
    if table[leader, MEMBERS] == 1:
        return 0, 0
    lo = table[leader, GROUP_LO] & -64  # elements are aligned in the shadow as in the primal
    if table[leader, MEMORY] == 0:
        table[leader, MEMORY] = _new_block(table[leader, GROUP_HI] - lo)
    return table[leader, MEMORY], address - lo


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
