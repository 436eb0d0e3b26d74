"""Python source for NumPy functions whose source in Numba uses what splitad does not read.

    np.polynomial.polynomial.polyadd(a, b)      is read as `polyadd` below

Each does what Numba's does, bit for bit.  A function of these is plain Python, inlined like the user's own;
an argument that it does not have is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

_poly = np.polynomial.polynomial
_trimmed = np.polynomial.polyutils.trimseq


def wide(c: Any, other: Any) -> Any:
    """The coefficients in double precision, complex if those or the others are."""
    raise NotImplementedError


@overload(wide)
def _wide(c, other):  # type: ignore[no-untyped-def]
    kinds = [a.dtype if isinstance(a, types.Array) else a for a in (c, other)]
    if any(isinstance(kind, types.Complex) for kind in kinds):

        def converted(c, other):  # type: ignore[no-untyped-def]
            return np.atleast_1d(np.asarray(c)).astype(np.complex128)

    else:

        def converted(c, other):  # type: ignore[no-untyped-def]
            return np.atleast_1d(np.asarray(c)).astype(np.float64)

    return converted


@register_jitable
def series(c: Any, other: Any) -> Any:
    """Coefficients without the zeros at the end."""
    coefficients = wide(c, other)
    if coefficients.size == 0:
        raise ValueError("Coefficient array is empty")
    return _trimmed(coefficients)


@register_jitable
def padded(a: Any, n: Any) -> Any:
    return np.concatenate((a, np.zeros(n - len(a))))


def polyadd(c1: Any, c2: Any) -> Any:
    a, b = series(c1, c2), series(c2, c1)
    n = max(len(a), len(b))
    return _trimmed(padded(a, n) + padded(b, n))


def polysub(c1: Any, c2: Any) -> Any:
    a, b = series(c1, c2), series(c2, c1)
    n = max(len(a), len(b))
    return _trimmed(padded(a, n) - padded(b, n))


def polymul(c1: Any, c2: Any) -> Any:
    return _trimmed(np.convolve(series(c1, c2), series(c2, c1)))


def polydiv(c1: Any, c2: Any) -> Any:
    a, b = series(c1, c2), series(c2, c1)
    last = b[-1]
    if last == 0:
        raise ZeroDivisionError()
    if len(a) < len(b):
        return a[:1] * 0, a
    if len(b) == 1:
        return a / last, a[:1] * 0
    rest, k = b[:-1] / last, len(a) - 1
    for i in range(len(a) - len(b), -1, -1):
        a[i:k] -= rest * a[k]
        k -= 1
    return a[k + 1 :] / last, _trimmed(a[: k + 1])


def asarray_chkfinite(a: Any) -> Any:
    array = np.asarray(a)
    if not np.all(np.isfinite(array)):
        raise ValueError("array must not contain infs or NaNs")
    return array


def trim_zeros(filt: Any) -> Any:
    first, last = 0, len(filt)
    while first < last and filt[first] == 0:
        first += 1
    while last > first and filt[last - 1] == 0:
        last -= 1
    return filt[first:last]


SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    _poly.polyadd: polyadd,
    _poly.polysub: polysub,
    _poly.polymul: polymul,
    _poly.polydiv: polydiv,
    np.asarray_chkfinite: asarray_chkfinite,
    np.trim_zeros: trim_zeros,
}
