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


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(index_signs.run, seed)
