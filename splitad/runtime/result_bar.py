"""Bringing a result_bar to the dtype of the result, and refusing what is no cotangent of it.

cotangent_type(result, given) -> type     in njit code: what Numba casts it to
bar_caster(result) -> function            in Python
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.misc.special import typeof
from numba.np import numpy_support

from splitad.errors import NotDifferentiableError, ShadowError


def cotangent_type(result: types.Type, given: types.Type) -> types.Type:
    """The type that a result_bar of type `given` is cast to."""
    if isinstance(given, types.NoneType):
        return given
    if isinstance(result, (types.Float, types.Complex)):
        wrong = isinstance(given, types.Complex) and isinstance(result, types.Float)
        if wrong or not isinstance(given, (types.Number, types.Boolean)):
            raise _bar_mismatch(result, given)
        return result
    if isinstance(result, (types.Integer, types.Boolean)):
        raise _no_cotangent(result)
    if isinstance(result, types.BaseTuple):
        if not isinstance(given, types.BaseTuple) or len(given) != len(result):
            raise _bar_mismatch(result, given)
        items = [cotangent_type(r, g) for r, g in zip(result.types, given.types, strict=True)]
        if not isinstance(given, types.BaseNamedTuple):
            return types.Tuple(items)
        if items != list(given.types):  # Numba casts no named tuples
            raise _bar_mismatch(result, given)
        return given
    if isinstance(result, types.Array):
        fits = isinstance(given, types.Array) and given.ndim == result.ndim
        if not fits or given.dtype != result.dtype:
            raise _bar_mismatch(result, given)
    return given


def _bar_mismatch(result: Any, given: Any) -> ShadowError:
    return ShadowError(f"result_bar is {given}, which is no cotangent of a result that is {result}")


def _no_cotangent(result: types.Type) -> NotDifferentiableError:
    return NotDifferentiableError(
        f"a result of type {types.unliteral(result)} has no cotangent",
        None,
        "Pass None in its place.",
    )


def bar_caster(result: types.Type) -> Callable[[Any], Any]:
    if isinstance(result, (types.Float, types.Complex)):
        return _scalar_caster(result)
    if isinstance(result, (types.Integer, types.Boolean)):

        def refuse(bar: Any) -> None:
            if bar is not None:
                raise _no_cotangent(result)

        return refuse
    if isinstance(result, types.Array) and isinstance(result.dtype, (types.Float, types.Complex)):
        return _array_caster(result)
    if isinstance(result, types.BaseTuple):
        return _tuple_caster(result)
    if isinstance(result, types.NoneType):
        return _need_none
    return lambda bar: bar


def _need_none(bar: Any) -> None:
    if bar is not None:
        raise ShadowError(
            f"result_bar is {bar!r:.60}, but the result is None, which has no cotangent",
            None,
            "Pass None in its place.",
        )


def _scalar_caster(result: types.Type) -> Callable[[Any], Any]:
    plain = {types.float64: float, types.complex128: complex}
    cast = plain.get(result) or numpy_support.as_dtype(result).type

    def caster(bar: Any) -> Any:
        if isinstance(bar, np.ndarray) or (
            isinstance(result, types.Float) and isinstance(bar, (complex, np.complexfloating))
        ):
            raise _bar_mismatch(result, typeof(bar))
        return None if bar is None else cast(bar)

    return caster


def _array_caster(result: types.Array) -> Callable[[Any], Any]:
    dtype = numpy_support.as_dtype(result.dtype)

    def caster(bar: Any) -> Any:
        if isinstance(bar, np.ndarray) and bar.dtype == dtype and bar.ndim == result.ndim:
            return bar
        if bar is None:
            return None
        cast = np.asarray(bar)
        if cast.ndim != result.ndim or not np.can_cast(cast.dtype, dtype, "same_kind"):
            raise _bar_mismatch(result, f"a {cast.ndim}-d array of {cast.dtype}")
        return cast.astype(dtype)

    return caster


def _tuple_caster(result: types.BaseTuple) -> Callable[[Any], Any]:
    casters = [bar_caster(item) for item in result.types]

    def caster(bar: Any) -> Any:
        if bar is None:
            return None
        if not isinstance(bar, tuple) or len(bar) != len(casters):
            raise _bar_mismatch(result, f"{bar!r:.60}")
        return tuple([cast(item) for cast, item in zip(casters, bar, strict=True)])

    return caster
