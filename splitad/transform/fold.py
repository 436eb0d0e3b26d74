"""Replaces what is known while compiling: copies, integer constants, decided branches.

    n = int64(4)                                  for i in 0..5 step 1 [s = s0] -> s_1:
    m = add(n, 1)                                   t = x[i]
    if True -> r:                                   u = add(s, t)
      yield m                          ->           yield u
    else:
      yield n
    for i in 0..r step 1 [s = s0, c = x] -> s_1, c_1:
      t = c[i]
      u = add(s, t)
      yield u, c

Only what gives the same bits: no arithmetic on floats.  The definitions left without a use go with dce.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

from numba import types

from splitad.ir import nodes as ir
from splitad.ir import walk

_ARITHMETIC: dict[Any, Callable[..., int]] = {
    operator.add: operator.add, operator.sub: operator.sub, operator.mul: operator.mul,
    operator.neg: operator.neg, operator.pos: operator.pos, min: min, max: max, abs: abs,
    operator.and_: operator.and_, operator.or_: operator.or_, operator.xor: operator.xor,
}  # fmt: skip
_COMPARISONS = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.not_,
)  # fmt: skip
# A literal prints as Python writes it, so these are the types that one can have.
_PRINTABLE = (types.int64, types.float64, types.complex128, types.boolean)


def run(fn: ir.Function) -> ir.Function:
    folder = _Folder()
    body = folder.block(fn.body)
    return walk.substitute(dataclasses.replace(fn, body=body), folder.known)


class _Folder:
    """known: what a use of a variable is replaced by, already in terms of what stays."""

    def __init__(self) -> None:
        self.known: dict[ir.Var, ir.Operand] = {}
        self.offsets: dict[ir.Var, tuple[ir.Operand, int]] = {}  # x = base + a constant

    def get(self, operand: ir.Operand) -> ir.Operand:
        return self.known.get(operand, operand) if isinstance(operand, ir.Var) else operand

    def learn(self, var: ir.Var, value: ir.Operand) -> bool:
        """Note that var is value, where their types allow to put one for the other."""
        if _undefined(value):
            value = ir.Lit(ir.UNDEF, var.type)
        if types.unliteral(value.type) != types.unliteral(var.type):
            same = isinstance(value.type, types.Array) and isinstance(var.type, types.Array)
            if not same:
                return False
        if isinstance(value, ir.Lit) and value.type != var.type:
            value = ir.Lit(value.value, var.type, value.key)
        self.known[var] = value
        return True

    def block(self, block: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        refuted: list[ir.Var] = []  # conditions that, had they been true, would have raised
        for stmt in block.stmts:
            for new in self.statement(walk.map_operands(stmt, self.get)):
                stmts.append(new)
                if isinstance(new, ir.If) and isinstance(new.cond, ir.Var) and _raises(new.then):
                    refuted.append(new.cond)
                    self.known[new.cond] = ir.Lit(False, types.boolean)
        yields = tuple(self.get(y) for y in block.yields)
        for cond in refuted:
            del self.known[cond]
        return ir.Block(tuple(stmts), yields)

    def statement(self, stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
        match stmt:
            case ir.Cast():
                value = _cast(stmt)
                return () if value is not None and self.learn(stmt.out, value) else (stmt,)
            case ir.Prim():
                stmt = self.regroup(stmt)
                value = _prim(stmt)
                return () if value is not None and self.learn(stmt.out, value) else (stmt,)
            case ir.If():
                return self.branch(stmt)
            case ir.For() if _never_runs(stmt):
                learned = [self.learn(o, i) for o, i in zip(stmt.outs, stmt.inits, strict=True)]
                return () if all(learned) else (self.loop(stmt),)
            case ir.For() | ir.While():
                return (self.loop(stmt),)
        return (stmt,)

    def regroup(self, stmt: ir.Prim) -> ir.Prim:
        """``(x + 2) - 1`` as ``x + 1``: integers wrap, so this is exact."""
        if stmt.fn not in (operator.add, operator.sub) or stmt.out.type != types.int64:
            return stmt
        left, right = stmt.args
        if stmt.fn is operator.add and _integer(left):
            left, right = right, left
        if not _integer(right) or left.type != types.int64:
            return stmt
        base, offset = self.offsets.get(left, (left, 0))  # type: ignore[arg-type]
        offset += right.value if stmt.fn is operator.add else -right.value  # type: ignore[union-attr]
        if not _fits(offset, types.int64):
            return stmt
        self.offsets[stmt.out] = base, offset
        if base == left:
            return stmt
        sign, fn = (1, operator.add) if offset >= 0 else (-1, operator.sub)
        amount = ir.Lit(sign * offset, types.int64)
        return dataclasses.replace(stmt, fn=fn, args=(base, amount))

    def branch(self, stmt: ir.If) -> tuple[ir.Stmt, ...]:
        cond = stmt.cond
        if isinstance(cond, ir.Lit):
            chosen = stmt.then if cond.value else stmt.orelse
            if not _raises(chosen) and not _undefined(cond):
                inner = self.block(chosen)
                for out, value in zip(stmt.outs, inner.yields, strict=True):
                    self.learn(out, value)
                return inner.stmts
        then, orelse = self.given(cond, True, stmt.then), self.given(cond, False, stmt.orelse)
        own = {v for s in (*then.stmts, *orelse.stmts) for v in walk.outs(s)}
        for k, out in enumerate(stmt.outs):
            sides = {b.yields[k] for b in (then, orelse) if not _raises(b)}
            sides = {side for side in sides if not _undefined(side)} or sides
            if len(sides) == 1 and not sides & own:  # type: ignore[operator]
                self.learn(out, sides.pop())
        return (dataclasses.replace(stmt, then=then, orelse=orelse),)

    def given(self, cond: ir.Operand, value: bool, block: ir.Block) -> ir.Block:
        """The block where cond is known to be value."""
        if not isinstance(cond, ir.Var):
            return self.block(block)
        self.known[cond] = ir.Lit(value, types.boolean)
        result = self.block(block)
        del self.known[cond]
        return result

    def loop(self, stmt: ir.For | ir.While) -> ir.Stmt:
        own = {*walk.inner_defs(stmt), *(v for s in stmt.body.stmts for v in walk.outs(s))}
        for param, out, init, last in zip(
            stmt.params, stmt.outs, stmt.inits, stmt.body.yields, strict=True
        ):
            last = self.get(last)
            undefined = _undefined(init)
            if last == param or last == init or (undefined and last not in own):
                value = last if undefined and last != param else init
                if self.learn(param, value):
                    self.learn(out, value)
        return walk.map_blocks(stmt, self.block)


def _raises(block: ir.Block) -> bool:
    return bool(block.stmts) and isinstance(block.stmts[-1], ir.Raise)


def _undefined(operand: ir.Operand) -> bool:
    """Whether it stands for a variable that was not assigned on this path, which nobody reads."""
    return isinstance(operand, ir.Lit) and operand.value is ir.UNDEF


def _integer(operand: ir.Operand) -> bool:
    """Whether operand is a constant integer (a bool is not one)."""
    return isinstance(operand, ir.Lit) and type(operand.value) is int


def _is_number(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Lit) and isinstance(operand.value, (bool, int, float, complex))


def _never_runs(loop: ir.For) -> bool:
    bounds = (loop.start, loop.stop, loop.step)
    if not all(map(_integer, bounds)) or loop.step.value == 0:  # type: ignore[union-attr]
        return False
    return not range(*(bound.value for bound in bounds))  # type: ignore[union-attr]


def _fits(value: int, type: types.Type) -> bool:
    return isinstance(type, types.Integer) and type.minval <= value <= type.maxval


def _cast(stmt: ir.Cast) -> ir.Operand | None:
    """What a conversion gives, where that is known; None where it is not."""
    arg, to = stmt.arg, stmt.out.type
    if types.unliteral(arg.type) == to:
        return arg
    if _undefined(arg):
        return ir.Lit(ir.UNDEF, to)
    if not _is_number(arg) or to not in _PRINTABLE:
        return None
    value: Any = arg.value  # type: ignore[union-attr]
    if to == types.boolean:
        return ir.Lit(bool(value), to)
    if to == types.complex128:
        return ir.Lit(complex(value), to)
    if isinstance(value, complex):
        return None
    if to == types.float64:
        return ir.Lit(float(value), to)
    return ir.Lit(int(value), to) if isinstance(value, int) and _fits(int(value), to) else None


def _prim(stmt: ir.Prim) -> ir.Operand | None:
    """What an operation on integers or bools gives, where that is known; None where it is not."""
    fn, args, to = stmt.fn, stmt.args, stmt.out.type
    if to not in _PRINTABLE:
        return None
    if all(isinstance(a, ir.Lit) and isinstance(a.value, (bool, int)) for a in args):
        values: list[Any] = [a.value for a in args]  # type: ignore[union-attr]
        if fn in _COMPARISONS and to == types.boolean:
            return ir.Lit(fn(*values), to)
        if fn in _ARITHMETIC and to == types.int64 and all(map(_integer, args)):
            result = _ARITHMETIC[fn](*values)
            return ir.Lit(result, to) if _fits(result, to) else None
    if to != types.int64 or len(args) != 2:
        return None
    left, right = args
    for value, other in ((left, right), (right, left)):
        if value.type != types.int64 or not _integer(other):
            continue
        constant = other.value  # type: ignore[union-attr]
        neutral = fn is operator.add and constant == 0 or fn is operator.mul and constant == 1
        if neutral or (fn is operator.sub and constant == 0 and other is right):
            return value
    return None
