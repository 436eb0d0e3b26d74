"""Reductions that were made already: `np.std(x)` after `np.mean(x)` does not add up x once more.

A value is remembered with the block that it was made in, and is good as long as that block is still being
written and nothing in it has written to the array's memory since.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from splitad.frontend.origins import Origins
from splitad.ir import nodes as ir
from splitad.ir.build import Builder
from splitad.ir.walk import walk

# What neither writes to an array nor hands one to something that may.
_HARMLESS = (
    ir.Prim, ir.Cast, ir.Dim, ir.Stride, ir.Distance, ir.Load, ir.View, ir.Alloc, ir.For, ir.While, ir.If,
    ir.Raise,
)  # fmt: skip


@dataclass(frozen=True)
class _Made:
    value: ir.Operand
    block: Sequence[ir.Stmt]
    end: int  # how many statements the block had then


class Reduced:
    def __init__(self, b: Builder, origins: Origins) -> None:
        self.b, self.origins = b, origins
        self._made: dict[tuple[str, Hashable], _Made] = {}

    def get(self, array: ir.Var, how: Hashable) -> ir.Operand | None:
        """The value of this reduction of the array, if it is known here."""
        made = self._made.get((array.name, how))
        if made is None or made.block is not self.b.scope():
            return None
        since = ir.Block(tuple(made.block[made.end :]))
        return made.value if all(self._spares(stmt, array) for stmt in walk(since)) else None

    def set(self, array: ir.Var, how: Hashable, value: ir.Operand) -> None:
        block: Any = self.b.scope()
        self._made[array.name, how] = _Made(value, block, len(block))

    def _spares(self, stmt: ir.Stmt, array: ir.Var) -> bool:
        if isinstance(stmt, ir.Store):
            return not self.origins.may_overlap(stmt.array, array)
        return isinstance(stmt, _HARMLESS)
