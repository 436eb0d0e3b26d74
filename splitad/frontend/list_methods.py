"""Methods of lists in terms of those that `lists` knows: they are lowered as calls of these functions.

xs.insert(k, t)         insert(xs, k, t)
xs.pop(k), del xs[k]    pop(xs, k)
xs[1:3]                 part(xs, 1, 3, None)        a new list
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core import types

from splitad.errors import SplitadError, UnsupportedError
from splitad.frontend.inline import inline
from splitad.frontend.state import Context
from splitad.frontend.values import NONE, GrowVal, Value
from splitad.ir import nodes as ir


@njit
def insert(xs, k, item):  # type: ignore[no-untyped-def]
    n = len(xs)
    if k < 0:
        k += n
    k = min(max(k, 0), n)
    xs.append(item)
    for j in range(n, k, -1):
        xs[j] = xs[j - 1]
    xs[k] = item


@njit
def pop(xs, k):  # type: ignore[no-untyped-def]
    n = len(xs)
    if n == 0:
        raise IndexError("pop from empty list")
    if k < 0:
        k += n
    if k < 0 or k >= n:
        raise IndexError("pop index out of range")
    item = xs[k]
    for j in range(k, n - 1):
        xs[j] = xs[j + 1]
    xs.pop()
    return item


@njit
def reverse(xs):  # type: ignore[no-untyped-def]
    n = len(xs)
    for k in range(n // 2):
        xs[k], xs[n - 1 - k] = xs[n - 1 - k], xs[k]


@njit
def sort(xs):  # type: ignore[no-untyped-def]
    n = len(xs)
    if n == 0:
        return
    held = np.full(n, xs[0])
    for k in range(n):
        held[k] = xs[k]
    order = np.argsort(held, kind="mergesort")
    for k in range(n):
        xs[k] = held[order[k]]


@njit
def sort_backwards(xs):  # type: ignore[no-untyped-def]
    sort(xs)
    reverse(xs)


@njit
def index(xs, item):  # type: ignore[no-untyped-def]
    for k in range(len(xs)):
        if xs[k] == item:
            return k
    raise ValueError("value not in list")


@njit
def count(xs, item):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(xs)):
        if xs[k] == item:
            found += 1
    return found


@njit
def remove(xs, item):  # type: ignore[no-untyped-def]
    pop(xs, index(xs, item))


@njit
def part(xs, start, stop, step):  # type: ignore[no-untyped-def]
    n = len(xs)
    by = 1 if step is None else step
    if by == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, n) if by > 0 else (-1, n - 1)
    first, last = (low, high) if by > 0 else (high, low)
    if start is not None:
        first = min(max(start + n if start < 0 else start, low), high)
    if stop is not None:
        last = min(max(stop + n if stop < 0 else stop, low), high)
    return [xs[k] for k in range(first, last, by)]


_METHODS: dict[tuple[str, int], Callable[..., Any]] = {
    ("insert", 2): insert,
    ("pop", 1): pop,
    ("reverse", 0): reverse,
    ("sort", 0): sort,
    ("index", 1): index,
    ("count", 1): count,
    ("remove", 1): remove,
}


def find(name: str, args: list[Any], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function for a call of a list's method; None where `lists` does it, or nobody."""
    if name == "sort" and not args and set(kwargs) == {"reverse"}:
        backwards = getattr(kwargs["reverse"], "value", None)
        return {True: sort_backwards, False: sort}.get(backwards)  # type: ignore[arg-type]
    return None if kwargs else _METHODS.get((name, len(args)))


def call(c: Context, helper: Callable[..., Any], args: list[Value], site: int) -> Value:
    """What the helper returns; refusals show the user's line."""
    loc = c.b.loc
    try:
        return inline(c, helper, args, {}, site)
    except SplitadError as error:
        what = getattr(args[0], "type", "")
        name = helper.__name__
        raise UnsupportedError(
            f"{name} is not supported for {what}: {error.args[0]}", loc, "Write it as a loop."
        ) from error


def sliced(
    c: Context, owner: GrowVal, bounds: ir.Slice, type: types.Type | None, site: int
) -> GrowVal:
    """``owner[start:stop:step]``, a new list."""
    each = [NONE if b is None else b for b in (bounds.start, bounds.stop, bounds.step)]
    made = call(c, part, [owner, *each], site)
    assert isinstance(made, GrowVal)
    return GrowVal(made.oid, owner.type if type is None else type)
