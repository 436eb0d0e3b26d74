"""A struct given twice: refused where a field is assigned, or where two shadows are one."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import splitad as ad
from tests.leaks import no_leak


@jitclass([("c", float64), ("h", float64[::1])])
class Cell:
    def __init__(self, c, h):
        self.c = c
        self.h = h


@jitclass([("inner", Cell.class_type.instance_type)])
class Outer:
    def __init__(self, inner):
        self.inner = inner


def cell(c: float) -> Cell:
    return Cell(c, np.array([1.0, 2.0]))


def assigns(s, t, x):
    s.c = 2.0 * x
    return t.c * x


def assigns_inside(o, t, x):
    o.inner.c = 2.0 * x
    return t.c * x


def product(s, t):
    return s.c * t.c * t.h[1]


forward = ad.split(assigns)
inside = ad.split(assigns_inside)


@njit
def in_njit(s, t, x):
    try:
        return forward(s, t, x)[0]
    except Exception:
        return -1.0


def test_a_field_of_an_object_given_twice_is_assigned() -> None:
    s, t = cell(5.0), cell(7.0)
    assert forward(s, t, 3.0)[0] == 21.0 and s.c == 6.0
    with no_leak():
        for _ in range(2):
            with pytest.raises(ad.AliasingError, match="'s' and 't' of assigns are one object"):
                forward(t, t, 3.0)
            assert t.c == 7.0
            with pytest.raises(ad.AliasingError, match=r"'t' and 'o\.inner' of assigns_inside"):
                inside(Outer(t), t, 3.0)
            assert in_njit(t, t, 3.0) == -1.0
    assert in_njit(s, t, 3.0) == inside(Outer(s), t, 3.0)[0] == 21.0


def test_an_object_given_twice_is_read() -> None:
    """Each position has its own part, and so needs a shadow of its own."""
    s = cell(5.0)
    _, pullback = ad.split(product)(s, s)
    a, b = pullback.make_zero()
    pullback(1.0, a, b)
    assert a.c == b.c == 10.0 and a.h.tolist() == b.h.tolist() == [0.0, 25.0]
    assert ad.grad(product)(s, s).c == 10.0
    with pytest.raises(ad.ShadowError, match="the shadows of 's' and 't' are one object"):
        pullback(1.0, a, a)
    s_bar, t_bar = ad.grad(product, wrt=("s", "t"))(s, s)
    assert s_bar.c == t_bar.c == 10.0 and s_bar.h[1] == 0.0 and t_bar.h[1] == 25.0
    s_bar, t_bar = ad.grad(product, wrt=("s", "t"))(s, cell(7.0))
    assert s_bar.c == 14.0 and t_bar.c == 10.0
