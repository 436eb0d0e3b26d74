"""Shadows that value_and_grad's pullback clears itself, piece by piece, as it goes through them.

    cleared_x = 0
    for piece_i in range(...):
        ...
        cleared_x = clear_to(d_x, cleared_x, hi_i + 1)       zeros up to what this piece adds to
        for i in range(lo_i, hi_i + 1):
            add_at(d_x, i, ...)
    cleared_x = clear_to(d_x, cleared_x, d_x.shape[0])

Zeros that are written beforehand go through memory once more, which costs as much as the reverse of a simple
loop.  This is for the shadow of an argument that f only reads, by the loads of one swept loop, which adds to
it from its start to its end (cleared.py): nobody reads the shadow before.
"""

from __future__ import annotations

from splitad.analysis.adjoint_loops import LoopPlan
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.tape.ops import clear_to
from splitad.transform.operands import plus
from splitad.transform.shadows import shadow_name


class Clearing:
    """Of one loop.  arrays: the arguments whose shadows it clears."""

    def __init__(self, w: Writer, arrays: tuple[ir.Var, ...] = ()) -> None:
        self.w, self.arrays = w, arrays

    def start(self) -> None:
        for array in self.arrays:
            self.w.line(f"{_name(array)} = 0")

    def piece(self, counter: str, plan: LoopPlan) -> None:
        """Before anything of a piece is added."""
        for array in self.arrays:
            farthest = max(s.by for s in plan.shifts.values() if s.place[0] == array)
            self._clear(array, plus(f"hi_{counter}", farthest))

    def finish(self) -> None:
        """Behind the loop: the rest."""
        for array in self.arrays:
            self._clear(array, f"{shadow_name(array)}.shape[0]")

    def _clear(self, array: ir.Var, stop: str) -> None:
        self.w.use("clear_to", clear_to)
        name = _name(array)
        self.w.line(f"{name} = clear_to({shadow_name(array)}, {name}, {stop})")


def _name(array: ir.Var) -> str:
    return f"cleared_{array.name}"
