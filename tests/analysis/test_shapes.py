"""Which arrays have a known shape."""

from __future__ import annotations

import numpy as np
from numba import njit

from splitad.analysis.shapes import known_shapes
from tests.ir_parse import parse
from tests.pairs import check

TEXT = """
f(x: float64[::1], n: int64):
  a = empty((n), float64)
  b = zeros((n), float64)
  m = add(n, 1)
  other = zeros((m), float64)
  for k in 0..n step 1 [p = a, q = b, r = other, s = a, u = x] -> p1, q1, r1, s1, u1:
    j = add(k, 1)
    inner = empty((j), float64)
    yield q, p, r, inner, u
  return n
"""


def test_what_is_known() -> None:
    fn = parse(TEXT, {})
    shapes = {var.name: tuple(map(str, shape)) for var, shape in known_shapes(fn).items()}
    n, m = shapes["a"], shapes["other"]
    expected = dict.fromkeys(["a", "b", "p", "q", "p1", "q1"], n)
    assert n != m and shapes == expected | dict.fromkeys(["other", "r", "r1"], m)


@njit
def swapped(x, n):
    """Three buffers of one shape that change places."""
    a, b, c = np.zeros(x.shape[0]), np.zeros(x.shape[0]), x.copy()
    for k in range(n):
        for i in range(c.shape[0]):
            a[i] += b[i - 1] * c[i] + 0.5 * c[i - 1]
        if k % 2 == 0:
            a, b, c = b, c, a
        else:
            a, c = c, a
    return (a * b + c * c).sum()


@njit
def of_different_shapes(x, n):
    a, b = np.zeros(x.shape[0]), np.zeros(x.shape[0] + 1)
    for _ in range(n):
        for i in range(x.shape[0]):
            a[i] += x[i] * b[i] + x[i] * x[i]
        a, b = b, a
        if a.shape[0] > x.shape[0]:
            a = np.zeros(a.shape[0] + 1)
    return (a * a).sum() + b.shape[0] * (b * b).sum()


@njit
def grows(x, n):
    """Not one shape, although each is that of an allocation."""
    a = np.ones(x.shape[0])
    for k in range(n):
        b = np.zeros(x.shape[0] + k)
        for i in range(a.shape[0]):
            b[i] = a[i] * x[i % x.shape[0]]
        a = b
    return (a * a).sum()


@njit
def from_a_branch(x, n):
    if x[0] > 0.0:
        a = np.zeros(n)
    else:
        a = np.ones(n)
    for i in range(n):
        a[i] += x[i] * x[i]
    b = a
    for k in range(2):
        for i in range(b.shape[0]):
            b[i] *= x[i]
        b = np.ones(n) if k == 0 else b
    return (a * b).sum()


X = np.array([0.7, -0.4, 1.3, 0.9])


def test_swapped() -> None:
    for n in (0, 1, 4):
        check(swapped, X, n)


def test_of_different_shapes() -> None:
    for n in (0, 1, 3):
        check(of_different_shapes, X, n)
    check(grows, X, 3)
    check(from_a_branch, X, 4)
    check(from_a_branch, -X, 4)
