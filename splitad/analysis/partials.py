"""Values that depend on a single active one: their partial can be found before the cotangent is known.

    t = 0.01 * r
    q = 1.0 + t * r
    u = r / q             all that r is used for leads to u, and r is all that u depends on

Where the iterations of a reversed loop wait for each other (a sweep that overwrites what it reads), the time
is that of the operations between one cotangent and the next.  With the partial of u in r at hand, which
other iterations have no part in, only one product is left of these: d_r = p * d_u.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from numba import types

from splitad.analysis.scopes import Scope, Scopes
from splitad.ir import nodes as ir
from splitad.ir.walk import operands, walk


@dataclass(frozen=True, eq=False)
class Region:
    """source: the value that the others depend on.  stmts: from its first use to what defines `result`."""

    source: ir.Var
    stmts: tuple[ir.Prim, ...]

    @property
    def result(self) -> ir.Var:
        return self.stmts[-1].out


def regions(
    scope: Scope,
    where: Scopes,
    uses: dict[ir.Var, int],
    active: Callable[[ir.Operand], bool],
) -> list[Region]:
    """The largest ones of at least two operations in a block, none of which share one.

    The source is a value of the same block: to the cotangent of another, other iterations add as well.
    uses: how often each value is read in the whole function.
    """
    block = scope.block
    found: list[Region] = []
    taken: set[ir.Var] = set()
    uses = Counter(uses)
    for stmt in walk(block):
        if isinstance(stmt, (ir.Prim, ir.Cast)) and not active(stmt.out):  # they have no adjoint
            uses.subtract(v for v in operands(stmt) if isinstance(v, ir.Var))
    sources: dict[ir.Var, None] = {}
    for stmt in block.stmts:
        read = stmt.args if isinstance(stmt, ir.Prim) else ()
        own = (v for v in read if isinstance(v, ir.Var) and where.of[v] is scope)
        sources.update((v, None) for v in own if active(v))
    for source in sources:
        if source in taken or not isinstance(types.unliteral(source.type), types.Float):
            continue
        region = _largest(source, block, uses, active)
        if len(region) > 1:
            found.append(Region(source, region))
            taken |= {source, *(stmt.out for stmt in region[:-1])}
    return found


def _largest(
    source: ir.Var,
    block: ir.Block,
    uses: dict[ir.Var, int],
    active: Callable[[ir.Operand], bool],
) -> tuple[ir.Prim, ...]:
    inside: list[ir.Prim] = []
    best = 0
    left = {source: uses.get(source, 0)}  # how many uses of each value are not inside
    for stmt in block.stmts:
        if not isinstance(stmt, ir.Prim) or not active(stmt.out):
            continue
        mine = [v for v in stmt.args if v in left]
        if not mine:
            continue
        others = any(active(v) and v not in left for v in stmt.args)
        if others or stmt.out.type != types.unliteral(source.type):
            break
        for v in mine:
            left[v] -= 1
        inside.append(stmt)
        left[stmt.out] = uses.get(stmt.out, 0)
        if not any(count for v, count in left.items() if v != stmt.out):
            best = len(inside)
    return tuple(inside[:best])
