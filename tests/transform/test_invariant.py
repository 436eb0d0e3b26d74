"""invariant: what is the same in every iteration leaves the loop."""

from __future__ import annotations

import pytest

from splitad.ir import nodes as ir
from splitad.transform import invariant
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def run(fn: ir.Function) -> ir.Function:
    return invariant.run(fn, "python")


def test_out_of_two_loops() -> None:
    check(
        run,
        """
        for i in 0..n step 1:
          for j in 0..n step 1:
            a = fdiv(h, 3.0)
            c = mul(a, a)
            e = add(i, k)
            d = add(e, j)
            n0 = m.shape[1]
            row = view m[i, :]
            x[d] = c
            row[n0] = c
        """,
        """
        a = fdiv(h, 3.0)
        c = mul(a, a)
        n0 = m.shape[1]
        for i in 0..n step 1:
          e = add(i, k)
          row = view m[i, :]
          for j in 0..n step 1:
            d = add(e, j)
            x[d] = c
            row[n0] = c
        """,
    )


def test_out_of_a_branch_only_what_has_no_derivative() -> None:
    check(
        run,
        """
        while [go = b, t = h] -> go_1, t_1:
          if go -> r:
            j = add(k, 1)
            s = sqrt(h)
            u = x[j]
            v = add(u, s)
            yield v
          else:
            yield t
          yield False, r
        """,
        """
        j = add(k, 1)
        while [go = b, t = h] -> go_1, t_1:
          if go -> r:
            s = sqrt(h)
            u = x[j]
            v = add(u, s)
            yield v
          else:
            yield t
          yield False, r
        """,
    )


def test_what_may_raise_and_loads_stay() -> None:
    text = """
        for i in 0..n step 1:
          a = floordiv(k, n)
          t = x[a]
          x[i] = t
        """
    unchanged(run, text)
    check(
        lambda fn: invariant.run(fn, "numpy"),
        text,
        """
        a = floordiv(k, n)
        for i in 0..n step 1:
          t = x[a]
          x[i] = t
        """,
    )


def test_loads_leave_a_loop_that_surely_runs() -> None:
    check(
        lambda fn: invariant.run(fn, "python", args_alias=False),
        """
        for i in 0..3 step 1:
          t = x[k]
          u = y[k]
          if b:
            v = x[n]
            y[i] = v
          w = add(t, u)
          y[i] = w
        """,
        """
        t = x[k]
        for i in 0..3 step 1:
          u = y[k]
          if b:
            v = x[n]
            y[i] = v
          w = add(t, u)
          y[i] = w
        """,
    )


def test_without_strong_zero_floats_stay() -> None:
    unchanged(
        lambda fn: invariant.run(fn, "python", strong_zero=False),
        """
        for i in 0..n step 1:
          t = sqrt(h)
          x[i] = t
        """,
    )


@pytest.mark.parametrize("seed", range(60))
def test_meaning(seed: int) -> None:
    meaning.check(run, seed)
