"""What generated code does with lists: the items of list arguments as arrays, and back into the lists.

f and its pullback work on arrays; a list of the caller's is read at entry, the shadow of one is read and
written by the functions here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numba.np.numpy_support import as_dtype
from numba.typed.listobject import new_list

from splitad.runtime.zero_parts import identity

LISTS = (types.List, types.ListType)


def list_items(xs: Any) -> Any:
    """The items of a list of numbers in a new array."""
    return np.array(xs)


@overload(list_items, strict=False)
def _list_items(xs: Any) -> Any:
    dtype = as_dtype(xs.dtype)

    def impl(xs: Any) -> Any:
        made = np.empty(len(xs), dtype)
        for k in range(len(xs)):
            made[k] = xs[k]
        return made

    return impl


def list_id(xs: Any) -> int:
    """What tells a list from others that are alive."""
    return id(xs)


@overload(list_id, strict=False)
def _list_id(xs: Any) -> Any:
    return lambda xs: identity(xs)


@njit
def refer(listed: Any, marks: Any, array: Any, its: Any) -> int:
    """Keep an array, and what identifies it; the number under which it is found again."""
    listed.append(array)
    marks.append(its)
    return len(listed) - 1


@njit
def take_items(shadow: Any, items: Any) -> None:
    """Add what a list holds to the first elements of an array."""
    for k in range(len(shadow)):
        items[k] += shadow[k]


@njit
def add_items(shadow: Any, items: Any) -> None:
    """Add an array to a list of the same length."""
    for k in range(len(shadow)):
        shadow[k] += items[k]


@njit
def put_items(shadow: Any, items: Any) -> None:
    """Make a list as long as an array, with the same contents."""
    while len(shadow) > len(items):
        shadow.pop()
    held = len(shadow)
    for k in range(held):
        shadow[k] = items[k]
    for k in range(held, len(items)):
        shadow.append(items[k])


@cache
def list_of_zeros(kind: types.Type) -> Any:
    """``f(n)``: a list of this type with n zeros in it."""
    zero = as_dtype(kind.dtype).type(0)
    if isinstance(kind, types.ListType):
        item = kind.dtype

        def make(n: int) -> Any:
            made = new_list(item)
            for _ in range(n):
                made.append(zero)
            return made

    else:

        def make(n: int) -> Any:
            return [zero for _ in range(n)]

    return njit(make)
