"""Computes equal values once, and takes what was just stored instead of loading it.

    a = x[i]                          a = x[i]
    b = mul(a, a)                     b = mul(a, a)
    y[i] = b                 ->       y[i] = b
    c = x[i]                          c = x[i]          (where y may be x)
    d = mul(a, a)
    e = y[i]                          e = b
    f = add(d, e)                     f = add(b, b)

Values of enclosing blocks count.  A load is known until something that may share its array's memory is
written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from numba import types

from splitad.analysis.memory import is_array, memory
from splitad.analysis.scopes import scopes
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.rules import registry

# Keys of pure statements to the value that they have; (array, index) to what is in that element.
Pure = dict[tuple[object, ...], ir.Var]
Elements = dict[tuple[ir.Operand, tuple[ir.Operand, ...]], ir.Operand]


def run(fn: ir.Function, args_alias: bool = True) -> ir.Function:
    """args_alias: the arguments may overlap each other."""
    numbering = _Numbering(fn, args_alias)
    body = numbering.block(fn.body, {}, {})
    return walk.substitute(dataclasses.replace(fn, body=body), numbering.same)


class _Numbering:
    """same: a variable that went to the one that has its value."""

    def __init__(self, fn: ir.Function, args_alias: bool) -> None:
        self.facts = memory(fn, scopes(fn), {}, args_alias)
        self.same: dict[ir.Var, ir.Operand] = {}

    def get(self, operand: ir.Operand) -> ir.Operand:
        return self.same.get(operand, operand) if isinstance(operand, ir.Var) else operand

    def block(self, block: ir.Block, pure: Pure, elements: Elements) -> ir.Block:
        """pure: what is known around the block.  elements: likewise, and changed as the block goes."""
        stmts: list[ir.Stmt] = []
        pure = dict(pure)
        for stmt in block.stmts:
            stmt = walk.map_operands(stmt, self.get)
            match stmt:
                case ir.Prim() | ir.Cast() | ir.Dim() | ir.View():
                    key = _key(stmt)
                    if key is not None and key in pure:
                        self.same[stmt.out] = pure[key]
                        continue
                    if key is not None:
                        pure[key] = stmt.out
                case ir.Load():
                    place = (stmt.array, stmt.index)
                    if place in elements:
                        self.same[stmt.out] = elements[place]
                        continue
                    elements[place] = stmt.out
                case ir.Store():
                    self.forget(elements, stmt.array)
                    if _has_dtype(stmt.value, stmt.array):
                        elements[stmt.array, stmt.index] = stmt.value
                case ir.ArrayCall():
                    for array in _written(stmt):
                        self.forget(elements, array)
                case ir.If():
                    stmt = self.nested(stmt, pure, elements)
                    self.forget_writes(elements, stmt)
                case ir.For() | ir.While():
                    # an iteration sees what the ones before it wrote
                    self.forget_writes(elements, stmt)
                    stmt = self.nested(stmt, pure, elements)
            stmts.append(stmt)
        return ir.Block(tuple(stmts), tuple(self.get(y) for y in block.yields))

    def nested(self, stmt: ir.Stmt, pure: Pure, elements: Elements) -> ir.Stmt:
        return walk.map_blocks(stmt, lambda b: self.block(b, pure, dict(elements)))

    def forget(self, elements: Elements, array: ir.Var) -> None:
        """array is written: what may be in the same memory is not known any more."""
        for place in list(elements):
            if self.facts.may_alias(place[0], array):  # type: ignore[arg-type]
                del elements[place]

    def forget_writes(self, elements: Elements, stmt: ir.Stmt) -> None:
        for block in walk.blocks(stmt):
            for inner in walk.walk(block):
                for array in _written(inner):
                    self.forget(elements, array)


def _key(stmt: ir.Prim | ir.Cast | ir.Dim | ir.View) -> tuple[object, ...] | None:
    """What two statements share where they have the same value; None where that cannot be said."""
    operands = tuple(walk.operands(stmt))
    if any(isinstance(o, ir.Lit) and o.value is ir.UNDEF for o in operands):
        return None
    match stmt:
        case ir.Prim():
            how: object = stmt.fn
        case ir.Dim():
            how = stmt.axis
        case ir.View():
            how = (stmt.kind, stmt.index)
        case ir.Cast():
            how = None
    key = (type(stmt), how, operands, stmt.out.type)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _written(stmt: ir.Stmt) -> Iterator[ir.Var]:
    """The arrays that a statement may write; a call without a rule any of those that it is given."""
    if isinstance(stmt, ir.Store):
        yield stmt.array
    elif isinstance(stmt, ir.ArrayCall):
        rule = registry.array_rule(stmt.fn)
        for position, arg in enumerate(stmt.args):
            written = rule is None or position in rule.writes
            if written and isinstance(arg, ir.Var) and is_array(arg):
                yield arg


def _has_dtype(value: ir.Operand, array: ir.Var) -> bool:
    undefined = isinstance(value, ir.Lit) and value.value is ir.UNDEF
    dtype: types.Type = array.type.dtype
    return (
        not undefined and value.type == dtype and isinstance(dtype, (types.Number, types.Boolean))
    )
