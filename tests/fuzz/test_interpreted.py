"""A pair in plain Python does what the compiled one does, and what is wrong with it is seen."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

import splitad as ad
from splitad.testing import check_vjp
from tests.fuzz.interpreted import Interpreted, Plain


def f(x, m, a):
    u = x.copy()
    v = 0.5 * x
    for k in range(3):
        for i in range(1, 3):
            v[i] = u[i - 1] * math.sin(a) + m[k, i]
        if u[1] > 0.3:
            m[k, 0] *= v[1]
        u, v = v, u
    x[1:] += u[:-1]
    return m.sum() * a


ARGS = (np.array([0.3, -0.7, 0.4, 1.1]), np.linspace(0.1, 1.2, 12).reshape(3, 4), 0.8)
KINDS = (ad.Duplicated, ad.Duplicated, ad.Active)


def test_agrees_with_compiled_code() -> None:
    forward = Interpreted(numba.njit(f), KINDS, ARGS, {})
    check_vjp(Plain(f), *ARGS, activities=KINDS, forward=forward, exact=False, leaks=False)
    here, there = ([a.copy() for a in ARGS[:2]] for _ in range(2))
    mine, pullback = forward(*here, 0.8)
    result, compiled = ad.split(f, *KINDS)(*there, 0.8)
    assert math.isclose(mine, result)
    shadows, others = pullback.make_zero(), compiled.make_zero()
    np.testing.assert_allclose(pullback(1.0, *shadows), compiled(1.0, *others))
    for left, right in zip((*here, *shadows), (*there, *others), strict=True):
        np.testing.assert_allclose(left, right)


def test_a_wrong_text_is_seen() -> None:
    def other(x, m, a):
        return f(x, m, 1.01 * a)

    forward = Interpreted(numba.njit(f), KINDS, ARGS, {})
    with pytest.raises(AssertionError, match="forward leaves"):
        check_vjp(Plain(other), *ARGS, activities=KINDS, forward=forward, exact=False, leaks=False)
