"""Recursive calls: the function is not inlined again but called, with a pair of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numba.core import types

from splitad.frontend.state import Context, describe, tuple_types
from splitad.frontend.values import NONE, TupleVal, Value
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction, parts

_SCALAR = (types.Number, types.Boolean)


def call(
    c: Context, fn: Callable[..., Any], values: list[Value], flags: Any, returned: types.Type
) -> Value:
    """A call of a function that is being inlined already.

    values: one per parameter.  returned: what Numba says that it returns.
    """
    name = getattr(fn, "__name__", "the function")
    operands: list[ir.Operand] = []
    for value in values:
        kind = types.unliteral(getattr(value, "type", types.none))
        if not isinstance(value, (ir.Var, ir.Lit)) or not isinstance(kind, (*_SCALAR, types.Array)):
            c.refuse(
                f"{describe(value)} is an argument of the recursive function {name}.",
                "Pass numbers and arrays, or write it as a loop.",
            )
        operands.append(value)
    kinds = tuple(types.unliteral(o.type) for o in operands)
    results = [kind for kind, _ in parts(returned)]
    if not all(isinstance(t, (*_SCALAR, types.Array)) for t in results):
        c.refuse(
            f"The recursive function {name} returns {returned}.",
            "Let it return numbers and arrays, or tuples of them.",
        )
    outs = tuple(c.b.fresh(name, kind) for kind in results)
    for out in outs:
        if isinstance(out.type, types.Array):
            c.arrays.origins.fresh(out)
    target = RecursiveFunction(fn, kinds, flags, types.unliteral(returned))
    c.b.array_call(target, tuple(operands), outs)
    return _value(returned, iter(outs))


def _value(type: types.Type, outs: Iterator[ir.Var]) -> Value:
    """A result made of the call's outs."""
    if isinstance(type, types.BaseTuple):
        return TupleVal(tuple(_value(kind, outs) for kind in tuple_types(type)), type)
    return NONE if type == types.none else next(outs)
