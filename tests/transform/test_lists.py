"""List arguments: read, written, made longer and shorter; their shadows, and what is wrong with those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.typed import List

import splitad as ad
from splitad.errors import AliasingError, ShadowError, UnsupportedError
from tests.pairs import check, pair

pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


def typed(*items: float, kind: types.Type = types.float64) -> Any:
    made = List.empty_list(kind)
    for item in items:
        made.append(item)
    return made


@njit
def reads(xs, a):
    s = 0.0
    for k, x in enumerate(xs):
        s += x * x * a * k
    return s


@njit
def products(xs, ys):
    s = 0.0
    for x, y in zip(xs, ys):  # noqa: B905
        s += x * y
    return s


@njit
def writes(xs, a):
    for k in range(1, len(xs)):
        xs[k] = xs[k] * xs[k - 1] + a
    xs[0] = xs[-1] * 2.0
    return xs[1]


@njit
def grows(xs, a, n):
    for _ in range(n):
        xs.append(xs[-1] * a + xs[0])
    xs[0] = xs[len(xs) - 1] ** 2
    return sum(xs)


@njit
def shrinks(xs, a):
    s = 0.0
    while len(xs) > 2:
        s = s * a + xs.pop() ** 2
    if s > 0.0:
        xs.append(s * a)
    return s


@njit
def starts_again(xs, a):
    s = xs[0] * xs[1]
    xs.clear()
    for k in range(5):
        xs.append(s * a**k)
    return xs[3] if xs else 0.0


@njit
def joins(xs, ys, a):
    xs.extend(ys)
    ys[0] = a * xs[0]
    return xs[-1] * ys[0]


@njit
def is_filled(xs, a):
    for k in range(20):
        xs.append(a * k)
    return xs[3]


@njit
def loops_again(xs, a):
    s = 0.0
    for _ in range(3):
        for x in xs:
            s += x * a
        xs.append(s)
        if s > 2.0:
            xs[0] = s * 0.1
    return s


@njit
def appends(xs, a):
    xs.append(a)


@njit
def calls(xs, a):
    appends(xs, a * a)
    return xs[-1] * xs[0]


@njit
def complex_items(zs, a):
    zs.append(zs[0] * a)
    zs[0] = zs[0] ** 2
    s = 0j
    for z in zs:
        s += z
    return s * zs[1]


@njit
def by_number(ks, x):
    s = 0.0
    for k in ks:
        s += x[k]
    ks.append(1)
    return s * ks[1] * len(ks)


@njit
def fails(xs, a):
    xs.append(a)
    if a > 1.0:
        raise ValueError("too large")
    return xs[0]


# ---- the derivative ------------------------------------------------------------------------------------

CASES: list[tuple[Any, ...]] = [
    (reads, typed(1.0, 2.0, 3.0), 2.0),
    (reads, typed(), 2.0),
    (products, typed(1.0, 2.0), typed(3.0, 4.0, 5.0)),
    (writes, typed(1.0, 2.0, 3.0), 2.0),
    (grows, typed(1.0, 2.0, 3.0), 1.2, 12),
    (grows, typed(1.0, 2.0, 3.0), 1.2, 0),
    (shrinks, typed(1.0, 2.0, 3.0, 0.5, 0.7), 1.1),
    (starts_again, typed(1.0, 2.0, 3.0), 1.2),
    (starts_again, typed(*np.arange(1.0, 9.0)), 1.2),
    (joins, typed(1.0, 2.0), typed(3.0, 4.0, 5.0), 1.3),
    (is_filled, typed(), 1.3),
    (loops_again, typed(0.1, 0.2), 0.7),
    (calls, typed(0.3), 1.1),
]


@pytest.mark.parametrize(("f", "args"), [(f, args) for f, *args in CASES])
def test_typed_lists(f: Callable[..., Any], args: list[Any]) -> None:
    check(f, *args)


@pytest.mark.parametrize("f", [writes, shrinks, starts_again])
def test_const(f: Callable[..., Any]) -> None:
    args = next(args for g, *args in CASES if g is f)
    check(f, *args, activities=(ad.Const, ad.Active))


@pytest.mark.parametrize("f", [reads, writes, grows, shrinks, joins])
def test_reflected_lists(f: Callable[..., Any]) -> None:
    args = next(args for g, *args in CASES if g is f)
    check(f, *(list(arg) if isinstance(arg, List) else arg for arg in args))


@pytest.mark.filterwarnings("ignore::numba.NumbaTypeSafetyWarning")
def test_single_precision() -> None:
    check(writes, typed(1.0, 2.0, 3.0, kind=types.float32), np.float32(2.0))


def test_complex() -> None:
    check(complex_items, typed(1 + 1j, 2 - 0.5j, kind=types.complex128), 1.5 + 0.2j)


def test_integers() -> None:
    check(by_number, typed(0, 1, 1, kind=types.int64), np.array([1.0, 2.0, 3.0]))


@njit
def adds_in_place(xs, a):
    ys = [a, 2.0 * a]
    zs = ys
    ys += xs
    xs += ys
    return zs[-1] * xs[-1] * len(zs)


def test_in_place() -> None:
    check(adds_in_place, [1.0, 0.5], 2.0)


# ---- shadows -------------------------------------------------------------------------------------------


def test_a_shadow_runs_backwards() -> None:
    forward = pair(grows)
    xs = typed(1.0, 2.0)
    result, pullback = forward(xs, 3.0, 1)
    assert (result, list(xs)) == (58.0, [49.0, 2.0, 7.0])  # 7 = 2 * 3 + 1, 49 = 7 * 7
    (bar,) = pullback.make_zero()
    assert list(bar) == [0.0, 0.0, 0.0]
    bar[1] = 10.0
    assert pullback(1.0, bar) == (30.0,)  # (2 * 7 + 1) * 2
    assert list(bar) == [15.0, 56.0]  # 15, and 1 + 10 + 15 * 3


def test_one_list_twice() -> None:
    xs = typed(1.0, 2.0)
    check(products, xs, xs)
    with pytest.raises(AliasingError, match="'xs' and 'ys' of joins are the same list, and it is"):
        pair(joins)(xs, xs, 1.0)
    assert list(xs) == [1.0, 2.0]


@pytest.mark.filterwarnings("ignore::numba.NumbaTypeSafetyWarning")
def test_wrong_shadows() -> None:
    xs, ys = typed(1.0, 2.0), typed(1.0, 3.0)
    _, pullback = pair(products)(xs, ys)
    bar, other = pullback.make_zero()
    bar[0] = 5.0
    for shadows, message in (
        ((bar, typed(0.0)), "the shadow of 'ys' has another length than 'ys' had when products"),
        ((bar, ys), "the shadow of 'ys' is the list 'ys' itself"),
        ((ys, other), "the shadow of 'xs' is the list 'ys' itself"),
        ((bar, bar), "'xs' and 'ys' have one shadow, but were two lists"),
        ((bar, np.zeros(2)), r"the shadow of 'ys' is array\(float64, 1d, C\), not ListType"),
        ((bar, typed(0.0, 0.0, kind=types.float32)), r"is ListType\[float32\], not ListType"),
    ):
        with pytest.raises(ShadowError, match=message):
            pullback(1.0, *shadows)
    assert (list(bar), list(other), list(ys)) == ([5.0, 0.0], [0.0, 0.0], [1.0, 3.0])


# ---- the other calls -----------------------------------------------------------------------------------

gradient = ad.value_and_grad(grows, wrt=("xs", "a"))


@pytest.mark.parametrize("make", [typed, lambda *items: list(items)], ids=["typed", "reflected"])
def test_gradients(make: Callable[..., Any]) -> None:
    xs = make(1.0, 2.0)
    for _ in range(2):  # the list is put back
        value, (bar, a_bar) = gradient(xs, 3.0, 1)
        assert type(bar) is type(xs)
        assert (value, list(bar), a_bar) == (58.0, [15.0, 46.0], 30.0)
        assert list(xs) == [1.0, 2.0]


def test_put_back_after_an_exception() -> None:
    xs = typed(1.0)
    with pytest.raises(ValueError, match="too large"):
        ad.grad(fails)(xs, 2.0)
    assert list(xs) == [1.0]
    with pytest.raises(ValueError, match="too large"):
        ad.split(fails)(xs, 2.0)
    assert list(xs) == [1.0, 2.0]


def test_vjp() -> None:
    xs = typed(1.0, 2.0)
    result, pullback = ad.vjp(grows, xs, 3.0, 1)
    assert result == 58.0
    bars = pullback(), pullback(1.0, {"xs": [0.0, 10.0, 0.0]})
    assert [list(bar[0]) for bar in bars] == [[15.0, 46.0], [15.0, 56.0]]
    with pytest.raises(ShadowError, match="exit_bar has 1 items where the state has 3"):
        pullback(1.0, {"xs": [0.0]})


def test_from_njit() -> None:
    forward = pair(grows)

    @njit
    def caller(xs, a):
        result, pullback = forward(xs, a, 1)
        (bar,) = pullback.make_zero()
        (a_bar,) = pullback(1.0, bar)
        value, (again, _) = gradient(xs, a, 0)
        return result, a_bar, bar, len(again)

    @njit
    def own(a):
        return caller([1.0, 2.0], a)

    for result, a_bar, bar, count in (caller(typed(1.0, 2.0), 3.0), own(3.0)):
        assert (result, a_bar, list(bar), count) == (58.0, 30.0, [15.0, 46.0], 3)


def test_within_a_tuple() -> None:
    def uses(p):
        return p[0][0] * p[1]

    def ignores(p):
        return 2.0 * p[1]

    with pytest.raises(UnsupportedError, match=r"`p\[0\]` is a list .* within another argument"):
        ad.split(uses)((typed(1.0), 2.0))
    p = (typed(1.0), 2.0)
    _, pullback = ad.split(ignores)(p)
    with pytest.raises(ShadowError, match=r"'p\[0\]' is a list within another argument"):
        pullback.make_zero()
    assert pullback(1.0, ad.make_zero(p)) == ((None, 2.0),)


@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
def test_a_list_that_is_its_own_shadow() -> None:
    def first(xs, a):
        xs[0] = a * xs[1]
        return xs[0]

    xs = [1.0, 2.0]
    _, pullback = ad.split(first)(xs, 3.0)
    with pytest.raises(ad.ShadowError, match="a list among the shadows is the one that was"):
        pullback(1.0, xs)
    assert xs == [6.0, 2.0]
    bars = [0.0, 0.0]
    assert pullback(1.0, bars) == (2.0,)
    assert bars == [0.0, 3.0]
