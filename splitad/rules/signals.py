"""Array rules of interpolation, differences and polynomials.

At a knot of np.interp the derivative is that of the interval to its right; Numba's own code takes the value
of the knot there, which says nothing of the slope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from splitad.rules.arrays import Types, numeric
from splitad.rules.registry import array


def _value(array: Any, k: Any) -> Any:
    """An element in C order; the number itself where there is only one."""
    raise NotImplementedError


@overload(_value)
def _value_impl(array, k):  # type: ignore[no-untyped-def]
    if isinstance(array, types.Array):
        return lambda array, k: array.flat[k]
    return lambda array, k: array


def _real(d: Any, slope: Any) -> Any:
    """The cotangent of a real number, from that of what it is multiplied with."""
    raise NotImplementedError


@overload(_real)
def _real_impl(d, slope):  # type: ignore[no-untyped-def]
    if isinstance(d, types.Complex):
        return lambda d, slope: (d * np.conj(slope)).real
    return lambda d, slope: d * slope


# ---- interpolation ---------------------------------------------------------------------------------


@register_jitable
def _interp_one(x, xp, fp, d, d_xp, d_fp):  # type: ignore[no-untyped-def]
    """Adds to the two knots around x; returns what x gets."""
    n = len(xp)
    if d == 0 or np.isnan(x):
        return 0.0
    j = np.searchsorted(xp, x, side="right") - 1
    if j < 0 or j >= n - 1:
        if d_fp is not None:
            d_fp[max(j, 0)] += d
        return 0.0
    width = xp[j + 1] - xp[j]
    slope = (fp[j + 1] - fp[j]) / width
    t = (x - xp[j]) / width
    if d_fp is not None:
        d_fp[j] += d * (1 - t)
        if t != 0:
            d_fp[j + 1] += d * t
    if d_xp is not None:
        d_xp[j] -= _real(d, slope) * (1 - t)
        d_xp[j + 1] -= _real(d, slope) * t
    return _real(d, slope)


def _interp(x: Any, xp: Any, fp: Any, d: Any, d_x: Any, d_xp: Any, d_fp: Any) -> Any:
    raise NotImplementedError


@overload(_interp)
def _interp_impl(x, xp, fp, d, d_x, d_xp, d_fp):  # type: ignore[no-untyped-def]
    if not isinstance(x, types.Array):
        return lambda x, xp, fp, d, d_x, d_xp, d_fp: (_interp_one(x, xp, fp, d, d_xp, d_fp),)

    def several(x, xp, fp, d, d_x, d_xp, d_fp):  # type: ignore[no-untyped-def]
        points, cotangents = x.flat, d.flat
        for k in range(x.size):
            slope = _interp_one(points[k], xp, fp, cotangents[k], d_xp, d_fp)
            if d_x is not None:
                d_x.flat[k] += slope
        return (0.0,)

    return several


@njit(error_model="numpy")
def interp_pullback(x, xp, fp, d_out, d_x, d_xp, d_fp):  # type: ignore[no-untyped-def]
    return _interp(x, xp, fp, d_out, d_x, d_xp, d_fp)


def _check_interp(args: Types, static: Mapping[str, Any]) -> str | None:
    if not all(numeric(a) and a.ndim == 1 for a in args[1:]):
        return "np.interp has a derivative rule for arrays of knots and values"
    return None


# ---- differences -----------------------------------------------------------------------------------


@njit(error_model="numpy")
def ediff1d_pullback(d_out, d_ary):  # type: ignore[no-untyped-def]
    shadow = d_ary.flat
    for k in range(len(d_out)):
        shadow[k + 1] += d_out[k]
        shadow[k] -= d_out[k]


@njit(error_model="numpy")
def unwrap_pullback(d_out, d_p):  # type: ignore[no-untyped-def]
    """Whole periods are added."""
    d_p += d_out


def _check_array(args: Types, static: Mapping[str, Any]) -> str | None:
    return None if numeric(args[0]) else "of anything but an array this has no derivative rule"


# ---- polynomials -----------------------------------------------------------------------------------


def _polyval(x: Any, c: Any, d: Any, d_x: Any, d_c: Any) -> Any:
    raise NotImplementedError


@register_jitable
def _polyval_one(x, c, d, d_c):  # type: ignore[no-untyped-def]
    """The powers of x times d to the coefficients; returns what x gets, by Horner's rule."""
    power = d
    if d_c is not None:
        for k in range(len(c)):
            d_c[k] += power
            power = power * np.conj(x)
    slope = 0 * (x + c[0])
    for k in range(len(c) - 1, 0, -1):
        slope = slope * x + k * c[k]
    return d * np.conj(slope)


@overload(_polyval)
def _polyval_impl(x, c, d, d_x, d_c):  # type: ignore[no-untyped-def]
    if not isinstance(x, types.Array):
        return lambda x, c, d, d_x, d_c: (_polyval_one(x, c, d, d_c),)

    def several(x, c, d, d_x, d_c):  # type: ignore[no-untyped-def]
        points, cotangents = x.flat, d.flat
        for k in range(x.size):
            slope = _polyval_one(points[k], c, cotangents[k], d_c)
            if d_x is not None:
                d_x.flat[k] += slope
        return (0.0,)

    return several


@njit(error_model="numpy")
def polyval_pullback(x, c, d_out, d_x, d_c):  # type: ignore[no-untyped-def]
    return _polyval(x, c, d_out, d_x, d_c)


def _check_polyval(args: Types, static: Mapping[str, Any]) -> str | None:
    x, c = args[:2]
    if not numeric(c) or c.ndim != 1:
        return "polyval has a derivative rule for an array of coefficients"
    complex_ = [isinstance(getattr(a, "dtype", a), types.Complex) for a in (x, c)]
    if complex_[0] != complex_[1]:
        return "polyval with a real and a complex argument has no derivative rule"
    return None


array("interp", (np.interp,), "x xp fp", pullback=interp_pullback, check=_check_interp)
array("ediff1d", (np.ediff1d,), "ary", pullback=ediff1d_pullback, check=_check_array)
array("unwrap", (np.unwrap,), "p", pullback=unwrap_pullback, static="discont axis period",
      check=_check_array)  # fmt: skip
array("polyval", (np.polynomial.polynomial.polyval,), "x c", pullback=polyval_pullback,
      static="tensor", check=_check_polyval)  # fmt: skip
