"""Inner functions passed on: to njit functions with constants in the place of what they capture, and to other
inner functions with all that they capture.  Loops over literal_unroll, which call functions of each type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import literal_unroll, njit

from splitad.testing import check_vjp

X = np.array([0.5, 0.7, 0.3])


@njit
def integrate(g, a, b, n):
    s = 0.0
    h = (b - a) / n
    for i in range(n):
        s += g(a + (i + 0.5) * h) * h
    return s


@njit
def constants(b):
    a = -2.0
    k = 3

    def g(t, s=0.5):
        return a * t * k * s

    return integrate(g, 0.0, b, 5) + integrate(lambda t: a * t * t, b, 1.0, 3)


@njit
def composed(x, n):
    def twice(g, v):
        return g(g(v))

    k = x[1]
    return twice(lambda v: v * k + x[0], x[2]) * n


@njit
def square(t):
    return t * t


@njit
def sine(t):
    return math.sin(t)


@njit
def both(functions, a):
    return functions[0](a) * functions[1](a)


@njit
def in_a_tuple(a):
    return both((square, sine), a)


@njit
def unrolled(a, x):
    s = 0.0
    for v in literal_unroll((a, 2, x)):
        w = v * a
        s += np.sum(w * w)
        if s > 1.0:
            s *= 0.5
    return s


@pytest.mark.filterwarnings("ignore::numba.NumbaExperimentalFeatureWarning")
@pytest.mark.parametrize(
    ("f", "args"),
    [(constants, (0.7,)), (composed, (X, 3)), (in_a_tuple, (0.7,)), (unrolled, (0.7, X))],
)
def test_functions_as_values(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check_vjp(f, *args)


def steppers(x, n):
    k = x[1]

    def rhs(y, t):
        return k * y * t + x[0]

    def euler(f, y, t, h):
        return y + h * f(y, t)

    def heun(f, y, t, h):
        z = euler(f, y, t, h)
        return y + 0.5 * h * (f(y, t) + f(z, t + h))

    def run(stepper, f, y0, n=2):
        y = y0
        for i in range(n):
            y = stepper(f, y, i * 0.1, 0.1)
        return y

    y = x[2]
    for i in range(n):
        y = heun(rhs, y, i * 0.1, 0.1)
        k += 0.1
    return y + run(heun, rhs, y) + run(f=rhs, stepper=euler, y0=y, n=n)


def test_functions_passed_through_functions() -> None:
    """Numba itself does not take this one; the pair does what Python does."""
    import splitad as ad

    def value(x: Any) -> Any:
        return ad.split(steppers, ad.Duplicated, ad.Const)(x.copy(), 3)

    result, pullback = value(X)
    assert result == pytest.approx(steppers(X, 3), rel=1e-14)
    (bar,) = pullback.make_zero()
    pullback(1.0, bar)
    step = 1e-6
    for k in range(3):
        e = np.eye(3)[k] * step
        assert bar[k] == pytest.approx(
            (steppers(X + e, 3) - steppers(X - e, 3)) / (2 * step), rel=1e-7
        )
