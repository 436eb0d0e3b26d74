"""np.concatenate, np.stack and their relatives: a new array, filled part by part."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import types

from splitad.frontend.allocation import argument
from splitad.frontend.array_context import ArrayContext, Index
from splitad.frontend.broadcast import Sizes
from splitad.frontend.elements import (
    Elements,
    LazyMap,
    converted,
    element_of,
    is_array_like,
    lazy_of,
)
from splitad.frontend.values import TupleVal
from splitad.ir import nodes as ir


def concatenate(
    ctx: ArrayContext, args: Sequence[Any], kwargs: Mapping[str, Any], type: types.Array
) -> ir.Var:
    axis = argument(ctx, args, kwargs, 1, "axis", ctx.b.intp(0))
    return _concatenate(ctx, _parts(ctx, args, "concatenate"), _axis(ctx, axis, type.ndim), type)


def stack(
    ctx: ArrayContext, args: Sequence[Any], kwargs: Mapping[str, Any], type: types.Array
) -> ir.Var:
    axis = argument(ctx, args, kwargs, 1, "axis", ctx.b.intp(0))
    return _stack(ctx, _parts(ctx, args, "stack"), _axis(ctx, axis, type.ndim), type)


def hstack(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    return _concatenate(ctx, _parts(ctx, args, "hstack"), min(type.ndim - 1, 1), type)


def vstack(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    parts = _parts(ctx, args, "vstack")
    if all(len(part.sizes) == 1 for part in parts):
        return _stack(ctx, parts, 0, type)
    return _concatenate(ctx, parts, 0, type)


def column_stack(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    parts = _parts(ctx, args, "column_stack")
    if all(len(part.sizes) == 1 for part in parts):
        return _stack(ctx, parts, 1, type)
    return _concatenate(ctx, parts, 1, type)


def dstack(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    parts = _parts(ctx, args, "dstack")
    if all(len(part.sizes) == 2 for part in parts):
        return _stack(ctx, parts, 2, type)
    if not all(len(part.sizes) == 1 for part in parts):
        return _concatenate(ctx, parts, 2, type)
    columns = _stack(ctx, parts, 1, type.copy(ndim=2, layout="C"))
    whole = ir.Slice(None, None, None)
    return ctx.view(columns, "index", (ir.NewAxis(), whole, whole), type)


def _parts(ctx: ArrayContext, args: Sequence[Any], name: str) -> list[LazyMap]:
    given = args[0] if args else None
    if not isinstance(given, TupleVal) or not given.items:
        ctx.refuse(f"np.{name} of something else than a tuple of arrays.")
    parts = []
    items: tuple[Any, ...] = given.items
    for item in items:
        if not is_array_like(item) or item.type.ndim == 0:
            ctx.refuse(f"np.{name} of something else than a tuple of arrays.")
        parts.append(lazy_of(ctx, item))
    return parts


def _axis(ctx: ArrayContext, axis: Any, ndim: int) -> int:
    if not isinstance(axis, ir.Lit) or not -ndim <= axis.value < ndim:
        ctx.refuse("The axis must be a constant in range.")
    return int(axis.value) % ndim


def _concatenate(
    ctx: ArrayContext, parts: Sequence[LazyMap], axis: int, type: types.Array
) -> ir.Var:
    if any(len(part.sizes) != type.ndim for part in parts):
        ctx.refuse("Arrays of different dimensions are joined.")
    sizes = list(parts[0].sizes)
    offsets: list[ir.Operand] = [ctx.b.intp(0)]
    for part in parts:
        _check_same(ctx, part.sizes, tuple(sizes), axis, "input sizes do not match")
        offsets.append(_add(ctx, offsets[-1], part.sizes[axis]))
    sizes[axis] = offsets[-1]
    out = ctx.alloc(sizes, type, name="joined")
    for part, offset in zip(parts, offsets, strict=False):

        def place(index: Index, offset: ir.Operand = offset) -> Index:
            return (*index[:axis], _add(ctx, index[axis], offset), *index[axis + 1 :])

        _fill(ctx, out, part, place)
    return out


def _stack(ctx: ArrayContext, parts: Sequence[LazyMap], axis: int, type: types.Array) -> ir.Var:
    for part in parts:
        if len(part.sizes) != type.ndim - 1:
            ctx.refuse("Arrays of different dimensions are joined.")
        _check_same(
            ctx, part.sizes, parts[0].sizes, -1, "all input arrays must have the same shape"
        )
    sizes = list(parts[0].sizes)
    sizes.insert(axis, ctx.b.intp(len(parts)))
    out = ctx.alloc(sizes, type, name="joined")
    for k, part in enumerate(parts):

        def place(index: Index, k: int = k) -> Index:
            return (*index[:axis], ctx.b.intp(k), *index[axis:])

        _fill(ctx, out, part, place)
    return out


def _fill(ctx: ArrayContext, out: ir.Var, part: LazyMap, place: Any) -> None:
    expr = converted(element_of(part), out.type.dtype)
    elements = Elements(ctx, [expr], part.sizes)
    with ctx.nest(part.sizes) as index:
        (value,) = elements.at(index, [expr])
        ctx.b.store(out, place(index), value, wraps=False)


def _check_same(ctx: ArrayContext, a: Sizes, b: Sizes, but: int, message: str) -> None:
    for axis, (x, y) in enumerate(zip(a, b, strict=True)):
        if axis != but and not ctx.shapes.same(x, y):
            differ = ctx.b.prim(operator.ne, x, y, type=types.boolean)
            ctx.raise_if(differ, ValueError, message)


def _add(ctx: ArrayContext, a: ir.Operand, b: ir.Operand) -> ir.Operand:
    if isinstance(a, ir.Lit) and isinstance(b, ir.Lit):
        return ctx.b.intp(a.value + b.value)
    for zero, other in ((a, b), (b, a)):
        if isinstance(zero, ir.Lit) and zero.value == 0:
            return other
    return ctx.b.prim(operator.add, a, b, type=types.intp, name="at")


JOINS = {
    np.concatenate: concatenate,
    np.stack: stack,
    np.hstack: hstack,
    np.vstack: vstack,
    np.column_stack: column_stack,
    np.dstack: dstack,
}
if hasattr(np, "row_stack"):
    JOINS[np.row_stack] = vstack
