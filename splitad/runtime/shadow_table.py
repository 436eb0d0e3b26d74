"""Shadows of arrays that control flow chose, found by the array's identity.

A table is a list of arrays in generated code; an empty array stands for a shadow that was not yet needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from splitad.errors import ShadowError


@njit
def table_get(table: Any, key: int, shape: Any) -> Any:
    """The shadow of array number `key`, zeros of this shape where it has none yet.

    A negative key is an array that is never looked up again (undefined, or a frozen global).
    """
    if key < 0:
        scratch = table[0:1]
        scratch[0] = np.zeros(shape, table[0].dtype)
        return scratch[0]
    while len(table) <= key:
        table.append(np.zeros(_empty_shape(shape), table[0].dtype))
    if table[key].size == 0:
        table[key] = np.zeros(shape, table[0].dtype)
    return table[key]


@njit
def table_set(table: Any, key: int, shadow: Any) -> None:
    """Say which array is the shadow of array number `key`."""
    while len(table) <= key:
        table.append(np.zeros(_empty_shape(shadow.shape), shadow.dtype))
    table[key] = shadow


@njit
def table_drop(table: Any, key: int) -> None:
    """Forget the shadow of an array that did not exist before this point of the forward."""
    if 0 <= key < len(table):
        table[key] = np.zeros(_empty_shape(table[key].shape), table[0].dtype)


def _empty_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0,) * len(shape)


@overload(_empty_shape)
def _empty_shape_impl(shape):  # type: ignore[no-untyped-def]
    zeros = (0,) * len(shape)
    return lambda shape: zeros


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
