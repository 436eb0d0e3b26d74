"""Array rules of the functions that leave out NaN: nansum, nanmean, nanvar, ...

An element that is NaN was left out: it gets nothing, whatever the cotangent.  nanmin, nanmax, nanmedian
are in `ordering`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from splitad.rules.arrays import Types, numeric
from splitad.rules.registry import array


def _check(args: Types, static: Mapping[str, Any]) -> str | None:
    if not numeric(args[0]):
        return "of anything but an array this has no derivative rule"
    if any(static.get(name) is not None for name in ("axis", "dtype")):
        return "with axis or dtype this has no derivative rule"
    return None


@register_jitable
def _count(flat):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(len(flat)):
        count += not np.isnan(flat[k])
    return count


@njit(error_model="numpy")
def nansum_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    flat, shadow = a.ravel(), d_a.flat
    for k in range(len(flat)):
        if not np.isnan(flat[k]):
            shadow[k] += d_out


@njit(error_model="numpy")
def nanmean_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    flat, shadow = a.ravel(), d_a.flat
    count = _count(flat)
    for k in range(len(flat)):
        if not np.isnan(flat[k]):
            shadow[k] += d_out / count


@njit(error_model="numpy")
def nanprod_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    """By the products of what is on either side, so that zeros do no harm."""
    flat, shadow = a.ravel(), d_a.flat
    before = np.ones_like(flat)
    left = before.dtype.type(1)
    for k in range(len(flat)):
        before[k] = left
        if not np.isnan(flat[k]):
            left *= flat[k]
    right = np.conj(before.dtype.type(1)) * d_out
    for k in range(len(flat) - 1, -1, -1):
        if not np.isnan(flat[k]) and right != 0:
            shadow[k] += right * np.conj(before[k])
            right *= np.conj(flat[k])


@register_jitable
def _add_variance(flat, ddof, d, d_a):  # type: ignore[no-untyped-def]
    count = _count(flat)
    if count <= ddof or d == 0:
        return
    middle = np.nanmean(flat)
    shadow = d_a.flat
    for k in range(len(flat)):
        if not np.isnan(flat[k]):
            shadow[k] += 2 * d / (count - ddof) * (flat[k] - middle)


@njit(error_model="numpy")
def nanvar_pullback(a, ddof, d_out, d_a):  # type: ignore[no-untyped-def]
    _add_variance(a.ravel(), 0 if ddof is None else ddof, d_out, d_a)


@njit(error_model="numpy")
def nanstd_pullback(a, ddof, out, d_out, d_a):  # type: ignore[no-untyped-def]
    """At the origin of the differences, as for a norm, the derivative is 0."""
    if out != 0:
        _add_variance(a.ravel(), 0 if ddof is None else ddof, d_out / (2 * out), d_a)


array("nansum", (np.nansum,), "a", pullback=nansum_pullback, check=_check)
array("nanprod", (np.nanprod,), "a", pullback=nanprod_pullback, check=_check)
array("nanmean", (np.nanmean,), "a", pullback=nanmean_pullback, check=_check)
_STATIC = "axis dtype ddof"
array("nanvar", (np.nanvar,), "a", pullback=nanvar_pullback, static=_STATIC, check=_check)
array("nanstd", (np.nanstd,), "a", pullback=nanstd_pullback, static=_STATIC, check=_check)
