"""`vjp`: results, new cotangents at each call, seeds of the exit state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitad as ad
from tests.api import programs as p
from tests.leaks import no_leak


def test_default_result_bar_and_positions() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    result, pullback = ad.vjp(p.dot, x, y)
    assert result == 41.0
    x[:] = np.nan
    x_bar, y_bar = pullback()
    assert x_bar.tolist() == [9.0, 16.0] and y_bar.tolist() == [6.0, 16.0]
    again, _ = pullback(2.0)
    assert again.tolist() == [18.0, 32.0] and x_bar.tolist() == [9.0, 16.0]  # fresh at each call
    assert pullback.tape_nbytes > 32


def test_wrt_and_keywords() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    (y_bar,) = ad.vjp(p.dot, x, y=y, wrt="y")[1](0.5)
    assert y_bar.tolist() == [3.0, 8.0]
    y_bar, x_bar = ad.vjp(p.dot, x, y, wrt=(1, 0))[1]()
    assert x_bar.tolist() == [9.0, 16.0] and y_bar.tolist() == [6.0, 16.0]


def test_not_differentiable_positions_are_none() -> None:
    u = p.U.copy()
    result, pullback = ad.vjp(p.advance, u, p.NU)
    v = p.U.copy()
    assert result == p.advance_njit(v, p.NU) and np.array_equal(u, v)  # left as f does
    u_bar, nu_bar, steps_bar, gain_bar = pullback()
    assert u_bar.shape == (4,) and isinstance(nu_bar, float)
    assert steps_bar is None and np.isclose(gain_bar, result)


@pytest.mark.parametrize("key", ["x", 0])
def test_exit_bar(key: Any) -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    result, pullback = ad.vjp(p.multiply, x, y)
    assert result is None
    seed = np.array([10.0, 100.0])
    x_bar, y_bar = pullback(exit_bar={key: seed})
    assert x_bar.tolist() == [30.0, 400.0] and y_bar.tolist() == [10.0, 200.0]
    assert seed.tolist() == [10.0, 100.0]  # copied
    assert not np.any(pullback()[0])


def test_exit_bar_of_a_struct() -> None:
    s = p.State(np.array([1.0, 2.0]), 0.5)
    _, pullback = ad.vjp(p.grow, s, 3.0)
    seed = ad.make_zero(s)  # as it is now: the exit state
    seed.h[:] = 1.0
    seed.t = 10.0
    for _ in range(2):
        s_bar, a_bar = pullback(2.0, exit_bar={"s": seed})
        assert np.allclose(s_bar.h, [18.0 + 3.0, 36.0 + 3.0]) and np.isclose(s_bar.t, 28.0)
        assert np.isclose(a_bar, 43.0)
    assert seed.h.tolist() == [1.0] * 4 and seed.t == 10.0


def test_results_that_are_arrays() -> None:
    (same, square), pullback = ad.vjp(p.pair_of, np.array([7.0, 3.0]), 2.0)
    assert same.tolist() == [6.0, 3.0] and square == 4.0
    x_bar, a_bar = pullback((np.array([1.0, 10.0]), 100.0))
    assert x_bar.tolist() == [0.0, 12.0] and a_bar == 403.0
    with pytest.raises(ad.ShadowError, match="result_bar"):
        pullback()


def test_overlapping_arguments_share_one_cotangent() -> None:
    x = np.array([2.0, 5.0])
    result, pullback = ad.vjp(p.closed_in, x, x)
    assert result == 36.0 and x[0] == 6.0
    x_bar, y_bar = pullback()
    assert np.shares_memory(x_bar, y_bar) and np.allclose(x_bar, [36.0, 0.0])
    (x_bar,) = ad.vjp(p.closed_in, x, x, wrt=0)[1]()
    assert np.allclose(x_bar, [18.0 * 6.0, 0.0])


def halved(x, y):
    """x and y may be one array."""
    x[0] *= y[1]
    return x[1]


def test_exit_bars_of_arguments_that_share_memory_add_up() -> None:
    x, one, ten = np.array([2.0, 5.0]), np.array([1.0, 0.0]), np.array([10.0, 0.0])
    _, pullback = ad.vjp(halved, x, x)
    x_bar, _ = pullback(exit_bar={"x": one, "y": ten})
    assert np.allclose(x_bar, [11.0 * 5.0, 11.0 * 2.0 + 1.0])
    x_bar, _ = pullback(exit_bar={"x": one, "y": one})  # the cotangent of what both are
    assert np.allclose(x_bar, [5.0, 2.0 + 1.0])
    both = np.array([0.0, 1.0, 0.0])
    with pytest.raises(ad.ShadowError, match="share memory otherwise"):
        pullback(exit_bar={"x": both[:2], "y": both[1:]})


def test_exit_bars_of_fields_that_share_an_array_add_up() -> None:
    def handed(x, s):
        s.h = x
        return None

    x = np.array([2.0, 5.0])
    _, pullback = ad.vjp(handed, x, p.State(np.array([1.0, 2.0]), 0.5))
    seed = p.State(np.array([0.0, 1.0]), 0.0)
    x_bar, s_bar = pullback(None, exit_bar={"x": np.array([10.0, 0.0]), "s": seed})
    assert x_bar.tolist() == [10.0, 1.0] and s_bar.h.tolist() == [0.0, 0.0]


def test_a_struct_given_twice_has_two_cotangents() -> None:
    def scaled(s, r):
        s.h[0] *= r.t
        return r.h[0] * s.t

    s = p.State(np.array([3.0, 2.0]), 0.5)
    _, pullback = ad.vjp(scaled, s, s)
    s_bar, r_bar = pullback()
    assert np.shares_memory(s_bar.h, r_bar.h) and np.allclose(s_bar.h, [0.25, 0.0])
    assert np.isclose(s_bar.t, 1.5) and np.isclose(r_bar.t, 1.5)


def test_tuples() -> None:
    q = p.Flow(np.array([1.0, 2.0]), 3.0, 2)
    _, pullback = ad.vjp(p.flow, q, 5.0)
    q_bar, a_bar = pullback()
    assert isinstance(q_bar, p.Flow) and np.allclose(q_bar.u, 30.0)
    assert np.isclose(q_bar.speed, 30.0) and np.isclose(a_bar, 18.0)


def test_wrong_exit_bars() -> None:
    _, pullback = ad.vjp(p.multiply, np.ones(2), np.ones(2), wrt="x")
    with pytest.raises(ad.ShadowError, match="'y', which has no exit state"):
        pullback(exit_bar={"y": np.ones(2)})
    with pytest.raises(ad.ShadowError, match=r"shape \(3,\) where the state has \(2,\)"):
        pullback(exit_bar={"x": np.ones(3)})
    with pytest.raises(TypeError, match="multiply has no argument 'z'"):
        pullback(exit_bar={"z": np.ones(2)})
    with pytest.raises(TypeError, match="no argument 'z'"):
        ad.vjp(p.multiply, np.ones(2), np.ones(2), wrt="z")


def test_nothing_is_left() -> None:
    def run() -> None:
        ad.vjp(p.grow, p.State(np.ones(2), 0.5), 3.0)[1](2.0)

    run()
    with no_leak():
        run()
