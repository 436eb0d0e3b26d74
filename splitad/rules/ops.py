"""Scalar operations of splitad's own, for `Prim.fn` where no user-visible function says what is meant.

They can be called as plain Python and from njit code, with the same result under every error model.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.extending import intrinsic, overload, register_jitable

T = TypeVar("T")


def fdiv(a: Any, b: Any) -> Any:
    """``a / b`` of floats or complex numbers that never raises: IEEE's infinity or NaN for b == 0.

    For other b bitwise what Numba's own ``a / b`` gives.  (np.divide of complex numbers rounds
    differently; it stays np.divide, which never raises either.)
    """
    if isinstance(a, complex) or isinstance(b, complex):
        return _complex_div(complex(a), complex(b))
    return _float_div(a, b)


def select(cond: bool, a: T, b: T) -> T:
    """``a if cond else b``, both evaluated."""
    return a if cond else b


def stop_gradient(x: Any) -> Any:
    """x (of an array, a copy), cut off from differentiation: what follows treats it as a constant.

    Works in Python and in njit code, for scalars and arrays.
    """
    return x.copy() if isinstance(x, np.ndarray) else x


@overload(stop_gradient)
def _stop_gradient_impl(x):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Array):
        return lambda x: x.copy()
    return lambda x: x


def guarded_mul(p: Any, d: Any) -> Any:
    """``p * d``, and zero where the cotangent d is zero, whatever the partial p is (strong zero)."""
    return p * d if d != 0 else d


def guarded_mul_branch(p: Any, d: Any) -> Any:
    """The same as guarded_mul, written with a branch: for code that does not vectorise."""
    return p * d if d != 0 else d


@overload(guarded_mul)
def _guarded_mul_impl(p, d):  # type: ignore[no-untyped-def]
    if isinstance(p, types.Float) and isinstance(d, types.Float):
        wide = types.float64 if types.float64 in (p, d) else types.float32
        return lambda p, d: _product_select(wide(p), wide(d))
    return lambda p, d: p * d if d != 0 else 0 * d


@overload(guarded_mul_branch)
def _guarded_mul_branch_impl(p, d):  # type: ignore[no-untyped-def]
    if isinstance(p, types.Float) and isinstance(d, types.Float):
        wide = types.float64 if types.float64 in (p, d) else types.float32
        return lambda p, d: _product_branch(wide(p), wide(d))
    return lambda p, d: p * d if d != 0 else 0 * d


@intrinsic
def _product_select(typingctx, p, d):  # type: ignore[no-untyped-def]
    """The product and a select on d: a masked multiplication where the loop vectorises, but some five
    instructions a product where it does not."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        p, d = args
        zero = d.type(0.0)
        return builder.select(builder.fcmp_unordered("!=", d, zero), builder.fmul(p, d), d)

    return p(p, p), codegen


@intrinsic
def _product_branch(typingctx, p, d):  # type: ignore[no-untyped-def]
    """The product; only where that is NaN, a look at d.  The branch is not taken in finite code and costs
    two instructions."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        p, d = args
        product = builder.fmul(p, d)
        start = builder.block
        with builder.if_then(builder.fcmp_unordered("uno", product, product), likely=False):
            zero = d.type(0.0)
            mended = builder.select(builder.fcmp_ordered("==", d, zero), zero, product)
            mending = builder.block
        result = builder.phi(d.type)
        result.add_incoming(product, start)
        result.add_incoming(mended, mending)
        return result

    return p(p, p), codegen


def real(z: Any) -> Any:
    """``z.real``"""
    return z.real


def imag(z: Any) -> Any:
    """``z.imag``"""
    return z.imag


def _float_div(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


@intrinsic
def _plain_div(typingctx, a, b):  # type: ignore[no-untyped-def]
    """The machine's division, with no test for zero."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fdiv(*args)

    return a(a, a), codegen


@overload(_float_div)
def _float_div_impl(a, b):  # type: ignore[no-untyped-def]
    if a == b and isinstance(a, types.Float):
        return lambda a, b: _plain_div(a, b)
    return lambda a, b: _plain_div(types.float64(a), types.float64(b))


@register_jitable
def _complex_div(a: complex, b: complex) -> complex:
    """CPython's algorithm (Smith's, with a division at the end), as Numba has it."""
    if abs(b.real) >= abs(b.imag):
        if b.real == 0:
            return complex(_float_div(a.real, abs(b.real)), _float_div(a.imag, abs(b.real)))
        ratio = _float_div(b.imag, b.real)
        denom = b.real + b.imag * ratio
        return complex(
            _float_div(a.real + a.imag * ratio, denom), _float_div(a.imag - a.real * ratio, denom)
        )
    if abs(b.imag) >= abs(b.real):
        ratio = _float_div(b.real, b.imag)
        denom = b.real * ratio + b.imag
        return complex(
            _float_div(a.real * ratio + a.imag, denom), _float_div(a.imag * ratio - a.real, denom)
        )
    nan = b.real + b.imag  # one of them is a NaN; math.nan would make single precision double
    return complex(nan, nan)


@overload(fdiv)
def _fdiv_impl(a, b):  # type: ignore[no-untyped-def]
    complex_ = [t for t in (a, b) if isinstance(t, types.Complex)]
    if complex_:
        if a == b:
            return lambda a, b: _complex_div(a, b)
        # complex64 with float32 stays complex64, all other mixtures are complex128
        small = all(t in (types.complex64, types.float32) for t in (a, b))
        kind = types.complex64 if small else types.complex128
        return lambda a, b: _complex_div(kind(a), kind(b))
    if isinstance(a, types.Number) and isinstance(b, types.Number):
        return lambda a, b: _float_div(a, b)
    return None


@overload(select)
def _select_impl(cond, a, b):  # type: ignore[no-untyped-def]
    return lambda cond, a, b: a if cond else b


@overload(real)
def _real_impl(z):  # type: ignore[no-untyped-def]
    return lambda z: z.real


@overload(imag)
def _imag_impl(z):  # type: ignore[no-untyped-def]
    return lambda z: z.imag
