"""Loops that value_and_grad leaves to the pullback: which, and that value and gradient stay what they are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import splitad as ad
from splitad.cache import CompiledPair, Request
from splitad.gradients import types_of
from splitad.ir.activities import default
from splitad.pipeline import Options

T = np.linspace(0.0, 2.0, 1300)
Y = np.exp(-0.7 * T)
X = np.random.default_rng(1).standard_normal(1300)


@numba.njit
def fit(rate, scale, t, y):
    total = 0.0
    for i in range(t.shape[0]):
        r = scale * math.exp(-rate * t[i]) - y[i]
        total += r * r
    return total / t.shape[0]


@numba.njit
def chain(x):
    total = 1.0
    for i in range(x.shape[0] - 1):
        a = x[i + 1] - x[i] * x[i]
        total += 100.0 * a * a
        total -= x[i]
    return -2.0 * total


@numba.njit
def inner_chain(x, y):
    total = 0.0
    for i in range(3, x.shape[0] - 4):
        total += x[i - 3] * x[i] * y[i] * y[i + 1]
    return total


@numba.njit
def also_read_before(x, y):
    first = 0.0
    for i in range(x.shape[0]):
        first += x[i]
    total = 0.0
    for i in range(x.shape[0] - 1):
        total += x[i] * x[i + 1] * y[i] * y[i + 1]
    return total + first


@numba.njit
def of_a_view(x):
    y = x[1:]
    total = 0.0
    for i in range(x.shape[0] - 1):
        total += x[i] * x[i + 1] * y[i]
    return total


@numba.njit
def one_element(x):
    total = 0.0
    for i in range(x.shape[0] - 1):
        total += x[i] * x[i + 1] * x[2]
    return total


@numba.njit
def one_load_is_for_nothing(x):
    total = 0.0
    for i in range(x.shape[0] - 1):
        total += x[i] * x[i] + np.floor(x[i + 1])
    return total


@numba.njit
def ring(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i - 1] * math.sin(x[i]) * x[(i + 1) % x.shape[0]]
    return total


@numba.njit
def two_sums(x, y):
    one = 0.0
    other = 0.0
    for i in range(2, x.shape[0], 3):
        one += x[i] * y[i]
        other += x[i] - y[i]
    return 3.0 * one + other


@numba.njit
def two_loops(x, y):
    one = 0.0
    for i in range(x.shape[0]):
        one += x[i] * x[i]
    other = 0.0
    for i in range(y.shape[0]):
        other += y[i] * y[i] * y[i]
    return one - other


@numba.njit
def one_after_another(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    for i in range(y.shape[0]):
        total += y[i] * y[i] * y[i]
    return total


@numba.njit
def from_a_workspace(x, y):
    z = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        z[i] = math.exp(x[i])
    total = 0.0
    for i in range(1, x.shape[0]):
        total += z[i] * z[i - 1] * y[i]
    return total


@numba.njit
def single(x):
    total = np.float32(0.0)
    for i in range(x.shape[0]):
        total += x[i] * np.tanh(x[i])
    return total * np.float32(2.0)


@numba.njit
def rows(m, w):
    total = 0.0
    for i in range(m.shape[0]):
        total += w[i] * (m[i, 0] + m[i, 1] * m[i, 0])
    return total


@numba.njit
def root(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return math.sqrt(total)


@numba.njit
def spread(x):
    total = 0.0
    squares = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        squares += x[i] * x[i]
    return squares - total * total


@numba.njit
def used_later(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] + total
    return y[0] + total


@numba.njit
def writes(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    y[0] = 1.0
    return total


@numba.njit
def overwritten(x):
    z = x.copy()
    total = 0.0
    for i in range(x.shape[0]):
        total += z[i] * z[i]
    z[0] = 0.0
    return total + z[1]


@numba.njit
def branching(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            total += x[i] * x[i]
    return total


@numba.njit
def energy(u, v):
    total = 0.0
    for i in range(1, u.shape[0] - 1):
        total += v[i] * u[i, 0]
        for j in range(1, u.shape[1] - 1):
            right = u[i, j + 1] - u[i, j]
            down = u[i + 1, j] - u[i, j]
            total += 0.5 * (right * right + down * down)
            total -= math.cos(u[i - 1, j])
        total -= u[i, 1] * u[i, 2]
    return total / u.shape[1]


@numba.njit
def pairs(x, y):
    near = 0.0
    far = 0.0
    for i in range(x.shape[0]):
        far += x[i] * y[i]
        for j in range(i + 1, x.shape[0]):
            d = x[i] - x[j]
            near += math.exp(-d * d)
            far -= d * y[j]
    return near - 2.0 * far


@numba.njit
def by_rows(u):
    total = 0.0
    for i in range(u.shape[0]):
        row = 0.0
        for j in range(u.shape[1]):
            row += u[i, j]
        total += row * row
    return total


@numba.njit
def inner_recurrence(x):
    total = 0.0
    for i in range(x.shape[0]):
        t = 0.0
        for j in range(2):
            t = t * x[i] + j
        total += t
    return total


SWEPT: list[tuple[Any, tuple[Any, ...], int]] = [
    (fit, (0.6, 1.1, T, Y), 1),
    (chain, (X,), 1),
    (inner_chain, (X, Y), 1),
    (also_read_before, (X, Y), 2),
    (of_a_view, (X,), 1),
    (one_element, (X,), 1),
    (one_load_is_for_nothing, (X,), 1),
    (ring, (X,), 1),
    (two_sums, (X, Y), 1),
    (two_loops, (X, Y), 2),
    (one_after_another, (X, Y), 1),
    (from_a_workspace, (X, Y), 1),
    (single, (X.astype(np.float32),), 1),
    (rows, (X.reshape(-1, 2), Y), 1),
    (energy, (X.reshape(26, 50), Y), 1),
    (pairs, (X[:70], Y[:70]), 1),
]
NOT: list[tuple[Any, tuple[Any, ...]]] = [
    (root, (X,)), (spread, (X,)), (used_later, (X,)), (writes, (X, Y)), (overwritten, (X,)),
    (branching, (X,)), (by_rows, (X.reshape(26, 50),)), (inner_recurrence, (X,)),
]  # fmt: skip


def _pair(f: Callable[..., Any], args: tuple[Any, ...], **options: Any) -> CompiledPair:
    types = types_of(args)
    kinds = tuple(default(t) for t in types)
    stable = (True,) * len(args)
    made = Options(combined=True, any_order=True, stable=stable, **options)
    return CompiledPair(Request(f, kinds, None, made), types)


@pytest.mark.parametrize(("f", "args", "count"), SWEPT)
def test_swept(f: Any, args: tuple[Any, ...], count: int) -> None:
    text = _pair(f, args).text
    assert text.facts.sweep is not None and len(text.facts.sweep.loops) == count
    loops = len(re.findall(r"^ *for ", text.forward, re.M))
    assert loops == (f in (one_after_another, from_a_workspace))  # each has another one
    wrt = tuple(range(len(args)))
    value, gradient = ad.value_and_grad(f, wrt=wrt)(*args)
    assert type(value) is type(f(*args))
    rel = 1e-3 if f is single else 1e-11  # 1300 terms, each with a few roundings
    assert value == pytest.approx(f(*args), rel=rel)
    _, pullback = ad.vjp(f, *args)
    for one, other in zip(gradient, pullback(1.0), strict=True):
        scale = np.max(np.abs(other))
        np.testing.assert_allclose(one, other, rtol=rel, atol=rel * scale)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    again, _ = ad.value_and_grad(f, wrt=wrt)(*args)
    assert again == value
    one = ad.grad(f)(*args)
    np.testing.assert_allclose(one, gradient[0], rtol=rel)


@pytest.mark.parametrize(("f", "args"), NOT)
def test_not_swept(f: Any, args: tuple[Any, ...]) -> None:
    assert _pair(f, args).text.facts.sweep is None


CLEARED = {
    chain: [0],
    inner_chain: [0, 1],
    also_read_before: [1],
    from_a_workspace: [],
    two_loops: [],
}
CLEARED |= {
    of_a_view: [0],
    one_element: [],
    one_load_is_for_nothing: [],
    ring: [],
    pairs: [],
    single: [],
}


@pytest.mark.parametrize(("f", "args"), [(f, args) for f, args, _ in SWEPT if f in CLEARED])
def test_shadows_that_the_pullback_clears(f: Any, args: tuple[Any, ...]) -> None:
    """They are right whatever was in their memory."""
    pair = _pair(f, args)
    params = pair.text.facts.fn.params
    assert [params.index(array) for array, _ in pair.text.facts.cleared] == CLEARED[f]
    gradient = ad.grad(f, wrt=tuple(range(len(args))))
    for count in (7, 8, 511, 513, 514, 1024, 1025, 1300):
        some = tuple(a[:count].copy() for a in args)
        expected = [np.array(part) for part in ad.vjp(f, *some)[1](1.0)]
        for _ in range(3):
            for one, other in zip(found := gradient(*some), expected, strict=True):
                close = 1e-9 if other.dtype == np.float64 else 1e-5
                bound = close * np.max(np.abs(other))
                np.testing.assert_allclose(one, other, rtol=close, atol=bound)
                one[:] = np.nan  # the next shadow lies where this one did
            del found, one


def test_left_out(monkeypatch) -> None:
    monkeypatch.setenv("SPLITAD_WITHOUT", "sweeps")
    assert _pair(chain, (X,)).text.facts.sweep is None


def test_neither_are_those_of_split() -> None:
    types = types_of((X,))
    pair = CompiledPair(Request(chain, (ad.Duplicated,), None, Options(any_order=True)), types)
    assert pair.text.facts.sweep is None


def test_what_a_loop_left_to_the_pullback_leaves_to_the_forward() -> None:
    """A check behind the loop raises; an empty loop gives what it starts from."""
    with pytest.raises(ZeroDivisionError):
        ad.value_and_grad(fit)(0.6, 1.1, T[:0], Y[:0])
    assert ad.value_and_grad(chain)(X[:1])[0] == -2.0
    np.testing.assert_array_equal(ad.grad(chain)(X[:1]), [0.0])


def test_one_array_given_twice() -> None:
    value, (first, second) = ad.value_and_grad(two_sums, wrt=(0, 1))(X, X)
    assert value == pytest.approx(two_sums(X, X), rel=1e-11)
    _, pullback = ad.vjp(two_sums, X, X.copy())
    for one, other in zip((first, second), pullback(1.0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_from_njit_code() -> None:
    gradient = ad.value_and_grad(fit, wrt=(0, 1))

    @numba.njit
    def descend(rate, scale, t, y):
        value = 0.0
        for _ in range(400):
            value, (by_rate, by_scale) = gradient(rate, scale, t, y)
            rate -= 0.2 * by_rate
            scale -= 0.2 * by_scale
        return value, rate, scale

    value, rate, scale = descend(0.2, 2.0, T, Y)
    assert (
        value < 1e-6
        and rate == pytest.approx(0.7, abs=1e-2)
        and scale == pytest.approx(1.0, abs=1e-2)
    )
