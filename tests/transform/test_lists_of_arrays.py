"""Lists of arrays: kept states, buffers, one array in several places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import List

import splitad as ad
from splitad.errors import UnsupportedError
from tests.pairs import check


@njit
def trajectory(u, nu, n):
    """A simulation that keeps its states, and a loss over all of them."""
    states = []
    for _ in range(n):
        for i in range(u.shape[0]):
            u[i] = u[i] - nu * u[i] * u[i]
        states.append(u.copy())
    loss = 0.0
    for state in states:
        loss += (state * state * state).sum()
    return loss + states[-1][0] * states[0][1]


@njit
def step(u, nu):
    v = np.empty_like(u)
    for i in range(u.shape[0]):
        v[i] = u[i] - nu * u[i] * u[i - 1]
    return v


@njit
def from_the_last(u, nu, n):
    states = [u]
    for _ in range(n):
        states.append(step(states[-1], nu))
    return states[-1] * states[n // 2]


@njit
def buffers(x, n):
    kept = [x.copy(), np.zeros_like(x)]
    for k in range(n):
        source, target = kept[k % 2], kept[(k + 1) % 2]
        for i in range(x.shape[0]):
            target[i] += source[i] * source[i] * 0.3
    x[:] = kept[0] * kept[1]
    return kept[n % 2].sum()


@njit
def exchanged(x, y, n):
    kept = [x, y]
    for _ in range(n):
        kept[0], kept[1] = kept[1], kept[0]
        kept[0][:] = kept[0] * kept[1]
    return kept[0][0]


@njit
def in_several_places(x):
    kept = [x, x, x.copy()]
    kept[0][0] *= 2.0
    kept[1][0] *= x[1]
    kept[2] = kept[0]
    kept[2][1] += kept[1][0] ** 2
    return kept[2][0] * x[1]


@njit
def a_stack(x, n):
    stack = []
    for k in range(n):
        stack.append(x * (k + 1.0))
    s = 0.0
    while len(stack) > 1:
        top = stack.pop()
        s += top[0] * top[1]
        stack[0] += top * x[0]
    return s + stack[0].sum()


@njit
def sometimes(x, n):
    kept = []
    for k in range(n):
        if k % 2 == 0:
            kept.append(x * k)
        elif k == 3:
            kept.append(x)
    s = x[0]
    for k, v in enumerate(kept):
        v[0] *= 1.5
        s += v[0] * v[1] * (k + 1)
    return s


@njit
def beside_swapped_buffers(x, y, n):
    a, b = x.copy(), y.copy()
    kept = [a]
    for k in range(n):
        kept.append(b)
        for i in range(a.shape[0]):
            a[i] = a[i] * b[i] * 0.5 + kept[k // 2][0]
        a, b = b, a
    return a[0] * b[1] + kept[0][2] * kept[-1][1]


@njit
def of_earlier_iterations(x, n):
    kept = []
    for k in range(n):
        a = x * (k + 1.0)
        kept.append(a)
        kept[k // 2][0] *= a[1]
        a[2] = kept[k // 2][0] * 2.0
    s = 0.0
    for a in kept:
        s += a[0] * a[2]
    return s


@njit
def with_numbers(x, a):
    kept = [(x, a)]
    for _ in range(3):
        v, b = kept[-1]
        kept.append((v * b, b * a))
    s = 0.0
    for v, b in kept:
        s += v[0] * b
    return s


@njit
def views(x, m):
    kept = [x, x[::2], m[:, 1]]
    more = kept + kept
    more[1][0] *= x[1]
    s = 0.0
    for v, w in zip(kept, more):  # noqa: B905
        s += (v * w).sum() * v[-1]
    return s


@njit
def weights(x):
    layers = [np.outer(x, x), np.outer(x, x * 2.0)]
    h = x
    for w in layers:
        h = np.tanh(np.dot(w, h))
    layers[0][0, 1] = h[0]
    return np.dot(layers[0], h)


@njit
def a_typed_list(x, n):
    kept = List()
    kept.append(x)
    while kept[-1].sum() < 5.0 and len(kept) < n:
        kept.append(kept[-1] * 1.7)
        if len(kept) > 3:
            kept[-2][0] *= 1.1
    return kept[-1][0] * kept[len(kept) // 2][1]


@njit
def leaves_early(x, n):
    kept = [np.zeros(3) for _ in range(2)]
    for k in range(n):
        kept[k % 2][:] = x * (k + 1) + kept[1 - k % 2]
        if k == 2:
            return kept[0]
    return kept[1] * 1.0


X, Y = np.array([0.5, 0.7, 0.3]), np.array([0.2, 1.3, 0.9])
M = np.arange(1.0, 7.0).reshape(2, 3) * 0.3

CASES: list[tuple[Any, ...]] = [
    (trajectory, X, 0.1, 4),
    (from_the_last, X, 0.1, 5),
    (from_the_last, X, 0.1, 0),
    (buffers, X, 5),
    (exchanged, X, Y, 3),
    (exchanged, Y, Y, 2),
    (in_several_places, X),
    (a_stack, X, 4),
    (sometimes, X, 6),
    (sometimes, X, 0),
    (beside_swapped_buffers, X, Y, 5),
    (of_earlier_iterations, X, 6),
    (with_numbers, X, 0.7),
    (views, X, M),
    (weights, X),
    (a_typed_list, X, 9),
    (leaves_early, X, 5),
]


@pytest.mark.parametrize(("f", "args"), [(f, args) for f, *args in CASES])
def test_lists_of_arrays(f: Callable[..., Any], args: list[Any]) -> None:
    check(f, *args)


def test_const_workspace() -> None:
    check(exchanged, X, Y, 3, activities=(ad.Duplicated, ad.Const, ad.Const))


def test_complex() -> None:
    check(from_the_last, X + 1j * Y, 0.1 + 0.2j, 3)


@jitclass([("a", float64[::1]), ("b", float64[::1])])
class Pair:
    def __init__(self, a, b):
        self.a = a
        self.b = b


@njit
def field_from_a_list(s, n):
    kept = [s.a, s.b]
    for k in range(n):
        kept.append(kept[k] * kept[k + 1])
    s.a = kept[-1]
    kept[-1][0] *= 2.0
    return s.b[0] * kept[0][1]


def test_fields() -> None:
    check(field_from_a_list, Pair(X.copy(), Y.copy()), 2)


# ---- what is wrong, or refused -------------------------------------------------------------------------


def out_of_range(x, k):
    kept = [x]
    kept.append(x)
    return kept[k + 3][0]


def pops_too_much(x, k):
    kept = [x]
    for _ in range(k + 2):
        kept.pop()
    return x[0]


@pytest.mark.parametrize("f", [out_of_range, pops_too_much])
def test_index_errors(f: Callable[..., Any]) -> None:
    with pytest.raises(IndexError) as plain:
        njit(f)(X, 0)
    with pytest.raises(IndexError) as caught:
        ad.split(f)(X, 0)
    assert str(caught.value) == str(plain.value)


CONSTANT = np.array([1.0, 2.0])


def of_constants(x):
    kept = [CONSTANT]
    kept.append(CONSTANT)
    return kept[1][0] * x[0]


def sums(x):
    return sum([x, x], x)[0]


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (of_constants, "A list of readonly array"),
        (sums, "The sum of a list of arrays"),
    ],
)
def test_refused(f: Callable[..., Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        ad.split(f)(X)
