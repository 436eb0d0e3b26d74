"""Checks at the boundary that need a whole pair; the checks by themselves are in tests/runtime."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64
from numba.experimental import jitclass

import splitad as ad


@jitclass([("h", float64[::1])])
class Holder:
    def __init__(self, h):
        self.h = h


def rebinds(x, s):
    s.h = s.h * 2.0
    return x[0] * s.h[1]


def test_a_rebound_field_that_is_an_argument_is_refused() -> None:
    """At entry x and s.h are one array, at exit two: no shadow of s.h could be both."""
    forward = ad.split(rebinds)
    x = np.array([1.0, 2.0])
    with pytest.raises(ad.AliasingError, match=r"'x' and 's\.h' of rebinds overlap"):
        forward(x, Holder(x))
    result, pullback = forward(x, Holder(x.copy()))
    x_bar, s_bar = pullback.make_zero()
    pullback(1.0, x_bar, s_bar)
    np.testing.assert_array_equal(x_bar, [4.0, 0.0])
    np.testing.assert_array_equal(s_bar.h, [0.0, 2.0])
