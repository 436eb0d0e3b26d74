"""Moves what is the same in every iteration out of the loop.

    for i in 0..n step 1:                    c = mul(h, h)
      c = mul(h, h)                          for i in 0..n step 1:
      if b:                                    if b:
        j = add(k, 1)              ->            t = x[j]
        t = x[j]                               ...
      ...                                    (with j = add(k, 1) before the loop as well)

The loop may not run at all, so only what cannot raise is moved: scalar operations, conversions, shapes,
views.  Loads stay, unless the loop surely runs and writes nothing that they could see.  Out of a branch
only what has no derivative is moved: a value that was not selected contributes nothing to a gradient,
whatever its partial.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from numba import types

from splitad.analysis.bounds import Bounds
from splitad.analysis.memory import Memory, memory
from splitad.analysis.scopes import scopes
from splitad.analysis.traps import may_trap
from splitad.ir import nodes as ir
from splitad.ir import walk


def run(
    fn: ir.Function,
    error_model: str,
    boundscheck: bool = False,
    strong_zero: bool = True,
    args_alias: bool = True,
) -> ir.Function:
    """boundscheck: indexing may raise.  args_alias: the arguments may overlap each other.

    strong_zero: a zero cotangent times an infinite partial is zero; where it is not, an operation that
    the user's program did not do must not be done in the reverse either.
    """
    facts = memory(fn, scopes(fn), {}, args_alias)
    mover = _Mover(Bounds(fn), facts, error_model, boundscheck, strong_zero)
    return dataclasses.replace(fn, body=mover.block(fn.body))


@dataclass(frozen=True)
class _Mover:
    bounds: Bounds
    facts: Memory
    error_model: str
    boundscheck: bool
    strong_zero: bool

    def block(self, block: ir.Block) -> ir.Block:
        """The block with the loops in it emptied of what is invariant, innermost first."""
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            stmt = walk.map_blocks(stmt, self.block)
            if isinstance(stmt, (ir.For, ir.While)):
                moved: list[ir.Stmt] = []
                varying = _defined(stmt.body) | set(walk.inner_defs(stmt))
                loads = self.loads(stmt)
                body = self.empty(stmt.body, varying, moved, loads, branch=False)
                stmts += moved
                stmt = dataclasses.replace(stmt, body=body)
            stmts.append(stmt)
        return ir.Block(tuple(stmts), block.yields)

    def empty(
        self,
        block: ir.Block,
        varying: set[ir.Var],
        moved: list[ir.Stmt],
        loads: set[int],
        branch: bool,
    ) -> ir.Block:
        """The block without what can be moved, which goes to `moved` and is no longer in `varying`."""
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, ir.If):
                inner = [self.empty(b, varying, moved, loads, True) for b in walk.blocks(stmt)]
                stmt = dataclasses.replace(stmt, then=inner[0], orelse=inner[1])
            fixed = not any(operand in varying for operand in walk.operands(stmt))
            if fixed and (self.movable(stmt, branch) or id(stmt) in loads):
                varying.difference_update(walk.outs(stmt))
                moved.append(stmt)
            else:
                stmts.append(stmt)
        return ir.Block(tuple(stmts), block.yields)

    def movable(self, stmt: ir.Stmt, branch: bool) -> bool:
        """Whether it can be done where the user's program may not have done it."""
        match stmt:
            case ir.Dim() | ir.Stride() | ir.Cast():
                return True
            case ir.Prim():
                derivative = isinstance(stmt.out.type, (types.Float, types.Complex))
                if derivative and (branch or not self.strong_zero):
                    return False
                return not may_trap(stmt, self.error_model)
            case ir.View():
                steps = [
                    e.step for e in stmt.index if isinstance(e, ir.Slice) and e.step is not None
                ]
                surely = all(isinstance(step, ir.Lit) and step.value != 0 for step in steps)
                hoists = stmt.kind not in ("reshape", "contiguous")
                return surely and hoists and not self.boundscheck
        return False

    def loads(self, loop: ir.For | ir.While) -> set[int]:
        """The loads, by identity, that give the same in each iteration and are surely done."""
        if not isinstance(loop, ir.For) or not self.bounds.runs(loop) or self.boundscheck:
            return set()
        inside = list(walk.walk(loop.body))
        if any(isinstance(stmt, (ir.Raise, ir.ArrayCall, ir.While)) for stmt in inside):
            return set()
        if any(isinstance(s, ir.Prim) and may_trap(s, self.error_model) for s in inside):
            return set()
        written = [stmt.array for stmt in inside if isinstance(stmt, ir.Store)]
        return {
            id(stmt)
            for stmt in loop.body.stmts
            if isinstance(stmt, ir.Load)
            and not any(self.facts.may_alias(stmt.array, array) for array in written)
        }


def _defined(block: ir.Block) -> set[ir.Var]:
    return {v for s in walk.walk(block) for v in (*walk.outs(s), *walk.inner_defs(s))}
