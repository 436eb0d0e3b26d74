"""Which additions may be done in any order, and that value_and_grad alone makes use of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import splitad as ad
from splitad.cache import CompiledPair, Request
from splitad.ir.activities import default
from splitad.pipeline import Options


def plain(x):
    s = 1.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


def several(x):
    s = 0.0
    t = 0.0
    for i in range(x.shape[0]):
        s = x[i] + s
        t -= x[i]
        t += 2.0 * x[i]
    return s * t


def nested(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            s += x[i] * x[j]
        s -= x[i]
    return s


def branches(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            s += x[i]
            if x[i] > 1.0:
                s -= 1.0
    return s


def while_loop(x):
    s = 0.0
    i = 0
    while i < x.shape[0]:
        s += x[i]
        i += 2
    return s


def single(x):
    s = x.dtype.type(0.0)
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


def elements(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            y[i] += x[i] * x[j]
    return y[0]


def kahan(x):
    s = 0.0
    c = 0.0
    for i in range(x.shape[0]):
        y = x[i] - c
        t = s + y
        c = (t - s) - y
        s = t
    return s


def kahan_in_memory(x):
    s = np.zeros(2)
    for i in range(x.shape[0]):
        y = x[i] - s[1]
        old = s[0]
        s[0] += y
        s[1] = (s[0] - old) - y
    return s[0]


def parts_are_kept(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        x[i] = s
    return x[0]


def compared(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        if s > 3.0:
            s += 1.0
    return s


def reset(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 2.0:
            s = 0.0
        else:
            s += x[i]
    return s


def doubled(x):
    s = 1.0
    for _ in range(x.shape[0]):
        s += s
    return s * x[0]


def reversed_difference(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = x[i] - s
    return s


def exchanged(x):
    s = 0.0
    t = 0.0
    for i in range(x.shape[0]):
        s, t = t + x[i], s
    return s + t


def whole(x):
    n = 0
    for i in range(x.shape[0]):
        n += i
    return n * x[0]


def other_element(x):
    y = np.zeros(x.shape[0])
    for j in range(1, x.shape[0]):
        y[0] += x[j]
        x[j] = y[j - 1]
    return y[0]


def _forward(f: Callable[..., Any], x: np.ndarray) -> str:
    args = (numba.typeof(x),)
    kinds = tuple(default(t) for t in args)
    pair = CompiledPair(Request(numba.njit(f), kinds, None, Options(any_order=True)), args)
    return pair.text.forward


X = np.array([0.5, 1.5, -0.7, 2.5, 0.1])


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (plain, 1), (several, 3), (nested, 2), (branches, 2), (while_loop, 1), (elements, 1),
        (kahan, 0), (kahan_in_memory, 0), (parts_are_kept, 0), (compared, 0), (reset, 0), (doubled, 0),
        (reversed_difference, 0), (exchanged, 0), (whole, 0), (other_element, 0),
    ],
)  # fmt: skip
def test_what_is_found(f: Callable[..., Any], count: int) -> None:
    text = _forward(f, X)
    assert text.count("_any_order(") == count, text


def test_single_precision() -> None:
    assert _forward(single, X.astype(np.float32)).count("_any_order(") == 1


BIG = np.random.default_rng(5).standard_normal(1001) * 10.0 ** np.arange(1001).clip(0, 12)


def test_only_value_and_grad_does_so() -> None:
    f = numba.njit(plain)
    value = f(BIG)
    assert ad.split(f)(BIG)[0] == ad.split(f, vector_math="all")(BIG)[0] == value
    assert ad.vjp(f, BIG)[0] == value
    assert ad.value_and_grad(f, vector_math="pullback")(BIG)[0] == value
    found, gradient = ad.value_and_grad(f)(BIG)
    # 1001 terms of one sign: at most 1001 roundings either way
    assert found == pytest.approx(value, rel=2 * 1001 * 2.0**-53)
    np.testing.assert_array_equal(gradient, 2 * BIG)


def test_compensated_sums_stay_compensated() -> None:
    for f in (kahan, kahan_in_memory):
        x = np.array([1.0] + [1e-16] * 1000)
        f = numba.njit(f)
        assert ad.value_and_grad(f)(x)[0] == f(x) == pytest.approx(1.0 + 1e-13, abs=1e-16)
