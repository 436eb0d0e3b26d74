"""Parts of arguments that splitad does not look into: ignored where not used, refused where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import pytest
from numba import types

from splitad.errors import InternalError, UnsupportedError
from splitad.frontend import operators
from splitad.frontend.lower import CompileFlags, lower
from splitad.rules import ops, registry

LISTS = (types.ListType(types.float64), types.List(types.float64, reflected=True))


@numba.njit
def first(ys: Any, a: float) -> float:
    return ys[0] * a


def lowered(f: Callable[..., Any], *kinds: types.Type) -> Any:
    return lower(f, kinds, CompileFlags(), registry, ops)


def loops(p, a):
    xs = p[0]
    s = a
    for x in xs:
        s += x
    return s


def passes_on(p, a):
    xs = p[0]
    ys = xs
    return first(ys, a)


def appends(p, a):
    xs = p[0]
    xs.append(a)
    return a


def stores(p, a):
    xs = p[0]
    xs[0] = a
    return a


def sums(p, a):
    xs = p[0]
    return sum(xs) * a


def returns(p, a):
    xs = p[0]
    return xs


def asks(p, a):
    xs = p[0]
    if xs:
        return a
    return 2.0 * a


PROGRAMS = (loops, passes_on, appends, stores, sums, returns, asks)


@pytest.mark.parametrize("kind", LISTS, ids=["typed", "reflected"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_lists(f: Callable[..., Any], kind: types.Type) -> None:
    with pytest.raises(
        UnsupportedError, match=r"`p\[0\]` is a list .* within another argument"
    ) as caught:
        lowered(f, types.Tuple((kind, types.float64)), types.float64)
    assert "Pass the list as an argument of its own" in caught.value.hint
    loc = caught.value.loc
    if f is passes_on:
        assert loc.function == "first"
    else:
        offset = 3 if f is loops else 2
        assert loc.line == f.__code__.co_firstlineno + offset


@pytest.mark.parametrize("kind", LISTS, ids=["typed", "reflected"])
def test_unused_lists(kind: types.Type) -> None:
    def f(xs, a, p):
        zs = xs
        if zs is None:
            return 0.0
        return a * p[1]

    lowered(f, kind, types.float64, types.Tuple((kind, types.float64)))


def test_lists_of_lists() -> None:
    def f(xs, a):
        return xs[0][0] * a

    with pytest.raises(UnsupportedError, match=r"`xs` is a list .* those of numbers and") as caught:
        lowered(f, types.ListType(LISTS[0]), types.float64)
    assert "Pass an array" in caught.value.hint


def test_where_it_is() -> None:
    def f(p):
        q = p[1]
        return q[0]

    with pytest.raises(UnsupportedError, match=r"`p\[1\]` is a list"):
        lowered(f, types.Tuple((types.float64, LISTS[0])))


def test_other_types() -> None:
    def f(d, a):
        return d[1] * a

    with pytest.raises(UnsupportedError, match=r"`d` is a DictType.*, which is not supported"):
        lowered(f, types.DictType(types.intp, types.float64), types.float64)


def test_a_fault_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x):
        y = x * 2.0
        return y - 1.0

    def broken(*args: Any) -> None:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(operators, "binary", broken)
    with pytest.raises(InternalError, match="IndexError: tuple index out of range") as caught:
        lowered(f, types.float64)
    assert caught.value.loc.line == f.__code__.co_firstlineno + 1
