"""Scalar operations of splitad's own, for `Prim.fn` where no user-visible function says what is meant.

They can be called as plain Python and from njit code, with the same result under every error model.  What
generated code is full of is lowered in place: an ``@overload`` would be compiled as a function of its own,
for every pair of types, before the code that calls it.
"""

from __future__ import annotations

import math
import operator
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.extending import lower_builtin, overload, register_jitable, type_callable

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


def _wide(a: types.Type, b: types.Type) -> types.Type:
    """The float type in which two real numbers are divided or multiplied."""
    single = a == b == types.float32
    return types.float32 if single else types.float64


def _converted(context, builder, signature, args):  # type: ignore[no-untyped-def]
    """The arguments as values of the result's type."""
    return [
        context.cast(builder, value, given, signature.return_type)
        for value, given in zip(args, signature.args, strict=True)
    ]


@type_callable(guarded_mul)
@type_callable(guarded_mul_branch)
def _type_guarded_mul(context):  # type: ignore[no-untyped-def]
    def typer(p, d):  # type: ignore[no-untyped-def]
        if isinstance(p, types.Float) and isinstance(d, types.Float):
            return _wide(p, d)
        return context.resolve_function_type(operator.mul, (p, d), {}).return_type

    return typer


@lower_builtin(guarded_mul, types.Float, types.Float)
def _product_select(context, builder, signature, args):  # type: ignore[no-untyped-def]
    """The product and a select on d: a masked multiplication where the loop vectorises, but some five
    instructions a product where it does not."""
    p, d = _converted(context, builder, signature, args)
    return builder.select(builder.fcmp_unordered("!=", d, d.type(0.0)), builder.fmul(p, d), d)


@lower_builtin(guarded_mul_branch, types.Float, types.Float)
def _product_branch(context, builder, signature, args):  # type: ignore[no-untyped-def]
    """The product; only where that is NaN, a look at d.  The branch is not taken in finite code and costs
    two instructions."""
    p, d = _converted(context, builder, signature, args)
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


@lower_builtin(guarded_mul, types.Number, types.Number)
@lower_builtin(guarded_mul_branch, types.Number, types.Number)
def _product_complex(context, builder, signature, args):  # type: ignore[no-untyped-def]
    def product(p, d):  # type: ignore[no-untyped-def]
        return p * d if d != 0 else 0 * d

    return context.compile_internal(builder, product, signature, args)


def add_any_order(s: Any, e: Any) -> Any:
    """``s + e`` of two floats, one of many additions to s that may be done in any order."""
    return s + e


def sub_any_order(s: Any, e: Any) -> Any:
    """``s - e`` of two floats, one of many that may be done in any order."""
    return s - e


ANY_ORDER = {operator.add: add_any_order, operator.sub: sub_any_order}


@type_callable(add_any_order)
@type_callable(sub_any_order)
def _type_any_order(context):  # type: ignore[no-untyped-def]
    return lambda s, e: s if s == e and isinstance(s, types.Float) else None


@lower_builtin(add_any_order, types.Float, types.Float)
def _add_any_order(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.fadd(*args, flags=("reassoc",))


@lower_builtin(sub_any_order, types.Float, types.Float)
def _sub_any_order(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.fsub(*args, flags=("reassoc",))


def trip_count(n: int) -> int:
    """n, or 0 where it is negative: how many values ``range(n)`` has."""
    return max(n, 0)


def at_most(n: int, limit: int) -> int:
    """The smaller one."""
    return min(n, limit)


@type_callable(trip_count)
def _type_trip_count(context):  # type: ignore[no-untyped-def]
    return lambda n: types.intp


@type_callable(at_most)
def _type_at_most(context):  # type: ignore[no-untyped-def]
    return lambda n, limit: types.intp


@lower_builtin(trip_count, types.Integer)
def _lower_trip_count(context, builder, signature, args):  # type: ignore[no-untyped-def]
    (n,) = _converted(context, builder, signature, args)
    zero = n.type(0)
    return builder.select(builder.icmp_signed(">", n, zero), n, zero)


@lower_builtin(at_most, types.Integer, types.Integer)
def _lower_at_most(context, builder, signature, args):  # type: ignore[no-untyped-def]
    n, limit = _converted(context, builder, signature, args)
    return builder.select(builder.icmp_signed("<", n, limit), n, limit)


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


@register_jitable
def _complex_div(a: complex, b: complex) -> complex:
    """CPython's algorithm (Smith's, with a division at the end), as Numba has it."""
    if abs(b.real) >= abs(b.imag):
        if b.real == 0:
            return complex(fdiv(a.real, abs(b.real)), fdiv(a.imag, abs(b.real)))
        ratio = fdiv(b.imag, b.real)
        denom = b.real + b.imag * ratio
        return complex(fdiv(a.real + a.imag * ratio, denom), fdiv(a.imag - a.real * ratio, denom))
    if abs(b.imag) >= abs(b.real):
        ratio = fdiv(b.real, b.imag)
        denom = b.real * ratio + b.imag
        return complex(fdiv(a.real * ratio + a.imag, denom), fdiv(a.imag * ratio - a.real, denom))
    nan = b.real + b.imag  # one of them is a NaN; math.nan would make single precision double
    return complex(nan, nan)


@type_callable(fdiv)
def _type_fdiv(context):  # type: ignore[no-untyped-def]
    def typer(a, b):  # type: ignore[no-untyped-def]
        if not (isinstance(a, types.Number) and isinstance(b, types.Number)):
            return None
        complex_ = [t for t in (a, b) if isinstance(t, types.Complex)]
        if not complex_:
            return _wide(a, b)
        # complex64 with float32 stays complex64, all other mixtures are complex128
        small = all(t in (types.complex64, types.float32) for t in (a, b))
        return types.complex64 if small else types.complex128

    return typer


@lower_builtin(fdiv, types.Number, types.Number)
def _lower_fdiv(context, builder, signature, args):  # type: ignore[no-untyped-def]
    """Of floats, the machine's division, with no test for zero."""
    kind = signature.return_type
    operands = _converted(context, builder, signature, args)
    if isinstance(kind, types.Complex):
        return context.compile_internal(builder, _complex_div, kind(kind, kind), operands)
    return builder.fdiv(*operands)


@overload(select)
def _select_impl(cond, a, b):  # type: ignore[no-untyped-def]
    return lambda cond, a, b: a if cond else b


@overload(real)
def _real_impl(z):  # type: ignore[no-untyped-def]
    return lambda z: z.real


@overload(imag)
def _imag_impl(z):  # type: ignore[no-untyped-def]
    return lambda z: z.imag
