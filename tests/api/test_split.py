"""`split`: the guarantees of the pair one by one, activities, results, options."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.tape.ops import live_tapes, pooled_bytes
from tests.api import programs as p
from tests.api.numeric import central
from tests.leaks import no_leak

pytestmark = pytest.mark.filterwarnings(
    "ignore::numba.core.errors.NumbaPerformanceWarning",
    "ignore::numba.core.errors.NumbaTypeSafetyWarning",
)


def advance_reference(u: np.ndarray, nu: float, steps: int, seed: np.ndarray) -> tuple[Any, Any]:
    """The cotangents of u and nu for the result plus seed * (u at the end)."""

    def total(u: np.ndarray, nu: float) -> float:
        u = u.copy()
        return p.advance_njit(u, nu, steps, 1.0) + float(seed @ u)

    return central(lambda v: total(v, nu), u), central(lambda v: total(u, v), nu)


# ---- 1: what forward does is what f does


def test_result_and_side_effects_are_those_of_f() -> None:
    u, v = p.U.copy(), p.U.copy()
    result, _ = p.advance_pair(u, p.NU, 5)
    assert result == p.advance_njit(v, p.NU, 5)
    assert np.array_equal(u, v)


def test_exceptions_are_those_of_f() -> None:
    found = []
    for f in (p.advance_pair, p.advance_njit):
        u = np.array([-0.5, 0.7])
        with pytest.raises(ValueError) as caught:
            f(u, p.NU)
        found.append((caught.value.args, u.tolist()))
    assert found[0] == found[1]


def divide(x, y):
    return x / y


def pick(x, k):
    return x[k] * 2.0


def test_options_of_a_dispatcher_carry_over() -> None:
    with pytest.raises(ZeroDivisionError):
        ad.split(divide)(1.0, 0.0)
    assert ad.split(njit(error_model="numpy")(divide))(1.0, 0.0)[0] == np.inf
    with pytest.raises(IndexError):
        ad.split(njit(boundscheck=True)(pick))(np.ones(2), 7)


# ---- 2: the arguments may be overwritten, rebound, or freed


def test_arguments_may_be_overwritten_between() -> None:
    u = p.U.copy()
    _, pullback = p.advance_pair(u, p.NU)
    u[:] = np.nan
    u_bar = np.zeros(4)
    (nu_bar, gain_bar) = pullback(1.0, u_bar)
    want_u, want_nu = advance_reference(p.U, p.NU, 2, np.zeros(4))
    assert np.allclose(u_bar, want_u, rtol=1e-8) and np.isclose(nu_bar, want_nu, rtol=1e-8)
    assert np.isclose(gain_bar, p.advance_njit(p.U.copy(), p.NU))
    assert np.all(np.isnan(u))  # it never touches the arguments


def test_arguments_may_be_freed_between() -> None:
    want = np.zeros(4)
    p.advance_pair(p.U.copy(), p.NU)[1](1.0, want)
    u = p.U.copy()
    _, pullback = p.advance_pair(u, p.NU)
    del u
    gc.collect()
    filling = [np.full(4, np.nan) for _ in range(50)]  # what was freed is somebody else's by now
    u_bar = np.zeros(4)
    pullback(1.0, u_bar)
    assert np.array_equal(u_bar, want) and len(filling) == 50


def test_fields_may_be_rebound_between() -> None:
    s = p.State(np.array([1.0, 2.0]), 0.5)
    _, pullback = p.grow_pair(s, 3.0)
    assert len(s.h) == 4 and s.t == 3.5 and s.n == 1
    s.h, s.t = np.zeros(9), np.nan
    (s_bar,) = pullback.make_zero()
    assert len(s_bar.h) == 4  # the exit state
    s_bar.h[:] = 1.0
    s_bar.t = 10.0
    (a_bar,) = pullback(2.0, s_bar)
    # exit: h -> (3h)^2, t -> t + 3; result: sum(3 h t)
    assert np.allclose(s_bar.h, 2 * 9 * np.array([1.0, 2.0]) + 2.0 * 3.0 * 0.5)
    assert np.isclose(s_bar.t, 10.0 + 2.0 * 9.0)
    assert np.isclose(a_bar, 2 * 3.0 * 5.0 + 10.0 + 2.0 * 3.0 * 0.5)


# ---- 3: calls of one pullback are equal and independent


def test_calls_of_a_pullback_are_bitwise_equal_and_independent() -> None:
    _, pullback = p.advance_pair(p.U.copy(), p.NU, 7)
    seed = np.array([1.0, -2.0, 0.5, 3.0])
    found = []
    for _ in range(2):
        u_bar = seed.copy()
        found.append((pullback(0.7, u_bar), u_bar.tolist()))
        pullback(5.0, np.full(4, np.nan))
    assert found[0] == found[1]
    want_u, want_nu = advance_reference(p.U, p.NU, 7, seed / 0.7)
    assert np.allclose(found[0][1], 0.7 * want_u, rtol=1e-8)
    assert np.isclose(found[0][0][0], 0.7 * want_nu, rtol=1e-8)


# ---- 4: many pullbacks, in any order, from any thread


def starts(count: int) -> list[np.ndarray]:
    return [p.U * (1.0 + 0.01 * k) for k in range(count)]


def gradients_one_by_one(count: int, steps: int) -> list[np.ndarray]:
    found = []
    for u in starts(count):
        u_bar = np.zeros(4)
        p.advance_pair(u, p.NU, steps)[1](1.0, u_bar)
        found.append(u_bar)
    return found


def test_many_pullbacks_in_any_order() -> None:
    want = gradients_one_by_one(20, 3)
    pullbacks = [p.advance_pair(u, p.NU, 3)[1] for u in starts(20)]
    for k in np.random.default_rng(0).permutation(20):
        u_bar = np.zeros(4)
        pullbacks[k](1.0, u_bar)
        assert np.array_equal(u_bar, want[k])


def test_pullbacks_from_threads() -> None:
    want = gradients_one_by_one(8, 40)
    made = [p.advance_pair(u, p.NU, 40)[1] for u in starts(8)]
    wrong: list[int] = []

    def work(thread: int) -> None:
        for turn in range(60):
            k = (thread + turn) % 8
            # pullbacks of another thread, and pairs of one's own
            pullback = made[k] if turn % 2 else p.advance_pair(starts(8)[k], p.NU, 40)[1]
            u_bar = np.zeros(4)
            pullback(1.0, u_bar)
            if not np.array_equal(u_bar, want[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- 5: the dtype is kept


def test_float32_stays_float32() -> None:
    u = p.U.astype(np.float32)
    steps, one = 50, np.float32(1.0)
    _, pullback = p.advance_pair(u, np.float32(p.NU), steps, one)
    (u_bar,) = pullback.make_zero()
    nu_bar, _ = pullback(1.0, u_bar)
    assert u_bar.dtype == np.float32 and np.float32(nu_bar) == nu_bar
    double = np.zeros(4)
    wide = p.advance_pair(p.U.copy(), p.NU, steps, 1.0)[1]
    wide(1.0, double)
    assert np.allclose(u_bar, double, rtol=1e-3) and not np.array_equal(u_bar, double)
    assert pullback.tape_nbytes < 0.7 * wide.tape_nbytes
    with pytest.raises(ad.ShadowError, match="float64"):
        pullback(1.0, np.zeros(4))


# ---- 6: aliasing, inside f and at the boundary


def views_and_swaps(u, steps):
    """Views of the argument, buffers swapped, a name bound to what another holds."""
    left, right = u[:-1], u[1:]
    v = np.empty_like(u)
    w = v
    for _ in range(steps):
        for i in range(len(left)):
            left[i] = left[i] * right[i]
        for i in range(len(u)):
            w[i] = 1.1 * u[i] + u[i] * u[i]
        u, v = v, u
        w = v
    return u[0] + 2.0 * u[-1]


def test_aliases_inside_f() -> None:
    plain = njit(views_and_swaps)
    forward = ad.split(views_and_swaps)
    for steps in (0, 1, 2, 3):
        _, pullback = forward(p.U.copy(), steps)
        u_bar = np.zeros(4)
        pullback(1.0, u_bar)
        want = central(lambda u, n=steps: plain(u.copy(), n), p.U)
        assert np.allclose(u_bar, want, rtol=1e-8), steps


closed_in_pair = ad.split(p.closed_in)


def test_arguments_that_overlap() -> None:
    x = np.array([2.0, 5.0])
    _, pullback = closed_in_pair(x, x)  # x[0] = 3 x[0]; the result is x[0]^2 = 9 x[0]^2
    shadow = np.zeros(2)
    pullback(1.0, shadow, shadow)
    assert np.allclose(shadow, [36.0, 0.0])
    x_bar, y_bar = pullback.make_zero()
    pullback(1.0, x_bar, y_bar)
    assert np.shares_memory(x_bar, y_bar) and np.allclose(y_bar, [36.0, 0.0])
    with pytest.raises(ad.AliasingError, match="'y' and 'x'"):
        pullback(1.0, np.zeros(2), np.zeros(2))


def test_a_view_and_its_base() -> None:
    x = np.array([2.0, 5.0, 7.0])
    _, pullback = p.multiply_pair(x[:2], x[1:])  # x0 x1, x1 x2
    x_bar = np.array([1.0, 1.0, 1.0])
    pullback(None, x_bar[:2], x_bar[1:])
    assert np.allclose(x_bar, [5.0, 2.0 + 7.0, 1.0 + 5.0])


def test_interleaved_views_do_not_overlap() -> None:
    both = np.array([2.0, 3.0, 4.0, 5.0])
    _, pullback = p.multiply_pair(both[::2], both[1::2])
    x_bar, y_bar = np.ones(2), np.zeros(2)
    pullback(None, x_bar, y_bar)
    assert np.allclose(x_bar, [3.0, 5.0]) and np.allclose(y_bar, [2.0, 4.0])


def test_overlap_without_a_write() -> None:
    x = np.array([2.0, 3.0])
    _, pullback = p.dot_pair(x, x)
    x_bar, y_bar = np.zeros(2), np.zeros(2)
    pullback(1.0, x_bar, y_bar)
    assert np.allclose(x_bar, x**2) and np.allclose(y_bar, 2 * x**2)


def test_an_argument_that_overlaps_itself() -> None:
    many = np.broadcast_to(np.array([2.0]), (3,))
    writable = np.lib.stride_tricks.as_strided(np.array([2.0]), (3,), (0,), writeable=True)
    assert p.dot_pair(np.ones(3), many)[0] == 12.0
    with pytest.raises(ad.AliasingError, match="overlaps itself"):
        p.multiply_pair(writable, np.ones(3))


@pytest.mark.parametrize("fault", [
    "shape", "dtype", "type", "on x", "on y", "touching",
])  # fmt: skip
def test_shadows_that_do_not_fit(fault: str) -> None:
    x, y = np.array([2.0, 3.0]), np.array([4.0, 5.0])
    _, pullback = p.multiply_pair(x, y)
    x_bar, y_bar = np.ones(2), np.ones(2)
    given: Any = {
        "shape": np.ones(3), "dtype": np.ones(2, np.float32), "type": 1.0, "on x": x, "on y": y,
        "touching": y_bar,
    }  # fmt: skip
    before = [a.copy() for a in (x, y, y_bar)]
    with pytest.raises(ad.ShadowError, match="'x'"):
        pullback(None, given[fault], y_bar)
    for a, b in zip((x, y, y_bar), before, strict=True):
        assert np.array_equal(a, b)  # nothing was written
    pullback(None, x_bar, y_bar)
    assert np.allclose(x_bar, [4.0, 5.0])


def test_result_bar_on_a_shadow() -> None:
    _, pullback = p.pair_of_pair(np.ones(2), 2.0)
    shadow = np.ones(2)
    with pytest.raises(ad.ShadowError, match="result_bar"):
        pullback((shadow, 0.0), shadow)


# ---- 7: the tape


def test_the_tape_is_freed_with_its_pullback() -> None:
    p.advance_pair(p.U.copy(), p.NU)
    gc.collect()  # what earlier tests left behind
    before = live_tapes()
    with no_leak():
        pullbacks = [p.advance_pair(p.U.copy(), p.NU, 5000)[1] for _ in range(5)]
        assert live_tapes() == before + 5
        assert all(q.tape_nbytes >= 5000 * 8 for q in pullbacks)
        del pullbacks
    assert pooled_bytes() > 0
    ad.release_memory()
    assert pooled_bytes() == 0


def test_nothing_is_left_after_an_exception() -> None:
    u = np.array([-0.5, 0.7])
    with pytest.raises(ValueError):
        p.advance_pair(u.copy(), p.NU)
    with no_leak():
        for _ in range(3):
            with pytest.raises(ValueError):
                p.advance_pair(u.copy(), p.NU)


def test_max_tape_bytes() -> None:
    forward = ad.split(p.while_smaller, max_tape_bytes=100_000)
    with no_leak():
        forward(0.1, 1.0)[1](1.0)
        for _ in range(2):
            with pytest.raises(ad.TapeLimitError, match="max_tape_bytes=100000"):
                forward(1e-9, 1e200)
    with pytest.raises(ad.TapeLimitError):
        ad.split(p.advance, max_tape_bytes=1000)(p.U.copy(), p.NU, 10_000)


# ---- modified_between


def test_modified_between_false_reads_again() -> None:
    forward = ad.split(p.dot, modified_between=False)
    x, y = np.arange(1.0, 1001.0), np.ones(1000)
    _, pullback = forward(x, y)
    _, saving = p.dot_pair(x, y)
    assert saving.tape_nbytes > 16_000 > 200 > pullback.tape_nbytes - 16_000  # counts what it keeps
    x_bar, y_bar, want_x, want_y = np.zeros((4, 1000))
    pullback(2.0, x_bar, y_bar)
    saving(2.0, want_x, want_y)
    assert np.array_equal(x_bar, want_x) and np.array_equal(y_bar, want_y)
    y[:] = 3.0  # the promise is broken, and so the derivative is that of the new state
    x_bar[:] = 0.0
    pullback(2.0, x_bar, y_bar)
    assert np.all(x_bar == 18.0)


def test_modified_between_for_each_argument() -> None:
    x, y = np.ones(3), np.full(3, 2.0)
    _, pullback = ad.split(p.dot, modified_between=(False, True))(x, y)
    y[:] = np.nan
    x_bar, y_bar = np.zeros((2, 3))
    pullback(1.0, x_bar, y_bar)
    assert np.all(x_bar == 4.0) and np.all(y_bar == 4.0)
    with pytest.raises(TypeError, match="modified_between has 1 entries for 2"):
        ad.split(p.dot, modified_between=(False,))


# ---- calls, activities, results


@pytest.mark.parametrize("call", [
    lambda f, u: f(u, 0.3, 2, 1.0), lambda f, u: f(u, 0.3), lambda f, u: f(nu=0.3, u=u),
    lambda f, u: f(u, gain=1.0, nu=0.3), lambda f, u: f(u, 0.3, steps=2),
])  # fmt: skip
def test_keywords_and_defaults(call: Any) -> None:
    u, v = p.U.copy(), p.U.copy()
    assert call(p.advance_pair, u)[0] == p.advance_njit(v, 0.3, 2, 1.0)


def test_activities_follow_from_the_types() -> None:
    _, pullback = p.advance_pair(p.U.copy(), p.NU, 2)
    assert len(pullback.make_zero()) == 1 and len(pullback(1.0, np.zeros(4))) == 2
    _, pullback = p.grow_pair(p.State(np.ones(2), 1.0), 2.0)
    assert isinstance(pullback.make_zero()[0], p.State)


def with_workspace(x, work):
    for i in range(len(x)):
        work[i] = x[i] * x[i]
    s = 0.0
    for i in range(len(x)):
        s += work[i] * (i + 1)
    return s


def test_active_data_flows_through_a_const_workspace() -> None:
    forward = ad.split(with_workspace, ad.Duplicated, ad.Const)
    x = np.array([1.0, 2.0, 3.0])
    _, pullback = forward(x, np.full(3, np.nan))
    x_bar = np.zeros(3)
    assert pullback(1.0, x_bar) == ()
    assert np.array_equal(x_bar, 2 * x * [1, 2, 3])


def test_a_tuple_of_arrays_and_scalars() -> None:
    q = p.Flow(np.array([1.0, 2.0]), 3.0, 2)
    _, pullback = p.flow_pair(q, 5.0)  # sum(u) * speed * a * n
    (q_bar,) = pullback.make_zero()
    bars = pullback(1.0, q_bar)
    assert np.allclose(q_bar.u, 30.0)
    assert bars[0].u is None and np.isclose(bars[0].speed, 30.0)
    assert np.isclose(bars[1], 18.0)


def test_a_result_that_is_an_argument() -> None:
    x = np.array([7.0, 3.0])
    (same, _), pullback = p.pair_of_pair(x, 2.0)
    assert same is x
    x_bar = np.array([1.0, 1.0])
    result_bar = (np.array([1.0, 10.0]), 100.0)
    (a_bar,) = pullback(result_bar, x_bar)
    # the cotangent at exit is (2, 11); x0 = a x1
    assert np.array_equal(x_bar, [0.0, 11.0 + 2 * 2.0])
    assert a_bar == 2 * 3.0 + 100.0 * 2 * 2.0
    assert np.array_equal(result_bar[0], [1.0, 10.0])  # never modified
    pullback((None, 1.0), x_bar)


def test_wrong_activities() -> None:
    with pytest.raises(TypeError, match="dot takes 2 arguments, but 1 activities"):
        ad.split(p.dot, ad.Active)
    with pytest.raises(TypeError, match="an activity is Active, Duplicated or Const"):
        ad.split(p.dot, True, ad.Const)
    with pytest.raises(ad.NotDifferentiableError, match="1.0, not 1"):
        ad.split(divide, ad.Active, ad.Active)(1.0, 2)
    with pytest.raises(ad.NotDifferentiableError, match="It is Duplicated"):
        ad.split(p.dot, ad.Active, ad.Duplicated)(np.ones(2), np.ones(2))
    with pytest.raises(ad.NotDifferentiableError, match="It is Active"):
        ad.split(divide, ad.Duplicated, ad.Const)(1.0, 2.0)


def test_strong_zero() -> None:
    """At 0 the cotangent that reaches sqrt vanishes, while its derivative is infinite."""
    root = divided_root
    assert ad.split(root)(0.0, 0.0)[1](1.0)[0] == 0.0
    assert np.isnan(ad.split(root, strong_zero=False)(0.0, 0.0)[1](1.0)[0])


def divided_root(x, y):
    return np.sqrt(x) * y


def test_a_lambda_is_a_function() -> None:
    cube = lambda x: x * x * x
    assert ad.split(cube)(2.0)[1](1.0) == (12.0,)


def test_an_error_of_splitad_shows_no_frames_of_numba() -> None:
    forward = ad.split(p.dot, ad.Active, ad.Duplicated)
    with pytest.raises(ad.SplitadError) as caught:
        forward(np.ones(2), np.ones(2))
    assert len(caught.traceback) <= 3 and caught.value.__cause__ is None
