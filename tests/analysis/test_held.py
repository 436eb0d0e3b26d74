"""held: the arrays that an exception at some statement of the forward would leak; and that it does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.analysis.held import Held
from splitad.analysis.scopes import scopes
from splitad.ir.walk import walk
from tests.ir_parse import parse
from tests.leaks import no_leak

TEXT = """
f(x: float64[::1], n: int64):
  early = empty((n), float64)
  e = early[0]
  late = empty((n), float64)
  for k in 0..n step 1 [s = e] -> total:
    inner = empty((n), float64)
    before = inner[0]
    for i in 0..n step 1 [r = s] -> r1:
      t = x[i]
      r2 = add(r, t)
      yield r2
    last = late[k]
    done = add(r1, last)
    yield done
  return total
"""


def test_what_is_read_here_or_later() -> None:
    """early is not read any more, inner is not read from the inner loop on; x is the caller's."""
    fn = parse(TEXT, {})
    where = scopes(fn)
    held = Held(fn, where)

    def at(name: str) -> set[str]:
        stmt = next(
            s for s in walk(fn.body) if getattr(getattr(s, "out", None), "name", "") == name
        )
        return {v.name for v in held.at(stmt, where.of[stmt.out])}

    assert at("early") == set() and at("e") == {"early"} and at("late") == set()
    assert at("inner") == {"late"} and at("before") == {"late", "inner"}
    assert at("t") == at("r2") == at("last") == {"late"}


def reads(x, n):
    s = 0.0
    for k in range(n):
        s = math.cos(s * s + math.sin(x[k % x.size] * s))
    return s


def in_a_while(q, n):
    s, k = 0.0, 0
    while k < n:
        s = math.cos(s * s + math.sin(q[0][k % q[0].size] * s) * q[1][0])
        k += 1
    return s


def with_arrays_of_its_own(x, n):
    v, t = np.ones(n), np.ones(50)
    s = t[3]
    for i in range(n):
        w = v * x[0]
        u = w[1:]
        for k in range(x.size):
            s = math.cos(s * s + math.sin(x[k] * s)) + u[0]
        v[i] = w[0] * s
    return s + v[2]


def with_a_list_of_arrays(x, n):
    kept = [x.copy()]
    s = 0.0
    for k in range(n):
        if k < 10:
            kept.append(kept[k] * s)
        for row in kept:
            s = math.cos(s * row[0] + x[1])
    return s


X = np.ones(4)
CASES = [
    (reads, X),
    (in_a_while, (X, X.copy())),
    (with_arrays_of_its_own, X),
    (with_a_list_of_arrays, X),
]


@pytest.mark.parametrize("f, arg", CASES, ids=[f.__name__ for f, _ in CASES])
def test_a_tape_that_outgrows_its_limit_leaks_nothing(f, arg) -> None:
    forward = ad.split(f, max_tape_bytes=50_000)

    @njit
    def guarded(arg, n):
        try:
            return forward(arg, n)[0]
        except Exception:
            return -1.0

    def run() -> None:
        with pytest.raises(ad.TapeLimitError):
            forward(arg, 10_000)
        assert guarded(arg, 10_000) == -1.0
        assert guarded(arg, 20) == njit(f)(arg, 20) == forward(arg, 20)[0]

    run()
    with no_leak():
        run()
        run()
