"""Operations on scalars: Prims whose operands have the types that Numba would convert them to."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from splitad.errors import InternalError
from splitad.frontend.constants import constant
from splitad.frontend.elements import LazyMap, materialize
from splitad.frontend.state import Context, describe
from splitad.frontend.values import (
    GrowVal,
    ListVal,
    PyVal,
    RangeVal,
    StructVal,
    TupleVal,
    Value,
    is_none,
    is_scalar,
)
from splitad.ir import nodes as ir
from splitad.ir.types import signature

Fn = Callable[..., Any]

BINARY: dict[type[ast.operator], Fn] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
UNARY: dict[type[ast.unaryop], Fn] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
COMPARE: dict[type[ast.cmpop], Fn] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
# folded when both operands are known, so that `x.ndim - 1` can index a tuple
_FOLDED = {
    operator.add,
    operator.sub,
    operator.mul,
    operator.neg,
    operator.not_,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
}  # fmt: skip


# ---- names and atoms -----------------------------------------------------------------------------


def name_value(c: Context, node: ast.expr) -> Value:
    """The value of an atom."""
    if isinstance(node, ast.Constant):
        return constant(node.value)
    assert isinstance(node, ast.Name), ast.dump(node)
    value = c.get(node.id)
    if value is None:
        return resolve(c, node.id)
    if isinstance(value, LazyMap):
        value = materialize(c.arrays, value)
        c.set(node.id, value)
    return value


def resolve(c: Context, name: str) -> Value:
    """What a name that is not a local stands for."""
    if name in c.frame.assigned:
        c.refuse(f"`{name}` is used here before it is assigned.")
    try:
        return c.freeze(constant(c.frame.normal.resolve(name)))
    except NameError:
        c.refuse(f"`{name}` is not defined here.")


def operand(c: Context, node: ast.expr) -> ir.Operand:
    """An atom that must be a scalar or an array."""
    value = name_value(c, node)
    if not isinstance(value, (ir.Var, ir.Lit)):
        c.refuse(f"{describe(value)} is used as a number here.")
    return value


# ---- operations ------------------------------------------------------------------------------------


def prim(
    c: Context,
    fn: Fn,
    *args: ir.Operand,
    type: types.Type | None = None,
    name: str = "t",
) -> ir.Operand:
    """``fn(*args)`` converted to `type`, which is by default what Numba gives it."""
    if fn in _FOLDED and all(_known_int(arg) for arg in args):
        value = fn(*(arg.value for arg in args))  # type: ignore[union-attr]
        if isinstance(value, bool):
            return ir.Lit(value, types.boolean)
        if -(2**63) <= value < 2**63:
            return c.cast(ir.Lit(value, types.intp), type or types.intp, name)
    kinds = tuple(arg.type for arg in args)
    found = signature(fn, kinds)
    if found is None:
        raise InternalError(f"{fn!r} has no type for {kinds}", c.b.loc)
    result, wanted = found
    if len(wanted) == len(args):
        args = tuple(
            c.cast(arg, kind)
            if _is_number(arg.type) and _is_number(kind) and not _is_static_power(fn, arg)
            else arg
            for arg, kind in zip(args, wanted, strict=True)
        )
    if isinstance(fn, np.ufunc) and isinstance(result, (types.Float, types.Complex)):
        args = tuple(
            c.cast(arg, result)
            if isinstance(arg.type, types.Float) and isinstance(result, types.Float)
            else arg
            for arg in args
        )
    out = c.b.prim(fn, *args, type=types.unliteral(result), name=name)
    return out if type is None else c.cast(out, type, name)


def _known_int(arg: ir.Operand) -> bool:
    return (
        isinstance(arg, ir.Lit)
        and isinstance(arg.value, (int, str))
        and types.unliteral(arg.type) in (types.intp, types.boolean, types.unicode_type)
    )


def _is_number(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), (types.Number, types.Boolean))


def _is_static_power(fn: Fn, arg: ir.Operand) -> bool:
    # x ** 2 with a constant exponent is multiplied out by Numba: keep the constant an int
    return fn is operator.pow and isinstance(arg, ir.Lit) and isinstance(arg.value, int)


def binary(
    c: Context, fn: Fn, left: ir.Operand, right: ir.Operand, type: types.Type, name: str = "t"
) -> ir.Operand:
    """A binary operator on two scalars."""
    if fn is operator.truediv:
        return divide(c, left, right, type, name)
    return prim(c, fn, left, right, type=type, name=name)


def divide(
    c: Context, num: ir.Operand, den: ir.Operand, type: types.Type, name: str = "t"
) -> ir.Operand:
    """``num / den``: under Python's error model the test for zero is a statement of its own."""
    found = signature(operator.truediv, (num.type, den.type))
    result = types.unliteral(found[0]) if found else type
    num, den = c.cast(num, result), c.cast(den, result)
    if c.frame.flags.error_model == "python":
        if isinstance(den, ir.Lit):
            is_zero: ir.Operand = ir.Lit(den.value == 0, types.boolean)
        else:
            is_zero = prim(c, operator.eq, den, c.cast(ir.Lit(0, types.intp), result))
        raise_if(c, is_zero, ZeroDivisionError, _zero_message(result))
    out = c.b.prim(c.ops.fdiv, num, den, type=result, name=name)
    return c.cast(out, type, name)


def _zero_message(type: types.Type) -> str:
    is_complex = isinstance(type, types.Complex)
    return "complex division by zero" if is_complex else "division by zero"


def raise_if(c: Context, cond: ir.Operand, exc: type[BaseException], message: str = "") -> None:
    """Raises when the condition holds; the flow goes on otherwise."""
    if isinstance(cond, ir.Lit) and not cond.value:
        return
    args = (ir.Lit(message, types.unicode_type),) if message else ()
    if isinstance(cond, ir.Lit):
        c.b.emit(ir.Raise(exc, args, loc=c.b.loc))
        c.dead = True
        return
    with c.b.block() as stmts:
        c.b.emit(ir.Raise(exc, args, loc=c.b.loc))
    c.b.emit(ir.If(cond, ir.Block(tuple(stmts)), ir.Block(()), (), loc=c.b.loc))


def unary(c: Context, fn: Fn, arg: ir.Operand, type: types.Type, name: str = "t") -> ir.Operand:
    if fn is operator.not_:
        cond = truth(c, arg)
        return prim(c, fn, cond, name=name)
    if fn is operator.pos and types.unliteral(arg.type) == types.unliteral(type):
        return arg
    return prim(c, fn, arg, type=type, name=name)


def truth(c: Context, value: Value) -> ir.Operand:
    """The value as a condition; a literal where it is known."""
    if isinstance(value, ir.Lit) and value.value is not ir.UNDEF:
        if isinstance(value.value, np.ndarray):
            c.refuse("The truth value of an array is not supported.")
        return ir.Lit(bool(value.value), types.boolean)
    if is_scalar(value):
        assert isinstance(value, (ir.Var, ir.Lit))
        if types.unliteral(value.type) == types.boolean:
            return value
        if isinstance(value.type, types.Complex):
            return prim(c, operator.ne, value, ir.Lit(0j, value.type), name="cond")
        return c.b.cast(value, types.boolean, "cond")
    if isinstance(value, (TupleVal, ListVal)):
        return ir.Lit(bool(value.items), types.boolean)
    if isinstance(value, RangeVal):
        return prim(c, operator.gt, value.length, c.b.intp(0), name="cond")
    if isinstance(value, GrowVal):
        return prim(c, operator.gt, c.heap[(value.oid, "len")], c.b.intp(0), name="cond")  # type: ignore[arg-type]
    c.refuse(f"{describe(value)} is used as a condition.")


# ---- comparison ------------------------------------------------------------------------------------


def is_same(c: Context, left: Value, right: Value) -> ir.Operand:
    """``left is right``: known at compile time."""
    if is_none(left) or is_none(right):
        return ir.Lit(is_none(left) and is_none(right), types.boolean)
    if isinstance(left, (StructVal, PyVal)) and isinstance(right, (StructVal, PyVal)):
        if isinstance(left, StructVal) and isinstance(right, StructVal) and left != right:
            if left.oid in c.roots and right.oid in c.roots and left.type == right.type:
                c.refuse("Whether two arguments are the same object is not known.")
        return ir.Lit(left == right, types.boolean)
    if is_scalar(left) and is_scalar(right):
        booleans = [v.type for v in (left, right) if types.unliteral(v.type) == types.boolean]  # type: ignore[union-attr]
        if len(booleans) == 2:
            return prim(c, operator.eq, left, right)  # type: ignore[arg-type]
    c.refuse("`is` is supported for None, objects and bools only.", "Use == to compare values.")


def compare(c: Context, fn: Fn, left: Value, right: Value, name: str = "t") -> ir.Operand:
    """A comparison of scalars, strings, tuples or compile-time objects."""
    if isinstance(left, TupleVal) and isinstance(right, TupleVal):
        return _compare_tuples(c, fn, left, right)
    if isinstance(left, PyVal) and isinstance(right, PyVal) and fn in (operator.eq, operator.ne):
        return ir.Lit(bool(fn(left.value, right.value)), types.boolean)
    if (is_none(left) or is_none(right)) and fn in (operator.eq, operator.ne):
        both = is_none(left) and is_none(right)
        return ir.Lit(both == (fn is operator.eq), types.boolean)
    if isinstance(left, (ir.Var, ir.Lit)) and isinstance(right, (ir.Var, ir.Lit)):
        if any(
            isinstance(v.type, types.UnicodeType) and isinstance(v, ir.Var) for v in (left, right)
        ):
            # the pullback does not know the string: it must not compare again
            out = c.b.fresh(name, types.boolean)
            c.b.emit(ir.Impure(out, fn, (left, right), loc=c.b.loc))
            return out
        return prim(c, fn, left, right, name=name)
    c.refuse(f"{describe(left)} cannot be compared here.")


def _compare_tuples(c: Context, fn: Fn, left: TupleVal, right: TupleVal) -> ir.Operand:
    if fn not in (operator.eq, operator.ne):
        return _order(c, fn, left.items, right.items)
    result: ir.Operand = ir.Lit(len(left.items) == len(right.items), types.boolean)
    if result.value:  # type: ignore[union-attr]
        for a, b in zip(left.items, right.items, strict=True):
            result = both(c, result, compare(c, operator.eq, a, b))
    return result if fn is operator.eq else prim(c, operator.not_, result)


def _order(c: Context, fn: Fn, left: tuple[Value, ...], right: tuple[Value, ...]) -> ir.Operand:
    """``left < right`` and the like, item by item."""
    if not left or not right:
        return ir.Lit(bool(fn(len(left), len(right))), types.boolean)
    strict = operator.lt if fn in (operator.lt, operator.le) else operator.gt
    rest = both(c, compare(c, operator.eq, left[0], right[0]), _order(c, fn, left[1:], right[1:]))
    return either(c, compare(c, strict, left[0], right[0]), rest)


def both(c: Context, a: ir.Operand, b: ir.Operand) -> ir.Operand:
    """``a and b`` of two bools that are both computed."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, ir.Lit):
            return other if one.value else one
    return prim(c, operator.and_, a, b)


def either(c: Context, a: ir.Operand, b: ir.Operand) -> ir.Operand:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, ir.Lit):
            return one if one.value else other
    return prim(c, operator.or_, a, b)
