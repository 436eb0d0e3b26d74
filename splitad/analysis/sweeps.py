"""Loops that value_and_grad leaves to the pullback, which reverses each iteration as it computes it.

    for i in range(n):            forward: no loop         pullback: s = 0.0; for i in range(n):
        r = m * t[i] - y[i]                                              r = m * t[i] - y[i]
        s += r * r                                                       s += r * r
    return s / n                                                         d_r = ...; d_m += ...

The cotangent of a sum is known before the sum is, if what is done with it later has constant partials in it.
Then a loop that does nothing but add up need not run twice, and nothing of it goes to a tape.  This is left
to loops at the top of a function whose values are made of scalars and of array elements that stay as they
are; f itself must not write into its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from splitad.analysis.activity import Activity
from splitad.analysis.memory import Memory, is_array
from splitad.analysis.reverse import has_reverse
from splitad.analysis.save_plan import Plan
from splitad.analysis.scopes import Scopes
from splitad.analysis.sums import Uses, additions_to
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, operands, outs, uses, walk

_VALUES = (ir.Prim, ir.Cast)
_FLAT = (*_VALUES, ir.Load)


@dataclass(frozen=True, eq=False)
class Sweep:
    """loops: those that are left to the pullback.  additions: their statements that add up.
    behind: the statements of the function that hang on the sums, its result among them.
    values: what the pullback has to know for all this.  anew: the values of the loops."""

    loops: tuple[ir.For, ...]
    additions: tuple[ir.Prim, ...]
    behind: tuple[ir.Prim | ir.Cast, ...]
    values: tuple[ir.Var, ...]
    anew: frozenset[ir.Var]

    def has(self, stmt: ir.Stmt) -> bool:
        """Whether a statement at the top of the function is left to the pullback."""
        return any(stmt is each for each in (*self.loops, *self.behind))

    def fits(self, plan: Plan, where: Scopes) -> bool:
        """Whether the pullback has all of it without a tape."""
        bodies = {id(loop.body) for loop in self.loops}
        if any(id(scope.block) in bodies and taped for scope, taped in plan.taped.items()):
            return False
        again = [
            s
            for scope, stmts in plan.recomputed.items()
            if id(scope.block) in bodies
            for s in stmts
        ]
        copies = [plan.source.get(s.out) for s in again if isinstance(s, ir.Load)]
        return all(copy is None or (copy.by_reference and not copy.undo) for copy in copies)


def sweep(
    fn: ir.Function, where: Scopes, memory: Memory, active: Activity, needed: tuple[ir.Var, ...]
) -> Sweep | None:
    """None where there is no such loop.  needed: the values that the reverse pass reads."""
    if not isinstance(fn.result, ir.Var) or fn.lists or _changes_arguments(fn, memory):
        return None
    found = Uses(fn)
    kept = {*needed, *(leaf.exit for leaf in fn.leaves)}
    loops: list[ir.For] = []
    additions: list[ir.Prim] = []
    behind: dict[int, ir.Prim | ir.Cast] = {}
    for loop in fn.body.stmts:
        if not isinstance(loop, ir.For) or not has_reverse(loop, active) or not _flat(loop):
            continue
        sums = [additions_to(loop, k, found) for k in range(len(loop.params))]
        after = _after(fn, loop)
        if not all(sums) or after is None:
            continue
        hanging = {*loop.outs, *_made(after)}
        if fn.result not in hanging or kept & hanging:
            continue
        added = set().union(*sums)  # type: ignore[arg-type]
        loops.append(loop)
        additions += [s for s in loop.body.stmts if isinstance(s, ir.Prim) and s.out in added]
        behind |= {id(stmt): stmt for stmt in after}
    if not loops:
        return None
    ordered = tuple(sorted(behind.values(), key=lambda s: where.position[id(s)]))
    made = {*_made(ordered), *(v for loop in loops for v in (*loop.outs, *loop.params))}
    made |= {stmt.out for stmt in additions}
    read = [v for stmt in (*additions, *ordered) for v in operands(stmt)]
    read += [v for loop in loops for v in loop.inits]
    values = tuple(dict.fromkeys(v for v in read if isinstance(v, ir.Var) and v not in made))
    anew = frozenset(v for loop in loops for s in loop.body.stmts for v in outs(s))
    return Sweep(tuple(loops), tuple(additions), ordered, values, anew)


def _changes_arguments(fn: ir.Function, memory: Memory) -> bool:
    arguments = (root[0] == "arg" for w in memory.writes for root in memory.base_roots(w.array))
    return any(arguments) or any(isinstance(s, (ir.SetField, ir.ListOp)) for s in walk(fn.body))


def _flat(loop: ir.For) -> bool:
    """Whether its iterations are made of scalars and of elements of arrays from outside."""
    inside = {v for s in loop.body.stmts for v in outs(s)} | set(loop.params)
    return not loop.parallel and all(
        isinstance(s, _FLAT) and not (isinstance(s, ir.Load) and s.array in inside)
        for s in loop.body.stmts
    )


def _after(fn: ir.Function, loop: ir.For) -> tuple[ir.Prim | ir.Cast, ...] | None:
    """All statements that hang on what the loop gives; None where one is more than an operation."""
    reached: set[ir.Operand] = set(loop.outs)
    found: list[ir.Prim | ir.Cast] = []
    for stmt in fn.body.stmts:
        if stmt is loop or not reached.intersection(_read(stmt)):
            continue
        if not isinstance(stmt, _VALUES) or is_array(stmt.out):
            return None
        found.append(stmt)
        reached.add(stmt.out)
    return tuple(found)


def _read(stmt: ir.Stmt) -> Iterator[ir.Operand]:
    yield from operands(stmt)
    for block in blocks(stmt):
        yield from uses(block)


def _made(stmts: tuple[ir.Prim | ir.Cast, ...]) -> set[ir.Var]:
    return {stmt.out for stmt in stmts}
