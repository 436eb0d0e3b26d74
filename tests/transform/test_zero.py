"""The zero shadows of a pullback: shapes and aliasing as f left them, no memory read."""

from __future__ import annotations

import numpy as np

import splitad as ad
from tests.transform.pair_text import pair_text
from tests.transform.programs import State, ramp


def rebind(st, x, counts):
    st.a = np.ones(3) * x[0]
    st.b = st.a
    st.n = 7
    x[0] = st.s
    counts[0] = 5


def test_as_f_left_them() -> None:
    st, x, counts = State(ramp(), ramp()), ramp(8)[::2], np.array([1, 2])
    _, pullback = ad.split(rebind)(st, x, counts)
    st.a = st.b = np.full(9, np.nan)  # what was there at exit may be gone
    x[:] = np.nan
    zero_st, zero_x = pullback.make_zero()
    assert zero_st.a.shape == (3,) and not zero_st.a.any() and zero_st.n == 7 and zero_st.s == 0.0
    zero_st.a[1] = 2.0
    assert zero_st.b[1] == 2.0, "the fields shared an array"
    assert zero_x.shape == (4,) and not zero_x.any()


def const(x, y):
    return x[0] * y[0]


def test_only_of_duplicated_arguments() -> None:
    text = pair_text(const, ramp(), ramp(), const=(1,))
    assert text.zero.count("noted_") == 1
    assert "return ()" in pair_text(const, ramp(), ramp(), const=(0, 1)).zero
