"""Builtin functions whose meaning is known at compile time, or that are operators by another name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.typed import List

from splitad.errors import SplitadError
from splitad.frontend import arrays, lists, merge, operators, scalars, structs
from splitad.frontend.allocation import sizes_of
from splitad.frontend.broadcast import broadcast
from splitad.frontend.constants import constant, tuple_type
from splitad.frontend.overloads import implementation
from splitad.frontend.pending import is_arrayish
from splitad.frontend.ranges import range_of, trip_count
from splitad.frontend.state import Context, describe
from splitad.frontend.values import (
    NONE,
    GrowVal,
    ListVal,
    RangeVal,
    TupleVal,
    Value,
    is_scalar,
)
from splitad.ir import nodes as ir
from splitad.ir.types import FULL_SLICES, TUPLE_SETITEM

Handler = Callable[[Context, list[Any], dict[str, Any], "types.Type | None", str], Any]
TUPLE_CLASS = type
_TABLE: dict[Any, Handler] = {}


def find(fn: Any) -> Handler | None:
    """The handler of a function, if it is one of these.  It may answer NotImplemented."""
    try:
        return _TABLE.get(fn)
    except TypeError:
        return None


def handles(*fns: Any) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for fn in fns:
            _TABLE[fn] = handler
        return handler

    return register


def overload_of(
    c: Context, fn: Any, args: list[Value], kwargs: dict[str, Value]
) -> Callable[..., Any] | None:
    """The implementation that the user gave a function by @overload or @register_jitable."""
    try:
        kinds = tuple(c.type_of(arg) for arg in args)
        named = {name: c.type_of(arg) for name, arg in kwargs.items()}
    except SplitadError:
        return None
    return implementation(fn, kinds, named)


# ---- sizes and ranges ------------------------------------------------------------------------------


@handles(len)
def _len(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    (value,) = args
    if isinstance(value, (TupleVal, ListVal)):
        return c.b.intp(len(value.items))
    if isinstance(value, GrowVal):
        return lists.length(c, value)
    if isinstance(value, RangeVal):
        zero = ir.Lit(0, value.length.type)
        return c.cast(scalars.prim(c, max, zero, value.length), types.intp, name)
    if isinstance(value, ir.Lit) and isinstance(value.value, str):
        return c.b.intp(len(value.value))
    if is_arrayish(value) or merge.is_slot(value):
        value = arrays.materialize(c.arrays, value)
        return c.arrays.shapes.dim(value, 0)
    c.refuse(f"The length of {describe(value)} is not supported.")


@handles(range)
def _range(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    for arg in args:
        if not is_scalar(arg):
            c.refuse(f"{describe(arg)} is an argument of range.")
    start, stop, step = range_of(c, args)
    return RangeVal(start, stop, step, trip_count(c, start, stop, step))


# ---- types -----------------------------------------------------------------------------------------


@handles(isinstance)
def _isinstance(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    literal = getattr(type, "literal_value", None)
    if isinstance(literal, bool):
        return ir.Lit(literal, types.boolean)
    c.refuse("isinstance is supported where Numba knows its answer at compile time.")


@handles(bool)
def _bool(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    return scalars.truth(c, args[0]) if args else ir.Lit(False, types.boolean)


@handles(complex)
def _complex(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if len(args) != 2 or not all(map(is_scalar, args)):
        return NotImplemented
    kind = types.unliteral(type) if type is not None else types.complex128
    part = kind.underlying_float
    return c.b.prim(complex, *(c.cast(a, part) for a in args), type=kind, name=name)


@handles(tuple)
def _tuple(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if not args:
        return TupleVal((), types.Tuple(()))
    (value,) = args
    if isinstance(value, TupleVal):
        return value if type is None else TupleVal(value.items, type)
    c.refuse("tuple() is supported of a tuple only.")


@handles(np.broadcast_shapes)
def _broadcast_shapes(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    return TupleVal(broadcast(c.arrays, [sizes_of(c.arrays, shape) for shape in args]), type)


@handles(TUPLE_SETITEM)
def _tuple_setitem(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    whole, k, item = args
    if not isinstance(whole, TupleVal) or not isinstance(k, ir.Lit):
        c.refuse("An item of a tuple is replaced at a place that is not known at compile time.")
    items = list(whole.items)
    items[k.value] = item
    return TupleVal(tuple(items), type)


@handles(FULL_SLICES)
def _full_slices(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    (count,) = args
    if not isinstance(count, ir.Lit):
        c.refuse("As many slices as there are dimensions: this number is not known.")
    return TupleVal((ir.Slice(None, None, None),) * count.value, type)


@handles(slice)
def _slice(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    bounds = [None if merge.same(arg, NONE) else arg for arg in args]
    if len(bounds) == 1:
        return ir.Slice(None, bounds[0], None)
    return ir.Slice(bounds[0], bounds[1], bounds[2] if len(bounds) > 2 else None)


@handles(str)
def _str(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if args and isinstance(args[0], ir.Lit) and isinstance(args[0].value, (str, int)):
        return constant(str(args[0].value))
    if args and is_scalar(args[0]):
        return scalars.prim(c, str, args[0], name=name)
    if args and isinstance(getattr(args[0], "type", None), types.UnicodeType):
        return args[0]
    c.refuse("str() is supported of numbers only.")


@handles(hasattr)
def _hasattr(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    literal = getattr(type, "literal_value", None)
    if isinstance(literal, bool):
        return ir.Lit(literal, types.boolean)
    c.refuse("hasattr is not supported here.")


@handles(getattr)
def _getattr(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    field = args[1]
    if isinstance(field, ir.Lit) and isinstance(field.value, str):
        return structs.attribute(c, args[0], field.value, type, name)
    c.refuse("getattr needs a constant name.")


# ---- numbers ---------------------------------------------------------------------------------------


def _folded(c: Context, fn: Callable[..., Any], array: Any, init: ir.Operand) -> ir.Operand:
    """fn(...fn(fn(init, array[0]), array[1])..., array[-1])"""
    array = arrays.materialize(c.arrays, array)

    def body(index: tuple[ir.Operand, ...], values: tuple[ir.Operand, ...]) -> list[ir.Operand]:
        item = c.b.load(array, *index, wraps=False)
        return [scalars.prim(c, fn, values[0], item, type=init.type)]

    return c.arrays.fold(c.arrays.shapes.dims(array), (init,), body)[0]


def _extremum(fn: Callable[..., Any]) -> Handler:
    def handler(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
        """Folded from the left, as Numba does it: the first of equals wins."""
        values: list[Any] = (
            list(args[0].items) if len(args) == 1 and isinstance(args[0], TupleVal) else args
        )
        if len(values) == 1 and is_arrayish(values[0]) and values[0].type.ndim == 1:
            array = arrays.materialize(c.arrays, values[0])
            size = c.arrays.shapes.dim(array, 0)
            empty = scalars.prim(c, operator.eq, size, c.b.intp(0))
            scalars.raise_if(c, empty, StopIteration)  # as Numba has it
            return _folded(c, fn, array, c.b.load(array, c.b.intp(0), wraps=False))
        if len(values) < 2 or not all(map(is_scalar, values)):
            return (
                NotImplemented
                if len(args) == 1
                else c.refuse(f"{fn.__name__} of other than numbers.")
            )
        result = values[0]
        for value in values[1:]:
            kind = merge.common_type(c, fn.__name__, result, value)
            result = c.b.prim(fn, c.cast(result, kind), c.cast(value, kind), type=kind, name=name)
        return result if type is None else c.cast(result, type, name)

    return handler


_TABLE[min], _TABLE[max] = _extremum(min), _extremum(max)


@handles(divmod)
def _divmod(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    kinds = tuple(type) if isinstance(type, types.BaseTuple) else (None, None)
    items = tuple(
        scalars.prim(c, fn, *args, type=kind)
        for fn, kind in zip((operator.floordiv, operator.mod), kinds, strict=True)
    )
    return TupleVal(items, tuple_type(items))  # type: ignore[arg-type]


@handles(pow)
def _pow(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if len(args) != 2:
        c.refuse("pow with a modulus is not supported.")
    return operators.binary(c, operator.pow, args[0], args[1], type, name)


@handles(operator.truediv)
def _truediv(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    return operators.binary(c, operator.truediv, args[0], args[1], type, name)


@handles(List)
def _list(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if args or kwargs:
        c.refuse("A typed list made of other values is not supported.", "Append them to List().")
    return lists.make(c, (), type)


@handles(sum)
def _sum(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if isinstance(value := lists.grown(c, args[0]), GrowVal):
        return lists.total(c, value, args[1] if len(args) > 1 else None, type)
    if is_arrayish(args[0]) and args[0].type.ndim == 1:
        start = args[1] if len(args) > 1 else c.b.intp(0)
        return _folded(c, operator.add, args[0], c.cast(start, type or args[0].type.dtype))
    if not isinstance(args[0], TupleVal):
        return NotImplemented
    total: Any = args[1] if len(args) > 1 else c.b.intp(0)
    items: tuple[Any, ...] = args[0].items
    for item in items:
        found = merge.common_type(c, "sum", total, item)
        total = scalars.prim(c, operator.add, total, item, type=found)
    return c.cast(total, type, name) if type is not None else total


@handles(abs)
def _abs(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if is_scalar(args[0]) and isinstance(types.unliteral(args[0].type), types.Boolean):
        return c.cast(args[0], type or types.intp, name)
    return NotImplemented


# ---- effects -----------------------------------------------------------------------------------------


@handles(print)
def _print(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    if kwargs:
        c.refuse("print takes positional arguments only.")
    for arg in args:
        if not isinstance(arg, (ir.Var, ir.Lit)) or arg is NONE:
            c.refuse(f"{describe(arg)} cannot be printed here.", "Print strings and numbers.")
    c.b.emit(ir.Print(tuple(args), loc=c.b.loc))
    return NONE
