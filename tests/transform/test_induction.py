"""induction: integers that grow steadily are computed from the counter."""

from __future__ import annotations

import pytest

from splitad.ir import nodes as ir
from splitad.transform import dce, fold, induction, invariant
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def tidy(fn: ir.Function) -> ir.Function:
    """Several rounds, as in simplify."""
    for _ in range(3):
        fn = dce.run(fold.run(invariant.run(induction.run(fn), "python")), "python")
    return fn


def test_a_count() -> None:
    check(
        tidy,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1 [c = 0] -> c_1:
          x[c] = h
          d = add(c, 1)
          yield d
        t = x[c_1]
        return t
        """,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1:
          x[i] = h
        t = x[n0]
        return t
        """,
    )


def test_what_its_header_says() -> None:
    check(
        tidy,
        """
        for i in 0..3 step 1 [c = 0] -> c_1:
          for j in 0..n step 1 [d = c] -> d_1:
            x[d] = h
            e = add(d, 1)
            yield e
          yield d_1
        x[c_1] = h
        """,
        """
        j_n = max(n, 0)
        for i in 0..3 step 1:
          c = mul(i, j_n)
          for j in 0..n step 1:
            d = add(c, j)
            x[d] = h
        c_1 = mul(3, j_n)
        x[c_1] = h
        """,
    )


def test_a_triangle_keeps_its_outer_value() -> None:
    check(
        tidy,
        """
        for i in 0..n step 1 [c = 0] -> c_1:
          for j in 0..i step 1 [d = c] -> d_1:
            x[d] = h
            e = add(d, 1)
            yield e
          yield d_1
        """,
        """
        for i in 0..n step 1 [c = 0] -> c_1:
          for j in 0..i step 1:
            d = add(c, j)
            x[d] = h
          d_1 = add(c, i)
          yield d_1
        """,
    )


def test_steps_and_starts() -> None:
    check(
        tidy,
        """
        for i in n..k step -2 [c = k] -> c_1:
          d = sub(c, 3)
          e = add(d, n)
          x[c] = h
          yield e
        x[c_1] = h
        """,
        """
        c_2 = add(-3, n)
        for i in n..k step -2:
          i_1 = sub(i, n)
          i_2 = floordiv(i_1, -2)
          c_3 = mul(i_2, c_2)
          c = add(k, c_3)
          x[c] = h
        i_n = sub(n, k)
        i_n_1 = add(i_n, 1)
        i_n_2 = floordiv(i_n_1, 2)
        i_n_3 = max(i_n_2, 0)
        c_4 = mul(i_n_3, c_2)
        c_1 = add(k, c_4)
        x[c_1] = h
        """,
    )


def test_what_does_not_grow_steadily_is_left() -> None:
    unchanged(
        induction.run,
        """
        for i in 0..n step 1 [c = 0, s = 0.0, p = 1] -> c_1, s_1, p_1:
          if b -> d:
            e = add(c, 1)
            yield e
          else:
            yield c
          t = add(s, 1.0)
          q = add(p, i)
          yield d, t, q
        while [go = b, r = 0] -> go_1, r_1:
          u = add(r, 1)
          yield False, u
        """,
    )


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(induction.run, seed)
