"""The facts of a function written as text, for the tests of analyses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from splitad.analysis.activity import Activity, activity
from splitad.analysis.identity import Identity
from splitad.analysis.memory import Memory, memory
from splitad.analysis.reverse import Reverse, reverse, written_by
from splitad.analysis.save_plan import Plan, save_plan
from splitad.analysis.scopes import Scopes, scopes
from splitad.analysis.undo import undo_arrays
from splitad.ir import nodes as ir
from splitad.ir.verify import verify
from splitad.ir.walk import walk
from splitad.pipeline import differentiable_args
from splitad.transform import identity, undo
from tests.ir_parse import parse


@dataclass(frozen=True, eq=False)
class Found:
    fn: ir.Function
    where: Scopes
    memory: Memory
    active: Activity
    identity: Identity
    needs: Reverse
    plan: Plan

    def __getitem__(self, name: str) -> ir.Var:
        """The variable of that name."""
        return next(v for v in self.where.of if v.name == name)

    def taped(self) -> set[str]:
        return {v.name for taped in self.plan.taped.values() for v in taped}

    def recomputed(self) -> set[str]:
        return {s.out.name for stmts in self.plan.recomputed.values() for s in stmts}  # type: ignore


def find(text: str, const: tuple[str, ...] = (), alias: bool = False, **functions: Any) -> Found:
    """All facts, as the pipeline finds them but without `simplify`; const: arguments that are Const."""
    fn = parse(text, functions)
    wanted = frozenset(leaf.var for leaf in fn.leaves if leaf.var.name not in const)

    def step(fn: ir.Function) -> Activity:
        verify(fn)
        written = {id(s): written_by(s) for s in walk(fn.body) if isinstance(s, ir.ArrayCall)}
        return activity(fn, memory(fn, scopes(fn), written, alias), wanted, differentiable_args)

    fn, ids = identity.run(fn, step(fn), wanted)
    active = step(fn)
    logs = undo_arrays(active.memory.scopes, active.memory, active)
    fn, old = undo.run(fn, logs)
    active = step(fn)
    where, mem = active.memory.scopes, active.memory
    needs = reverse(fn, active, ids)
    plan = save_plan(fn, where, mem, active, needs, undo=logs, old=frozenset(old.values()))
    return Found(fn, where, mem, active, ids, needs, plan)
