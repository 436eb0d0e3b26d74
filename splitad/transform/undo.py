"""Read the value that a store overwrites, where the array has an undo log.

Store a[i] = v        old = Load a[i]
                      Store a[i] = v
"""

from __future__ import annotations

from dataclasses import replace

from splitad.ir import nodes as ir
from splitad.ir.walk import map_blocks
from splitad.transform.fresh import Fresh


def run(fn: ir.Function, arrays: frozenset[ir.Var]) -> tuple[ir.Function, dict[int, ir.Var]]:
    """The function, and for each store (by identity) the value that it overwrites."""
    if not arrays:
        return fn, {}
    fresh = Fresh(fn)
    old: dict[int, ir.Var] = {}

    def block(body: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in body.stmts:
            if isinstance(stmt, ir.Store) and stmt.array in arrays:
                var = fresh(f"old_{stmt.array.name}", stmt.array.type.dtype)
                stmts.append(ir.Load(var, stmt.array, stmt.index, stmt.wraps, loc=stmt.loc))
                old[id(stmt)] = var
            else:
                stmt = map_blocks(stmt, block)
            stmts.append(stmt)
        return ir.Block(tuple(stmts), body.yields)

    return replace(fn, body=block(fn.body)), old
