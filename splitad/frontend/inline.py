"""Calls of functions with Python source: their statements are lowered in the caller's place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types

from splitad.frontend import lists, recursion
from splitad.frontend.constants import constant
from splitad.frontend.jit_options import refused
from splitad.frontend.pending import shape_of
from splitad.frontend.read import read
from splitad.frontend.state import CompileFlags, Context, Frame
from splitad.frontend.typing import infer
from splitad.frontend.values import TupleVal, Value


def inline(
    c: Context,
    fn: Callable[..., Any],
    args: list[Value],
    kwargs: dict[str, Value],
    site: Any,
) -> Value:
    """A call of a function with Python source: its statements, lowered here."""
    normal = read(fn)
    pyfunc = normal.pyfunc
    args = [lists.grown(c, arg) for arg in args]
    values, kinds = bind_arguments(c, pyfunc, args, kwargs)
    flags = flags_of(c, fn, pyfunc)
    if pyfunc in c.active_calls:
        plain = tuple(
            types.unliteral(getattr(v, "type", k)) for v, k in zip(values, kinds, strict=True)
        )
        return recursion.call(c, fn, values, flags, _typed(normal, plain).return_type)
    typing = _typed(normal, tuple(kinds))
    frame = Frame(
        normal, typing, flags, path=(*c.frame.path, site), assigned=shape_of(normal).assigned
    )
    c.active_calls.append(pyfunc)
    before = c.b.loc
    try:
        return c.activate(c, frame, values)
    finally:
        c.active_calls.pop()
        c.b.loc = before


_typings: dict[Any, Any] = {}


def _typed(normal: Any, kinds: tuple[types.Type, ...]) -> Any:
    key = (normal, kinds)
    if key not in _typings:
        if len(_typings) > 1000:
            _typings.clear()
        _typings[key] = infer(normal, kinds)
    return _typings[key]


def flags_of(c: Context, fn: Any, pyfunc: Any) -> CompileFlags:
    """The options of the function called: its own, those of the function around an inner one."""
    options = getattr(fn, "targetoptions", None)
    if c.frame.flags.kernel:
        return c.frame.flags  # CUDA has one error model for all
    if options is None or pyfunc.__code__.co_filename.startswith("<inner function"):
        return c.frame.flags
    why = refused(fn)
    if why is not None:
        c.refuse(f"{why[0]}.", why[1])
    if options.get("boundscheck") and not c.frame.flags.boundscheck:
        c.refuse(
            "The function called here has boundscheck=True, and its caller has not.",
            "Give both the same option.",
        )
    return CompileFlags(
        error_model=options.get("error_model", "python"),
        parallel=c.frame.flags.parallel,
        boundscheck=c.frame.flags.boundscheck,
    )


def bind_arguments(
    c: Context, pyfunc: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], list[types.Type]]:
    """Values and types of a function's parameters, as Numba folds them."""
    signature = inspect.signature(pyfunc)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        c.refuse(f"The arguments of {pyfunc.__name__} do not fit: {error}.")
    values: list[Value] = []
    kinds: list[types.Type] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = tuple(bound.arguments.get(name, ()))
            kind = types.StarArgTuple.from_types([types.unliteral(c.type_of(v)) for v in rest])
            values.append(TupleVal(rest, kind))
            kinds.append(kind)
        elif name in bound.arguments:
            values.append(bound.arguments[name])
            kinds.append(c.type_of(bound.arguments[name]))
        else:
            values.append(c.freeze(constant(parameter.default)))
            kinds.append(types.Omitted(parameter.default))
    return values, kinds
