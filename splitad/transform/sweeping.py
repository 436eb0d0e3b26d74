"""The sums of a loop that only the pullback runs, in its reversed loop (analysis/sweeps.py).

s = 0.0
for i in range(trips_i):
    e = ...                          what the plan computes in each iteration
    s_1 = add_any_order(s, e)
    s = s_1
    d_e = ...                        the adjoints
s_2 = s
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from splitad.codegen.python import operand, statement
from splitad.codegen.writer import identifier
from splitad.ir import nodes as ir
from splitad.rules.ops import ANY_ORDER
from splitad.transform.operands import typed
from splitad.transform.reversal import Reversal


@dataclass(frozen=True, eq=False)
class Sums:
    """Of a loop that is not swept there are none.  additions: its statements that add up."""

    r: Reversal
    loop: ir.For
    additions: tuple[ir.Prim, ...]

    @staticmethod
    def of(r: Reversal, loop: ir.For) -> Sums:
        swept = r.facts.sweep
        if swept is None or not any(loop is each for each in swept.loops):
            return Sums(r, loop, ())
        inside = {id(stmt) for stmt in loop.body.stmts}
        return Sums(r, loop, tuple(s for s in swept.additions if id(s) in inside))

    def start(self) -> None:
        if self.additions:
            for param, init in zip(self.loop.params, self.loop.inits, strict=True):
                text = typed(self.r.w, init, param.type)
                self.r.w.line(f"{identifier(param.name)} = {text}")

    def add(self) -> None:
        for stmt in self.additions:
            statement(self.r.w, replace(stmt, fn=ANY_ORDER[stmt.fn]), unchecked=True)
        if self.additions:
            for param, value in zip(self.loop.params, self.loop.body.yields, strict=True):
                self.r.w.line(f"{identifier(param.name)} = {operand(self.r.w, value)}")

    def finish(self) -> None:
        if self.additions:
            for out, param in zip(self.loop.outs, self.loop.params, strict=True):
                self.r.w.line(f"{identifier(out.name)} = {identifier(param.name)}")
