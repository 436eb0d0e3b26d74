"""Array rules: products, sums along an axis, cumulative sums.  The form and the protocol: `registry`.

Each pullback adds into the shadows (`d_a`, None where `a` is not active).  Which code it is follows from
the types, through `overload`: there is no argument None at run time.  A zero cotangent contributes
nothing, whatever it is multiplied with (the strong zero): hence the tests for zero.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from splitad.rules.registry import array

Types = tuple[types.Type, ...]


def numeric(a: Any) -> bool:
    """Whether a type is an array of numbers."""
    return isinstance(a, types.Array) and isinstance(a.dtype, types.Number | types.Boolean)


def same_kind(*args: Any) -> str | None:
    """A reason where real and complex floats are mixed: the shadow of the real one is real."""
    kinds = {type(a.dtype) for a in args} & {types.Float, types.Complex}
    if len(kinds) > 1:
        return "real and complex arrays are mixed; convert them with astype"
    return None


# ---- products --------------------------------------------------------------------------------------


@register_jitable
def dot_vv(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """s = sum(a * b)"""
    if d_out != 0:
        if d_a is not None:
            for i in range(len(d_a)):
                d_a[i] += d_out * b[i].conjugate()
        if d_b is not None:
            for i in range(len(d_b)):
                d_b[i] += d_out * a[i].conjugate()


@register_jitable
def dot_mv(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """out[i] = sum_j a[i, j] * b[j]"""
    for i in range(len(d_out)):
        d = d_out[i]
        if d != 0:
            if d_a is not None:
                for j in range(d_a.shape[1]):
                    d_a[i, j] += d * b[j].conjugate()
            if d_b is not None:
                for j in range(len(d_b)):
                    d_b[j] += d * a[i, j].conjugate()


@register_jitable
def dot_vm(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """out[j] = sum_i a[i] * b[i, j]"""
    if d_a is not None:
        for i in range(len(d_a)):
            total = d_a.dtype.type(0)
            for j in range(len(d_out)):
                total += d_out[j] * b[i, j].conjugate() if d_out[j] != 0 else d_out[j]
            d_a[i] += total
    if d_b is not None:
        for i in range(d_b.shape[0]):
            c = a[i].conjugate()
            for j in range(len(d_out)):
                d_b[i, j] += d_out[j] * c if d_out[j] != 0 else d_out[j]


@register_jitable
def dot_mm(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """out = a @ b: by BLAS, unless an infinity or a NaN could meet a zero"""
    d = np.ascontiguousarray(d_out)
    if d_a is not None:
        if all_finite(b):
            d_a += np.dot(d, conj_t(b))
        else:
            for i in range(d.shape[0]):
                for j in range(d.shape[1]):
                    if d[i, j] != 0:
                        for k in range(d_a.shape[1]):
                            d_a[i, k] += d[i, j] * b[k, j].conjugate()
    if d_b is not None:
        if all_finite(a):
            d_b += np.dot(conj_t(a), d)
        else:
            for i in range(d.shape[0]):
                for j in range(d.shape[1]):
                    if d[i, j] != 0:
                        for k in range(d_b.shape[0]):
                            d_b[k, j] += a[i, k].conjugate() * d[i, j]


@register_jitable
def all_finite(a):  # type: ignore[no-untyped-def]
    """Whether a matrix holds neither an infinity nor a NaN."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if not np.isfinite(a[i, j]):
                return False
    return True


def conj_t(a: Any) -> Any:
    """The conjugate transpose, contiguous in C's or Fortran's order: what BLAS takes without a copy."""
    return np.conj(np.ascontiguousarray(a)).T


@overload(conj_t)
def _conj_t(a):  # type: ignore[no-untyped-def]
    if isinstance(a.dtype, types.Complex):
        return lambda a: np.conj(np.ascontiguousarray(a)).T
    if a.layout in "CF":
        return lambda a: a.T
    return lambda a: np.ascontiguousarray(a).T


def _dot(a: Any, b: Any, d_out: Any, d_a: Any, d_b: Any) -> None:
    """Chooses by dimensions; of a and d_a (b and d_b) at least one is an array."""
    raise NotImplementedError


@overload(_dot)
def _dot_impl(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    left = (a if isinstance(a, types.Array) else d_a).ndim
    right = (b if isinstance(b, types.Array) else d_b).ndim
    impl = {(1, 1): dot_vv, (2, 1): dot_mv, (1, 2): dot_vm, (2, 2): dot_mm}[left, right]
    return lambda a, b, d_out, d_a, d_b: impl(a, b, d_out, d_a, d_b)


@njit(error_model="numpy")
def dot_pullback(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    _dot(a, b, d_out, d_a, d_b)


@njit(error_model="numpy")
def vdot_pullback(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """s = sum(conj(a) * b), which is antilinear in a"""
    if d_out != 0:
        if d_a is not None:
            for i in range(len(d_a)):
                d_a[i] += d_out.conjugate() * b[i]
        if d_b is not None:
            for i in range(len(d_b)):
                d_b[i] += d_out * a[i]


@njit(error_model="numpy")
def outer_pullback(a, b, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """out[i, j] = a[i] * b[j]"""
    for i in range(d_out.shape[0]):
        for j in range(d_out.shape[1]):
            d = d_out[i, j]
            if d != 0:
                if d_a is not None:
                    d_a[i] += d * b[j].conjugate()
                if d_b is not None:
                    d_b[j] += d * a[i].conjugate()


def _check_dot(args: Types, static: Mapping[str, Any]) -> str | None:
    if not all(numeric(a) and a.ndim in (1, 2) for a in args[:2]):
        return "a product of other things than vectors and matrices has no derivative rule"
    return same_kind(*args)


def _check_vectors(args: Types, static: Mapping[str, Any]) -> str | None:
    if not all(numeric(a) and a.ndim == 1 for a in args[:2]):
        return "of other things than two vectors this has no derivative rule; use ravel()"
    return same_kind(*args)


_CROSS = {"a": "b", "b": "a"}

array("dot", (np.dot,), "a b result", pullback=dot_pullback, needed_by=_CROSS, overwrites=2,
      check=_check_dot)  # fmt: skip
array("matmul", (operator.matmul,), "a b",
      pullback=dot_pullback, needed_by=_CROSS, check=_check_dot)  # fmt: skip
array("vdot", (np.vdot,), "a b", pullback=vdot_pullback, needed_by=_CROSS, check=_check_vectors)
array("outer", (np.outer,), "a b result", pullback=outer_pullback, needed_by=_CROSS, overwrites=2,
      check=_check_vectors)  # fmt: skip

# ---- sums ------------------------------------------------------------------------------------------


def _sum(axis: Any, d_out: Any, d_a: Any) -> None:
    """Spreads the cotangent along the axis, or over all elements."""
    raise NotImplementedError


@overload(_sum)
def _sum_impl(axis, d_out, d_a):  # type: ignore[no-untyped-def]
    if not isinstance(d_out, types.Array):

        def everywhere(axis, d_out, d_a):  # type: ignore[no-untyped-def]
            for index in np.ndindex(d_a.shape):
                d_a[index] += d_out

        return everywhere

    def along(axis, d_out, d_a):  # type: ignore[no-untyped-def]
        d_a += np.expand_dims(d_out, axis)

    return along


@njit(error_model="numpy")
def sum_pullback(axis, d_out, d_a):  # type: ignore[no-untyped-def]
    _sum(axis, d_out, d_a)


@njit(error_model="numpy")
def mean_pullback(d_out, d_a):  # type: ignore[no-untyped-def]
    _sum(None, d_out / d_a.size, d_a)


def _cumsum(axis: Any, d_out: Any, d_a: Any) -> None:
    """Sums the cotangents from the end."""
    raise NotImplementedError


@overload(_cumsum)
def _cumsum_impl(axis, d_out, d_a):  # type: ignore[no-untyped-def]
    if d_a.ndim == 1 or isinstance(axis, types.NoneType) or axis is None:

        def flat(axis, d_out, d_a):  # type: ignore[no-untyped-def]
            total = d_a.dtype.type(0)
            shadow = d_a.flat
            for k in range(len(d_out) - 1, -1, -1):
                total += d_out[k]
                shadow[k] += total

        return flat

    def along(axis, d_out, d_a):  # type: ignore[no-untyped-def]
        source, shadow = np.swapaxes(d_out, 0, axis), np.swapaxes(d_a, 0, axis)
        for column in np.ndindex(source.shape[1:]):
            total = d_a.dtype.type(0)
            for k in range(len(source) - 1, -1, -1):
                total += source[(k, *column)]
                shadow[(k, *column)] += total

    return along


@njit(error_model="numpy")
def cumsum_pullback(axis, d_out, d_a):  # type: ignore[no-untyped-def]
    _cumsum(axis, d_out, d_a)


def _check_axis(args: Types, static: Mapping[str, Any]) -> str | None:
    if not numeric(args[0]):
        return "of anything but an array this has no derivative rule"
    if not isinstance(static.get("axis"), int | None):
        return "an axis that is no constant integer has no derivative rule"
    return None


array("sum", (np.sum,), "a", pullback=sum_pullback, static="axis", check=_check_axis)
array("mean", (np.mean,), "a", pullback=mean_pullback, check=_check_axis)
array("cumsum", (np.cumsum,), "a", pullback=cumsum_pullback, static="axis", check=_check_axis)
