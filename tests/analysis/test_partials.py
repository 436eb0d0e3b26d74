"""Partials that are found before the cotangent: where, and that the derivative is the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.analysis.adjoint_loops import count_uses
from splitad.analysis.partials import regions
from splitad.testing import check_vjp
from tests.analysis.facts import find

TEXT = """
f(x: float64[::1], a: float64):
  n = x.shape[0]
  for i in 1..n step 1 [s = 0.0] -> s_1:
    j = sub(i, 1)
    u = x[j]
    v = x[i]
    p = mul(u, v)
    q = mul(2.0, p)
    big = gt(q, 1.0)
    r = mul(q, q)
    t = add(r, q)
    w = mul(v, 3.0)
    z = add(w, 1.0)
    y = mul(t, z)
    o = mul(a, 2.0)
    e = add(o, 1.0)
    l = add(y, e)
    x[i] = l
    s_2 = add(s, w)
    yield s_2
  return s_1
"""


def test_where_they_are() -> None:
    """p to t; not v, which p depends on as well, nor w, of which the sum is made; a is another block's."""
    found = find(TEXT)
    (loop,) = [s for s in found.fn.body.stmts if hasattr(s, "counter")]
    named = {
        region.source.name: [stmt.out.name for stmt in region.stmts]
        for region in regions(
            found.where.at(loop.body), found.where, count_uses(found.fn), found.active
        )
    }
    assert named == {"p": ["q", "r", "t"]}


@njit
def sweep(x, a, n):
    """Overwrites what it reads; a is used in the loop alone, and in nothing else."""
    for _ in range(n):
        for i in range(1, x.shape[0] - 1):
            r = 0.25 * (x[i - 1] + x[i + 1] + x[i])
            x[i] = r / (1.0 + 0.1 * r * r) + math.sin(a * 2.0) * 0.1
    return x[2] * x[2]


@njit
def logistic(x, r, n):
    """A carried value, of which the next is a polynomial."""
    for _ in range(n):
        x = 1.0 - (x * x - 0.5) * (x * 0.5)
    k = 0
    while k < n:
        x = math.exp(math.cos(x) * 0.3)
        k += 1
    return x * r


@njit
def shifts(x):
    """Partials of one, and of minus one."""
    for i in range(1, x.shape[0]):
        x[i] = x[i] * (1.5 - ((x[i - 1] + 1.0) + 2.0))
        t = x[i] + 0.5
        x[i - 1] = -((t + 1.0) - 3.0)
    return x[0] * x[-1] + x[1]


@njit
def branches(x):
    """What a region leads to is used in a branch; its source is looked at in one."""
    s = 0.0
    for i in range(1, x.shape[0]):
        r = x[i - 1] * x[i]
        t = 3.0 * (r * r + r)
        if r > 0.1:
            x[i] = t
            s += t * 0.5
        else:
            s -= x[i]
    return s


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_sweep(kind: type) -> None:
    check_vjp(sweep, np.linspace(0.3, 1.1, 6).astype(kind), kind(0.4), 2)


def test_carried_values() -> None:
    check_vjp(logistic, 0.3, 1.2, 3)


def test_partials_of_one() -> None:
    check_vjp(shifts, np.array([0.3, 0.7, -0.4, 0.9]))


def test_branches() -> None:
    check_vjp(branches, np.array([0.3, 0.7, -0.4, 0.9]))


@njit
def roots(x):
    """Of zero: its partial is infinite, and nothing depends on what comes of it."""
    for i in range(1, x.shape[0]):
        r = x[i - 1] * 1.0
        x[i] = 0.0 * math.sqrt(r * r) + x[i] * 0.5
    return x[2]


def test_a_strong_zero() -> None:
    _, pullback = ad.split(roots, ad.Duplicated)(np.array([0.0, 0.0, 3.0]))
    (bar,) = pullback.make_zero()
    pullback(0.0, bar)
    np.testing.assert_array_equal(bar, 0.0)
    pullback(1.0, bar)
    np.testing.assert_array_equal(bar, [0.0, 0.0, 0.5])
