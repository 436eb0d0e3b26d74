"""Whole arrays: on the tape, their elements in C order, then their shape; and new ones.

    need = snapshot_nbytes(a)              the bytes that it takes, a multiple of 8
    put_array(address, cur, a)             writes it at offset cur
    last_array(address, cur, dtype, ndim)  the array that ends at offset cur, over the tape's memory
    empty_array(shape, dtype), zero_array(shape, dtype)    as np.empty and np.zeros, for a tuple of sizes
    copy_array(a)                          as a.copy(), of a C-contiguous array
    contiguous_copy(a)                     a C-contiguous copy of any array

Intrinsics, not compiled functions: they are used for every type of array, and cost no compilation each.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from splitad.tape import array_code
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


_ERRORS = {
    array_code.NEGATIVE: (ValueError, "negative dimensions not allowed"),
    array_code.TOO_BIG: (
        ValueError,
        "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.",
    ),
    array_code.NO_MEMORY: (MemoryError, "Allocation failed (probably too large)."),
}


def sizes_of(context: Any, builder: Any, shape_type: Any, shape: Any) -> list[Any]:
    """The items of a tuple of sizes."""
    parts = cgutils.unpack_tuple(builder, shape) if len(shape_type) else []
    return [context.cast(builder, n, t, types.intp) for n, t in zip(parts, shape_type, strict=True)]


def on_stack(builder: Any, sizes: list[Any]) -> Any:
    """The address of some integers."""
    words = cgutils.alloca_once(builder, _i64, size=_i64(max(len(sizes), 1)))
    for k, size in enumerate(sizes):
        builder.store(size, builder.gep(words, [_i64(k)]))
    return builder.ptrtoint(words, _i64)


def _new(context: Any, builder: Any, array_type: Any, sizes: list[Any], zeroed: bool) -> Any:
    """A new C-contiguous array; the errors are those of np.empty."""
    made = cgutils.alloca_once(builder, context.get_value_type(array_type))
    itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    kind = ir.FunctionType(_i64, [_i64] * 5)
    fn = cgutils.get_or_insert_function(builder.module, kind, "splitad_array_new")
    args = [
        builder.ptrtoint(made, _i64), _i64(len(sizes)), _i64(itemsize), on_stack(builder, sizes),
        _i64(int(zeroed)),
    ]  # fmt: skip
    raise_wrong(context, builder, builder.call(fn, args))
    return builder.load(made)


def raise_wrong(context: Any, builder: Any, wrong: Any) -> None:
    """Raise what splitad_array_new says is wrong; nothing where it says 0."""
    with builder.if_then(builder.icmp_signed("!=", wrong, _i64(0)), likely=False):
        for code, (error, text) in _ERRORS.items():
            with builder.if_then(builder.icmp_signed("==", wrong, _i64(code))):
                context.call_conv.return_user_exc(builder, error, (text,))


@intrinsic  # type: ignore[misc]
def empty_array(typingctx: Any, shape: Any, dtype: Any) -> Any:
    array_type = types.Array(scalar_type(dtype), len(shape), "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sizes = sizes_of(context, builder, shape, args[0])
        return _new(context, builder, array_type, sizes, zeroed=False)

    return array_type(shape, dtype), codegen


@intrinsic  # type: ignore[misc]
def zero_array(typingctx: Any, shape: Any, dtype: Any) -> Any:
    array_type = types.Array(scalar_type(dtype), len(shape), "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sizes = sizes_of(context, builder, shape, args[0])
        return _new(context, builder, array_type, sizes, zeroed=True)

    return array_type(shape, dtype), codegen


@intrinsic  # type: ignore[misc]
def copy_array(typingctx: Any, a: Any) -> Any:
    """``a.copy()`` of a C-contiguous array."""
    if a.layout != "C":
        return None
    result = a.copy(readonly=False)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(a)(context, builder, args[0])
        sizes = cgutils.unpack_tuple(builder, array.shape) if a.ndim else []
        value = _new(context, builder, result, sizes, zeroed=False)
        made = context.make_array(result)(context, builder, value)
        nbytes = builder.mul(array.nitems, array.itemsize)
        cgutils.raw_memcpy(builder, made.data, array.data, nbytes, 1)
        return value

    return result(a), codegen


@intrinsic  # type: ignore[misc]
def contiguous_copy(typingctx: Any, a: Any) -> Any:
    """``np.ascontiguousarray(a.copy())``"""
    result = a.copy(layout="C", readonly=False)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(a)(context, builder, args[0])
        sizes = cgutils.unpack_tuple(builder, array.shape) if a.ndim else []
        value = _new(context, builder, result, sizes, zeroed=False)
        made = context.make_array(result)(context, builder, value)
        data = builder.bitcast(made.data, cgutils.voidptr_t)
        _transfer(context, builder, a, args[0], data, to_flat=True)
        return value

    return result(a), codegen
