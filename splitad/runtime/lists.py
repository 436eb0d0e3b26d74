"""What generated code does with lists: the items of list arguments as arrays, and back into the lists.

f and its pullback work on arrays; a list of the caller's is read at entry, the shadow of one is read and
written by the functions here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable
from numba.np.numpy_support import as_dtype
from numba.typed.listobject import new_list

from splitad.runtime import faults
from splitad.runtime.boundary import note_overlaps_itself, overlap, same_notes, stack_note
from splitad.runtime.shadow_table import as_contiguous, table_get, table_set
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
def refer_all(listed: Any, marks: Any, arrays: Any, first: int) -> Any:
    """Keep all arrays of a list, identified by first, first + 1, ...; their numbers."""
    numbers = np.empty(len(arrays), np.int64)
    for k in range(len(arrays)):
        numbers[k] = refer(listed, marks, arrays[k], (first + k,))
    return numbers


@njit
def set_shadows(table: Any, first: int, shadows: Any) -> None:
    """The shadows of arrays that are identified so."""
    for k in range(len(shadows)):
        table_set(table, first + k, shadows[k])


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


# ---- lists of arrays -----------------------------------------------------------------------------------


def typed_copy(xs: Any) -> Any:
    """A typed list with the same arrays."""
    raise NotImplementedError


@overload(typed_copy, strict=False)
def _typed_copy(xs: Any) -> Any:
    item = xs.dtype

    def impl(xs: Any) -> Any:
        made = new_list(item)
        for k in range(len(xs)):
            made.append(xs[k])
        return made

    return impl


@njit
def plain_copy(xs: Any) -> Any:
    """A list that is not typed, with the same arrays."""
    return [x for x in xs]  # noqa: C416


def deep_copy(value: Any) -> Any:
    """A copy of an array, or of a list of numbers; of a list of arrays a list of these arrays, and one of
    copies of them."""
    return value.copy()


@overload(deep_copy, strict=False)
def _deep_copy(value: Any) -> Any:
    if not isinstance(value, LISTS) or not isinstance(value.dtype, types.Array):
        return lambda value: value.copy()

    def impl(value: Any) -> Any:
        made = value.copy()
        for k in range(len(made)):
            made[k] = made[k].copy()
        return value.copy(), made

    return impl


@njit
def same_arrays(xs: Any, ys: Any) -> bool:
    """Whether two lists hold the same arrays."""
    if len(xs) != len(ys):
        return False
    for k in range(len(xs)):
        if not same_notes(stack_note(xs[k]), stack_note(ys[k])):
            return False
    return True


@njit
def overlaps_itself(xs: Any) -> bool:
    """Whether two elements of an array in a list share memory."""
    for k in range(len(xs)):
        if note_overlaps_itself(stack_note(xs[k])):
            return True
    return False


@njit
def meets_itself(xs: Any) -> bool:
    """Whether two arrays in a list share memory."""
    for k in range(len(xs)):
        for j in range(k):
            if overlap(xs[k], xs[j]):
                return True
    return False


@njit
def meets_array(xs: Any, array: Any) -> bool:
    """Whether an array in a list shares memory with another one."""
    for k in range(len(xs)):
        if overlap(xs[k], array):
            return True
    return False


@njit
def meets_list(xs: Any, ys: Any) -> bool:
    for k in range(len(ys)):
        if meets_array(xs, ys[k]):
            return True
    return False


@njit
def shadow_fault(shadow: Any, xs: Any, written: bool) -> int:
    """What is wrong with the shadow of a list of arrays, which is as long as it is; as in faults.py."""
    for k in range(len(xs)):
        if shadow[k].shape != xs[k].shape:
            return faults.WRONG_SHAPE
        kind = array_fault(shadow, xs, k, shadow[k], xs[k], written)
        if kind:
            return kind
    return 0


@njit
def array_fault(shadow: Any, xs: Any, count: int, d_y: Any, y: Any, written: bool) -> int:
    """Whether the shadow of an array overlaps those of the first arrays in a list as these do."""
    for j in range(count):
        kind = faults.pair_fault(
            stack_note(y), stack_note(d_y), stack_note(xs[j]), stack_note(shadow[j]), written
        )
        if kind:
            return kind
    return 0


@njit
def lists_fault(shadow: Any, xs: Any, d_ys: Any, ys: Any, written: bool) -> int:
    """The same for all arrays of another list."""
    for k in range(len(ys)):
        kind = array_fault(shadow, xs, len(xs), d_ys[k], ys[k], written)
        if kind:
            return kind
    return 0


# ---- lists that hold other arrays at exit than at entry ------------------------------------------------


@njit
def marks_at_exit(marks: Any, numbers: Any, length: int) -> Any:
    """What identifies the arrays that a list holds."""
    found = np.empty(length, np.int64)
    for k in range(length):
        found[k] = marks[numbers[k]][0]
    return found


@njit
def set_marked(table: Any, marks: Any, shadows: Any) -> None:
    """The shadows of arrays that are identified so."""
    for k in range(len(shadows)):
        table_set(table, marks[k], shadows[k])


def put_shadows(shadow: Any, table: Any, first: int, arrays: Any) -> None:
    """Make a list hold the shadows of `arrays`, which are identified by first, first + 1, ..."""
    raise NotImplementedError


@overload(put_shadows, strict=False)
def _put_shadows(shadow: Any, table: Any, first: Any, arrays: Any) -> Any:
    contiguous = shadow.dtype.layout == "C" and table.arrays.layout != "C"
    as_held = as_contiguous if contiguous else _itself

    def impl(shadow: Any, table: Any, first: Any, arrays: Any) -> None:
        while len(shadow) > len(arrays):
            shadow.pop()
        held = len(shadow)
        for k in range(len(arrays)):
            array = as_held(table_get(table, first + k, arrays[k].shape))
            if k < held:
                shadow[k] = array
            else:
                shadow.append(array)

    return impl


@register_jitable
def _itself(array: Any) -> Any:
    return array


# ---- zeros ---------------------------------------------------------------------------------------------


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
