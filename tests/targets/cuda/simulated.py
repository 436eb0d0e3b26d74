"""Run by test_simulated.py, with numba's simulator: `NUMBA_ENABLE_CUDASIM=1 pytest <this file>`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import cuda, njit

import splitad as ad
from tests.targets.cuda.checking import check
from tests.targets.cuda.kernels import CASES


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    case = CASES[name]
    args = case.make(np.random.default_rng(1))
    pullback = check(case.kernel, case.launch, args, atomic=case.atomic)
    assert (pullback._spec.gather is not None) == case.gathers


@njit
def body(x, y, a, i):
    t = x[i] * a
    k = 0
    while t < 3.0 and k < 4:
        t = math.sin(t) + math.sqrt(1.0 + y[i] * t * t)
        k += 1
    x[i] = t / (1.0 + a * a)
    y[i] = t if t > 1.5 else y[i] * a


@cuda.jit
def by_threads(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        body(x, y, a, i)


@njit
def by_a_loop(x, y, a):
    for i in range(x.shape[0]):
        body(x, y, a, i)


def test_as_on_the_cpu() -> None:
    g = np.random.default_rng(4)
    x, y = g.random(20), g.random(20)
    bars = g.standard_normal(20), g.standard_normal(20)
    given = [cuda.to_device(v) for v in (x, y)]
    pullback = ad.cuda.split(by_threads)[2, 10](*given, 1.3)
    on_device = [cuda.to_device(b) for b in bars]
    (a_bar,) = pullback(*on_device)
    on_host = [b.copy() for b in bars]
    _, plain = ad.split(by_a_loop)(x, y, 1.3)
    np.testing.assert_allclose(plain(None, *on_host)[0], a_bar, rtol=1e-12)
    for mine, other in zip((*given, *on_device), (x, y, *on_host), strict=True):
        np.testing.assert_allclose(mine.copy_to_host(), other, rtol=1e-12, atol=1e-15)
