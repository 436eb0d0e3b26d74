"""induction: integers that grow steadily are computed from the counter."""

from __future__ import annotations

import numpy as np
import pytest

from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from splitad.transform import dce, fold, induction, invariant
from tests.ir_parse import parse
from tests.transform import meaning
from tests.transform.cases import check, function, unchanged


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


def test_a_triangle() -> None:
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
        for i in 0..n step 1:
          i_1 = rshift(i, 1)
          i_2 = sub(i, 1)
          i_3 = or_(i_2, 1)
          i_4 = mul(i_1, i_3)
          for j in 0..i step 1:
            d = add(i_4, j)
            x[d] = h
        """,
    )


@pytest.mark.parametrize("start", ["0", "3", "k", "-2"])
@pytest.mark.parametrize("first", ["0", "7", "4611686018427387904"])
@pytest.mark.parametrize(
    "grows",
    [
        "d = add(c, i)",
        "d = sub(c, i)",
        "d = add(i, c)",
        "e = add(i, i)\n  a = add(e, k)\n  d = sub(c, a)",
        "e = sub(n, i)\n  a = sub(e, 1)\n  d = add(c, a)",
        "e = sub(i, k)\n  a = sub(3, e)\n  d_2 = add(c, a)\n  d = add(d_2, i)",
    ],
)
def test_what_grows_with_the_counter(grows: str, first: str, start: str) -> None:
    """Every value on the way and the last one, for loops of up to seven iterations."""
    body = f"""
for i in {start}..n step 1 [c = {first}, s = 0] -> c_1, s_1:
  s_2 = mul(s, 31)
  s_3 = add(s_2, c)
  {grows}
  yield d, s_3
s_4 = mul(s_1, 31)
s_5 = add(s_4, c_1)
return s_5
"""
    fn = parse(function(body))
    changed = tidy(fn)
    verify(changed)
    assert "c = " in show(fn) and "[c = " not in show(changed)
    for n in range(-3, 8):
        for k in (-2, 0, 2):
            args = (np.zeros(1), np.zeros(1), np.zeros((1, 1)), n, k, 0.0, False)
            assert meaning.outcome(fn, args) == meaning.outcome(changed, args), (n, k)


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
          q = mul(p, i)
          yield d, t, q
        while [go = b, r = 0] -> go_1, r_1:
          u = add(r, 1)
          yield False, u
        """,
    )


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(induction.run, seed)
