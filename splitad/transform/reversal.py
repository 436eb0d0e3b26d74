"""What the parts of the pullback share while one function is reversed."""

from __future__ import annotations

from dataclasses import dataclass

from splitad.analysis.adjoint_loops import accumulations, count_uses
from splitad.analysis.bounds import Bounds
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.transform.additions import Buffers
from splitad.transform.cotangents import Cotangents
from splitad.transform.facts import Facts
from splitad.transform.restore import Restored
from splitad.transform.shadows import Shadows


@dataclass(frozen=True, eq=False)
class Reversal:
    """uses: how often each value is read.  accumulated: the loads and stores, by identity, of
    ``a[i] = a[i] + e``."""

    facts: Facts
    w: Writer
    shadows: Shadows
    cotangents: Cotangents
    tape: Restored
    buffers: Buffers
    uses: dict[ir.Var, int]
    accumulated: frozenset[int]
    bounds: Bounds

    @staticmethod
    def of(facts: Facts, w: Writer) -> Reversal:
        uses = count_uses(facts.fn)
        pairs = [
            pair
            for scope in facts.where.all
            for pair in accumulations(scope.block, facts.active.memory, uses)
            if facts.adjoint_loops and facts.active(pair[1].array)
        ]
        return Reversal(
            facts,
            w,
            Shadows(facts, w),
            Cotangents(facts, w, unread={load.out for load, _ in pairs}),
            Restored(facts, w),
            Buffers(),
            uses,
            accumulated=frozenset(id(stmt) for pair in pairs for stmt in pair),
            bounds=Bounds(facts.fn),
        )
