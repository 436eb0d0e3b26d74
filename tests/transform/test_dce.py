"""dce: what has no effect goes, what might have one stays."""

from __future__ import annotations

import pytest

from splitad.ir import nodes as ir
from splitad.transform import dce
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def run(fn: ir.Function) -> ir.Function:
    return dce.run(fn, "python")


def test_what_its_header_says() -> None:
    check(
        run,
        """
        w = empty((4), float64)
        for i in 0..n step 1 [s = h, c = 0] -> s_1, c_1:
          t = x[i]
          u = add(s, t)
          d = add(c, 1)
          w[0] = u
          yield u, d
        return s_1
        """,
        """
        for i in 0..n step 1 [s = h] -> s_1:
          t = x[i]
          u = add(s, t)
          yield u
        return s_1
        """,
    )


def test_whole_loops_and_branches() -> None:
    check(
        run,
        """
        for i in 0..n step 1 [s = 0.0] -> s_1:
          if b -> r, q:
            t = x[i]
            yield t, h
          else:
            yield h, h
          u = add(s, r)
          yield u
        if b:
          v = x[k]
        """,
        "",
    )


def test_what_may_raise_stays() -> None:
    unchanged(
        run,
        """
        t = floordiv(k, n)
        a = empty((n), float64)
        for i in 0..n step k:
          pass
        if b:
          raise ValueError()
        """,
    )
    check(lambda fn: dce.run(fn, "numpy"), "t = floordiv(k, n)", "")
    check(run, "t = floordiv(k, 3)", "")
    unchanged(lambda fn: dce.run(fn, "python", boundscheck=True), "t = x[k]")


def test_an_array_that_is_read_keeps_its_stores() -> None:
    unchanged(
        run,
        """
        w = empty((4), float64)
        z = empty((4), float64)
        if b -> v:
          yield w
        else:
          yield z
        w[0] = h
        z[0] = 1.0
        t = v[0]
        return t
        """,
    )


def test_stores_to_arguments_stay_through_swaps() -> None:
    unchanged(
        run,
        """
        w = empty((4), float64)
        for i in 0..n step 1 [p = x, q = w] -> p_1, q_1:
          p[0] = h
          yield q, p
        """,
    )


def test_a_while_and_a_draw_stay() -> None:
    unchanged(
        run,
        """
        while [go = b] -> go_1:
          t = impure abs(h)
          yield go
        """,
    )


@pytest.mark.parametrize("seed", range(60))
def test_meaning(seed: int) -> None:
    meaning.check(run, seed)
