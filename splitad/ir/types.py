"""Questions about types that Numba itself answers; the place for its private names in the IR's world."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.registry import cpu_target


def unify(*members: types.Type) -> types.Type | None:
    """The type that Numba gives a variable that is assigned all of these; None where there is none."""
    kinds = tuple(dict.fromkeys(types.unliteral(member) for member in members))
    return kinds[0] if len(kinds) == 1 else _unify(kinds)


@functools.lru_cache(maxsize=4096)
def _unify(kinds: tuple[types.Type, ...]) -> types.Type | None:
    found: types.Type | None = cpu_target.typing_context.unify_types(*kinds)
    return found


@functools.lru_cache(maxsize=8192)
def signature(
    fn: Callable[..., Any], args: tuple[types.Type, ...]
) -> tuple[types.Type, tuple[types.Type, ...]] | None:
    """(result type, types to which the arguments are cast) of a call; None where Numba has none."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        if _is_operator(fn):
            found = context.resolve_function_type(fn, args, {})
        else:
            found = context.resolve_function_type(context.resolve_value_type(fn), args, {})
    except numba.core.errors.NumbaError:
        return None
    if found is None:
        return None
    return found.return_type, tuple(found.args)


def _is_operator(fn: Callable[..., Any]) -> bool:
    return getattr(fn, "__module__", None) in ("_operator", "operator")


def type_of(value: object) -> types.Type:
    """Numba's type of a Python value; raises ValueError or a NumbaError where it has none."""
    found: types.Type = numba.typeof(value)
    return found


def is_float_like(type: types.Type) -> bool:
    """Whether a scalar of this type can carry a derivative."""
    return isinstance(types.unliteral(type), (types.Float, types.Complex))


def dtype_of(fn: object) -> types.Type | None:
    """The Numba type that calling `fn` converts to (np.float32, numba.float32, int, ...), or None."""
    if isinstance(fn, types.Type):
        return fn if isinstance(fn, (types.Number, types.Boolean)) else None
    builtin = {int: types.intp, float: types.float64, complex: types.complex128, bool: types.boolean}
    if isinstance(fn, type):
        if fn in builtin:
            return builtin[fn]
        if issubclass(fn, np.generic) and not issubclass(fn, (np.flexible, np.object_)):
            try:
                return numba.from_dtype(np.dtype(fn))
            except (numba.core.errors.NumbaError, TypeError):
                return None
    return None
