"""The facts of a part of a kernel's derivative: that with respect to some of its values only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from splitad.analysis.reverse import reverse
from splitad.analysis.threads import tainted
from splitad.ir import nodes as ir
from splitad.ir.walk import operands
from splitad.transform.facts import Facts


def of_sources(facts: Facts, sources: Iterable[ir.Var]) -> Facts:
    """The facts, as if only these values carried a derivative, and what is computed from them."""
    scalars = tainted(facts.fn, first=sources) & facts.active.scalars
    return replace(facts, active=replace(facts.active, scalars=scalars))


def needed(facts: Facts, known: Callable[[ir.Var], bool] = lambda var: False) -> Facts:
    """The facts, with what the reverse of the active values needs, and only that taken from the tape or
    computed again.  known: the values that are there without their operands."""
    needs = reverse(facts.fn, facts.active, facts.identity)
    again = {
        stmt.out: stmt
        for stmts in facts.plan.recomputed.values()
        for stmt in stmts
        if isinstance(stmt, (ir.Prim, ir.Cast, ir.Load))
    }
    kept: set[ir.Var] = set()
    pending = list(needs.values)
    while pending:
        var = pending.pop()
        if var not in kept:
            kept.add(var)
            if var in again and not known(var):
                pending += [o for o in operands(again[var]) if isinstance(o, ir.Var)]
    plan = replace(
        facts.plan,
        taped={s: tuple(v for v in vs if v in kept) for s, vs in facts.plan.taped.items()},
        recomputed={
            scope: tuple(stmt for stmt in stmts if getattr(stmt, "out", None) in kept)
            for scope, stmts in facts.plan.recomputed.items()
        },
    )
    return replace(facts, needs=needs, plan=plan)
