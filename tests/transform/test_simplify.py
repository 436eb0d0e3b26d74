"""simplify: all passes together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from splitad.transform import simplify
from tests.transform import meaning
from tests.transform.cases import check


def test_together() -> None:
    check(
        lambda fn: simplify.run(fn, "numpy"),
        """
        n0 = x.shape[0]
        w = empty((n0), float64)
        wv = view w[:]
        for i in 0..n0 step 1 [c = 0, s = 0.0] -> c_1, s_1:
          row = view m[i, 1:]
          for j in 0..2 step 1 [d = c, t = s] -> d_1, t_1:
            a = row[j]
            wv[i] = a
            e = w[i]
            f = mul(h, h)
            g = mul(h, h)
            l = mul(f, g)
            o = mul(e, l)
            p = add(t, o)
            q = add(d, 1)
            z = y[d]
            r = add(p, z)
            yield q, r
          yield d_1, t_1
        return s_1
        """,
        """
        n0 = x.shape[0]
        f = mul(h, h)
        l = mul(f, f)
        for i in 0..n0 step 1 [s = 0.0] -> s_1:
          c = mul(i, 2)
          for j in 0..2 step 1 [t = s] -> t_1:
            d = add(c, j)
            j_1 = add(j, 1)
            a = m[i, j_1] nowrap
            o = mul(a, l)
            p = add(t, o)
            z = y[d] nowrap
            r = add(p, z)
            yield r
          yield t_1
        return s_1
        """,
    )


@given(st.integers(0, 2**32))
def test_meaning(seed: int) -> None:
    meaning.check(lambda fn: simplify.run(fn, "python"), seed)
    meaning.check(lambda fn: simplify.run(fn, "python", boundscheck=True), seed)
