"""The sizes of an elementwise result, with the checks that Numba makes at run time."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence

from numba.core import types

from splitad.frontend.array_context import ArrayContext
from splitad.frontend.shapes import ONE
from splitad.ir import nodes as ir

Sizes = tuple[ir.Operand, ...]

MISMATCH = "unable to broadcast an argument to the output array"


def broadcast(ctx: ArrayContext, all_sizes: Sequence[Sizes], message: str = MISMATCH) -> Sizes:
    """The sizes that arrays of these sizes have together; raises ValueError where they do not fit."""
    ndim = max((len(sizes) for sizes in all_sizes), default=0)
    result: list[ir.Operand] = [ctx.b.intp(1)] * ndim
    for sizes in all_sizes:
        for axis, size in enumerate(sizes, ndim - len(sizes)):
            result[axis] = _together(ctx, result[axis], size, message)
    return tuple(result)


def _together(ctx: ArrayContext, a: ir.Operand, b: ir.Operand, message: str) -> ir.Operand:
    shapes = ctx.shapes
    key_a, key_b = shapes.key(a), shapes.key(b)
    if key_a == key_b or key_b == ONE:
        return a
    if key_a == ONE:
        return b
    parts = _parts(key_a) | _parts(key_b)
    if parts in (_parts(key_a), _parts(key_b)):  # it takes part already
        return a if parts == _parts(key_a) else b
    key = ("broadcast", parts)
    known = shapes.operand(key)  # then the check has been made as well
    if known is not None:
        return known
    one = ctx.b.intp(1)
    differ = ctx.b.prim(operator.ne, a, b, type=types.boolean)
    for size in (a, b):
        if not isinstance(size, ir.Lit):
            wide = ctx.b.prim(operator.ne, size, one, type=types.boolean)
            differ = ctx.b.prim(operator.and_, differ, wide, type=types.boolean)
    ctx.raise_if(differ, ValueError, message)
    if isinstance(a, ir.Lit) or isinstance(b, ir.Lit):  # a number that is not one
        return a if isinstance(a, ir.Lit) else b
    narrow = ctx.b.prim(operator.eq, a, one, type=types.boolean)
    out = ctx.select(narrow, b, a, name="n")
    shapes.remember(key, out)
    return out


def _parts(key: Hashable) -> frozenset[Hashable]:
    if isinstance(key, tuple) and key[0] == "broadcast":
        return key[1]
    return frozenset({key})


def check_fits(
    ctx: ArrayContext, source: Sizes, target: Sizes, message: str = "cannot assign slice from input"
) -> Sizes:
    """ValueError unless source can be assigned to target; returns source's sizes, without leading ones."""
    extra = max(len(source) - len(target), 0)
    b = ctx.b
    for size in source[:extra]:
        if ctx.shapes.key(size) != ONE:
            wide = b.prim(operator.ne, size, b.intp(1), type=types.boolean)
            ctx.raise_if(wide, ValueError, message)
    rest = source[extra:]
    for have, want in zip(rest, target[len(target) - len(rest) :], strict=True):
        if ctx.shapes.key(have) in (ctx.shapes.key(want), ONE):
            continue
        wrong = b.prim(operator.ne, have, want, type=types.boolean)
        if not isinstance(have, ir.Lit):
            wide = b.prim(operator.ne, have, b.intp(1), type=types.boolean)
            wrong = b.prim(operator.and_, wrong, wide, type=types.boolean)
        ctx.raise_if(wrong, ValueError, message)
    return rest
