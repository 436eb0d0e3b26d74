"""Marks the accesses whose indices cannot be negative, so that they need not wrap around.

for i in 1..n step 1:             for i in 1..n step 1:
  j = sub(i, 1)                     j = sub(i, 1)
  t = x[j]                ->        t = x[j] nowrap
  u = x[k]                          u = x[k]
"""

from __future__ import annotations

import dataclasses

from splitad.analysis.bounds import Bounds
from splitad.ir import nodes as ir
from splitad.ir import walk


def run(fn: ir.Function) -> ir.Function:
    bounds = Bounds(fn)

    def block(old: ir.Block) -> ir.Block:
        return ir.Block(tuple(statement(s) for s in old.stmts), old.yields)

    def statement(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, (ir.Load, ir.Store)):
            positive = all(bounds.nonnegative(k) for k in stmt.index)
            return dataclasses.replace(stmt, wraps=False) if stmt.wraps and positive else stmt
        return walk.map_blocks(stmt, block)

    return dataclasses.replace(fn, body=block(fn.body))
