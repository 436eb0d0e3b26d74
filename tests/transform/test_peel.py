"""peel: the ends of a ring, and iterations that are told apart, in a loop of their own."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types

from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from splitad.testing import check_vjp
from splitad.transform import dce, fold, peel
from tests.ir_parse import parse
from tests.transform import meaning
from tests.transform.cases import check, function


def run(fn: ir.Function) -> ir.Function:
    return peel.run(fn, "python", False, args_alias=False)


def test_both_ends_of_a_ring() -> None:
    check(
        run,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1:
          j = add(i, 1)
          w = ge(j, n0)
          r = select(w, 0, j)
          t = x[r]
          p = sub(i, 1)
          u = x[p]
          v = add(t, u)
          y[i] nowrap = v
        """,
        """
        n0 = x.shape[0]
        end = sub(n0, 1)
        for i in 1..end step 1:
          j = add(i, 1)
          w = ge(j, n0)
          r = select(False, 0, j)
          t = x[j]
          p = sub(i, 1)
          u = x[p]
          v = add(t, u)
          y[i] nowrap = v
        count = min(n0, 2)
        for edge in 0..count step 1:
          skipped = sub(n0, 2)
          skipped_1 = max(skipped, 0)
          behind = add(edge, skipped_1)
          first = lt(edge, 1)
          i_1 = select(first, edge, behind)
          j_1 = add(i_1, 1)
          w_1 = ge(j_1, n0)
          r_1 = select(w_1, 0, j_1)
          t_1 = x[r_1]
          p_1 = sub(i_1, 1)
          u_1 = x[p_1]
          v_1 = add(t_1, u_1)
          y[i_1] nowrap = v_1
        """,
    )


def test_one_end_of_a_range_that_may_be_negative() -> None:
    check(
        run,
        """
        for i in 0..n step 1:
          p = sub(i, 2)
          u = x[p]
          y[i] nowrap = u
        """,
        """
        stop = max(n, 0)
        for i in 2..stop step 1:
          p = sub(i, 2)
          u = x[p]
          y[i] nowrap = u
        count = min(stop, 2)
        for edge in 0..count step 1:
          i_1 = add(edge, 0)
          p_1 = sub(i_1, 2)
          u_1 = x[p_1]
          y[i_1] nowrap = u_1
        """,
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for i in 0..n step 1:\n  p = sub(i, 9)\n  u = x[p]\n  y[i] nowrap = u",  # too far
        "for i in 0..n step 1:\n  p = sub(i, 1)\n  u = x[p]\n  x[i] nowrap = u",  # reads what it wrote
        "for i in 0..n step 1:\n  p = sub(i, 1)\n  u = x[p]\n  y[k] nowrap = u",  # the last one counts
        "for i in 0..n step 1:\n  p = sub(i, 1)\n  u = x[p]\n  y[i] = u",  # may wrap onto another
        "for i in 0..n step 2:\n  p = sub(i, 1)\n  u = x[p]\n  y[i] nowrap = u",
        "for i in 1..n step 1:\n  p = sub(i, 1)\n  u = x[p]\n  y[i] nowrap = u",
        "for i in 0..9 step 1:\n  p = sub(i, 1)\n  u = x[p]\n  y[i] nowrap = u",  # short
        "for i in 0..n step 1:\n  p = sub(i, 1)\n  u = x[p]\n  q = mod(i, k)\n  y[i] nowrap = u",  # raises
        "for i in 0..n step 1:\n  p = sub(k, 1)\n  u = x[p]\n  y[i] nowrap = u",
        "for i in 0..n step 1 [s = 0.0] -> s_1:\n  p = sub(i, 1)\n  u = x[p]\n  y[i] nowrap = u\n"
        "  s_2 = add(s, u)\n  yield s_2",  # sums in order
    ],
)
def test_left_whole(loop: str) -> None:
    fn = parse(function(loop))
    assert run(fn) == fn


def test_arguments_that_overlap() -> None:
    fn = parse(function("for i in 0..n step 1:\n  p = sub(i, 1)\n  u = x[p]\n  y[i] nowrap = u"))
    assert run(fn) != fn
    assert peel.run(fn, "python", False, args_alias=True) == fn
    assert peel.run(fn, "python", True, args_alias=False) == fn  # an access may raise


@pytest.mark.parametrize("compare", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("place", ["0", "1", "3", "n0", "q_1", "q_2", "12"])
@pytest.mark.parametrize("sides", ["{0}, {1}", "{1}, {0}"])
@pytest.mark.parametrize("by", [0, 1, -2])
def test_every_comparison(compare: str, place: str, sides: str, by: int) -> None:
    """The inner iterations know the answer, and all give the same as before, on rings of 0 to 30."""
    fn = parse(
        function(f"""
        n0 = x.shape[0]
        q_1 = sub(n0, 1)
        q_2 = sub(n0, 3)
        for i in 0..n0 step 1:
          c = add(i, {by})
          w = {compare}({sides.format("c", place)})
          j = select(w, 0, i)
          t = x[j]
          y[i] nowrap = t
        """)
    )
    changed = run(fn)
    verify(changed)
    if place == "12":
        assert changed == fn
    else:
        changed = dce.run(fold.run(changed), "python")
        inner = next(s for s in changed.body.stmts if isinstance(s, ir.For))
        asked = [
            s for s in inner.body.stmts if isinstance(s, ir.Prim) and s.out.type == types.boolean
        ]
        assert not asked, show(changed)
    for size in [*range(12), 30]:
        args = (np.arange(1.0, size + 1), np.zeros(size), np.zeros((1, 1)), 0, 0, 0.0, False)
        assert meaning.outcome(fn, args) == meaning.outcome(changed, args)


@njit
def rings(x, y, n):
    """A torus that is told apart in several ways, a ring by negative indices, both ends by hand."""
    m = x.shape[0]
    for i in range(m):
        y[i] = x[i - 2] * x[(i + 1) % m] + (x[i - 1] if i > 0 else 0.5 * x[m - 1])
    z = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            left = j - 1 if j > 0 else m - 1
            right = j + 1 if j + 1 < m else 0
            z[i, j] = y[left] * x[(i + 1) % m] - y[right] * y[i - 1]
    for i in range(m):
        if i == 0 or i == m - 1:
            y[i] = z[i, 0]
        else:
            y[i] = z[i - 1, i] * z[i + 1, i] + z[i, i]
    total = 0.0
    for i in range(n):
        total += y[i] * z[0, i]
    return total


@pytest.mark.parametrize("size", [3, 4, 9])
def test_rings(size: int) -> None:
    check_vjp(rings, np.linspace(0.3, 0.9, size), np.zeros(size), size)


@pytest.mark.parametrize("seed", range(80))
def test_meaning(seed: int) -> None:
    meaning.check(run, seed)
