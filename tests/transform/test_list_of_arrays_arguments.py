"""Lists of arrays as arguments: their shadows, arrays that overlap, and lists that hold others at exit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import List

import splitad as ad
from splitad.errors import UnsupportedError
from tests.pairs import check, pair

X, Y = np.array([0.5, 0.7, 0.3]), np.array([0.2, 1.3, 0.9])


@jitclass([("a", float64[::1]), ("b", float64[::1])])
class Pair:
    def __init__(self, a, b):
        self.a = a
        self.b = b


@njit
def network(layers, x):
    h = x
    for w in layers:
        h = np.tanh(np.dot(w, h))
    return h.sum() * layers[0][0, 1]


@njit
def in_turn(xs, y, n):
    for k in range(n):
        source, target = xs[k % len(xs)], xs[(k + 1) % len(xs)]
        for i in range(y.shape[0]):
            target[i] += source[i] * source[i] * y[i]
    return xs[0][1] * xs[-1][0]


@njit
def mixed(xs, y):
    kept = [y]
    for x in xs:
        kept.append(x)
    kept.append(kept[1] * kept[2])
    kept[0], kept[1] = kept[1], kept[0]
    kept[0][0] = kept[1][1] * kept[3][0] * xs[0][2]
    return kept[0]


@njit
def read_only(xs, y):
    s = 0.0
    for x in xs:
        s += (x * y).sum()
    return s * xs[0][0]


W = np.arange(9.0).reshape(3, 3) * 0.1
typed = List
ARGUMENTS: list[tuple[Any, ...]] = [
    (network, typed([W, W.T.copy() * 0.5]), X),
    (in_turn, typed([X, Y, X * Y]), X, 4),
    (mixed, typed([X, Y, X * Y]), X),
    (read_only, typed([X, X, Y]), X),
    (in_turn, [X, Y, X * Y], X, 4),
    (mixed, [X, Y, X * Y], X),
]
reflected = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@reflected
@pytest.mark.parametrize(("f", "args"), [(f, args) for f, *args in ARGUMENTS])
def test_arguments(f: Callable[..., Any], args: list[Any]) -> None:
    made = [type(arg)([x.copy() for x in arg]) if f is not read_only and k == 0 else arg
            for k, arg in enumerate(args)]  # fmt: skip
    check(f, *made)


def test_const_argument() -> None:
    given = typed([X.copy(), Y.copy()])
    check(in_turn, given, X, 4, activities=(ad.Const, ad.Duplicated, ad.Const))


gradient = ad.value_and_grad(in_turn, wrt=("xs", "y"))


@reflected
@pytest.mark.parametrize("make", [List, list])
def test_gradients_of_arguments(make: Any) -> None:
    xs = make([X.copy(), Y.copy()])
    value, (bars, y_bar) = gradient(xs, X, 2)
    assert type(bars) is type(xs)
    assert np.array_equal(xs[0], X)  # put back
    assert np.array_equal(xs[1], Y)
    result, pullback = ad.vjp(in_turn, xs, X, 2)
    again = pullback()
    assert result == value
    assert all(np.array_equal(a, b) for a, b in zip(again[0], bars, strict=True))
    assert np.array_equal(again[1], y_bar)


def test_arguments_from_njit() -> None:
    forward = pair(in_turn)

    @njit
    def caller(x, y):
        xs = [x.copy(), y.copy()]
        result, pullback = forward(xs, x, 2)
        bars, y_bar = pullback.make_zero()
        pullback(1.0, bars, y_bar)
        return result, bars[0], bars[1], y_bar

    value, (bars, y_bar) = gradient(typed([X.copy(), Y.copy()]), X, 2)
    found = caller(X, Y)
    assert found[0] == value
    for have, want in zip(found[1:], (bars[0], bars[1], y_bar), strict=True):
        assert np.allclose(have, want, rtol=1e-14)


# ---- arrays of list arguments that overlap -------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: (typed([X.copy()] * 2), Y.copy()), lambda: (typed([X.copy(), Y]), Y)]
)
def test_overlapping_arguments(make: Callable[[], Any]) -> None:
    xs, y = make()
    check(in_turn, xs, y, 2)


def test_overlapping_views() -> None:
    z = np.linspace(0.2, 0.8, 5)
    xs = typed([z[:3], z[1:4]])
    check(in_turn, xs, z[2:], 2)
    forward = pair(in_turn)
    _, pullback = forward(xs, z[2:], 2)
    bars, y_bar = pullback.make_zero()
    assert np.shares_memory(bars[0], bars[1])
    assert np.shares_memory(bars[0], y_bar)
    apart = typed([np.zeros(3), np.zeros(3)])
    with pytest.raises(ad.AliasingError, match="must overlap at the same byte offsets"):
        pullback(1.0, apart, y_bar)


@njit
def in_turn_32(xs, y):
    y[0] = xs[0][1] * 2.0
    xs[1][0] *= y[0]


def test_overlapping_arguments_refused() -> None:
    xs = typed([X.copy(), X.copy()])
    y = np.arange(6, dtype=np.float32)
    for f, args, kinds, message in (
        (
            in_turn,
            (typed([X, Y]), X, 2),
            (ad.Duplicated, ad.Const, ad.Const),
            "both to be Duplicated",
        ),
        (
            in_turn,
            (typed([X, X]), Y, 2),
            (ad.Const, ad.Duplicated, ad.Const),
            "both to be Duplicated",
        ),
        (in_turn_32, (typed([y.view(np.float64), X]), y), (), "elements are of different types"),
        (grows, (typed([X, Y]), X, 0.3), (), "while the list is given other arrays"),
        (exchanges, (xs, xs), (), "are the same list, and it is changed: pass it once"),
    ):
        forward = pair(f, *kinds)
        with pytest.raises(ad.AliasingError, match=message):
            forward(*args)


@njit
def of_numbers(l, x, y):
    x[0] = y[0] * l[0]
    return x[1] * l[1]


def test_a_list_of_numbers_beside_overlapping_arrays() -> None:
    """The pullback is that of the other pair, and holds the list."""
    x = X.copy()
    check(of_numbers, typed([1.5, 2.0]), x, x)
    forward = pair(of_numbers)

    @njit
    def both(l, x):
        return [forward(l, x, x)[1], forward(l, x, x.copy())[1]]

    kept = both(typed([1.5, 2.0]), x)
    assert kept[0].tape_nbytes > 0
    del kept


# ---- lists that hold other arrays at exit --------------------------------------------------------------


@njit
def grows(xs, y, a):
    xs.append(y)
    y[0] *= a
    xs[2][1] *= xs[0][0]
    return y[1] * xs[-1][0]


@njit
def exchanges(xs, ys):
    xs[0], ys[0] = ys[0], xs[0]
    xs[0][0] *= ys[0][1]
    ys.append(xs[1])
    return ys[-1][0]


@njit
def replaced(xs, y, a):
    old = xs[0]
    xs[0] = xs[1] * a
    xs[1] = y
    y[0] *= a
    xs[1][1] += old[0]
    if a > 0.1:
        xs.append(old)
    return old[0] * xs[0][1]


@njit
def pops(xs, y):
    s = 0.0
    for _ in range(2):
        last = xs.pop()
        s += last[0] * last[1]
        xs[0] = xs[0] + last * y
    return s


@njit
def keeps_states(xs, u, n):
    for _ in range(n):
        for i in range(u.shape[0]):
            u[i] = u[i] - 0.1 * u[i] * u[i - 1]
        xs.append(u.copy())


@njit
def shifts(xs, u):
    for k in range(len(xs) - 1):
        xs[k] = xs[k + 1]
    xs[-1] = u.copy()
    xs[0][:] *= u
    return xs[0][0] * xs[1][1]


@njit
def starts_again(xs, y):
    s = xs[0][0] * xs[1][1]
    xs.clear()
    z = y * 2.0
    for k in range(3):
        xs.append(y * k * s)
    xs.append(z)
    xs.append(z)
    xs[-1][0] *= s
    return xs[-2][0]


@njit
def one_of_two(xs, y, a):
    z = y * a if a > 0.0 else y
    xs[0] = z
    z[0] = xs[1][0] * xs[0][1]


def some(*arrays: Any) -> Any:
    return typed([x.copy() for x in arrays])


@pytest.mark.parametrize(
    ("f", "make"),
    [
        (grows, lambda: (some(X, Y), X.copy(), 0.7)),
        (exchanges, lambda: (some(X, Y), some(Y, X))),
        (replaced, lambda: (some(X, Y), X.copy(), 0.7)),
        (replaced, lambda: (some(X, Y), X.copy(), -0.7)),
        (pops, lambda: (some(X, Y, X * Y), X.copy())),
        (keeps_states, lambda: (some(X, Y), X.copy(), 3)),
        (keeps_states, lambda: (some(X), X.copy(), 0)),
        (shifts, lambda: (some(X, Y, X * Y), X.copy())),
        (starts_again, lambda: (some(X, Y), X.copy())),
        (one_of_two, lambda: (some(X, Y), X.copy(), 3.0)),
        (one_of_two, lambda: (some(X, Y), X.copy(), -3.0)),
    ],
)
def test_other_arrays_at_exit(f: Callable[..., Any], make: Callable[[], Any]) -> None:
    check(f, *make())


@reflected
def test_a_list_that_is_not_typed() -> None:
    check(shifts, [X.copy(), Y.copy(), X * Y], X.copy())


def test_a_const_list_that_is_changed() -> None:
    kinds = (ad.Const, ad.Duplicated, ad.Active)
    check(replaced, some(X, Y), X.copy(), 0.7, activities=kinds)
    forward = pair(one_of_two, ad.Duplicated, ad.Const, ad.Active)
    with pytest.raises(UnsupportedError, match="'y', which is Const, is put into a list"):
        forward(some(X, Y), X.copy(), 1.0)


def test_the_shadow_has_the_structure_of_the_exit_and_then_of_the_entry() -> None:
    xs, y = some(X, Y), X.copy()
    _, pullback = pair(grows)(xs, y, 0.7)
    bars, y_bar = pullback.make_zero()
    assert len(bars) == 3
    assert np.shares_memory(bars[2], y_bar)
    first = bars[0]
    (a_bar,) = pullback(1.0, bars, y_bar)
    assert len(bars) == 2
    assert bars[0] is first or np.shares_memory(bars[0], first)
    # y[1] * xs[0][0] * a * y[0], of the values at entry
    assert a_bar == pytest.approx(X[1] * X[0] * X[0])
    assert np.allclose(bars[0], [X[1] * 0.7 * X[0], 0.0, 0.0])
    assert np.allclose(y_bar, [X[1] * X[0] * 0.7, X[0] * 0.7 * X[0], 0.0])
    for wrong, error, message in (
        (some(*np.zeros((2, 3))), ad.ShadowError, "the shadow of 'xs' has another length"),
        (some(*np.zeros((3, 3))), ad.AliasingError, "must overlap at the same byte offsets"),
    ):
        with pytest.raises(error, match=message):
            pullback(1.0, wrong, np.zeros(3))


def test_gradients_put_the_list_back() -> None:
    xs, y = some(X, Y, Y), X.copy()
    first = xs[0]
    value, (bars, _) = ad.value_and_grad(shifts, wrt=("xs", "u"))(xs, y)
    assert value == pytest.approx(Y[0] * X[0] * Y[1])
    assert len(bars) == len(xs) == 3
    assert np.shares_memory(xs[0], first)
    assert np.array_equal(xs[0], X)
    assert np.allclose(bars[1], [X[0] * Y[1], 0.0, 0.0])
    _, pullback = ad.vjp(keeps_states, some(X), X.copy(), 2)
    last = [np.zeros(3), np.zeros(3), np.ones(3)]
    found = pullback(exit_bar={"xs": last})
    again = pullback(exit_bar={"u": np.ones(3)})
    assert np.allclose(found[1], again[1])


def test_wrong_shadows_of_arguments() -> None:
    xs = typed([X.copy(), Y.copy()])
    y = X.copy()
    _, pullback = pair(in_turn)(xs, y, 2)
    bars, y_bar = pullback.make_zero()
    z = np.zeros(3)
    for given, other, message in (
        (typed([z]), y_bar, "the shadow of 'xs' has another length"),
        (typed([z, np.zeros(2)]), y_bar, "an array in the shadow of 'xs' has another shape"),
        (typed([z, z]), y_bar, "arrays in the shadow of 'xs' overlap in memory"),
        (xs, y_bar, "an array in the shadow of 'xs' overlaps one in 'xs'"),
        (typed([y, z]), y_bar, "an array in the shadow of 'xs' overlaps 'y'"),
        (bars, xs[0], "the shadow of 'y' overlaps an array in 'xs'"),
        (typed([y_bar, z]), y_bar, "the shadows of 'y' and 'xs' overlap"),
    ):
        with pytest.raises(ad.ShadowError, match=message):
            pullback(1.0, given, other)
    assert not any(map(np.any, (*bars, y_bar)))


def chooses_a_view(xs, y):
    part = y[1:] if y[0] > 0.0 else y[:2]
    return xs[0][0] * part[0]


def puts_a_view(xs, y):
    xs[0] = y[1:]
    return xs[0][0]


def puts_a_field(xs, s):
    xs[0] = s.a
    s.a = s.b * 2.0
    return s.a[0] * xs[0][0]


def keeps(xs, s):
    s.a = xs[0]
    return s.a[0] * s.b[0]


@pytest.mark.parametrize(
    ("f", "second", "message"),
    [
        (puts_a_view, X, "'xs' is a list of arrays, and control flow or a list chooses views"),
        (puts_a_field, Pair(X, Y), "'s.a', which is assigned too, is put into a list"),
        (chooses_a_view, X, "'xs' is a list of arrays, and control flow or a list chooses views"),
        (keeps, Pair(X, Y), "'s.a' may be assigned an array of a list argument"),
    ],
)
def test_refused_for_arguments(f: Callable[..., Any], second: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        ad.split(f)(typed([X.copy(), Y.copy()]), second)
