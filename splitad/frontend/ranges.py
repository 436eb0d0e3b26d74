"""The bounds of ranges, and how many values they have."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from numba.core import types

from splitad.frontend import scalars
from splitad.frontend.state import Context
from splitad.frontend.values import TRUE
from splitad.ir import nodes as ir


def range_bounds(c: Context, stmt: ast.For) -> tuple[ir.Operand, ir.Operand, ir.Operand]:
    """start, stop and step, all of the counter's type."""
    assert isinstance(stmt.iter, ast.Call)
    return range_of(c, [scalars.operand(c, arg) for arg in stmt.iter.args])


def range_of(c: Context, values: list[ir.Operand]) -> tuple[ir.Operand, ir.Operand, ir.Operand]:
    """The same, of the arguments of a range."""
    start, stop, step = {
        1: lambda: (None, values[0], None),
        2: lambda: (values[0], values[1], None),
        3: lambda: (values[0], values[1], values[2]),
    }[len(values)]()
    kinds = {types.unliteral(v.type) for v in values}
    type = types.intp
    if kinds == {types.uint64}:
        type = types.uint64
    elif all(isinstance(k, types.Integer) and k.bitwidth <= 32 and k.signed for k in kinds):
        type = types.int32
    low = c.cast(start, type) if start is not None else ir.Lit(0, type)
    by = c.cast(step, type) if step is not None else ir.Lit(1, type)
    return low, c.cast(stop, type, "stop"), by


def is_number(operand: ir.Operand, value: int) -> bool:
    """Whether an operand is this constant."""
    return isinstance(operand, ir.Lit) and operand.value == value


def trip_count(c: Context, start: ir.Operand, stop: ir.Operand, step: ir.Operand) -> ir.Operand:
    """How many values the range has (negative or zero for none); raises like range for a step of zero."""
    type = start.type

    def op(fn: Callable[..., object], a: ir.Operand, b: ir.Operand) -> ir.Operand:
        return scalars.prim(c, fn, a, b, type=type, name="trip")

    distance = stop if is_number(start, 0) else op(operator.sub, stop, start)
    if is_number(step, 1):
        return distance
    one = ir.Lit(1, type)

    def rounded(up: Callable[..., object]) -> ir.Operand:
        # the floor of (distance + step - sign) / step
        down = operator.sub if up is operator.add else operator.add
        return op(operator.floordiv, op(down, op(operator.add, distance, step), one), step)

    if isinstance(step, ir.Lit):
        if step.value == 0:
            scalars.raise_if(c, TRUE, ValueError, "range() arg 3 must not be zero")
            return distance
        return rounded(operator.add if step.value > 0 else operator.sub)
    zero = ir.Lit(0, type)
    scalars.raise_if(
        c,
        scalars.prim(c, operator.eq, step, zero),
        ValueError,
        "range() arg 3 must not be zero",
    )
    up = scalars.prim(c, operator.gt, step, zero)
    return scalars.prim(
        c, c.ops.select, up, rounded(operator.add), rounded(operator.sub), name="trip"
    )
