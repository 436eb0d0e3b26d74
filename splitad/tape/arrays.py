"""Whole arrays: on the tape, their elements in C order, then their shape; and new ones.

    need = snapshot_nbytes(a)              the bytes that it takes, a multiple of 8
    put_array(address, cur, a)             writes it at offset cur
    last_array(address, cur, dtype, ndim)  the array that ends at offset cur, over the tape's memory
    empty_array(shape, dtype), zero_array(shape, dtype)    as np.empty and np.zeros, for a tuple of sizes

Intrinsics, not compiled functions: they are used for every type of array, and cost no compilation each.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl, _parse_shape

from splitad.tape.columns import pointer, scalar_type
from splitad.tape.ops import _transfer, fill_array

_i64 = ir.IntType(64)


def _rounded(builder: Any, nbytes: Any) -> Any:
    return builder.and_(builder.add(nbytes, _i64(7)), _i64(-8))


def _data_nbytes(builder: Any, array: Any) -> Any:
    return _rounded(builder, builder.mul(array.nitems, array.itemsize))


@intrinsic  # type: ignore[misc]
def snapshot_nbytes(typingctx: Any, a: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(a)(context, builder, args[0])
        return builder.add(_data_nbytes(builder, array), _i64(8 * a.ndim))

    return types.int64(a), codegen


@intrinsic  # type: ignore[misc]
def put_array(typingctx: Any, address: Any, cur: Any, a: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        base, cur_, value = args
        _transfer(context, builder, a, value, pointer(builder, base, cur_), to_flat=True)
        array = context.make_array(a)(context, builder, value)
        end = builder.add(cur_, _data_nbytes(builder, array))
        words = builder.bitcast(pointer(builder, base, end), _i64.as_pointer())
        for axis, n in enumerate(cgutils.unpack_tuple(builder, array.shape)):
            builder.store(n, builder.gep(words, [_i64(axis)]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, a), codegen


@intrinsic(prefer_literal=True)  # type: ignore[misc]
def last_array(typingctx: Any, address: Any, cur: Any, dtype: Any, ndim: Any) -> Any:
    if not isinstance(ndim, types.IntegerLiteral):
        return None
    count = ndim.literal_value
    array_type = types.Array(scalar_type(dtype), count, "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        base, end = args[:2]
        end = builder.sub(end, _i64(8 * count))
        words = builder.bitcast(pointer(builder, base, end), _i64.as_pointer())
        shape = [builder.load(builder.gep(words, [_i64(axis)])) for axis in range(count)]
        item = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
        nbytes = _i64(item)
        for n in shape:
            nbytes = builder.mul(nbytes, n)
        start = builder.sub(end, _rounded(builder, nbytes))
        return fill_array(context, builder, array_type, pointer(builder, base, start), shape)

    return array_type(types.int64, types.int64, dtype, ndim), codegen


def _new(context: Any, builder: Any, array_type: Any, shape: Any, value: Any) -> Any:
    """A new array; ValueError for a negative size, MemoryError, as Numba has them."""
    sizes = _parse_shape(context, builder, shape, value)
    return _empty_nd_impl(context, builder, array_type, sizes)


@intrinsic  # type: ignore[misc]
def empty_array(typingctx: Any, shape: Any, dtype: Any) -> Any:
    array_type = types.Array(scalar_type(dtype), len(shape), "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _new(context, builder, array_type, shape, args[0])._getvalue()

    return array_type(shape, dtype), codegen


@intrinsic  # type: ignore[misc]
def zero_array(typingctx: Any, shape: Any, dtype: Any) -> Any:
    array_type = types.Array(scalar_type(dtype), len(shape), "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = _new(context, builder, array_type, shape, args[0])
        cgutils.memset(builder, array.data, builder.mul(array.nitems, array.itemsize), 0)
        return array._getvalue()

    return array_type(shape, dtype), codegen
