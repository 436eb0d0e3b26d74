"""Recursive calls: the function is not inlined again but called, with a pair of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from splitad.frontend.state import Context, describe
from splitad.frontend.values import NONE, TupleVal, Value
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction

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
    items = list(returned) if isinstance(returned, types.BaseTuple) else [returned]
    results = tuple(types.unliteral(t) for t in items if t != types.none)
    if not all(isinstance(t, _SCALAR) for t in results):
        c.refuse(
            f"The recursive function {name} returns {returned}.",
            "Let it return numbers, and write arrays into an argument.",
        )
    target = RecursiveFunction(fn, kinds, flags, results, isinstance(returned, types.BaseTuple))
    outs = tuple(c.b.fresh(name, kind) for kind in results)
    c.b.array_call(target, tuple(operands), outs)
    if not results:
        return NONE
    return TupleVal(outs, returned) if target.is_tuple else outs[0]
