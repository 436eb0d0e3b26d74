"""Operators and comparisons on any kind of value."""

from __future__ import annotations

import ast
import operator
from typing import Any

from numba.core import types

from splitad.frontend import arrays, lists, merge, scalars, structs
from splitad.frontend.constants import constant, tuple_type
from splitad.frontend.pending import is_arrayish, take
from splitad.frontend.state import Context, describe
from splitad.frontend.values import GrowVal, ListVal, StructVal, TupleVal, Value, is_lit
from splitad.ir import nodes as ir


def binary(c: Context, fn: Any, left: Any, right: Any, type: types.Type | None, name: str) -> Any:
    if is_arrayish(left) or is_arrayish(right):
        return arrays.binop(c.arrays, fn, left, right, type)
    if isinstance(left, TupleVal) and isinstance(right, TupleVal) and fn is operator.add:
        items = left.items + right.items
        return TupleVal(items, type if type is not None else tuple_type(items))  # type: ignore[arg-type]
    if isinstance(left, StructVal) or isinstance(right, StructVal):
        return structs.operator_method(c, fn, left, right)
    if isinstance(left, (GrowVal, ListVal)):
        return _list_operator(c, fn, lists.grown(c, left), lists.grown(c, right))
    if isinstance(left, TupleVal) and is_lit(right) and fn is operator.mul:
        items = left.items * right.value
        return TupleVal(items, tuple_type(items))  # type: ignore[arg-type]
    if is_lit(left) and is_lit(right) and isinstance(left.value, str):
        return constant(fn(left.value, right.value))
    if fn is operator.add and _is_text(left) and _is_text(right):
        return scalars.prim(c, fn, left, right, name=name)
    if merge.is_slot(left) and merge.is_slot(right):
        return scalars.binary(c, fn, left, right, type or left.type, name)
    c.refuse(f"{describe(left)} and {describe(right)} are operands of an operator here.")


def _is_text(value: Any) -> bool:
    return isinstance(getattr(value, "type", None), (types.UnicodeType, types.StringLiteral))


def _list_operator(c: Context, fn: Any, left: GrowVal, right: Any) -> Value:
    if fn is operator.mul and merge.is_slot(right):
        return lists.times(c, left, right)
    if fn is operator.add and isinstance(right, GrowVal):
        return lists.plus(c, left, right)
    c.refuse("This operator on lists is not supported.")


def unary(c: Context, fn: Any, arg: Any, type: types.Type | None, name: str) -> Any:
    if fn is operator.not_ and not is_arrayish(arg):
        return scalars.unary(c, fn, scalars.truth(c, arg), types.boolean, name)
    if is_arrayish(arg):
        return arrays.unary(c.arrays, fn, arg, type)
    if merge.is_slot(arg):
        return scalars.unary(c, fn, arg, type or arg.type, name)
    c.refuse(f"{describe(arg)} is the operand of an operator here.")


def compare(
    c: Context, op: ast.cmpop, left: ast.expr, right: ast.expr, type: types.Type | None, name: str
) -> Any:
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = scalars.is_same(c, scalars.name_value(c, left), scalars.name_value(c, right))
        return (
            same if isinstance(op, ast.Is) else scalars.unary(c, operator.not_, same, types.boolean)
        )
    if isinstance(op, (ast.In, ast.NotIn)):
        found = contains(c, scalars.name_value(c, left), scalars.name_value(c, right))
        return (
            found
            if isinstance(op, ast.In)
            else scalars.unary(c, operator.not_, found, types.boolean)
        )
    fn = scalars.COMPARE[op.__class__]
    one, other = take(c, left), take(c, right)
    if is_arrayish(one) or is_arrayish(other):
        return arrays.binop(c.arrays, fn, one, other, type)
    return scalars.compare(c, fn, one, other, name)


def contains(c: Context, item: Value, container: Value) -> ir.Operand:
    if isinstance(container, (TupleVal, ListVal)):
        found: ir.Operand = ir.Lit(False, types.boolean)
        for member in container.items:
            found = scalars.either(c, found, scalars.compare(c, operator.eq, item, member))
        return found
    if is_lit(item) and is_lit(container) and isinstance(container.value, str):  # type: ignore[union-attr]
        return ir.Lit(item.value in container.value, types.boolean)  # type: ignore[union-attr]
    c.refuse(f"`in` is supported for tuples, not for {describe(container)}.")
