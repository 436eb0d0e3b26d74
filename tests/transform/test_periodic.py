"""periodic: remainders that close a ring."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from splitad.ir.show import show
from splitad.ir.verify import verify
from splitad.testing import check_vjp
from splitad.transform import periodic, simplify
from tests.ir_parse import parse
from tests.transform import meaning
from tests.transform.cases import check, function, unchanged


def test_the_next_one_and_the_last_one() -> None:
    check(
        periodic.run,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1:
          j = add(i, 1)
          r = mod(j, n0)
          t = x[r]
          p = sub(i, 1)
          q = mod(p, n0)
          u = x[q]
        """,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1:
          j = add(i, 1)
          r_1 = add(i, 1)
          r_2 = ge(r_1, n0)
          r = select(r_2, 0, r_1)
          t = x[r]
          p = sub(i, 1)
          q_1 = lt(i, 1)
          q_2 = sub(i, 1)
          q_3 = sub(n0, 1)
          q_4 = max(q_3, 0)
          q_5 = max(q_2, 0)
          q = select(q_1, q_4, q_5)
          u = x[q]
        """,
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for i in 0..n step 1:\n  j = add(i, 2)",  # n may be 1
        "for i in 0..k step 1:\n  j = add(i, 1)",  # the loop has another end
        "for i in k..n step 1:\n  j = add(i, 1)",  # and may start below zero
        "for i in 0..n step 2:\n  j = add(i, 1)",
        "for i in 0..n step 1:\n  j = add(i, k)",
        "for i in 0..n step 1:\n  j = add(i, i)",
        "for i in 0..n step 1:\n  j = sub(n, i)",
        "for i in 0..n step 1:\n  j = add(i, 4611686018427387904)",
    ],
)
def test_what_may_leave_the_ring_twice(loop: str) -> None:
    unchanged(periodic.run, f"{loop}\n  m_1 = mod(j, n)\n  b_1 = ge(m_1, 0)\n")


@pytest.mark.parametrize("distance", ["0", "1", "-1", "2", "-2", "5", "-5"])
@pytest.mark.parametrize("turns", ["", "j_1 = add(j, n0)", "j_1 = sub(j, n0)"])
def test_every_place_of_a_ring(distance: str, turns: str) -> None:
    """Rings of 1 to 7, of which those of at least 5 say so."""
    for low in ("0", "5"):
        body = f"""
        n1 = x.shape[0]
        n0 = max(n1, {low})
        for i in 0..n0 step 1 [s = 0] -> s_1:
          j = add(i, {distance})
          {turns or "j_1 = add(j, 0)"}
          r = mod(j_1, n0)
          s_2 = mul(s, 7)
          s_3 = add(s_2, r)
          yield s_3
        return s_1
        """
        fn = parse(function(body))
        changed = periodic.run(fn)
        verify(changed)
        far = abs(int(distance))
        assert ("mod(" in show(changed)) == (far > 1 and low == "0")
        for size in range(1, 8):
            args = (np.zeros(size), np.zeros(1), np.zeros((1, 1)), 0, 0, 0.0, False)
            assert meaning.outcome(fn, args) == meaning.outcome(changed, args)


@njit
def ring(x, n):
    """A stencil on a ring, in place, and one on a torus."""
    m = x.shape[0]
    for _ in range(n):
        for i in range(m):
            x[i] = 0.5 * x[i] + x[(i + 1) % m] * x[(i - 1) % m] + 0.1 * x[(i - 1 + m) % m]
    total = 0.0
    for i in range(4):
        total += x[(i + 3) % 4 % m] * x[(i - 3) % 4 % m]
    return total


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_ring(size: int) -> None:
    check_vjp(ring, np.linspace(0.3, 0.9, size), 2)


@pytest.mark.parametrize("seed", range(60))
def test_meaning(seed: int) -> None:
    meaning.check(periodic.run, seed)


def test_it_is_part_of_simplify() -> None:
    assert "periodic" in simplify.PASSES
