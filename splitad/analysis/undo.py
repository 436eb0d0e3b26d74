"""Arrays for which an undo log is cheaper than taping what is loaded from them.

Where an array is loaded in deeper loops than it is stored (a factorisation in place), every store tapes
the value that it overwrites, and the reverse takes a private copy of the final contents back, store by
store.  A load can then be repeated at the start of its reversed block, provided that its block does not
store to the array after the load.
"""

from __future__ import annotations

from splitad.analysis.activity import Activity
from splitad.analysis.memory import Memory, is_array
from splitad.analysis.scopes import Scope, Scopes
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, operands

_TAKES_APART = (ir.Dim, ir.Stride, ir.Distance, ir.Alloc, ir.GetField, ir.TupleGet)


def undo_arrays(where: Scopes, memory: Memory, active: Activity) -> frozenset[ir.Var]:
    """Active arrays of the outermost block that are only loaded and stored, by their own name, and
    loaded deeper than they are stored."""
    stores: dict[ir.Var, int] = {}
    loads: dict[ir.Var, int] = {}
    other: set[object] = set()  # roots that anything else than a Load or Store touches
    for scope in where.all:
        for stmt in scope.block.stmts:
            if isinstance(stmt, (ir.Load, ir.Store)) and isinstance(stmt.array, ir.Var):
                table = loads if isinstance(stmt, ir.Load) else stores
                table[stmt.array] = max(table.get(stmt.array, 0), scope.depth)
                continue
            if isinstance(stmt, _TAKES_APART):
                continue
            used = [*operands(stmt), *(y for b in blocks(stmt) for y in b.yields)]
            for operand in used:
                if is_array(operand):
                    other |= memory.base_roots(operand)
    found = set()
    for array, depth in stores.items():
        roots = memory.base_roots(array)
        alone = not any(
            v != array and memory.base_roots(v) & roots for v in memory.roots if is_array(v)
        )
        if (
            alone
            and len(roots) == 1
            and not roots & other
            and where.of[array] is where.root
            and active(array)
            and loads.get(array, 0) > depth
        ):
            found.add(array)
    return frozenset(found)


def stored_behind(
    array: ir.Var, load: ir.Stmt, scope: Scope, memory: Memory, where: Scopes
) -> ir.Stmt | None:
    """A store to array that follows the load in its block."""
    at = where.position[id(load)]
    later = (w.stmt for w in memory.writes_to(array, scope) if where.position[id(w.stmt)] > at)
    return next(later, None)
