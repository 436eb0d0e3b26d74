"""Methods and slices of lists that are lowered as loops over their items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.typed import List

import splitad as ad
from splitad.errors import UnsupportedError
from splitad.testing import check_vjp

X, Y = np.array([0.5, 0.7, 0.3, 0.9]), np.array([0.2, 1.3, 0.9])


@njit
def methods(x, k):
    xs = [x[0], x[1] * x[2]]
    xs.insert(1, x[2])
    xs.insert(0, x[3] * 2.0)
    xs.insert(-1, x[0] * x[3])
    xs.insert(100, 0.5)
    a = xs.pop(k)
    b = xs.pop(-2)
    del xs[1]
    xs.reverse()
    tail = xs[1:]
    tail[0] *= 3.0
    backwards = xs[::-1]
    xs.sort()
    s = 0.0
    for i in range(len(xs)):
        s += (i + 1) * xs[i] * xs[i]
    for v in tail:
        s += v * a
    for v in backwards[:-1]:
        s = s * 0.9 + v * b
    xs.sort(reverse=True)
    return s + xs[0] * xs[-1] * len(tail)


@njit
def of_an_argument(xs, x):
    xs.insert(1, x[0] * xs[0])
    t = xs.pop(0)
    xs.sort()
    del xs[-1]
    x[1] = t * xs[0]
    for v in xs[:2]:
        x[2] += v * v


@njit
def of_arrays(xs, x):
    xs.insert(0, x * 2.0)
    t = xs.pop(1)
    t[0] *= xs[0][1]
    del xs[-1]
    xs.reverse()
    return t[0] * xs[0][0]


@njit
def neighbours(p, r):
    total = 0.0
    near = [0]
    for i in range(p.shape[0]):
        near.clear()
        for j in range(p.shape[0]):
            if j != i and abs(p[i] - p[j]) < r:
                near.append(j)
        near.sort(reverse=True)
        if near.count(0) > 0:
            near.remove(0)
        for j in near:
            total += near.index(j) / (0.1 + (p[i] - p[j]) ** 2)
    return total


@pytest.mark.parametrize(
    ("f", "make"),
    [
        (methods, lambda: (X, 2)),
        (of_an_argument, lambda: (List([0.5, 1.5, 0.7]), X.copy())),
        (of_arrays, lambda: (List([Y.copy(), Y * 2, Y + 1]), Y.copy())),
        (neighbours, lambda: (X, 0.35)),
    ],
)
def test_methods(f: Callable[..., Any], make: Callable[[], Any]) -> None:
    check_vjp(f, *make())


@pytest.mark.parametrize("k", [-3, 2])
def test_pop_out_of_range(k: int) -> None:
    def pops(x, k):
        xs = [x[0], x[1]]
        xs.pop(k)
        return xs[0]

    with pytest.raises(IndexError) as plain:
        njit(pops)(X, k)
    with pytest.raises(IndexError) as caught:
        ad.split(pops)(X, k)
    assert str(caught.value) == str(plain.value)


def test_refused() -> None:
    def sorts_arrays(x):
        xs = [x, x * 2.0]
        xs.reverse()
        xs[0:1] = [x]
        return xs[0][0]

    with pytest.raises(UnsupportedError, match="Assigning to a slice of a list"):
        ad.split(sorts_arrays)(X)
