"""Shadows of arrays of which control flow decides what view they are."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64
from numba.experimental import jitclass

import splitad as ad
from tests.cases.chosen_views import PROGRAMS, Pair, nested, of_two, workspace
from tests.pairs import check, pair


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_differences(name: str) -> None:
    function, args = PROGRAMS[name]
    check(function, *args(np.random.default_rng(3)))


def test_of_a_workspace() -> None:
    """A Const argument has a shadow of the pullback's own, laid out as the argument is."""
    r = np.random.default_rng(3)
    activities = (ad.Duplicated, ad.Const, ad.Active)
    check(workspace, r.random(2), r.random((4, 4))[::-2, ::2], 0.6, activities=activities)


def _spread(a: np.ndarray, step: int) -> np.ndarray:
    """The same numbers, in other places of memory."""
    wide = np.zeros(a.size * abs(step), a.dtype)[::step]
    wide[...] = a
    return wide


@pytest.mark.parametrize("c", [0.6, -0.6])
def test_shadows_in_other_layouts(c: float) -> None:
    r = np.random.default_rng(4)
    x, y, x_bar, y_bar = (r.random(5) for _ in range(4))
    forward = pair(of_two)

    def pulled(x, y, x_bar, y_bar):
        _, pullback = forward(x.copy() if x.strides[0] == 8 else x, y.copy(), c)
        (c_bar,) = pullback(1.3, x_bar, y_bar)
        return [*x_bar, *y_bar, c_bar]

    want = pulled(x, y, x_bar.copy(), y_bar.copy())
    assert pulled(x, y, _spread(x_bar, -3), _spread(y_bar, 2)) == pytest.approx(want, rel=1e-13)
    got = pulled(_spread(x, 2), y, x_bar.copy(), _spread(y_bar, -1))
    assert got == pytest.approx(want, rel=1e-13)


def test_shadows_in_fortran_order() -> None:
    r = np.random.default_rng(5)
    x, x_bar, result_bar = (r.random((4, 3)) for _ in range(3))
    forward = pair(nested)
    got = []
    for primal, shadow in (("C", "C"), ("C", "F"), ("F", "C")):
        _, pullback = forward(x.copy(order=primal), 3)
        d = x_bar.copy(order=shadow)
        pullback(result_bar, d)
        got.append(d)
    assert np.allclose(got[0], got[1], rtol=1e-13) and np.allclose(got[0], got[2], rtol=1e-13)


def read(x, y, c):
    a = x[1:]
    if c > 0:
        a = y[1:]
    return a[0] * a[1] * c * x[0]


def test_the_shadow_of_an_argument_that_overlaps_itself() -> None:
    """It cannot be brought to the layout of the argument: three elements would become one."""
    forward = ad.split(read)
    _, pullback = forward(np.broadcast_to(np.array([2.0]), (3,)), np.ones(3), 1.0)
    with pytest.raises(ad.ShadowError, match="overlaps itself"):
        pullback(1.0, np.zeros(3), np.zeros(3))


def rebound(s, c):
    row = s.x
    if c > 0:
        row = s.y[0]
    row[0] *= c
    s.x = s.x * 2.0
    return s.x[0] + row[1]


def test_views_beside_fields_that_are_rebound() -> None:
    with pytest.raises(ad.UnsupportedError, match="'row' is a view here"):
        ad.split(rebound)(Pair(np.ones(3), np.ones((2, 3))), 0.6)


@jitclass([("x", float64[::1]), ("z", float64[::1])])
class Two:
    def __init__(self, x, z):
        self.x = x
        self.z = z


@jitclass([("f", float64[::1, :]), ("h", float64[::1, :]), ("g", float64[:, ::1])])
class Matrices:
    def __init__(self, f, h, g):
        self.f = f
        self.h = h
        self.g = g


def put_into_a_field(x, y, s, c):
    """x's memory is the field's from here on, and holds what depends on y."""
    if c > 0.0:
        s.x = x
    for i in range(x.size):
        x[i] = c * y[i] * y[i]
    return s.x[1] * s.y[0, 1]


def put_into_a_field_and_written_there(x, y, s, c):
    s.x = x
    for i in range(x.size):
        s.x[i] = c * y[i]
    return x[1] * s.y[0, 1]


@pytest.mark.parametrize("function", [put_into_a_field, put_into_a_field_and_written_there])
@pytest.mark.parametrize("c", [0.6, -0.6])
@pytest.mark.parametrize("activity", [ad.Const, ad.Duplicated])
def test_an_argument_that_a_field_holds_at_exit(function, c: float, activity) -> None:
    """The cotangent that the caller gives for the field is the array's, whatever the array's activity."""
    r = np.random.default_rng(5)
    x, y, s = r.random(3), r.random(3), Pair(r.random(3), r.random((2, 3)))
    check(function, x, y, s, c, activities=(activity, ad.Duplicated, ad.Duplicated, ad.Active))


def test_a_field_of_a_const_struct_that_another_one_holds_at_exit() -> None:
    def taken(q, s, y):
        s.x = q.x
        for i in range(y.size):
            q.x[i] = 2.0 * y[i] * q.x[i]
        return s.x[0]

    r = np.random.default_rng(6)
    q, s = Pair(r.random(3), r.random((2, 3))), Pair(r.random(3), r.random((2, 3)))
    check(taken, q, s, r.random(3), activities=(ad.Const, ad.Duplicated, ad.Duplicated))


def test_a_field_that_is_lost_where_a_later_argument_holds_its_array_at_exit() -> None:
    """s.x is rebound; its array at entry is p.x too, and p's field holds it at exit, in another place."""

    def exchanged(s, p, c):
        s.x = s.x * c
        p.x, p.z = p.z, p.x
        p.z[0] *= c
        return s.x[1]

    r = np.random.default_rng(7)
    s = Two(r.random(3), r.random(3))
    p = Two(r.random(3), s.x)
    check(exchanged, s, p, 0.6)
    check(exchanged, s, Two(s.x, r.random(3)), 0.6)
    check(exchanged, Two(r.random(3), r.random(3)), p, 0.6)


def test_the_same_where_a_branch_decides_it() -> None:
    def perhaps(s, p, c):
        s.x = s.x * c
        if c > 0.0:
            p.x, p.z = p.z, p.x
        else:
            p.x = p.z * 2.0
        p.z[0] *= c
        return s.x[1] + p.x[1]

    r = np.random.default_rng(8)
    s = Two(r.random(3), r.random(3))
    for c in (0.6, -0.6):
        check(perhaps, s, Two(r.random(3), s.x), c)
        check(perhaps, s, Two(s.x, r.random(3)), c)


@pytest.mark.parametrize("c", [0.6, -0.6])
def test_a_field_that_is_lost_while_a_part_of_its_array_is_kept(c: float) -> None:
    """The shadow of the part is the caller's and has no room for the rest."""

    def kept(s, p, c):
        s.x = s.x * c
        if c > 0.0:
            p.x, p.z = p.z, p.x
        else:
            p.x = p.z * 2.0
        return s.x[1]

    r = np.random.default_rng(9)
    s = Two(r.random(8), r.random(8))
    p = Two(s.x[2:6], r.random(4))
    if c < 0.0:
        check(kept, s, p, c)
        return
    _, pullback = pair(kept)(s, p, c)
    with pytest.raises(ad.AliasingError, match="only the part is a field's at the end"):
        pullback(1.0, *pullback.make_zero())


def test_a_fortran_field_beside_one_that_is_rebound() -> None:
    def beside(s, c):
        s.g = s.g * c * s.f[0, 0]
        s.f[0, 1] *= s.g[1, 1]
        return s.f[0, 1]

    def itself(s, c):
        s.f, s.h = s.h, s.f
        return s.f[0, 1] * c

    r = np.random.default_rng(10)
    s = Matrices(
        np.asfortranarray(r.random((2, 3))), np.asfortranarray(r.random((2, 3))), r.random((2, 2))
    )
    check(beside, s, 0.6)
    with pytest.raises(
        ad.UnsupportedError, match="field 'f', whose type is in Fortran order"
    ) as error:
        pair(itself)(s, 0.6)
    assert "s.f, s.h = s.h, s.f" in str(error.value)


def test_a_view_in_a_field_is_refused_at_its_line() -> None:
    def viewed(s, c):
        s.x = s.z[1:]
        return s.x[0] * c

    r = np.random.default_rng(11)
    with pytest.raises(ad.UnsupportedError, match="the field 'x' is assigned it") as error:
        pair(viewed)(Two(r.random(3), r.random(3)), 0.6)
    assert "s.x = s.z[1:]" in str(error.value)
