"""Values of the primal that a pullback computes again have the bits that they had in f.

Pullbacks are compiled so that sums of cotangents may be reassociated.  Under such flags ``(x + big) - big``
becomes x, and Dekker's split of a number loses its lower half; the derivative would be one of other values
than f's.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest

import splitad as ad

BIG = 6755399441055744.0  # 1.5 * 2**52: what is added to it is rounded to a whole number
SPLITTER = 134217729.0  # 2**27 + 1, Dekker 1971


@numba.njit
def rounded(x):
    total = 0.0
    for i in range(x.shape[0]):
        r = (x[i] + BIG) - BIG
        total += r * x[i]
    return total


@numba.njit
def split_in_two(x):
    total = 0.0
    for i in range(x.shape[0]):
        high = x[i] * SPLITTER - (x[i] * SPLITTER - x[i])
        total += high * (x[i] - high)
    return total


@numba.njit
def rounded_complex(x):
    total = 0.0
    for i in range(x.shape[0]):
        z = complex(x[i], x[i])
        r = (z + BIG) - BIG
        total += (r * z.conjugate()).real
    return total


@numba.njit
def rounded_part(x, i):
    if i == x.shape[0]:
        return 0.0
    r = (x[i] + BIG) - BIG
    return r * x[i] + rounded_part(x, i + 1)


@numba.njit
def recursive(x):
    return rounded_part(x, 0)


@numba.njit
def by_steps(x):
    """A loop that is replayed where replays are asked for."""
    y = x.copy()
    for _ in range(2):
        for i in range(y.shape[0]):
            r = (y[i] + BIG) - BIG
            y[i] = r * x[i]
    return y.sum()


@numba.njit
def nothing(x, y, p):
    """The real part is nothing for y = 2x, unless one of the two products in it is not rounded."""
    total = 0.0
    for i in range(x.shape[0] - 1):
        z = complex(x[i], y[i]) * complex(y[i + 1], x[i + 1])
        total += 1e20 * z.real * p
    return total


def squares(x):
    return x * x


@numba.njit
def of_squares(x, d_x, d_out):
    """A pullback in which rounding matters."""
    for i in range(x.shape[0]):
        d_x[i] += 2.0 * ((x[i] + BIG) - BIG) * d_out[i]


def _of_rounded(x):
    return np.rint(x) + x


def _of_split(x):
    high = x * SPLITTER - (x * SPLITTER - x)
    return x - high


def _of_complex(x):
    return _of_rounded(x) + 2 * x  # the imaginary part is not rounded


def _of_steps(x):
    first = np.rint(x) * x  # after a step; its derivative is rint(x) + x
    return np.rint(first) + x * (np.rint(x) + x)


X = np.array([0.3, 1.4, 2.6, 7.8, -3.7])


@pytest.mark.parametrize(
    ("f", "derivative"),
    [
        (rounded, _of_rounded),
        (split_in_two, _of_split),
        (rounded_complex, _of_complex),
        (recursive, _of_rounded),
        (by_steps, _of_steps),
    ],
)
@pytest.mark.parametrize("replay", [False, True])
def test_rounding_is_that_of_f(f, derivative, replay, monkeypatch) -> None:
    if replay:
        monkeypatch.setenv("SPLITAD_ALWAYS", "replay")
    _, pullback = ad.split(f, ad.Duplicated)(X)
    (bar,) = pullback.make_zero()
    pullback(1.0, bar)
    np.testing.assert_allclose(bar, derivative(X), rtol=1e-15)
    np.testing.assert_allclose(ad.grad(f)(X), derivative(X), rtol=1e-15)


def test_products_of_complex_numbers() -> None:
    x = np.random.default_rng(2).standard_normal(30)
    assert nothing(x, 2 * x, 1.0) == 0.0
    _, pullback = ad.split(nothing)(x, 2 * x, 1.0)
    assert pullback(1.0, *pullback.make_zero()) == (0.0,)


def test_a_users_rule_keeps_its_own_flags() -> None:
    compiled = numba.njit(squares)
    ad.rule(compiled, pullback=of_squares)

    @numba.njit
    def total(x):
        return compiled(x).sum()

    np.testing.assert_array_equal(ad.grad(total)(X), 2 * np.rint(X))
    # and whoever calls it finds it as it would be without splitad
    bar = np.zeros_like(X)
    of_squares(X, bar, np.ones_like(X))
    np.testing.assert_array_equal(bar, 2 * np.rint(X))
