"""Structs that are given to recursive functions."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64, int64, njit
from numba.experimental import jitclass

import splitad as ad
from splitad.testing import check_vjp


@jitclass([("h", float64), ("u", float64[:]), ("k", int64)])
class State:
    def __init__(self, h, u):
        self.h = h
        self.u = u
        self.k = 0


@jitclass([("s", State.class_type.instance_type), ("w", float64[:]), ("c", float64)])
class Outer:
    def __init__(self, s, w, c):
        self.s = s
        self.w = w
        self.c = c


@njit
def advance(s, a, n):
    s.k += 2
    if n == 0:
        s.h *= a
        return
    s.u[0] += s.h * a
    advance(s, a * 0.9, n - 1)
    s.h += s.u[1] * s.u[0]
    if s.h > 0.1:
        advance(s, s.h, n - 1)


def an_argument(s, a):
    advance(s, a, 2)
    return s.h * s.k


def made_here(x, a):
    s = State(a, x)
    for i in range(2):
        advance(s, a * i, 1)
    return s.h * s.u[0] * s.k


@njit
def exchange(s, t, n):
    s.h *= t.h
    s.u[1] += t.u[0] * t.h
    if n > 0:
        exchange(t, s, n - 1)


def sharing_an_array(s, a):
    t = State(a, s.u)
    exchange(s, t, 2)
    advance(t, s.h, 1)
    return s.h * t.h


@njit
def nested(o, n):
    o.c *= o.s.h
    o.w[0] += o.s.u[n] * o.c
    o.s.h += o.w[0]
    if n > 0:
        nested(o, n - 1)
        advance(o.s, o.c, n)


@njit
def returning(s, n):
    y = s.u * s.h
    s.h += 0.1 * y[0]
    if n == 0:
        return y
    return returning(s, n - 1) * y


@njit
def leaving_early(s, n):
    while s.h < 5.0:
        s.h = s.h * 1.5
        if n > 0:
            leaving_early(s, n - 1)
        if s.h > 3.0:
            return s.h * s.u[0]
        s.u[1] *= s.h
    return 0.5 * s.h


@njit
def evolve(s, n):
    if n <= 0:
        return s
    s.u[0] += 0.1 * s.h * s.u[1]
    s.h = np.sin(s.h + s.u[0])
    if s.h > 0.9:
        return evolve(s, n - 2)
    return evolve(n=n - 1, s=s)


def given_back(s, n):
    t = evolve(s, n)
    t.h *= t.u[0]
    return s.h + t.u[1]


@njit
def refined(s, n):
    if n == 0:
        return State(s.h * 2.0, s.u * s.h)
    t = refined(s, n - 1)
    t.h += s.u[n] * t.u[0]
    t.k += 1
    return State(t.h * 0.5, t.u + t.h)


def made_anew(s, n):
    t = refined(s, n)
    t.u[0] *= s.h
    return t.h * t.u[0] + t.u[1]


def beside(s, a, n):
    """What the call changes carries no derivative."""
    advance(s, 0.1, n)
    return a * a


def state():
    return State(0.7, np.array([0.1, 0.2, 0.3]))


PROGRAMS = {
    "an_argument": (an_argument, lambda: (state(), 0.6)),
    "made_here": (made_here, lambda: (np.array([0.1, 0.2]), 0.6)),
    "sharing_an_array": (sharing_an_array, lambda: (state(), 0.6)),
    "two": (exchange, lambda: (state(), State(0.6, np.ones(2)), 3)),
    "nested": (nested, lambda: (Outer(state(), np.ones(2), 0.8), 2)),
    "returning": (returning, lambda: (state(), 2)),
    "given_back": (given_back, lambda: (state(), 3)),
    "made_anew": (made_anew, lambda: (state(), 2)),
    "leaving_early": (leaving_early, lambda: (state(), 2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_differences(name: str) -> None:
    function, args = PROGRAMS[name]
    check_vjp(function, *args())


def test_without_a_derivative() -> None:
    check_vjp(beside, state(), 0.6, 2, activities=(ad.Const, ad.Active, ad.Const))


@njit
def raising(s, n):
    s.h *= 2.0
    s.u[0] = 5.0
    if n == 0:
        raise ValueError("deep")
    raising(s, n - 1)


def calls_it(s):
    raising(s, 2)


def test_what_an_exception_leaves() -> None:
    left = []
    for function in (njit(calls_it), ad.split(calls_it)):
        s = state()
        with pytest.raises(ValueError, match="deep"):
            function(s)
        left.append((s.h, *s.u))
    assert left[0] == left[1] == (0.7 * 8, 5.0, 0.2, 0.3)


@njit
def rebinding(s, n):
    s.u = s.u * 2.0
    if n > 0:
        rebinding(s, n - 1)


def one_twice(s):
    exchange(s, s, 1)


def calls_rebinding(s):
    rebinding(s, 1)


@njit
def one_of_them(s, t, n):
    if n == 0:
        return s
    return one_of_them(t, s, n - 1)


def calls_one_of_them(s):
    return one_of_them(s, State(1.0, np.ones(3)), 2).h


@njit
def held(s, t, n):
    if n > 0:
        held(s, t, n - 1)
    return t


def calls_held(s):
    return held(s, State(1.0, np.ones(3)), 2).h + inside(s, 2).h


@njit
def inside(s, n):
    if n > 0:
        t = inside(s, n - 1)
        s.h += t.h
    u = s
    return u


@pytest.mark.parametrize(
    "function, reason",
    [
        (one_twice, "given twice"),
        (calls_rebinding, "assigns the field `u`"),
        (calls_one_of_them, "The result is not the same kind of thing on every path"),
        (calls_held, "returns a struct that is one of its arguments"),
    ],
)
def test_refused(function, reason) -> None:
    with pytest.raises(ad.UnsupportedError, match=reason):
        ad.split(function)(state())
