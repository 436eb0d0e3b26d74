"""Functions through libmvec: exact where they are called one at a time, within 4 ulp in vectorised loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.rules import vector_math
from splitad.rules.vector_math import vmath
from splitad.testing import check_vjp

KNOWN = vector_math.known()
needs_libmvec = pytest.mark.skipif(not KNOWN, reason="there is no libmvec here")

POINTS = np.concatenate(
    [
        np.linspace(-5.0, 5.0, 997),
        np.linspace(-0.999, 0.999, 331),
        np.geomspace(1e-300, 1e300, 400),
        -np.geomspace(1e-300, 1e300, 100),
        [0.0, -0.0, 1.0, -1.0, 5e-324, math.inf, -math.inf, math.nan, 709.0, -745.0, 1e22],
    ]
)


def loops(name: str):
    """f(x, out) with the vectorised function, and with that of math."""
    source = "def f(x, out):\n    for i in range(x.shape[0]):\n        out[i] = m.{}(x[i]{})\n"
    second = ", x[x.shape[0] - 1 - i]" if name in ("pow", "atan2", "hypot") else ""
    found = []
    for module in (vmath, math):
        scope = {"m": module}
        exec(source.format(name, second), scope)
        found.append(njit(scope["f"]))
    return found


@needs_libmvec
@pytest.mark.parametrize("name", KNOWN)
def test_accuracy(name: str) -> None:
    vector, scalar = loops(name)
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            x = POINTS.astype(dtype)
        got, expected, alone = np.empty_like(x), np.empty_like(x), np.empty_like(x)
        vector(x, got)
        scalar(x, expected)
        # 4 ulp of the library, 1 of libm itself
        np.testing.assert_array_max_ulp(got, expected, maxulp=5, dtype=dtype)
        if name in ("pow", "atan2", "hypot"):
            continue
        for k in range(x.shape[0]):
            vector(x[k : k + 1], alone[k : k + 1])
        np.testing.assert_array_equal(alone, expected)


@needs_libmvec
def test_loops_are_vectorised() -> None:
    vector, scalar = loops("exp")
    x = np.ones(8)
    for f in (vector, scalar):
        f(x, x.copy())
    (asm,), (plain,) = vector.inspect_asm().values(), scalar.inspect_asm().values()
    assert "_ZGV" in asm and "_ZGV" not in plain


@njit
def waves(x, out):
    for i in range(x.shape[0]):
        out[i] = math.sin(x[i]) * np.exp(-x[i]) + np.arctan2(x[i], 2.0)


@njit
def of_complex(z, out):
    for i in range(z.shape[0]):
        out[i] = np.exp(z[i]) * math.cos(z[i].real)


X = np.linspace(-2.0, 2.0, 37)


@needs_libmvec
def test_where_it_serves() -> None:
    used = {}
    for mode in vector_math.MODES:
        forward = ad.split(waves, vector_math=mode)
        shown = ad.show(forward, X, X.copy())
        used[mode] = "vmath.sin" in shown.forward_source, "vmath.cos" in shown.pullback_source
    assert used == {"none": (False, False), "pullback": (False, True), "all": (True, True)}
    with pytest.raises(ValueError, match="vector_math"):
        ad.split(waves, vector_math="fast")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradients(dtype: type) -> None:
    check_vjp(waves, X.astype(dtype), X.astype(dtype))


def test_all_agrees_with_none() -> None:
    for f, x in ((waves, X), (of_complex, X + 1j * X[::-1])):
        found = []
        for mode in ("none", "all"):
            out, d_x, d_out = x.copy(), np.zeros_like(x), np.ones_like(x)
            result, pullback = ad.split(f, vector_math=mode)(x, out)
            pullback(result, d_x, d_out)
            found.append((out, d_x))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-15)
