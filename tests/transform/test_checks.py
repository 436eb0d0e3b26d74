"""Checks at the boundary that need a whole pair; the checks by themselves are in tests/runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import splitad as ad
from tests.leaks import no_leak
from tests.pairs import check


@jitclass([("h", float64[::1]), ("g", float64[::1])])
class Holder:
    def __init__(self, h, g):
        self.h = h
        self.g = g


@jitclass([("h", float64[:, :])])
class Grid:
    def __init__(self, h):
        self.h = h


X = np.array([1.3, 2.1, 0.7, 1.7])


def rebinds(x, s):
    """s.h may be a part of x when it starts, and never when it ends."""
    s.h[0] = s.h[0] * x[1]
    s.h = s.h * x[0]
    x[1] = x[1] * s.h[1]
    return x[0] * s.h[1] + s.g[0]


forward = ad.split(rebinds)


def central(f: Callable[..., float], x: np.ndarray) -> np.ndarray:
    """Central differences of fourth order."""
    step, found = 1e-3, np.zeros(x.size)
    for k in range(x.size):
        values = []
        for n in (-2, -1, 1, 2):
            moved = x.copy()
            moved.flat[k] += n * step
            values.append(f(moved))
        found[k] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return found.reshape(x.shape)


@njit
def in_njit(x, s):
    return forward(x, s)


@pytest.mark.parametrize("run", [forward, in_njit], ids=["python", "njit"])
def test_a_rebound_field_that_is_a_part_of_an_argument(run: Any) -> None:
    """The shadows are apart as the arrays are at exit, and together as they were at entry."""
    x_exit, h_exit = np.array([0.3, 0.5, 0.7, 0.9]), np.array([1.1, -0.4])

    def weighted(x: np.ndarray) -> float:
        s = Holder(x[:2], np.ones(2))
        result = rebinds(x, s)
        return float(x_exit @ x + h_exit @ s.h + result)

    want = central(weighted, X)

    def check() -> None:
        x = X.copy()
        _, pullback = run(x, Holder(x[:2], np.ones(2)))
        for _ in range(2):
            x_bar, s_bar = pullback.make_zero()
            assert not np.shares_memory(x_bar, s_bar.h)
            x_bar[:], s_bar.h, s_bar.g = x_exit, h_exit.copy(), np.zeros(2)
            pullback(1.0, x_bar, s_bar)
            assert np.allclose(x_bar, want, rtol=1e-9) and s_bar.g.tolist() == [1.0, 0.0]
            assert np.shares_memory(x_bar, s_bar.h) and np.array_equal(s_bar.h, x_bar[:2])

    check()
    with no_leak():
        check()


def test_two_rebound_fields_that_are_one_array() -> None:
    def both(s, c):
        s.h[0] = s.h[0] * c
        s.g = s.g * s.h[0]
        s.h = s.h + s.g
        return s.h[0] * s.g[1]

    x = X.copy()
    _, pullback = ad.split(both)(Holder(x, x), 1.5)
    (s_bar,) = pullback.make_zero()
    pullback(1.0, s_bar)
    want = central(lambda x: both(Holder(x, x), 1.5), X)
    assert np.allclose(s_bar.h, want, rtol=1e-9) and np.array_equal(s_bar.g, s_bar.h)
    assert np.shares_memory(s_bar.g, s_bar.h)


def swaps(x, s, n):
    for _ in range(n):
        s.h, s.g = s.g, s.h
        s.h[0] = s.h[0] * s.g[1]
    if n < 3:
        s.g = s.g * 2.0
    return s.h[0] + s.g[1] * x[0]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_fields_that_are_swapped(n: int) -> None:
    """With n = 3 both arrays are still there at exit, each in the other's field."""
    x = X.copy()
    check(swaps, x, Holder(x[:2], x[2:]), n)


def two_d(x, s):
    x[0, 1] = x[0, 1] * s.h[1, 0]
    s.h = s.h * x[0, 0]
    x[1, 1] = s.h[0, 1] * x[1, 1]
    return x[1, 1] * s.h[1, 1]


def test_a_part_of_two_dimensions() -> None:
    m = np.arange(1.0, 7.0).reshape(2, 3) / 3.0
    want = central(lambda x: two_d(x, Grid(x[:, 1:].T)), m)
    _, pullback = ad.split(two_d)(m, Grid(m[:, 1:].T))
    m_bar, s_bar = pullback.make_zero()
    pullback(1.0, m_bar, s_bar)
    assert np.allclose(m_bar, want, rtol=1e-9) and np.array_equal(s_bar.h, m_bar[:, 1:].T)
    with pytest.raises(ad.ShadowError, match="laid out as the argument"):
        pullback(1.0, np.zeros((3, 2)).T, Grid(np.zeros((2, 2))))


def test_a_rebound_field_that_is_no_part() -> None:
    """It sticks out of the argument, or the argument has gaps: refused, and nothing was done."""
    x = X.copy()
    for a, field in [(x[:2], x[1:]), (x[:2], x), (x[::2], x[:2])]:
        with pytest.raises(ad.AliasingError, match=r"'x' and 's\.h' of rebinds overlap"):
            forward(a, Holder(field, np.ones(2)))
    assert np.array_equal(x, X)
    forward(x[:2], Holder(x[2:], np.ones(2)))


def reads_beside(w, s, t):
    """s.h is assigned, t.h is changed."""
    t.h[0] = w[1] * s.h[0]
    s.h = s.h * w[0]
    return s.h[0] * s.h[1] * t.h[0]


def test_a_const_argument_beside_a_field_that_is_assigned() -> None:
    """It has no shadow that could follow; the way out that the error names is one."""
    x = X.copy()
    own = [Holder(X[:2].copy(), np.ones(2)) for _ in range(2)]
    const = ad.split(reads_beside, ad.Const, ad.Duplicated, ad.Duplicated)
    message = (
        r"'w' and 's\.h' of reads_beside overlap .* changed, and w is Const: make w Duplicated"
    )
    with pytest.raises(ad.AliasingError, match=message):
        const(x[:2], Holder(x[:2], np.ones(2)), own[1])
    assert np.array_equal(x, X)
    const = ad.split(reads_beside, ad.Const, ad.Duplicated, ad.Const)
    with pytest.raises(ad.AliasingError, match="t.h and w are Const: make t and w Duplicated"):
        const(x[:2], own[0], Holder(x[:2], np.ones(2)))

    def at(x):
        return reads_beside(x[:2], Holder(x[:2], np.ones(2)), Holder(X[:2].copy(), np.ones(2)))

    _, pullback = ad.split(reads_beside)(x[:2], Holder(x[:2], np.ones(2)), own[1])
    w_bar, s_bar, t_bar = pullback.make_zero()
    pullback(1.0, w_bar, s_bar, t_bar)
    assert np.allclose(w_bar, central(at, X.copy())[:2], rtol=1e-9)
