"""Calls: functions with a rule stay calls; everything that has Python source is inlined."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.experimental.structref import StructRefProxy

from splitad.errors import NoRuleError, SplitadError
from splitad.frontend import (
    arrays,
    builtin_calls,
    list_methods,
    lists,
    merge,
    pathwise,
    scalars,
    structs,
)
from splitad.frontend.constants import constant
from splitad.frontend.inline import inline
from splitad.frontend.pending import is_arrayish, is_hashable, only_reads, settle, take
from splitad.frontend.source import SECOND, SECOND_HINT, is_derivative
from splitad.frontend.state import Context, describe
from splitad.frontend.substitutes import SUBSTITUTES
from splitad.frontend.values import (
    NONE,
    GrowVal,
    ListVal,
    MethodVal,
    PyVal,
    StructVal,
    TupleVal,
    Value,
    is_scalar,
)
from splitad.ir import nodes as ir
from splitad.ir.foreign import hashable
from splitad.ir.types import dtype_of

_RULE_HINT = "Register a rule for it with splitad.rule, or write it as an njit function."


def call(c: Context, node: ast.Call, type: types.Type | None, name: str) -> Any:
    """The value of a call (None for a call whose value is not used)."""
    fn = scalars.name_value(c, node.func)
    operands = [node.func]
    operands += [arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args]
    operands += [keyword.value for keyword in node.keywords]
    if not only_reads(c, fn, node):
        settle(c, tuple(operands), fused=True)
    if isinstance(fn, MethodVal) and isinstance(fn.owner, arrays.LazyMap):
        assert isinstance(node.func, ast.Name)
        c.frame.names.pop(node.func.id)  # it is not pending any more
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            spread = scalars.name_value(c, arg.value)
            if not isinstance(spread, (TupleVal, ListVal)):
                c.refuse(f"*{describe(spread)} in a call is not supported.")
            args += spread.items
        else:
            args.append(take(c, arg))
    kwargs = {str(keyword.arg): take(c, keyword.value) for keyword in node.keywords}
    site = id(node)
    if isinstance(fn, MethodVal):
        return method(c, fn, args, kwargs, type, name, site)
    if isinstance(fn, PyVal):
        return function(c, fn.value, args, kwargs, type, name, site)
    if isinstance(fn, StructVal) and "__call__" in getattr(fn.type, "jit_methods", {}):
        return structs.call_method(c, fn, "__call__", settled(c, args), kwargs, site)
    kind = getattr(fn, "type", None)
    if is_derivative(kind):
        c.refuse(f"A {kind} is called here. {SECOND}", SECOND_HINT)
    c.refuse(f"{describe(fn)} is called here.")


def settled(c: Context, args: list[Any]) -> list[Value]:
    return [arrays.materialize(c.arrays, arg) for arg in args]


def settled_kwargs(c: Context, kwargs: dict[str, Any]) -> dict[str, Value]:
    return {key: arrays.materialize(c.arrays, arg) for key, arg in kwargs.items()}


def method(
    c: Context,
    bound: MethodVal,
    args: list[Any],
    kwargs: dict[str, Any],
    type: types.Type | None,
    name: str,
    site: Any,
) -> Any:
    owner = bound.owner
    if isinstance(owner, StructVal):
        return structs.call_method(
            c, owner, bound.name, settled(c, args), settled_kwargs(c, kwargs), site
        )
    if is_arrayish(owner):
        same = arrays.function_of(bound.name)
        if same is not None:
            return function(c, same, [owner, *args], kwargs, type, name, site)
        return arrays.method(c.arrays, owner, bound.name, args, kwargs, type)
    if is_scalar(owner) and bound.name in ("conjugate", "conj") and not args:
        return scalars.prim(c, np.conj, owner, type=type, name=name)  # type: ignore[arg-type]
    if isinstance(owner, GrowVal):
        args = settled(c, args)
        helper = list_methods.find(bound.name, args, kwargs)
        if helper is not None:
            return list_methods.call(c, helper, [owner, *args], site)
        if kwargs:
            c.refuse(f"The method `{bound.name}` of a list is not supported with keywords.")
        return lists.method(c, owner, bound.name, args)
    c.refuse(f"The method `{bound.name}` of {describe(owner)} is not supported.")


def function(
    c: Context,
    fn: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    type: types.Type | None,
    name: str,
    site: Any,
) -> Any:
    """A call of a function, class or type known at compile time."""
    fn = hashable(fn)
    handler = builtin_calls.find(fn)
    if handler is not None:
        found = handler(c, args, kwargs, type, name)
        if found is not NotImplemented:
            return found
    if isinstance(fn, builtin_calls.TUPLE_CLASS) and hasattr(fn, "_fields"):
        return _namedtuple(c, fn, settled(c, args), settled_kwargs(c, kwargs), type)
    instance = getattr(fn, "class_type", None)
    if instance is not None and hasattr(instance, "instance_type"):
        return structs.construct(
            c, fn, settled(c, args), settled_kwargs(c, kwargs), instance.instance_type
        )
    if isinstance(fn, builtin_calls.TUPLE_CLASS) and issubclass(fn, StructRefProxy):
        return structs.construct(c, fn, settled(c, args), settled_kwargs(c, kwargs), type)
    kind = dtype_of(fn)
    if kind is not None and len(args) == 1 and is_scalar(args[0]):
        return c.cast(args[0], type if type is not None else kind, name)
    refusal = c.rules.refusal(fn) if isinstance(fn, Callable) and is_hashable(fn) else None  # type: ignore[arg-type]
    if refusal:
        c.refuse(refusal)
    if _is_random(fn):
        return _random(c, fn, args, kwargs, type, name)
    if any(isinstance(arg, GrowVal) for arg in args):
        if fn in (np.array, np.asarray) and not isinstance(type, types.List):
            return lists.to_array(c, args[0], type)
        if not _has_source(fn):
            c.refuse(
                f"{describe(PyVal(fn))} of a list is not supported.", "Make it an array first."
            )
    if isinstance(type, types.Array) or any(map(_touches_arrays, [*args, *kwargs.values()])):
        if is_hashable(fn) and arrays.handles(c.arrays, fn, args, kwargs):
            return arrays.call(c.arrays, fn, args, kwargs, type)
    elif is_hashable(fn) and c.rules.scalar_rule(fn) is not None:
        return scalar_call(c, fn, args, kwargs, type, name)
    if _has_source(fn):
        rule = c.rules.scalar_rule(fn)
        if rule is not None and rule.kind == "zero":  # its source says otherwise
            c.refuse(f"{fn.__name__} has a rule, which does not serve these arguments.")
        return inline(c, fn, settled(c, args), settled_kwargs(c, kwargs), site)
    if is_hashable(fn) and fn in SUBSTITUTES:
        return inline(c, SUBSTITUTES[fn], settled(c, args), settled_kwargs(c, kwargs), site)
    overload = builtin_calls.overload_of(c, fn, settled(c, args), settled_kwargs(c, kwargs))
    if overload is not None:
        return _inline_overload(c, fn, overload, args, kwargs, site)
    if is_hashable(fn) and c.rules.array_rule(fn) is not None:
        return arrays.call(c.arrays, fn, args, kwargs, type)
    if is_derivative(fn):
        c.refuse(f"{fn!r} is called here. {SECOND}", SECOND_HINT)
    raise NoRuleError(f"{describe(PyVal(fn))} has no rule.", c.b.loc, _RULE_HINT)


def _inline_overload(
    c: Context,
    fn: Callable[..., Any],
    overload: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    site: Any,
) -> Value:
    """The implementation of a function by ``@overload``; Numba's own may use what is not supported."""
    loc = c.b.loc
    try:
        return inline(c, overload, settled(c, args), settled_kwargs(c, kwargs), site)
    except SplitadError as error:
        if not getattr(overload, "__module__", "").startswith("numba."):
            raise
        reason = f"{describe(PyVal(fn))} has no rule, and Numba's source of it is not supported."
        raise NoRuleError(reason, loc, _RULE_HINT) from error


def _has_source(fn: Any) -> bool:
    """Whether it is an njit dispatcher: what plain njit would call, and we inline."""
    return hasattr(fn, "py_func") and hasattr(fn, "targetoptions")


def _touches_arrays(value: Any) -> bool:
    if isinstance(value, (TupleVal, ListVal)):
        return any(map(_touches_arrays, value.items)) or isinstance(value, ListVal)
    if isinstance(value, arrays.LazyMap):
        return True
    return merge.is_slot(value) and isinstance(value.type, types.Array)


def scalar_call(
    c: Context,
    fn: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    type: types.Type | None,
    name: str,
) -> Value:
    """A pure function of scalars that has a rule."""
    if kwargs:
        c.refuse(f"Keyword arguments of {fn.__name__} are not supported.")
    for arg in args:
        if not is_scalar(arg):
            c.refuse(f"{describe(arg)} is an argument of {fn.__name__} here.")
    if fn in (np.divide, np.true_divide):
        kind = type if type is not None else types.float64
        return c.b.prim(c.ops.fdiv, *(c.cast(a, kind) for a in args), type=kind, name=name)
    return scalars.prim(c, fn, *args, type=type, name=name)


# ---- random numbers ------------------------------------------------------------------------------------


# by __all__: the module random also holds math.sin and others for its own use
_RANDOM = {
    id(fn)
    for module in (np.random, random)
    for fn in map(module.__dict__.get, module.__all__)
    if callable(fn) and not isinstance(fn, builtin_calls.TUPLE_CLASS)
}


def _is_random(fn: Any) -> bool:
    return id(fn) in _RANDOM


def _random(
    c: Context,
    fn: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    type: types.Type | None,
    name: str,
) -> Value:
    """A draw; it is made once, in the forward."""
    if isinstance(type, types.Array) or any(map(_touches_arrays, args)):
        return arrays.call(c.arrays, fn, args, kwargs, type)  # type: ignore[no-any-return]
    if kwargs:
        bound = pathwise.bound(fn, args, kwargs)
        if bound is None:
            c.refuse(
                f"Keyword arguments of {fn.__name__} are not supported.", "Pass them by position."
            )
        args = bound
    for arg in args:
        if not is_scalar(arg):
            c.refuse(f"{describe(arg)} is an argument of {fn.__name__} here.")
    number = pathwise.drawn(c.b, fn, args)
    if number is not None:
        return number
    out = c.b.fresh(name, types.unliteral(type) if type is not None else types.none)
    c.b.emit(ir.Impure(out, fn, tuple(args), loc=c.b.loc))
    return NONE if out.type == types.none else out


def _namedtuple(
    c: Context, cls: Any, args: list[Value], kwargs: dict[str, Value], type: types.Type | None
) -> Value:
    bound = inspect.Signature(
        [inspect.Parameter(f, inspect.Parameter.POSITIONAL_OR_KEYWORD) for f in cls._fields]
    ).bind_partial(*args, **kwargs)
    defaults = cls._field_defaults
    items = tuple(
        bound.arguments[f] if f in bound.arguments else constant(defaults[f]) for f in cls._fields
    )
    if type is None:
        type = types.BaseTuple.from_types([types.unliteral(c.type_of(i)) for i in items], cls)
    return c.conform(TupleVal(items, None), type)  # type: ignore[arg-type]
