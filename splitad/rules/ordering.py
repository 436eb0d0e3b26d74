"""Array rules of what picks elements by their order: sort, median, percentile, unique, extremes.

Where the order is not a tie, the result is locally a fixed choice of elements, so each cotangent goes to the
element that was chosen.  Among equal elements it goes to the first, by a stable sort.  The primal is
NumPy's own function; the pullback finds the choice from the contents that the argument had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from splitad.rules.arrays import Types, numeric
from splitad.rules.registry import array, array_zero


def _check_array(args: Types, static: Mapping[str, Any]) -> str | None:
    if not numeric(args[0]):
        return "of anything but an array this has no derivative rule"
    return None


@register_jitable
def stable_order(a):  # type: ignore[no-untyped-def]
    """The places of a flat array's elements, smallest first, equal ones as they come."""
    return np.argsort(a, kind="mergesort")


# ---- permutations ----------------------------------------------------------------------------------


@njit(error_model="numpy")
def sort_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    order = stable_order(a)
    for k in range(len(order)):
        d_a[order[k]] += d_out[k]


@njit(error_model="numpy")
def partition_pullback(a, out, d_out, d_a):  # type: ignore[no-untyped-def]
    """Each row of out is a permutation of that of a: the two sorted orders say which."""
    n = a.shape[-1]
    if a.size == 0:
        return
    rows, moved = a.reshape(-1, n), np.ascontiguousarray(out).reshape(-1, n)
    shadow, cotangents = d_a.flat, d_out.flat
    for row in range(len(rows)):
        source, target = stable_order(rows[row]), stable_order(moved[row])
        for k in range(n):
            shadow[row * n + source[k]] += cotangents[row * n + target[k]]


@njit(error_model="numpy")
def unique_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    flat, shadow = a.ravel(), d_a.flat
    order = stable_order(flat)
    found = -1
    for k in range(len(order)):
        if k == 0 or flat[order[k]] != flat[order[k - 1]]:
            found += 1
            shadow[order[k]] += d_out[found]


# ---- medians and percentiles -----------------------------------------------------------------------


@register_jitable
def _numbers(a):  # type: ignore[no-untyped-def]
    """The places of what is not NaN."""
    places = np.empty(len(a), np.intp)
    count = 0
    for k in range(len(a)):
        if not np.isnan(a[k]):
            places[count] = k
            count += 1
    return places[:count]


@register_jitable
def _add_median(flat, places, d_out, d_a):  # type: ignore[no-untyped-def]
    n = len(places)
    if n == 0:
        return
    order = places[stable_order(flat[places])]
    shadow = d_a.flat
    if n % 2:
        shadow[order[n // 2]] += d_out
    else:
        shadow[order[n // 2 - 1]] += 0.5 * d_out
        shadow[order[n // 2]] += 0.5 * d_out


@njit(error_model="numpy")
def median_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    flat = a.ravel()
    _add_median(flat, np.arange(len(flat)), d_out, d_a)


@njit(error_model="numpy")
def nanmedian_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    flat = a.ravel()
    _add_median(flat, _numbers(flat), d_out, d_a)


@register_jitable
def _add_percentile(flat, order, percent, d, d_a):  # type: ignore[no-untyped-def]
    """Adds to the two elements around a percentile; returns the derivative in it, per percent."""
    n = len(order)
    if d == 0 or n == 0:
        return 0.0
    if n == 1:
        if d_a is not None:
            d_a.flat[order[0]] += d
        return 0.0
    if percent == 100:
        place = n - 1  # the first of the largest
        while place > 0 and flat[order[place - 1]] == flat[order[n - 1]]:
            place -= 1
        if d_a is not None:
            d_a.flat[order[place]] += d
        return d * (flat[order[n - 1]] - flat[order[n - 2]]) * (n - 1) / 100.0
    rank = (n - 1) * (percent / 100.0)
    low = min(int(np.floor(1 + rank)) - 1, n - 2)
    weight = 1 + rank - np.floor(1 + rank)
    if d_a is not None:
        shadow = d_a.flat
        if weight != 1:
            shadow[order[low]] += d * (1 - weight)
        if weight != 0:
            shadow[order[low + 1]] += d * weight
    return d * (flat[order[low + 1]] - flat[order[low]]) * (n - 1) / 100.0


def _add_percentiles(
    flat: Any, order: Any, q: Any, factor: Any, d_out: Any, d_a: Any, d_q: Any
) -> Any:
    raise NotImplementedError


@overload(_add_percentiles)
def _add_percentiles_impl(flat, order, q, factor, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
    if isinstance(d_out, types.Array):

        def several(flat, order, q, factor, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
            places = q.flat
            for k in range(len(d_out)):
                slope = _add_percentile(flat, order, places[k] * factor, d_out[k], d_a)
                if d_q is not None:
                    d_q.flat[k] += slope * factor
            return (0.0,)

        return several
    if isinstance(q, types.Array):

        def boxed(flat, order, q, factor, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
            slope = _add_percentile(flat, order, q[()] * factor, d_out, d_a)
            if d_q is not None:
                d_q[()] += slope * factor
            return (0.0,)

        return boxed

    def one(flat, order, q, factor, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
        return (_add_percentile(flat, order, q * factor, d_out, d_a) * factor,)

    return one


@njit(error_model="numpy")
def percentile_pullback(a, q, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
    flat = a.ravel()
    return _add_percentiles(flat, stable_order(flat), q, 1.0, d_out, d_a, d_q)


@njit(error_model="numpy")
def quantile_pullback(a, q, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
    flat = a.ravel()
    return _add_percentiles(flat, stable_order(flat), q, 100.0, d_out, d_a, d_q)


@njit(error_model="numpy")
def nanpercentile_pullback(a, q, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
    flat = a.ravel()
    places = _numbers(flat)
    order = places[stable_order(flat[places])]
    return _add_percentiles(flat, order, q, 1.0, d_out, d_a, d_q)


@njit(error_model="numpy")
def nanquantile_pullback(a, q, d_out, d_a, d_q):  # type: ignore[no-untyped-def]
    flat = a.ravel()
    places = _numbers(flat)
    order = places[stable_order(flat[places])]
    return _add_percentiles(flat, order, q, 100.0, d_out, d_a, d_q)


# ---- extremes --------------------------------------------------------------------------------------


@njit(error_model="numpy")
def extreme_pullback(a, out, d_out, d_a):  # type: ignore[no-untyped-def]
    """The first element that is the result; none where that is NaN."""
    flat = a.ravel()
    for k in range(len(flat)):
        if flat[k] == out:
            d_a.flat[k] += d_out
            return


@register_jitable
def _first(flat, sign):  # type: ignore[no-untyped-def]
    """Where the first largest element is, for sign 1, or the first smallest, for -1; complex numbers are
    in the order of their real parts, then of their imaginary parts."""
    best = 0
    for k in range(1, len(flat)):
        x, y = sign * flat[k], sign * flat[best]
        if x.real > y.real or (x.real == y.real and x.imag > y.imag):
            best = k
    return best


@njit(error_model="numpy")
def ptp_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    flat, shadow = a.ravel(), d_a.flat
    shadow[_first(flat, 1.0)] += d_out
    shadow[_first(flat, -1.0)] -= d_out


@njit(error_model="numpy")
def histogram_pullback(a, d_edges, d_a):  # type: ignore[no-untyped-def]
    """The counts have no derivative; the edges are evenly spaced between the extremes."""
    if d_edges is not None and a.size > 0:
        flat, shadow = a.ravel(), d_a.flat
        last = len(d_edges) - 1
        low, high = np.argmin(flat), np.argmax(flat)
        for k in range(last + 1):
            shadow[low] += d_edges[k] * (last - k) / last
            shadow[high] += d_edges[k] * k / last


def _check_histogram(args: Types, static: Mapping[str, Any]) -> str | None:
    if not isinstance(static.get("bins", 10), int) or static.get("range") is not None:
        return "a histogram has a derivative rule where bins is a constant integer, and range is not given"
    return _check_array(args, static)


# ---- picking by index ------------------------------------------------------------------------------


def _scatter(d_a: Any, indices: Any, axis: Any, d_out: Any) -> None:
    raise NotImplementedError


@overload(_scatter)
def _scatter_impl(d_a, indices, axis, d_out):  # type: ignore[no-untyped-def]
    if isinstance(axis, types.Integer) and isinstance(d_out, types.Array):

        def along(d_a, indices, axis, d_out):  # type: ignore[no-untyped-def]
            _scatter_along(d_a, np.asarray(indices).ravel(), axis, d_out)

        return along
    if not isinstance(indices, types.Array):

        def one(d_a, indices, axis, d_out):  # type: ignore[no-untyped-def]
            d_a.flat[indices if indices >= 0 else indices + d_a.size] += d_out

        return one

    def several(d_a, indices, axis, d_out):  # type: ignore[no-untyped-def]
        shadow, cotangents, size = d_a.flat, d_out.flat, d_a.size
        places = indices.ravel()
        for k in range(len(places)):
            shadow[places[k] if places[k] >= 0 else places[k] + size] += cotangents[k]

    return several


@register_jitable
def _scatter_along(d_a, places, axis, d_out):  # type: ignore[no-untyped-def]
    """out[..., k, ...] = a[..., places[k], ...]"""
    axis = axis if axis >= 0 else axis + d_a.ndim
    before, behind, size, count = 1, 1, d_a.shape[axis], len(places)
    for k in range(d_a.ndim):
        if k < axis:
            before *= d_a.shape[k]
        elif k > axis:
            behind *= d_a.shape[k]
    shadow, cotangents = d_a.flat, d_out.flat
    for p in range(before):
        for k in range(count):
            place = places[k] if places[k] >= 0 else places[k] + size
            for q in range(behind):
                shadow[(p * size + place) * behind + q] += cotangents[(p * count + k) * behind + q]


@njit(error_model="numpy")
def take_pullback(indices, axis, d_out, d_a):  # type: ignore[no-untyped-def]
    _scatter(d_a, indices, axis, d_out)
    return (0.0,)


def _from_end(axis: Any, ndim: Any) -> Any:
    raise NotImplementedError


@overload(_from_end)
def _from_end_impl(axis, ndim):  # type: ignore[no-untyped-def]
    if isinstance(axis, types.Integer):
        return lambda axis, ndim: axis if axis >= 0 else axis + ndim
    return lambda axis, ndim: 0  # of an array of one dimension


@njit(error_model="numpy")
def take_along_pullback(indices, axis, d_out, d_arr):  # type: ignore[no-untyped-def]
    """Axes of size one are repeated, those of indices and of arr."""
    axis = _from_end(axis, d_arr.ndim)
    shadow, cotangents, flat = d_arr.flat, d_out.flat, indices.ravel()
    for k in range(d_out.size):
        rest, place, at, along = k, 0, 0, 1
        step, width = 1, 1
        for other in range(d_out.ndim - 1, -1, -1):
            digit = rest % d_out.shape[other]
            rest //= d_out.shape[other]
            if indices.shape[other] != 1:
                at += digit * width
            width *= indices.shape[other]
            if other == axis:
                along = step
            elif d_arr.shape[other] != 1:
                place += digit * step
            step *= d_arr.shape[other]
        j = flat[at]
        shadow[place + along * (j if j >= 0 else j + d_arr.shape[axis])] += cotangents[k]


def _check_along(args: Types, static: Mapping[str, Any]) -> str | None:
    if not numeric(args[0]) or (static.get("axis") is None and args[0].ndim != 1):
        return "of anything but an array, along an axis of it, this has no derivative rule"
    return None


def _check_take(args: Types, static: Mapping[str, Any]) -> str | None:
    if static.get("axis") is not None and getattr(args[1], "ndim", 0) > 1:
        return "take along an axis has a derivative rule for an integer or a vector of indices"
    return _check_array(args, static)


for _name, _pullback in (("sort", sort_pullback), ("unique", unique_pullback),
                         ("median", median_pullback), ("nanmedian", nanmedian_pullback),
                         ("nanmin", extreme_pullback), ("nanmax", extreme_pullback),
                         ("ptp", ptp_pullback)):  # fmt: skip
    array(_name, (getattr(np, _name),), "a", pullback=_pullback, check=_check_array)
array("partition", (np.partition,), "a kth", pullback=partition_pullback, check=_check_array)
for _name, _pullback in (("percentile", percentile_pullback), ("quantile", quantile_pullback),
                         ("nanpercentile", nanpercentile_pullback),
                         ("nanquantile", nanquantile_pullback)):  # fmt: skip
    array(_name, (getattr(np, _name),), "a q", pullback=_pullback, check=_check_array)
array("histogram", (np.histogram,), "a", pullback=histogram_pullback, static="bins range",
      results="counts edges", check=_check_histogram)  # fmt: skip
array("take_along_axis", (np.take_along_axis,), "arr indices", pullback=take_along_pullback,
      static="axis", check=_check_along)  # fmt: skip
array("take", (np.take,), "a indices", pullback=take_pullback, static="axis", check=_check_take)

array_zero("argsort", (np.argsort,), static="kind")
array_zero("argextreme", (np.argmin, np.argmax, np.nanargmin, np.nanargmax), static="axis")
array_zero("argpartition", (np.argpartition,), "a kth")
array_zero("places", (np.nonzero, np.argwhere, np.flatnonzero))
array_zero("searchsorted", (np.searchsorted,), "a v", static="side")
array_zero("digitize", (np.digitize,), "x bins", static="right")
array_zero("isin", (np.isin,), "a b", static="assume_unique invert")
array_zero("close", (np.isclose, np.allclose), "a b rtol atol", static="equal_nan", optional=2)
array_zero("array_equal", (np.array_equal,), "a b")
