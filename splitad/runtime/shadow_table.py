"""Shadows of arrays that control flow chose, found by the array's identity.

A table is a list of arrays in generated code; an empty array stands for a shadow that was not yet needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload


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
