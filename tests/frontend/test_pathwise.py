"""Random numbers with a location and a scale that carry derivatives."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.testing import check_vjp


@njit
def seed():
    np.random.seed(3)
    random.seed(4)


@njit
def next_numbers():
    return np.random.random(), random.random()


def scalars(a, b, n):
    """Each family once; a is carried through the draws."""
    s = 0.0
    for k in range(n):
        s += np.random.normal(a * k, b) * np.random.uniform(a, b)
        s += np.random.exponential(b) * np.random.laplace(a, b) + np.random.logistic(a, b)
        s += np.random.gumbel(a, b) * np.random.rayleigh(b) + np.random.normal(a)
        s += np.random.lognormal(a, b) * np.random.gamma(2.5, b)
        s -= random.gauss(a, b) * random.uniform(a, b) + random.normalvariate(b, a)
        s += random.lognormvariate(a, b) * random.expovariate(b)
        s += random.gammavariate(1.5, b) * random.weibullvariate(b, 1.5)
        a = np.random.normal(scale=b, loc=a)
    return s


def arrays(x, a, b, n):
    u = np.random.normal(a, b, n) + np.random.uniform(a, b, size=n)
    v = np.random.exponential(b, (n, 2))
    w = np.random.normal(a, b, (2,))
    for i in range(n):
        x[i] = x[i] * u[i] * v[i, 1] + w[0]
    return v[0, 0] * w[1] + np.random.normal(0.0, x[0])


def single(a, b):
    y = np.random.normal(a, b) + np.random.uniform(a, b) * np.random.laplace(a, b)
    return y + np.random.exponential(b)


def integers(a, n):
    return a * np.random.normal(n, 2) + np.random.uniform(n, 7) * a


def normal(a, b):
    return np.random.normal(a, b)


PROGRAMS = {
    "scalars": (scalars, (0.7, 1.3, 3)),
    "arrays": (arrays, (np.arange(1.0, 4.0), 0.7, 1.3, 3)),
    "single": (single, (np.float32(0.4), np.float32(1.1))),
    "integers": (integers, (0.5, 3)),
    "scale_of_zero": (normal, (0.4, 0.0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_differences(name: str) -> None:
    function, args = PROGRAMS[name]
    check_vjp(function, *args, prepare=seed)


def test_the_standard_number_is_the_derivative_in_the_scale() -> None:
    seed()
    value, (d_loc, d_scale) = ad.value_and_grad(normal, wrt=(0, 1))(3.0, 0.5)
    assert d_loc == 1.0
    assert d_scale == pytest.approx((value - 3.0) / 0.5)


def test_the_numbers_are_those_of_plain_njit() -> None:
    """Also those that are drawn afterwards."""
    plain, forward = njit(scalars), ad.split(scalars)
    seed()
    want, rest = plain(0.7, 1.3, 3), next_numbers()
    seed()
    got, _ = forward(0.7, 1.3, 3)
    assert (got, next_numbers()) == (want, rest)


def rayleigh(b):
    return np.random.rayleigh(b)


def gamma(a, b):
    return np.random.gamma(a, b)


@pytest.mark.parametrize("function, args", [(rayleigh, (-1.0,)), (gamma, (2.0, 0.0))])
def test_raises_what_plain_njit_raises(function, args) -> None:
    with pytest.raises(ValueError) as error:
        njit(function)(*args)
    activities = [ad.Const, ad.Active][-len(args) :]
    with pytest.raises(ValueError) as ours:
        ad.split(function, *activities)(*args)
    assert ours.value.args == error.value.args


def test_other_parameters() -> None:
    """A gamma's shape, in which its numbers are not differentiable; as a constant it is one."""
    with pytest.raises(ad.UnsupportedError, match="gamma is drawn") as error:
        ad.split(gamma)(2.0, 1.0)
    assert "stop_gradient" in str(error.value)
    check_vjp(gamma, 2.0, 1.0, activities=(ad.Const, ad.Active), prepare=seed)
