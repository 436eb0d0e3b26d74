"""Operators and ufuncs on arrays, as elementwise expressions.

Numba rewrites operators on arrays into loops over *scalar* operators (so `x ** 2` is the scalar power),
with NumPy's treatment of a zero denominator; ufuncs called by name, in-place operators and `out=` use the
loops of the ufuncs, whose operands are converted first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import types

from splitad.errors import NoRuleError
from splitad.frontend.array_context import ArrayContext, is_array, is_scalar
from splitad.frontend.broadcast import broadcast
from splitad.frontend.elements import (
    Elements,
    Expr,
    LazyMap,
    Op,
    Scalar,
    converted,
    element_of,
    expr_of,
    lazy_of,
    leaves,
    materialize,
)
from splitad.frontend.values import is_none
from splitad.ir import nodes as ir
from splitad.ir.types import scalar_result, signature, ufunc_loop

Fn = Callable[..., Any]

UFUNC_OF: dict[Fn, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.true_divide,
    operator.floordiv: np.floor_divide,
    operator.mod: np.remainder,
    operator.pow: np.power,
    operator.lshift: np.left_shift,
    operator.rshift: np.right_shift,
    operator.and_: np.bitwise_and,
    operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
    operator.neg: np.negative,
    operator.pos: np.positive,
    operator.invert: np.invert,
}  # fmt: skip

PLAIN_OF: dict[Fn, Fn] = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod,
    operator.ipow: operator.pow,
    operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
    operator.iand: operator.and_,
    operator.ior: operator.or_,
    operator.ixor: operator.xor,
}

# Ufuncs whose loops do what the operator does on operands of one type.
_SAME_AS: dict[np.ufunc, Fn] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.negative: operator.neg,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
}


# ---- one operation on elements ----------------------------------------------------------------------


def apply(ctx: ArrayContext, fn: Fn, args: Sequence[Expr]) -> Expr:
    """``fn(*args)`` of elements, where fn is an operator or a ufunc."""
    kinds = tuple(arg.type for arg in args)
    if isinstance(fn, np.ufunc):
        loop = ufunc_loop(fn, kinds)
        if loop is None:
            ctx.refuse(f"{fn.__name__} of {', '.join(map(str, kinds))}")
        return apply_loop(ctx, fn, args, *loop)
    if fn is operator.pos:
        return args[0]
    if fn is operator.invert and kinds[0] == types.boolean:
        return Op(operator.not_, tuple(args), types.boolean)
    found = signature(fn, kinds)
    if found is None:
        ctx.refuse(f"{_name(fn)} of {', '.join(map(str, kinds))}")
    type, wanted = types.unliteral(found[0]), found[1]
    if fn is operator.truediv:
        return _divide(ctx, [converted(arg, type) for arg in args], type)
    if fn in (operator.floordiv, operator.mod):
        same = [converted(arg, type) for arg in args]
        if isinstance(type, types.Float):
            return _floor(ctx, fn, same, type)
        return Op(UFUNC_OF[fn], tuple(same), type)
    if fn is operator.pow and isinstance(args[1], Scalar) and isinstance(args[1].value, ir.Lit):
        wanted = (wanted[0], kinds[1])  # x ** 2 is multiplied out: the constant stays an int
    same = [converted(arg, kind) for arg, kind in zip(args, wanted, strict=True)]
    return Op(fn, tuple(same), type)


def apply_loop(
    ctx: ArrayContext,
    ufunc: np.ufunc,
    args: Sequence[Expr],
    kinds: Sequence[types.Type],
    out: types.Type,
) -> Expr:
    """A ufunc by one of its loops: operands of these types, and a result of that."""
    same = tuple(_ufunc_cast(arg, kind, ctx) for arg, kind in zip(args, kinds, strict=True))
    if ufunc is np.positive:
        return same[0]
    if ufunc is np.true_divide and not isinstance(out, types.Complex):
        return Op(ctx.ops.fdiv, same, out)
    fn: Fn = ufunc
    if ufunc in _SAME_AS and types.boolean not in kinds:
        fn = _SAME_AS[ufunc]
        natural = scalar_result(fn, tuple(kinds))
        if natural != out and natural is not None:  # int8 + int8 is an int64 as a scalar
            return converted(Op(fn, same, natural), out)
    return Op(fn, same, out)


def _ufunc_cast(arg: Expr, kind: types.Type, ctx: ArrayContext) -> Expr:
    if isinstance(arg.type, types.Complex) and not isinstance(kind, types.Complex):
        real = Op(ctx.ops.real, (arg,), arg.type.underlying_float)
        return converted(real, kind)
    return converted(arg, kind)


def _divide(ctx: ArrayContext, args: Sequence[Expr], type: types.Type) -> Expr:
    # Only the division of complex numbers keeps Python's exception in Numba's array expressions.
    is_complex = isinstance(type, types.Complex)
    raises = (ZeroDivisionError, "complex division by zero") if is_complex else None
    return Op(ctx.ops.fdiv, tuple(args), type, raises)


def _floor(ctx: ArrayContext, fn: Fn, args: Sequence[Expr], type: types.Type) -> Expr:
    """Floor division or remainder of floats with NumPy's result for a zero denominator."""
    num, den = args
    select = ctx.ops.select
    one, zero, nan = (Scalar(ir.Lit(value, type)) for value in (1.0, 0.0, float("nan")))
    is_zero = Op(operator.eq, (den, zero), types.boolean)
    regular = Op(fn, (num, Op(select, (is_zero, one, den), type)), type)
    singular: Expr = Op(ctx.ops.fdiv, (num, den), type) if fn is operator.floordiv else nan
    return Op(select, (is_zero, singular, regular), type)


def _name(fn: Fn) -> str:
    return getattr(fn, "__name__", repr(fn))


# ---- expressions ------------------------------------------------------------------------------------


def binop(
    ctx: ArrayContext, fn: Fn, left: Any, right: Any, result_type: types.Type
) -> LazyMap | ir.Operand:
    """``left fn right`` where at least one is an array (not matmul)."""
    return combine(ctx, fn, (left, right), result_type)


def unary(ctx: ArrayContext, fn: Fn, arg: Any, result_type: types.Type) -> LazyMap | ir.Operand:
    return combine(ctx, fn, (arg,), result_type)


def combine(
    ctx: ArrayContext, fn: Fn, args: Sequence[Any], result_type: types.Type
) -> LazyMap | ir.Operand:
    """An operator or ufunc of arrays and scalars, fused with what is pending in its operands."""
    if fn not in UFUNC_OF and not isinstance(fn, np.ufunc):
        raise NoRuleError(f"{_name(fn)} of arrays has no rule", ctx.b.loc)
    for arg in args:
        if not (isinstance(arg, LazyMap) or is_array(arg) or is_scalar(arg)):
            ctx.refuse(f"{_name(fn)} with an operand that is neither an array nor a number")
    return _map(ctx, apply(ctx, fn, [expr_of(arg) for arg in args]), args, result_type)


def _map(
    ctx: ArrayContext, expr: Expr, args: Sequence[Any], type: types.Type
) -> LazyMap | ir.Operand:
    arrays = [lazy_of(ctx, arg) for arg in args if not is_scalar(arg)]
    if not isinstance(type, types.Array):  # of 0-d arrays, Numba makes a scalar
        (value,) = Elements(ctx, [expr], ()).at((), [expr])
        return ctx.b.cast(value, type)
    return LazyMap(expr, broadcast(ctx, [array.sizes for array in arrays]), type)


def where(ctx: ArrayContext, args: Sequence[Any], result_type: types.Array) -> LazyMap | ir.Operand:
    """``np.where(cond, x, y)``"""
    cond, x, y = (element_of(arg) for arg in args)
    dtype = result_type.dtype
    picked = (converted(cond, types.boolean), converted(x, dtype), converted(y, dtype))
    return _map(ctx, Op(ctx.ops.select, picked, dtype), args, result_type)


def select(ctx: ArrayContext, args: Sequence[Any], result_type: types.Array) -> Any:
    """``np.select([c, d], [x, y], z)``: x where c, else y where d, else z; as large as x"""
    conditions, choices = (arg.items for arg in args[:2])
    if len(conditions) != len(choices):
        ctx.refuse("np.select with another number of conditions than of choices.")
    default = args[2] if len(args) > 2 else ctx.b.intp(0)
    if not is_scalar(default):
        ctx.refuse("np.select with a default that is not a number.")
    dtype = result_type.dtype
    expr = converted(element_of(default), dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        picked = (element_of(condition), converted(element_of(choice), dtype), expr)
        expr = Op(ctx.ops.select, picked, dtype)
    return _map(ctx, expr, (*choices, *conditions), result_type)


def clip(ctx: ArrayContext, args: Sequence[Any], result_type: types.Array) -> LazyMap:
    """``np.clip(a, low, high)``: Python's ``min(max(a, low), high)``, either bound may be None."""
    value, low, high = args
    if not isinstance(value, LazyMap) and not is_array(value):
        ctx.refuse("np.clip of something that is not an array")
    expr = element_of(value)
    for fn, bound in ((max, low), (min, high)):
        if is_none(bound):
            continue
        pair = (expr, element_of(bound))
        type = scalar_result(fn, tuple(part.type for part in pair))
        if type is None:
            ctx.refuse(f"np.clip of {expr.type} with a bound of type {pair[1].type}")
        expr = Op(fn, pair, type)
    arrays = [lazy_of(ctx, arg) for arg in args if not is_none(arg) and not is_scalar(arg)]
    sizes = broadcast(ctx, [array.sizes for array in arrays])
    mine = arrays[0].sizes
    if len(mine) != len(sizes) or any(
        not ctx.shapes.same(a, b) for a, b in zip(mine, sizes, strict=True)
    ):
        # Numba would write over the end of its result if a bound were the larger array.
        ctx.refuse("np.clip with bounds that are arrays of another shape")
    return LazyMap(converted(expr, result_type.dtype), sizes, result_type)


def astype(ctx: ArrayContext, value: Any, result_type: types.Array) -> LazyMap:
    source = lazy_of(ctx, value)
    return LazyMap(converted(element_of(value), result_type.dtype), source.sizes, result_type)


def cut_off(ctx: ArrayContext, value: Any, result_type: types.Array) -> LazyMap:
    """stop_gradient of an array: a copy, by the rule for its elements."""
    if not isinstance(value, LazyMap) and not is_array(value):
        ctx.refuse("stop_gradient of something that is neither a number nor an array")
    element = element_of(value)
    sizes = lazy_of(ctx, value).sizes
    return LazyMap(Op(ctx.ops.stop_gradient, (element,), element.type), sizes, result_type)


# ---- in place -----------------------------------------------------------------------------------


def inplace_binop(ctx: ArrayContext, fn: Fn, array: ir.Var, value: Any) -> None:
    """``array fn= value``: in place, in index order, without a copy, as Numba does it."""
    into(ctx, UFUNC_OF[PLAIN_OF.get(fn, fn)], (array, value), array)


def into(ctx: ArrayContext, ufunc: np.ufunc, args: Sequence[Any], out: ir.Var) -> None:
    """``ufunc(*args, out)``"""
    args = [_settled(ctx, arg, out) for arg in args]
    kinds = [arg.type.dtype if isinstance(arg.type, types.Array) else arg.type for arg in args]
    loop = ufunc_loop(ufunc, (*map(types.unliteral, kinds), out.type.dtype))
    if loop is None:
        ctx.refuse(f"{ufunc.__name__} into an array of {out.type.dtype}")
    expr = apply_loop(ctx, ufunc, [element_of(arg) for arg in args], *loop)
    expr = _ufunc_cast(expr, out.type.dtype, ctx)
    sizes = ctx.shapes.dims(out)
    for array in leaves(expr):
        _check_reach(ctx, array, sizes)
    elements = Elements(ctx, [expr], sizes)
    with ctx.nest(sizes, _loop_order([arg.type for arg in args])) as index:
        (result,) = elements.at(index, [expr])
        ctx.b.store(out, index, result, wraps=False)


def _settled(ctx: ArrayContext, arg: Any, out: ir.Var) -> Any:
    """A pending expression must be computed first if it reads what is about to be written.

    (Where it reads the very element that is written next, it need not.)
    """
    if isinstance(arg, LazyMap) and reads_other(ctx, arg, out):
        return materialize(ctx, arg)
    return arg


def reads_other(ctx: ArrayContext, lazy: LazyMap, out: ir.Var) -> bool:
    """Whether an expression may read elements of `out` at another index than it is computed for."""
    for array in leaves(lazy.expr):
        if not ctx.origins.may_overlap(array, out):
            continue
        if ctx.origins.same(array, out) and array.type.ndim == len(lazy.sizes):
            continue
        return True
    return False


def _loop_order(kinds: Sequence[types.Type]) -> str:
    """Numba loops in Fortran order if more of the inputs are."""
    layouts = [kind.layout for kind in kinds if isinstance(kind, types.Array)]
    return "F" if layouts.count("F") > layouts.count("C") else "C"


def _check_reach(ctx: ArrayContext, array: ir.Var, sizes: Sequence[ir.Operand]) -> None:
    """Numba does not check shapes here: it reads the elements there are, and beyond.

    A longer operand is used as far as needed; a shorter one, which plain Numba reads out of bounds, raises.
    """
    if array.type.ndim > len(sizes):
        ctx.refuse("an in-place operation whose operand has more dimensions than its target")
    b = ctx.b
    for have, want in zip(
        ctx.shapes.dims(array), sizes[len(sizes) - array.type.ndim :], strict=True
    ):
        if ctx.shapes.same(have, want) or (isinstance(have, ir.Lit) and have.value == 1):
            continue
        short = b.prim(operator.lt, have, want, type=types.boolean)
        wide = b.prim(operator.ne, have, b.intp(1), type=types.boolean)
        bad = b.prim(operator.and_, short, wide, type=types.boolean)
        ctx.raise_if(bad, ValueError, "operands could not be broadcast together")
