"""Moves checks that raise, and are the same in every iteration, in front of the loop.

    for i in 0..n step 1:                    some = lt(0, n)
      t = x[i]                               fails = and_(c, some)
      if c:                                  if fails:
        raise ZeroDivisionError()     ->       raise ZeroDivisionError()
      x[i] = t                               for i in 0..n step 1:
                                               t = x[i]
                                               x[i] = t

Exact where nothing that can be seen happens in an iteration before the check: then it is the first
iteration that raises, if there is one.  A loop without exits is one that LLVM can vectorise.
"""

from __future__ import annotations

import dataclasses
import operator

from numba import types

from splitad.analysis.bounds import Bounds
from splitad.analysis.traps import may_trap
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.transform.fresh import Fresh


def run(fn: ir.Function, error_model: str, boundscheck: bool = False) -> ir.Function:
    mover = _Mover(fn, error_model, boundscheck)
    return dataclasses.replace(fn, body=mover.block(fn.body))


class _Mover:
    def __init__(self, fn: ir.Function, error_model: str, boundscheck: bool) -> None:
        self.error_model, self.boundscheck = error_model, boundscheck
        self.bounds, self.fresh = Bounds(fn), Fresh(fn)

    def block(self, block: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            stmt = walk.map_blocks(stmt, self.block)
            stmts += self.loop(stmt) if isinstance(stmt, ir.For) else [stmt]
        return ir.Block(tuple(stmts), block.yields)

    def loop(self, loop: ir.For) -> list[ir.Stmt]:
        """The checks that can go first, and the loop without them."""
        inside = set(walk.inner_defs(loop))
        inside |= {v for s in walk.walk(loop.body) for v in (*walk.outs(s), *walk.inner_defs(s))}
        before: list[ir.Stmt] = []
        kept: list[ir.Stmt] = []
        stmts = loop.body.stmts
        for position, stmt in enumerate(stmts):
            if isinstance(stmt, ir.If) and _is_check(stmt):
                raises = stmt.then.stmts[0]
                used = (stmt.cond, *walk.operands(raises))
                moved = None if inside & set(used) else self.guarded(stmt, loop)
                if moved is None:
                    kept += stmts[position:]
                    break
                before += moved
            elif self.is_invisible(stmt):
                kept.append(stmt)
            else:
                kept += stmts[position:]
                break
        body = ir.Block(tuple(kept), loop.body.yields)
        return [*before, dataclasses.replace(loop, body=body)]

    def is_invisible(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Prim():
                return not may_trap(stmt, self.error_model)
            case ir.Load():
                return not self.boundscheck
            case ir.View():
                return stmt.kind != "reshape" and not self.boundscheck
            case ir.Cast() | ir.Dim() | ir.Stride():
                return True
            case ir.If():
                return all(map(self.is_invisible, (*stmt.then.stmts, *stmt.orelse.stmts)))
            case ir.For():  # a while might not end, a step of zero raises
                low, high = self.bounds.of(stmt.step)
                return not low <= 0 <= high and all(map(self.is_invisible, stmt.body.stmts))
        return False

    def guarded(self, check: ir.If, loop: ir.For) -> list[ir.Stmt] | None:
        """The check, if the loop has an iteration; None where that cannot be said before it."""
        if self.bounds.runs(loop):
            return [check]
        low, high = self.bounds.of(loop.step)
        if low <= 0 <= high:
            return None
        compare = operator.lt if low > 0 else operator.gt
        some = self.fresh("some", types.boolean)
        fails = self.fresh("fails", types.boolean)
        return [
            ir.Prim(some, compare, (loop.start, loop.stop), loc=check.loc),
            ir.Prim(fails, operator.and_, (check.cond, some), loc=check.loc),
            dataclasses.replace(check, cond=fails),
        ]


def _is_check(stmt: ir.If) -> bool:
    """``if cond: raise ...``"""
    only = stmt.then.stmts
    return len(only) == 1 and isinstance(only[0], ir.Raise) and stmt.orelse == ir.Block(())
