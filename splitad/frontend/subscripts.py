"""Items of arrays, tuples, ranges and records."""

from __future__ import annotations

import ast
import operator
from typing import Any

from numba.core import types

from splitad.frontend import arrays, control, list_methods, lists, merge, scalars
from splitad.frontend.constants import tuple_type
from splitad.frontend.pending import is_arrayish, take
from splitad.frontend.state import Context, describe
from splitad.frontend.values import (
    NONE,
    TRUE,
    GrowVal,
    ListVal,
    PyVal,
    RangeVal,
    TupleVal,
    Value,
    is_lit,
)
from splitad.ir import nodes as ir


def getitem(
    c: Context,
    owner: ast.expr,
    index: ast.expr,
    type: types.Type | None,
    name: str,
    within: bool = False,
) -> Any:
    """``owner[index]``; within: a loop over the owner, so that the index is one."""
    base = take(c, owner)
    if is_arrayish(base):
        return arrays.getitem(c.arrays, base, entries(c, index), type)
    if isinstance(base, arrays.RecordVal):
        field = scalars.name_value(c, index)
        if is_lit(field) and isinstance(field.value, str):  # type: ignore[union-attr]
            return arrays.get_field(c.arrays, base, field.value)  # type: ignore[union-attr]
    if isinstance(base, (TupleVal, ListVal)):
        return tuple_item(c, base, index, type, name)
    if isinstance(base, GrowVal):
        if isinstance(index, ast.Slice):
            return list_methods.sliced(c, base, slice_of(c, index), type, id(index))
        return lists.getitem(c, base, scalars.operand(c, index), within)
    if isinstance(base, RangeVal):
        k = scalars.operand(c, index)
        kind = base.start.type
        scaled = scalars.prim(c, operator.mul, k, base.step, type=kind)
        return scalars.prim(c, operator.add, base.start, scaled, type=kind, name=name)
    c.refuse(f"{describe(base)} cannot be indexed here.")


def entries(c: Context, index: ast.expr) -> list[Any]:
    """The entries of an index of an array."""
    nodes = index.elts if isinstance(index, ast.Tuple) else [index]
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Slice):
            found.append(slice_of(c, node))
            continue
        if isinstance(node, ast.Constant) and node.value is ...:
            found.append("...")
            continue
        value = scalars.name_value(c, node)
        members = value.items if isinstance(value, TupleVal) else (value,)
        for member in members:
            found.append(ir.NewAxis() if merge.same(member, NONE) else _entry(c, member))
    return found


def _entry(c: Context, value: Value) -> Any:
    if isinstance(value, (ir.Var, ir.Lit, ir.Slice)):
        return value
    if isinstance(value, PyVal) and value.value is ...:
        return "..."
    if isinstance(value, ListVal):
        c.refuse("A list as an index is not supported.", "Make it an array.")
    c.refuse(f"{describe(value)} cannot be an index.")


def slice_of(c: Context, node: ast.Slice) -> ir.Slice:
    bounds: list[ir.Operand | None] = []
    for bound in (node.lower, node.upper, node.step):
        value = None if bound is None else scalars.operand(c, bound)
        bounds.append(None if value is None or merge.same(value, NONE) else value)
    return ir.Slice(*bounds)


def tuple_item(
    c: Context, base: TupleVal | ListVal, index: ast.expr, type: types.Type | None, name: str
) -> Value:
    items = base.items
    if isinstance(index, ast.Slice):
        bounds = slice_of(c, index)
        known = [getattr(b, "value", None) for b in (bounds.start, bounds.stop, bounds.step)]
        if any(isinstance(b, ir.Var) for b in (bounds.start, bounds.stop, bounds.step)):
            c.refuse("A slice of a tuple needs constant bounds.")
        part = items[slice(*known)]
        return TupleVal(part, type if isinstance(type, types.BaseTuple) else tuple_type(part))  # type: ignore[arg-type]
    k = scalars.operand(c, index)
    if isinstance(k, ir.Lit):
        if not -len(items) <= k.value < len(items):
            c.refuse("The index of a tuple is out of range.")
        return items[k.value]
    message = "getitem out of range" if isinstance(base, ListVal) else "tuple index out of range"
    return _pick(c, items, k, message)


def _pick(c: Context, items: tuple[Value, ...], k: ir.Operand, message: str) -> Value:
    """items[k] with k known at run time only: a chain of branches.  message: if k is out of range."""
    if not items:
        c.refuse("An empty tuple is indexed.")
    result = "%item"
    c.frame.names.pop(result, None)
    live = frozenset({result, *c.frame.names})

    def at(i: int) -> ir.Operand:
        def equal(n: int) -> ir.Operand:
            return scalars.prim(c, operator.eq, k, c.cast(c.b.intp(n), k.type))

        found = equal(i)
        if isinstance(k.type, types.Integer) and k.type.signed:
            found = scalars.either(c, found, equal(i - len(items)))
        return found

    def choose(i: int) -> None:
        if i == len(items):
            scalars.raise_if(c, TRUE, IndexError, message)
            return
        control.choose(c, at(i), lambda: c.set(result, items[i]), lambda: choose(i + 1), live)

    choose(0)
    return c.frame.names.pop(result)


def setitem(c: Context, target: ast.Subscript, value: ast.expr, writeback: bool) -> None:
    base: Any = scalars.name_value(c, target.value)
    new = take(c, value)
    if is_arrayish(base):
        if writeback and is_arrayish(new) and not _makes_copy(c, target.slice):
            return  # it was changed in place, through a view
        arrays.setitem(c.arrays, base, entries(c, target.slice), new)
        return
    if isinstance(base, arrays.RecordVal):
        field = scalars.name_value(c, target.slice)
        if is_lit(field) and isinstance(field.value, str):  # type: ignore[union-attr]
            arrays.set_field(c.arrays, base, field.value, new)  # type: ignore[union-attr]
            return
    if isinstance(base, GrowVal):
        if isinstance(target.slice, ast.Slice):
            c.refuse("Assigning to a slice of a list is not supported.", "Use an array.")
        lists.setitem(c, base, scalars.operand(c, target.slice), new)
        return
    c.refuse(f"Assigning to an item of {describe(base)} is not supported.")


def _makes_copy(c: Context, index: ast.expr) -> bool:
    """Whether an index picks by an array, so that what was changed in place is a copy."""
    return any(map(is_arrayish, entries(c, index)))
