"""Elementwise expressions that are not computed yet, as trees, and how they become one loop nest.

Numba fuses the operators and ufuncs of one expression into one loop over scalars; so do these.  The
types of intermediate values are therefore those of scalar operations (`float32_array * 2 + b` is
computed in double precision and rounded at the end), as in Numba.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

from numba.core import types

from splitad.frontend.array_context import ArrayContext, Index, is_array
from splitad.frontend.shapes import ONE
from splitad.frontend.state import cast_literal
from splitad.ir import nodes as ir


@dataclass(frozen=True)
class Leaf:
    """The element of an array."""

    array: ir.Var

    @property
    def type(self) -> types.Type:
        return self.array.type.dtype


@dataclass(frozen=True)
class Scalar:
    """The same value for all elements."""

    value: ir.Operand

    @property
    def type(self) -> types.Type:
        return types.unliteral(self.value.type)


@dataclass(frozen=True)
class Convert:
    arg: Expr
    type: types.Type


@dataclass(frozen=True)
class Op:
    """``fn(*args)``; raises: the exception for a last argument that is zero, or None."""

    fn: Callable[..., Any]
    args: tuple[Expr, ...]
    type: types.Type
    raises: tuple[type[BaseException], str] | None = None


Expr = Union[Leaf, Scalar, Convert, Op]


@dataclass(frozen=True, eq=False)
class LazyMap:
    """An array that is not computed yet: its elements, its sizes, and the type that Numba gives it."""

    expr: Expr
    sizes: tuple[ir.Operand, ...]
    type: types.Array


@dataclass(frozen=True, eq=False)
class Repeated(LazyMap):
    """np.broadcast_to of an array: as part of an expression it is read in place, by itself it is a view."""


def leaves(expr: Expr) -> Iterator[ir.Var]:
    """The arrays that an expression reads."""
    match expr:
        case Leaf(array):
            yield array
        case Convert(arg):
            yield from leaves(arg)
        case Op(_, args):
            for arg in args:
                yield from leaves(arg)


def converted(expr: Expr, type: types.Type) -> Expr:
    type = types.unliteral(type)
    if expr.type == type:
        return expr
    if isinstance(expr, Scalar) and isinstance(expr.value, ir.Lit):
        folded = cast_literal(expr.value.value, type)
        if folded is not None:
            return Scalar(ir.Lit(folded, type))
    return Convert(expr, type)


def is_array_like(value: Any) -> bool:
    return isinstance(value, LazyMap) or is_array(value)


def lazy_of(ctx: ArrayContext, value: Any) -> LazyMap:
    """An array or a pending expression, as an expression."""
    if isinstance(value, LazyMap):
        return value
    return LazyMap(Leaf(value), ctx.shapes.dims(value), value.type)


def expr_of(value: Any) -> Expr:
    """An operand of an elementwise operation that Numba fuses: as it is, before any rounding."""
    if isinstance(value, LazyMap):
        return value.expr
    return Leaf(value) if isinstance(value.type, types.Array) else Scalar(value)


def element_of(value: Any) -> Expr:
    """An operand of an operation that Numba does not fuse: rounded to the array's dtype first."""
    if isinstance(value, LazyMap):
        return converted(value.expr, value.type.dtype)
    return expr_of(value)


class Elements:
    """Computes expressions at an index, in loops over `sizes`.

    Create it before the loops: it prepares what does not depend on the index.
    """

    def __init__(
        self, ctx: ArrayContext, exprs: Sequence[Expr], sizes: Sequence[ir.Operand]
    ) -> None:
        self.ctx, self.sizes = ctx, tuple(sizes)
        self._strides: dict[str, tuple[ir.Operand | None, ...]] = {}
        for expr in exprs:
            for array in leaves(expr):
                self._prepare(array)

    def _prepare(self, array: ir.Var) -> None:
        """What each index is multiplied with: nothing (None), or 0 where the array has size one."""
        if array.name in self._strides:
            return
        ctx = self.ctx
        missing = len(self.sizes) - array.type.ndim
        strides: list[ir.Operand | None] = []
        for axis, key in enumerate(ctx.shapes.keys(array)):
            if key == ctx.shapes.key(self.sizes[axis + missing]):
                strides.append(None)
            elif key == ONE:
                strides.append(ctx.b.intp(0))
            elif isinstance(key, tuple) and key[0] == "lit":
                strides.append(None)
            else:
                wide = ctx.prim(operator.ne, ctx.shapes.dim(array, axis), ctx.b.intp(1))
                strides.append(ctx.b.cast(wide, types.intp, "stride"))
        self._strides[array.name] = tuple(strides)

    def at(self, index: Index, exprs: Sequence[Expr]) -> list[ir.Operand]:
        """The values at an index; each array is read once."""
        done: dict[Any, ir.Operand] = {}
        return [self._value(expr, index, done) for expr in exprs]

    def _value(self, expr: Expr, index: Index, done: dict[Any, ir.Operand]) -> ir.Operand:
        match expr:
            case Scalar(value):
                return value
            case Leaf(array):
                if array.name not in done:
                    done[array.name] = self._load(array, index)
                return done[array.name]
            case Convert(arg, type):
                return self.ctx.b.cast(self._value(arg, index, done), type)
        if id(expr) not in done:
            args = [self._value(arg, index, done) for arg in expr.args]
            done[id(expr)] = self._apply(expr, args)
        return done[id(expr)]

    def _apply(self, op: Op, args: list[ir.Operand]) -> ir.Operand:
        ctx = self.ctx
        if op.raises is not None:
            zero = ir.Lit(0, types.intp)
            is_zero = ctx.b.prim(operator.eq, args[-1], zero, type=types.boolean)
            ctx.raise_if(is_zero, *op.raises)
        return ctx.b.prim(op.fn, *args, type=op.type)

    def _load(self, array: ir.Var, index: Index) -> ir.Operand:
        ctx = self.ctx
        own = list(index[len(index) - array.type.ndim :])
        for axis, stride in enumerate(self._strides[array.name]):
            if isinstance(stride, ir.Lit):
                own[axis] = stride
            elif stride is not None:
                own[axis] = ctx.b.prim(operator.mul, own[axis], stride, type=types.intp, name="at")
        return ctx.b.load(array, *own, wraps=False)


def materialize(ctx: ArrayContext, value: Any, name: str = "a") -> Any:
    """The array itself where it is one; else a new one with the expression's values."""
    if not isinstance(value, LazyMap):
        return value
    if isinstance(value, Repeated):
        assert isinstance(value.expr, Leaf)
        return ctx.view(value.expr.array, "broadcast", value.sizes, value.type, name)
    out = ctx.alloc(value.sizes, value.type, name=name)
    expr = element_of(value)
    elements = Elements(ctx, [expr], value.sizes)
    with ctx.nest(value.sizes) as index:
        (result,) = elements.at(index, [expr])
        ctx.b.store(out, index, result, wraps=False)
    return out


def unrounded(ctx: ArrayContext, value: LazyMap) -> Any:
    """Its values computed now, but rounded to its dtype only where they are not operated on further."""
    wide = value.expr.type
    if wide == value.type.dtype or isinstance(value, Repeated):
        return materialize(ctx, value)
    array = materialize(ctx, LazyMap(value.expr, value.sizes, value.type.copy(dtype=wide)))
    return LazyMap(Leaf(array), value.sizes, value.type)
