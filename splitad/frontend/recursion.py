"""Recursive calls: the function is not inlined again but called, with a pair of its own."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from numba.core import types

from splitad.frontend import merge, recursive_structs
from splitad.frontend.normal import NormalFunction
from splitad.frontend.read import read
from splitad.frontend.state import Context, describe, tuple_types
from splitad.frontend.values import NONE, StructVal, TupleVal, Value
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction, parts
from splitad.ir.types import struct_fields

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
    same = _returned_argument(fn)
    if same is not None:
        returned = types.none  # the caller has it
    results = [kind for kind, _ in parts(returned)]
    if not all(isinstance(t, (*_SCALAR, types.Array)) for t in results):
        c.refuse(
            f"The recursive function {name} returns {returned}.",
            "Let it return numbers and arrays, or tuples and structs of them.",
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
        bool(structs) or recursive_structs.holds_struct(returned),
    )
    c.b.array_call(target, tuple(operands), outs + after)
    for (key, _), out in zip(changed, after, strict=True):
        c.heap[key] = out
    return _value(c, returned, iter(outs)) if same is None else values[same]


def _returned_argument(fn: Callable[..., Any]) -> int | None:
    """The position of the array or struct among the parameters that every `return` gives back: itself, or
    what a call of the function with it in this place returns."""
    normal = read(fn)
    nodes = [node for stmt in normal.body for node in ast.walk(stmt)]
    stores = Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    calls: dict[str, ast.Call] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as called):
                if stores[name] == 1 and _is_call_of(normal, called.func):
                    calls[name] = called
    given = {node.value.id if isinstance(node.value, ast.Name) else None
             for node in nodes if isinstance(node, ast.Return)}  # fmt: skip
    for position, name in enumerate(normal.args):
        if name in given and not stores[name] and not normal.vararg:
            others = given - {name}
            if all(
                other is not None and _passes(calls.get(other), position, name) for other in others
            ):
                return position
    return None


def _is_call_of(normal: NormalFunction, func: ast.expr) -> bool:
    if not isinstance(func, ast.Name):
        return False
    try:
        called = normal.resolve(func.id)
    except NameError:
        return False
    return getattr(called, "py_func", called) is normal.pyfunc


def _passes(call: ast.Call | None, position: int, name: str) -> bool:
    """Whether the call is given the variable in this position."""
    if call is None or any(isinstance(arg, ast.Starred) for arg in call.args):
        return False
    if position < len(call.args):
        arg = call.args[position]
        return isinstance(arg, ast.Name) and arg.id == name
    return any(
        k.arg == name and isinstance(k.value, ast.Name) and k.value.id == name
        for k in call.keywords
    )


def _value(c: Context, type: types.Type, outs: Iterator[ir.Var]) -> Value:
    """A result made of the call's outs."""
    fields = struct_fields(type)
    if fields is not None:
        made = c.new_object(type)
        for name, kind in fields.items():
            c.heap[(made.oid, name)] = _value(c, kind, outs)
        return made
    if isinstance(type, types.BaseTuple):
        return TupleVal(tuple(_value(c, kind, outs) for kind in tuple_types(type)), type)
    return NONE if type == types.none else next(outs)


def _refuse_same(c: Context, structs: list[StructVal], name: str) -> None:
    """One struct behind two parameters: what is assigned to one would not be seen in the other."""
    reached = [oid for struct in structs for oid in merge.objects(struct, c.heap)]
    if len(set(reached)) != len(reached):
        c.refuse(
            f"One struct is given twice to the recursive function {name}.",
            "Pass it once.",
        )
