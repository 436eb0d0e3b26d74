"""index_signs: accesses whose indices cannot be negative."""

from __future__ import annotations

import pytest

from splitad.transform import index_signs
from tests.transform import meaning
from tests.transform.cases import check


def test_what_is_known_of_integers() -> None:
    check(
        index_signs.run,
        """
        n0 = x.shape[0]
        for i in 1..n0 step 1 [p = 0, q = 0] -> p_1, q_1:
          a = x[i]
          j = sub(i, 1)
          c = x[j]
          l = sub(j, 1)
          d = x[l]
          e = x[p]
          f = x[q]
          p_2 = add(p, 1)
          q_2 = sub(q, 1)
          yield p_2, q_2
        for r in n..-1 step -1:
          t = x[r]
          u = x[k]
          v = mul(r, r)
          w = x[v]
        """,
        """
        n0 = x.shape[0]
        for i in 1..n0 step 1 [p = 0, q = 0] -> p_1, q_1:
          a = x[i] nowrap
          j = sub(i, 1)
          c = x[j] nowrap
          l = sub(j, 1)
          d = x[l]
          e = x[p] nowrap
          f = x[q]
          p_2 = add(p, 1)
          q_2 = sub(q, 1)
          yield p_2, q_2
        for r in n..-1 step -1:
          t = x[r] nowrap
          u = x[k]
          v = mul(r, r)
          w = x[v]
        """,
    )


def test_what_grows_in_nested_loops() -> None:
    """p counts up; q counts down there; r is reset below zero; s grows by something unknown; t is doubled."""
    check(
        index_signs.run,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1 [p = 3, q = 3, r = 0, s = 0, t = 1] -> p_1, q_1, r_1, s_1, t_1:
          for j in i..n0 step 1 [pp = p, qq = q, rr = -1, ss = s, tt = t] -> p_2, q_2, r_2, s_2, t_2:
            aa = x[pp]
            bb = x[qq]
            c = x[rr]
            d = x[ss]
            e = x[tt]
            p_3 = add(pp, 1)
            q_3 = sub(qq, 1)
            r_3 = add(rr, 1)
            s_3 = add(ss, k)
            t_3 = add(tt, tt)
            yield p_3, q_3, r_3, s_3, t_3
          f = x[p_2]
          p_4 = add(p_2, 2)
          yield p_4, q_2, r_2, s_2, t_2
        g = x[p_1]
        """,
        """
        n0 = x.shape[0]
        for i in 0..n0 step 1 [p = 3, q = 3, r = 0, s = 0, t = 1] -> p_1, q_1, r_1, s_1, t_1:
          for j in i..n0 step 1 [pp = p, qq = q, rr = -1, ss = s, tt = t] -> p_2, q_2, r_2, s_2, t_2:
            aa = x[pp] nowrap
            bb = x[qq]
            c = x[rr]
            d = x[ss]
            e = x[tt]
            p_3 = add(pp, 1)
            q_3 = sub(qq, 1)
            r_3 = add(rr, 1)
            s_3 = add(ss, k)
            t_3 = add(tt, tt)
            yield p_3, q_3, r_3, s_3, t_3
          f = x[p_2] nowrap
          p_4 = add(p_2, 2)
          yield p_4, q_2, r_2, s_2, t_2
        g = x[p_1] nowrap
        """,
    )


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(index_signs.run, seed)
