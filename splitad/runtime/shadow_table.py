"""Shadows of arrays that control flow chose, found by the array's identity.

    shadows = shadow_table(np.float64, 2, "C")    for C-contiguous arrays; "A": any layout, "U": not aligned
    table_set(shadows, 0, d_x)                    the shadow of array number 0
    d_u = table_get(shadows, id_u, (n, m))        zeros where array number id_u has none yet
    table_drop(shadows, id_u)                     forget it: before this point the array did not exist

A negative number is an array that is never looked up again (undefined, or a frozen global): its shadow is
zeros, made anew.  The table owns its shadows, as whoever holds one does; table_code.py does the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_model

from splitad.errors import ShadowError
from splitad.runtime import table_code as code
from splitad.tape.arrays import on_stack, sizes_of
from splitad.tape.columns import scalar_type
from splitad.tape.ops import TAPE, fill_array

_i64 = ir.IntType(64)


class ShadowTable(types.Type):
    """A table of arrays of one type."""

    def __init__(self, arrays: types.Array) -> None:
        self.arrays = arrays
        super().__init__(f"ShadowTable({arrays})")

    @property
    def key(self) -> types.Type:
        return self.arrays


@register_model(ShadowTable)
class ShadowTableModel(models.StructModel):
    """An array(int64, 1d, C) whose memory is the handle, for the sake of its reference count."""

    def __init__(self, dmm: Any, fe_type: ShadowTable) -> None:
        super().__init__(dmm, fe_type, [("handle", TAPE)])


def array_type(dtype: types.Type, ndim: int, layout: str) -> types.Array:
    """The type of the arrays in a table."""
    aligned = layout != "U"
    return types.Array(dtype, ndim, layout if aligned else "A", aligned=aligned)


def _words(arrays: types.Array) -> int:
    return 5 + 2 * arrays.ndim


@intrinsic(prefer_literal=True)  # type: ignore[misc]
def shadow_table(typingctx: Any, dtype: Any, ndim: Any, layout: Any) -> Any:
    if not (isinstance(ndim, types.IntegerLiteral) and isinstance(layout, types.StringLiteral)):
        return None
    result = ShadowTable(array_type(scalar_type(dtype), ndim.literal_value, layout.literal_value))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = cgutils.voidptr_t
        kind = ir.FunctionType(ir.VoidType(), [pointer, _i64, pointer])
        dtor = cgutils.get_or_insert_function(builder.module, kind, "splitad_table_dtor")
        meminfo = context.nrt.meminfo_alloc_dtor(
            builder, context.get_constant(types.uintp, 24), dtor
        )
        data = context.nrt.meminfo_data(builder, meminfo)
        words = builder.bitcast(data, _i64.as_pointer())
        for k, value in enumerate((0, 0, 8 * _words(result.arrays))):
            builder.store(_i64(value), builder.gep(words, [_i64(k)]))
        table = cgutils.create_struct_proxy(result)(context, builder)
        three = context.get_constant(types.intp, 3)
        table.handle = fill_array(context, builder, TAPE, data, [three], meminfo)
        return table._getvalue()

    return result(dtype, ndim, layout), codegen


def _call(context: Any, builder: Any, table_type: Any, table: Any, name: str, *rest: Any) -> Any:
    """Call one of table_code's functions on a table."""
    assert name in code.SYMBOLS
    struct = cgutils.create_struct_proxy(table_type)(context, builder, table)
    data = context.make_array(TAPE)(context, builder, struct.handle).data
    result = ir.VoidType() if name == "splitad_table_drop" else _i64
    kind = ir.FunctionType(result, [_i64] * (1 + len(rest)))
    fn = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(fn, [builder.ptrtoint(data, _i64), *rest])


def _entry_array(context: Any, builder: Any, arrays: types.Array, entry: Any) -> Any:
    """A pointer to the array struct in an entry; MemoryError where there is none."""
    with builder.if_then(builder.icmp_signed("==", entry, _i64(0)), likely=False):
        message = ("no memory for a shadow",)
        context.call_conv.return_user_exc(builder, MemoryError, message)
    return builder.inttoptr(entry, context.get_value_type(arrays).as_pointer())


def get_value(
    context: Any, builder: Any, table_type: Any, table: Any, key: Any, sizes: list[Any]
) -> Any:
    """The shadow of array number `key`, as a new reference."""
    arrays = table_type.arrays
    itemsize = context.get_abi_sizeof(context.get_data_type(arrays.dtype))
    rest = (key, _i64(len(sizes)), _i64(itemsize), on_stack(builder, sizes))
    entry = _call(context, builder, table_type, table, "splitad_table_get", *rest)
    value = builder.load(_entry_array(context, builder, arrays, entry))
    context.nrt.incref(builder, arrays, value)
    return value


@intrinsic  # type: ignore[misc]
def table_get(typingctx: Any, table: Any, key: Any, shape: Any) -> Any:
    _need(table, len(shape))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sizes = sizes_of(context, builder, shape, args[2])
        return get_value(context, builder, table, args[0], args[1], sizes)

    return table.arrays(table, types.intp, shape), codegen


@intrinsic  # type: ignore[misc]
def table_set(typingctx: Any, table: Any, key: Any, shadow: Any) -> Any:
    _need(table, shadow.ndim)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        handle, key_, value = args
        context.nrt.incref(builder, shadow, value)
        _call(context, builder, table, handle, "splitad_table_drop", key_)
        entry = _call(context, builder, table, handle, "splitad_table_entry", key_)
        value = context.cast(builder, value, shadow, table.arrays)
        builder.store(value, _entry_array(context, builder, table.arrays, entry))
        return context.get_dummy_value()

    return types.none(table, types.intp, shadow), codegen


@intrinsic  # type: ignore[misc]
def table_drop(typingctx: Any, table: Any, key: Any) -> Any:
    _need(table)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _call(context, builder, table, args[0], "splitad_table_drop", args[1])
        return context.get_dummy_value()

    return types.none(table, types.intp), codegen


def _need(table: Any, ndim: int | None = None) -> None:
    if not isinstance(table, ShadowTable) or ndim not in (None, table.arrays.ndim):
        raise TypingError(f"a table of arrays of {ndim} dimensions is needed, not {table}")


def add_into(shadow: Any, bar: Any) -> None:
    """``shadow += bar`` without ever writing bar; None adds nothing.  False where the shapes differ."""
    raise NotImplementedError


@overload(add_into)
def _add_into(shadow, bar):  # type: ignore[no-untyped-def]
    if isinstance(bar, types.NoneType):
        return lambda shadow, bar: True
    if not isinstance(bar, types.Array):
        raise TypingError(f"result_bar must be an array where the result is one, not {bar}")
    if bar.ndim != shadow.ndim:
        raise TypingError(
            f"result_bar has {bar.ndim} dimensions where the result has {shadow.ndim}"
        )
    if bar.ndim == 0:

        def scalar(shadow, bar):  # type: ignore[no-untyped-def]
            shadow[()] += bar[()]
            return True

        return scalar

    def impl(shadow, bar):  # type: ignore[no-untyped-def]
        if shadow.shape != bar.shape:
            return False
        for index in np.ndindex(shadow.shape):
            shadow[index] += bar[index]
        return True

    return impl


@intrinsic  # type: ignore[misc]
def as_contiguous(typingctx: Any, a: Any) -> Any:
    """The same array with a type that says that it is C-contiguous; ShadowError where it is not."""
    result = a.copy(layout="C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(a)(context, builder, args[0])
        expected = array.itemsize
        fits = cgutils.true_bit
        shape = cgutils.unpack_tuple(builder, array.shape)
        strides = cgutils.unpack_tuple(builder, array.strides)
        for n, stride in zip(reversed(shape), reversed(strides), strict=True):
            short = builder.icmp_signed("<=", n, n.type(1))
            fits = builder.and_(
                fits, builder.or_(short, builder.icmp_signed("==", stride, expected))
            )
            expected = builder.mul(expected, n)
        empty = builder.icmp_signed("==", array.nitems, array.nitems.type(0))
        with builder.if_then(builder.not_(builder.or_(fits, empty)), likely=False):
            text = ("the shadow of a field that is C-contiguous must be C-contiguous",)
            context.call_conv.return_user_exc(builder, ShadowError, text)
        made = context.make_array(result)(context, builder)
        for name in ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides"):
            setattr(made, name, getattr(array, name))
        value = made._getvalue()
        context.nrt.incref(builder, result, value)
        return value

    return result(a), codegen
