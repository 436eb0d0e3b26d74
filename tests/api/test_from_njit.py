"""The public calls from njit code: pullbacks kept in lists and passed on, gradients in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit, typed

import splitad as ad
from tests.api import programs as p
from tests.leaks import no_leak

forward = p.advance_pair
both = ad.value_and_grad(p.advance, wrt=("u", "nu"))
grow_grad = ad.grad(p.grow)
reflected = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning")


def whole(steps: int) -> tuple[Any, float]:
    """The gradients of one call with all steps."""
    u_bar = np.zeros(4)
    nu_bar, _ = forward(p.U.copy(), p.NU, steps)[1](1.0, u_bar)
    return u_bar, nu_bar


@njit
def call_backwards(pullback, u_bar):
    return pullback(1.0, u_bar)[0]


@njit
def step_by_step(u, nu, steps):
    """One pullback per step, kept in a list, called backwards; the shadow runs back in time."""
    pullbacks = []
    total = 0.0
    for _ in range(steps):
        value, pullback = forward(u, nu, steps=1)
        total += value
        pullbacks.append(pullback)
    u_bar = np.zeros_like(u)
    nu_bar = 0.0
    for k in range(steps):
        nu_bar += call_backwards(pullbacks[steps - 1 - k], u_bar)
    return total, u_bar, nu_bar


def test_a_list_of_pullbacks_called_backwards() -> None:
    want_u, want_nu = whole(6)
    total, u_bar, nu_bar = step_by_step(p.U.copy(), p.NU, 6)
    assert np.isclose(total, p.advance_njit(p.U.copy(), p.NU, 6), rtol=1e-14)
    assert np.allclose(u_bar, want_u, rtol=1e-12) and np.isclose(nu_bar, want_nu, rtol=1e-12)
    with no_leak():
        step_by_step(p.U.copy(), p.NU, 6)


@njit
def record(u, nu, steps):
    pullbacks = [forward(u, nu, 1)[1]]
    for _ in range(steps - 1):
        pullbacks.append(forward(u, nu, 1)[1])
    return pullbacks


@reflected
def test_a_list_of_pullbacks_goes_to_python_and_back() -> None:
    want_u, _ = whole(3)
    pullbacks = record(p.U.copy(), p.NU, 3)
    u_bar = np.zeros(4)
    for pullback in reversed(pullbacks):
        pullback(1.0, u_bar)
    assert np.allclose(u_bar, want_u, rtol=1e-12)
    kept = typed.List(pullbacks)
    (shadow,) = kept[-1].make_zero()
    for pullback in reversed(kept):
        call_backwards(pullback, shadow)
    assert np.array_equal(shadow, u_bar)


@njit
def zero_and_size(u):
    _, pullback = forward(u, -0.1)
    (u_bar,) = pullback.make_zero()
    twin = ad.make_zero(u)
    pullback(1.0, u_bar)
    pullback(1.0, twin)
    return u_bar, twin, pullback.tape_nbytes


def test_make_zero_and_tape_nbytes() -> None:
    u_bar, twin, size = zero_and_size(p.U.copy())
    assert np.array_equal(u_bar, twin) and np.array_equal(u_bar, whole(2)[0])
    assert size >= 64


# ---- gradients ---------------------------------------------------------------------------------------


@njit
def descend(gradient, u, nu, steps, rate):
    """An optimiser that is itself njit; it is given the gradient."""
    value = 0.0
    for _ in range(steps):
        value, (u_bar, nu_bar) = gradient(u, nu, gain=1.0)
        u -= rate * u_bar
        nu -= rate * nu_bar
    return value, nu


def test_an_optimiser_in_njit() -> None:
    u, v, nu = p.U.copy(), p.U.copy(), p.NU
    value, got_nu = descend(both, u, p.NU, 5, 0.01)
    for _ in range(5):
        want, (u_bar, nu_bar) = both(v, nu)
        v -= 0.01 * u_bar
        nu -= 0.01 * nu_bar
    assert value == want and got_nu == nu and np.array_equal(u, v)
    with no_leak():
        descend(both, u, p.NU, 5, 0.01)


@njit
def guarded(u):
    try:
        both(u, -0.1)
    except Exception:
        return u.copy()
    return np.zeros(0)


def test_arguments_are_put_back_after_an_exception_in_njit() -> None:
    u = np.array([-0.5, 0.7])
    assert guarded(u).tolist() == [-0.5, 0.7]
    with no_leak():
        guarded(u)


@njit
def of_a_struct(s):
    h = s.h
    s_bar = grow_grad(s, 3.0)
    return s_bar.h, s_bar.t, s.t, h is s.h


def test_structs_in_njit() -> None:
    s = p.State(np.array([1.0, 2.0]), 0.5)
    h_bar, t_bar, t, same = of_a_struct(s)
    assert np.allclose(h_bar, 1.5) and np.isclose(t_bar, 9.0)
    assert t == 0.5 and same and s.h.tolist() == [1.0, 2.0]


@njit
def identity(gradient):
    return gradient


@reflected
def test_a_gradient_is_a_value() -> None:
    assert identity(both) is both
    kept = typed.List([both, both])
    assert kept[1] is both
    with pytest.raises(TypeError, match="heterogeneous"):
        identity_of_list([both, ad.value_and_grad(p.advance)])


@njit
def identity_of_list(gradients):
    return gradients


def inside_another(x):
    return ad.stop_gradient(x) * x + stopped(x)


@njit
def stopped(x):
    return ad.stop_gradient(x * x)


def test_stop_gradient_in_a_callee() -> None:
    assert ad.grad(inside_another)(3.0) == 3.0


@njit
def of_an_integer(u):
    return both(u, 1)


def test_errors_name_the_users_function() -> None:
    with pytest.raises(ad.NotDifferentiableError, match="'nu' of advance, which is int64"):
        of_an_integer(p.U)
