"""Lists and structs that take another one's place, in loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import splitad as ad
from splitad.errors import UnsupportedError
from splitad.testing import check_vjp

X = np.array([0.5, 0.7, 0.3])


@jitclass([("h", float64[::1]), ("c", float64)])
class State:
    def __init__(self, h, c):
        self.h = h
        self.c = c


@njit
def particles(x, n):
    """A list that every step makes anew."""
    parts = [x[0], x[1]]
    for k in range(n):
        new = [0.3 * k]
        for p in parts:
            if p > 0.1:
                new.append(p * p + x[2])
        parts = new
    s = 0.0
    for p in parts:
        s += p * x[0]
    return s


@njit
def step(s, x):
    return State(s.h * 0.5 + x, s.c * s.h[0])


@njit
def functional(x, n):
    """A struct that every step makes anew."""
    s = State(x * 1.0, 0.7)
    for _ in range(n):
        s = step(s, x)
        if s.c > 0.3:
            s = State(s.h * 0.1, 0.2)
    return s.c + s.h[2]


@njit
def exchanged(x, n):
    a = State(x.copy(), 1.0)
    b = State(x * 2.0, 0.5)
    for _ in range(n):
        b.h[0] += a.h[1] * a.c
        b.c = a.c * b.h[0]
        a, b = b, a
    return a.c - b.h[0]


@njit
def on_both_sides(x, c):
    if c > 0.2:
        xs = [x[0], x[1]]
    else:
        xs = [x[2]]
        xs.append(x[0] * c)
    xs.append(c)
    if len(xs) > 2:
        xs = [xs[0] * 2.0]
    return xs[0] * xs[-1]


@njit
def exchanged_sometimes(x, n):
    a = State(x.copy(), 1.0)
    b = State(x * 2.0, 0.5)
    for k in range(n):
        b.h[0] += a.h[1] * a.c
        b.c = a.c * b.h[0]
        if b.c < 1.5:
            a, b = b, a
        if a.c > 2.0:
            a = State(b.h * x[0], b.c)
        elif k == 1:
            c = b
            b = State(a.h + c.h, c.c)
    return a.c - b.h[0]


@njit
def of_arrays(x, n):
    kept = [x.copy()]
    for k in range(n):
        new = [kept[0] * 0.5]
        for a in kept:
            new.append(a + x[k % 3])
        kept = new
    s = 0.0
    for a in kept:
        s += a[0] * a[1]
    return s


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (particles, (X, 3)),
        (particles, (X, 0)),
        (functional, (X, 4)),
        (exchanged, (X, 3)),
        (exchanged_sometimes, (X, 4)),
        (on_both_sides, (X, 0.7)),
        (on_both_sides, (X, 0.1)),
        (of_arrays, (X, 2)),
    ],
)
def test_replaced(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check_vjp(f, *args)


# ---- where something else means the object too ---------------------------------------------------------


def another_variable(x, n):
    kept = [x[0]]
    other = kept
    for k in range(n):
        kept = [x[1] * k, other[0]]
    return other[0] * kept[0]


def kept_by_a_name(x, c):
    a = State(x.copy(), 1.0)
    keep = a
    if c > 0:
        a = State(x * c, 2.0)
    a.h[0] *= 3.0
    return keep.h[0] * a.h[0]


@njit
def replaced_inside(s, x, c):
    if c > 0:
        s = State(x * c, 2.0)
    s.c *= 2.0
    return s.c


def known_outside(x, c):
    s = State(x.copy(), 1.0)
    t = replaced_inside(s, x, c)
    return s.c * t


@pytest.mark.parametrize("f", [another_variable, kept_by_a_name, known_outside])
def test_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="is not the same kind of thing on every path"):
        ad.split(f)(X, 2)


def test_an_argument_stays_itself() -> None:
    def renewed(s, x, n):
        for k in range(n):
            s = State(s.h * x[k], s.c * 2.0)
        return s.c

    with pytest.raises(UnsupportedError):
        ad.split(renewed)(State(X.copy(), 1.0), X, 2)
