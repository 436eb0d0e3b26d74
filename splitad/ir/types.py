"""What Numba's own typing says of an operation: the scalar types that a result has.

One of the few places where private names of Numba are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError as NumbaError  # for other parts too
from numba.core.registry import cpu_target
from numba.cpython.unsafe import tuple as unsafe_tuple
from numba.np import numpy_support

from splitad.ir.foreign import callable_of


@lru_cache(maxsize=4096)
def scalar_result(fn: Callable[..., Any], argtypes: tuple[types.Type, ...]) -> types.Type | None:
    """The type of ``fn(*args)`` for scalars of these types, as Numba infers it; None if it does not."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        function = context.resolve_value_type(callable_of(fn))
        signature = function.get_call_type(context, tuple(map(types.unliteral, argtypes)), {})
    except NumbaError:
        return None
    return None if signature is None else types.unliteral(signature.return_type)


@lru_cache(maxsize=4096)
def ufunc_loop(
    ufunc: np.ufunc, argtypes: tuple[types.Type, ...]
) -> tuple[tuple[types.Type, ...], types.Type] | None:
    """The loop that Numba picks for a ufunc: (types of the inputs, type of the result).

    argtypes: the element types of the inputs, then of an explicit output if there is one.
    """
    loop = numpy_support.ufunc_find_matching_loop(ufunc, tuple(map(types.unliteral, argtypes)))
    if loop is None or len(loop.outputs) != 1:
        return None
    return tuple(loop.inputs), loop.outputs[0]


def unify(argtypes: Sequence[types.Type]) -> types.Type | None:
    """The type that holds values of all these types, as Numba unifies them; None if there is none."""
    return cpu_target.typing_context.unify_types(*map(types.unliteral, argtypes))


@lru_cache(maxsize=8192)
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
            function = context.resolve_value_type(callable_of(fn))
            found = context.resolve_function_type(function, args, {})
    except NumbaError:
        return None
    if found is None:
        return None
    return found.return_type, tuple(found.args)


# What Numba's own sources use of Numba: a tuple with another item, and ``(slice(None),) * n``.
TUPLE_SETITEM, FULL_SLICES = unsafe_tuple.tuple_setitem, unsafe_tuple.build_full_slice_tuple


def _is_operator(fn: Callable[..., Any]) -> bool:
    return getattr(fn, "__module__", None) in ("_operator", "operator")


def type_of(value: object) -> types.Type:
    """Numba's type of a Python value; raises ValueError or a NumbaError where it has none."""
    try:
        found: types.Type = numba.typeof(value)
    except ValueError:  # a function that Numba knows by name only
        found = cpu_target.typing_context.resolve_value_type(value)
    return found


def has_overload(fn: Callable[..., Any]) -> bool:
    """Whether Numba knows a plain Python function by an ``@overload``."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        context.resolve_value_type(fn)
    except (ValueError, NumbaError):
        return False
    return True


def numpy_dtype(type: types.Type) -> np.dtype[Any]:
    """The NumPy dtype of a scalar or record type."""
    found: np.dtype[Any] = numpy_support.as_dtype(type)
    return found


def is_float_like(type: types.Type) -> bool:
    """Whether a scalar of this type can carry a derivative."""
    return isinstance(types.unliteral(type), (types.Float, types.Complex))


def dtype_of(fn: object) -> types.Type | None:
    """The Numba type that calling `fn` converts to (np.float32, numba.float32, int, ...), or None."""
    if isinstance(fn, types.Type):
        return fn if isinstance(fn, (types.Number, types.Boolean)) else None
    builtin = {
        int: types.intp,
        float: types.float64,
        complex: types.complex128,
        bool: types.boolean,
    }
    if isinstance(fn, type):
        if fn in builtin:
            return builtin[fn]
        if issubclass(fn, np.generic) and not issubclass(fn, (np.flexible, np.object_)):
            try:
                return numba.from_dtype(np.dtype(fn))
            except (NumbaError, TypeError):
                return None
    return None


def overload_dispatcher(
    fn: Callable[..., Any],
    args: tuple[types.Type, ...],
    kwargs: Mapping[str, types.Type] | None = None,
) -> Callable[..., Any] | None:
    """The dispatcher by which an ``@overload`` implements fn for these types; None where none does."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        function = context.resolve_value_type(callable_of(fn))
    except NumbaError:
        return None
    for template in getattr(function, "templates", ()):
        if not hasattr(template, "_get_impl"):
            continue
        try:
            dispatcher, _ = template(context)._get_impl(args, dict(kwargs or {}))
        except (NumbaError, TypeError):
            continue
        if hasattr(dispatcher, "py_func"):
            return dispatcher  # type: ignore[no-any-return]
    return None


def struct_fields(type: types.Type) -> dict[str, types.Type] | None:
    """The fields of a jitclass or structref type, by name; None for other types."""
    if isinstance(type, types.ClassInstanceType):
        return dict(type.struct)
    if isinstance(type, types.StructRef):
        return dict(type.field_dict)
    return None


def part_overload(type: types.Type, name: str) -> Callable[..., Any] | None:
    """The function decorated with ``@overload_method`` or ``@overload_attribute`` for ``type.name``."""
    context = cpu_target.typing_context
    context.refresh()
    for template in context._get_attribute_templates(type):
        if getattr(template, "_attr", None) == name and hasattr(template, "_overload_func"):
            return template._overload_func  # type: ignore[no-any-return]
    return None
