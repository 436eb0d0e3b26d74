"""Which shadows the pullback of value_and_grad clears itself (clearing.py)."""

from __future__ import annotations

from splitad.analysis.adjoint_loops import FARTHEST
from splitad.analysis.memory import is_array
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.ir.walk import operands, outs, walk
from splitad.runtime.plain_zero import is_plain
from splitad.transform.facts import Facts
from splitad.transform.reversal import Reversal
from splitad.transform.reversed_blocks import order


def cleared(facts: Facts) -> tuple[tuple[ir.Var, ir.For], ...]:
    """The arguments of which the pullback clears the shadow, each with its loop."""
    swept, params = facts.sweep, zip(facts.fn.params, facts.activities, strict=True)
    duplicated = [param for param, activity in params if activity == "duplicated"]
    if swept is None or not all(is_array(p) and is_plain(p.type) for p in duplicated):
        return ()
    r = Reversal.of(facts, Writer({}))
    found: list[tuple[ir.Var, ir.For]] = []
    for loop in swept.loops:
        plan, inner = order(r, loop)
        if inner is not None or not plan.ascending:
            continue
        for array in duplicated:
            type, loads = array.type, _loads(facts, array)
            if type.ndim != 1 or type.layout != "C" or not type.aligned:
                continue
            if loads is None or len(loads) < 2:
                continue
            shifts = [plan.shifts.get(id(load)) for load in loads]
            near = all(s is not None and abs(s.by) <= FARTHEST // 2 for s in shifts)
            if near and all(id(load) in plan.deferred for load in loads):
                found.append((array, loop))
    return tuple(found)


def _loads(facts: Facts, array: ir.Var) -> list[ir.Load] | None:
    """The active loads of an array, if nothing is done with its memory but to read elements and sizes."""
    memory = facts.active.memory
    found = []
    for stmt in walk(facts.fn.body):
        read = [v for v in (*operands(stmt), *outs(stmt)) if isinstance(v, ir.Var) and is_array(v)]
        if not any(memory.may_alias(v, array) for v in read):
            continue
        if not isinstance(stmt, (ir.Load, ir.Dim)) or read != [array]:
            return None
        if isinstance(stmt, ir.Load) and facts.active(stmt.out):
            found.append(stmt)
    return found
