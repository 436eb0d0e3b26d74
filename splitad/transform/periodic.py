"""Replaces the remainder that closes a loop over a ring, (i + 1) % n, by a comparison.

for i in 0..n step 1:             for i in 0..n step 1:
  j = add(i, 1)                     j = add(i, 1)
  k = mod(j, n)           ->        w = ge(j, n)
  t = x[k]                          k = select(w, 0, j)
                                    t = x[k]

A division takes longer than all the rest of a stencil, and its result would be on the tape.  In the loop n is
at least 1, so neighbours at a distance of 1 leave the ring once at most; others do where n is surely as
large as their distance.
"""

from __future__ import annotations

import dataclasses
import operator

from numba import types

from splitad.analysis.bounds import Bounds
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.rules.ops import select
from splitad.transform.fresh import Fresh

_INT = types.int64
_FAR = 2**20  # a larger distance, or multiple of n, is left alone: sums of such do not overflow


def run(fn: ir.Function) -> ir.Function:
    return dataclasses.replace(fn, body=_Rewriter(fn).block(fn.body))


@dataclasses.dataclass(frozen=True)
class _Place:
    """counter + turns * n + distance; without a counter a sum of the other two."""

    counter: ir.Var | None
    turns: int
    distance: int


class _Rewriter:
    def __init__(self, fn: ir.Function) -> None:
        self.fresh, self.bounds, self.defs = Fresh(fn), Bounds(fn), walk.defs(fn)

    def block(self, block: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, ir.Prim) and stmt.fn is operator.mod:
                stmts += self.remainder(stmt)
            else:
                stmts.append(walk.map_blocks(stmt, self.block))
        return ir.Block(tuple(stmts), block.yields)

    def remainder(self, stmt: ir.Prim) -> list[ir.Stmt]:
        value, n = stmt.args
        place = self.place(value, n) if _is_int(n) and stmt.out.type == _INT else None
        if place is None or place.counter is None or abs(place.turns) > _FAR:
            return [stmt]
        far = abs(place.distance)
        if far > 1 and not far <= min(self.bounds.of(n)[0], _FAR):
            return [stmt]
        found: list[ir.Stmt] = []

        def prim(fn: object, *args: ir.Operand, type: types.Type = _INT) -> ir.Var:
            out = self.fresh(stmt.out.name, type)
            found.append(ir.Prim(out, fn, args, loc=stmt.loc))  # type: ignore[arg-type]
            return out

        zero, far_lit = ir.Lit(0, _INT), ir.Lit(far, _INT)
        if place.distance == 0:
            last = ir.Prim(stmt.out, operator.add, (place.counter, zero), loc=stmt.loc)
        elif place.distance > 0:
            ahead = prim(operator.add, place.counter, far_lit)
            over = prim(operator.ge, ahead, n, type=types.boolean)
            # what is not negative anyway where it is chosen is seen not to be
            round_ = zero if far == 1 else prim(max, prim(operator.sub, ahead, n), zero)
            last = ir.Prim(stmt.out, select, (over, round_, ahead), loc=stmt.loc)
        else:
            under = prim(operator.lt, place.counter, far_lit, type=types.boolean)
            behind = prim(operator.sub, place.counter, far_lit)
            end = prim(operator.sub, n, far_lit)
            if far > 1:
                end = prim(operator.add, end, place.counter)
            round_, behind = prim(max, end, zero), prim(max, behind, zero)
            last = ir.Prim(stmt.out, select, (under, round_, behind), loc=stmt.loc)
        return [*found, last]

    def place(self, value: ir.Operand, n: ir.Operand) -> _Place | None:
        """value, seen from the counter of a loop up to n."""
        if not _is_int(value):
            return None
        if value == n:
            return _Place(None, 1, 0)
        if isinstance(value, ir.Lit):
            return _Place(None, 0, int(value.value)) if abs(value.value) <= _FAR else None
        stmt = self.defs[value][0] if value in self.defs else None
        if isinstance(stmt, ir.For) and value == stmt.counter:
            whole = (stmt.stop, stmt.step) == (n, ir.Lit(1, _INT))
            return _Place(value, 0, 0) if whole and self.bounds.nonnegative(stmt.start) else None
        if not isinstance(stmt, ir.Prim) or stmt.fn not in (operator.add, operator.sub):
            return None
        left, right = (self.place(arg, n) for arg in stmt.args)
        if left is None or right is None:
            return None
        sign = 1 if stmt.fn is operator.add else -1
        if right.counter is not None and (sign < 0 or left.counter is not None):
            return None
        return _Place(
            left.counter or right.counter,
            left.turns + sign * right.turns,
            left.distance + sign * right.distance,
        )


def _is_int(operand: ir.Operand) -> bool:
    if isinstance(operand, ir.Lit):
        return type(operand.value) is int
    return operand.type == _INT
