"""Arguments that overlap, from njit code and Python: one type of pullback, exact, compiled late, no leak."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numba import njit, typed

import splitad as ad
from tests.leaks import no_leak

X = np.array([1.2, 2.0, 3.0, 4.0])


def shift(a, b):
    """With a and b one array: x0 x1, x1 x2, x2 x3, x3, and x0 x1 times the new x1."""
    for i in range(a.size - 1):
        a[i] = a[i] * b[i + 1]
    if a[0] < 0.0:
        raise ValueError("negative")
    return a[0] * b[1]


WANT = np.array([2.0 * 2.0 * 3.0, 2.0 * 1.2 * 2.0 * 3.0, 1.2 * 2.0 * 2.0, 0.0])  # of x0 x1^2 x2
forward = ad.split(shift, ad.Duplicated, ad.Duplicated)


@njit(nogil=True)
def record(a, b):
    return forward(a, b)


@njit
def pull(pullback, bar, a_bar, b_bar):
    return pullback(bar, a_bar, b_bar)


@njit(nogil=True)
def gradient(a, b):
    result, pullback = forward(a, b)
    a_bar, b_bar = pullback.make_zero()
    for _ in range(2):  # the second adds nothing: zero cotangents
        pullback(0.0, a_bar, b_bar)
    pullback(1.0, a_bar, b_bar)
    return result, a_bar, b_bar, pullback.tape_nbytes


def test_nothing_is_compiled_before_it_is_needed() -> None:
    pair = ad.split(shift)

    @njit
    def run(a, b):
        return pair(a, b)[0]

    run(X.copy(), X.copy())
    assert "overlapping" not in vars(pair._pair)
    run(x := X.copy(), x)
    assert "overlapping" in vars(pair._pair)


def test_one_array_given_twice() -> None:
    x = X.copy()
    result, a_bar, b_bar, size = gradient(x, x)
    assert np.isclose(result, 1.2 * 2.0 * 2.0 * 3.0) and np.allclose(x, [2.4, 6.0, 12.0, 4.0])
    assert np.shares_memory(a_bar, b_bar) and np.allclose(a_bar, WANT, rtol=1e-14) and size >= 64


def test_a_view_and_its_base() -> None:
    """The fast and the other pair, by turns, through one function."""
    for base, a, b in [(X.copy(), slice(3), slice(1, 4)), (X.copy(), slice(2), slice(2, 4))]:
        x = base.copy()
        _, a_bar, b_bar, _ = gradient(x[a], x[b])
        assert np.shares_memory(a_bar, b_bar) == (a.stop > b.start)
        want = np.zeros(4)
        y = base.copy()
        _, pullback = forward(y[a], y[b])
        pullback(1.0, want[a], want[b])
        assert np.array_equal(a_bar, want[a]) and np.array_equal(b_bar, want[b])


@pytest.mark.parametrize("run", [record, forward], ids=["njit", "python"])
def test_pullbacks_of_both_kinds_have_one_type(run: Callable[..., Any]) -> None:
    x, y = X.copy(), X.copy()
    pullbacks = [run(x, x)[1], run(y, y.copy())[1]]
    for held in (pullbacks, typed.List(pullbacks)):
        shadows = []
        for pullback in held:
            a_bar, b_bar = pullback.make_zero()
            pullback(0.5, a_bar, b_bar)
            pull(pullback, 0.5, a_bar, b_bar)
            assert pullback.tape_nbytes > 0
            shadows.append((a_bar, b_bar))
        assert np.shares_memory(*shadows[0]) and not np.shares_memory(*shadows[1])
        # the first half was pulled back to the entry, and on from there with the second
        again = np.zeros(4)
        for _ in range(2):
            held[0](0.5, again, again)
        assert np.array_equal(shadows[0][0], again) and not np.array_equal(*shadows[1])


def test_one_pullback_twice() -> None:
    x = X.copy()
    _, pullback = record(x, x)
    x[:] = np.nan
    found = []
    for call in (pullback, lambda *given: pull(pullback, *given)):
        for _ in range(2):
            x_bar = np.zeros(4)
            call(1.0, x_bar, x_bar)
            found.append(x_bar)
    for x_bar in found:
        assert np.array_equal(x_bar, found[0]) and np.allclose(x_bar, WANT, rtol=1e-14)


def test_shadows_that_do_not_overlap_likewise() -> None:
    x = X.copy()
    _, pullback = record(x, x)
    for call in (pullback, lambda *given: pull(pullback, *given)):
        with pytest.raises(ad.AliasingError, match="'b' and 'a'"):
            call(1.0, np.zeros(4), np.zeros(4))


def test_threads_without_the_gil() -> None:
    gradient(X.copy(), X.copy())
    with ThreadPoolExecutor(4) as pool:
        for _, a_bar, b_bar, _ in pool.map(lambda x: gradient(x, x), [X.copy() for _ in range(8)]):
            assert np.allclose(a_bar, WANT, rtol=1e-14) and np.shares_memory(a_bar, b_bar)


@njit
def guarded(a, b):
    try:
        return forward(a, b)[0]
    except Exception:
        return -1.0


def test_exceptions_of_f() -> None:
    x = X * np.array([1.0, -1.0, 1.0, 1.0])
    y = x.copy()
    assert guarded(y, y) == -1.0 and y[0] < 0.0
    for run in (forward, record):
        with pytest.raises(ValueError, match="negative"):
            run(y := x.copy(), y)
    y = X.copy()
    assert np.isclose(guarded(y, y), 14.4)


value_and_grad = ad.value_and_grad(shift, wrt=("a", "b"))
grad_a = ad.grad(shift)


@njit
def gradients(x):
    value, both = value_and_grad(x, x)
    return value, both, grad_a(x, x)


def test_gradients() -> None:
    """They put x back; the one of a alone has the argument b as Const, which is x as well."""
    x = X.copy()
    value, (a_bar, b_bar), alone = gradients(x)
    assert np.isclose(value, 14.4) and np.array_equal(x, X)
    assert np.allclose(a_bar, WANT, rtol=1e-14) and np.shares_memory(a_bar, b_bar)
    assert np.allclose(alone, WANT, rtol=1e-14)
    assert np.array_equal(grad_a(x, x), alone) and np.array_equal(x, X)


def test_nothing_leaks() -> None:
    x, bad = X.copy(), X.copy()

    def everything() -> None:
        x[:] = bad[:] = X
        bad[1] = -1.0
        gradient(x, x)
        gradients(x)
        for run in (forward, record):
            _, pullback = run(x, x)
            shadows = pullback.make_zero()
            pullback(1.0, *shadows)
            pull(pullback, 1.0, *shadows)
            with pytest.raises(ad.AliasingError):
                pullback(1.0, shadows[0], shadows[1].copy())
        with pytest.raises(ValueError, match="negative"):
            forward(bad, bad)

    everything()
    with no_leak():
        for _ in range(3):
            everything()


def test_a_pair_that_cannot_be_compiled() -> None:
    pair = ad.split(shift)

    def make() -> Any:
        raise ad.UnsupportedError("such arguments are beyond it")

    pair._pair.make_overlapping = make

    @njit
    def run(a, b):
        return pair(a, b)[0]

    x = X.copy()
    with pytest.raises(ad.AliasingError, match="arguments of shift overlap"):
        run(x, x)
    with pytest.raises(ad.UnsupportedError, match="beyond it"):
        pair(x, x)
    assert np.array_equal(x, X)
