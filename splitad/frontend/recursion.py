"""Recursive calls: the function is not inlined again but called, with a pair of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numba.core import types

from splitad.frontend import merge, recursive_structs
from splitad.frontend.state import Context, describe, tuple_types
from splitad.frontend.values import NONE, StructVal, TupleVal, Value
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
    kinds: list[types.Type] = []
    structs = [value for value in values if isinstance(value, StructVal)]
    _refuse_same(c, structs, name)
    for value in values:
        if isinstance(value, StructVal):
            parts_of, types_of = recursive_structs.given(c, value)
            operands += parts_of
            kinds += types_of
            continue
        kind = types.unliteral(getattr(value, "type", types.none))
        if not isinstance(value, (ir.Var, ir.Lit)) or not isinstance(kind, (*_SCALAR, types.Array)):
            c.refuse(
                f"{describe(value)} is an argument of the recursive function {name}.",
                "Pass numbers, arrays and structs, or write it as a loop.",
            )
        operands.append(value)
        kinds.append(kind)
    results = [kind for kind, _ in parts(returned)]
    if not all(isinstance(t, (*_SCALAR, types.Array)) for t in results):
        c.refuse(
            f"The recursive function {name} returns {returned}.",
            "Let it return numbers and arrays, or tuples of them.",
        )
    outs = tuple(c.b.fresh(name, kind) for kind in results)
    changed = [change for struct in structs for change in recursive_structs.scalars(c, struct)]
    after = tuple(c.b.fresh(field, kind) for (_, field), kind in changed)
    for out in outs:
        if isinstance(out.type, types.Array):
            c.arrays.origins.fresh(out)
    target = RecursiveFunction(
        fn,
        tuple(kinds),
        flags,
        types.unliteral(returned),
        tuple(types.unliteral(value.type) for value in values),  # type: ignore[union-attr]
        tuple(isinstance(value, StructVal) and value.oid in c.roots for value in values),
        bool(structs),
    )
    c.b.array_call(target, tuple(operands), outs + after)
    for (key, _), out in zip(changed, after, strict=True):
        c.heap[key] = out
    return _value(returned, iter(outs))


def _value(type: types.Type, outs: Iterator[ir.Var]) -> Value:
    """A result made of the call's outs."""
    if isinstance(type, types.BaseTuple):
        return TupleVal(tuple(_value(kind, outs) for kind in tuple_types(type)), type)
    return NONE if type == types.none else next(outs)


def _refuse_same(c: Context, structs: list[StructVal], name: str) -> None:
    """One struct behind two parameters: what is assigned to one would not be seen in the other."""
    reached = [oid for struct in structs for oid in merge.objects(struct, c.heap)]
    if len(set(reached)) != len(reached):
        c.refuse(
            f"One struct is given twice to the recursive function {name}.",
            "Pass it once.",
        )
