"""Loops that value_and_grad leaves to the pullback, which reverses each iteration as it computes it.

    for i in range(n):            forward: no loop         pullback: s = 0.0; for i in range(n):
        r = m * t[i] - y[i]                                              r = m * t[i] - y[i]
        s += r * r                                                       s += r * r
    return s / n                                                         d_r = ...; d_m += ...

The cotangent of a sum is known before the sum is, if what is done with it later has constant partials in it.
Then loops that do nothing but add up need not run twice, and nothing of them goes to a tape.  This is left
to loops at the top of a function, and to those in them, whose values are made of scalars and of array
elements that stay as they are; f itself must not write into its arguments.
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
_FLAT = (*_VALUES, ir.Load, ir.For)


@dataclass(frozen=True)
class Term:
    """What an addition adds to a sum, or takes from it; sum: what the loop at the top gives."""

    sum: ir.Var
    addition: ir.Prim
    value: ir.Operand


@dataclass(frozen=True, eq=False)
class Sweep:
    """loops: those at the top that are left to the pullback.  terms: of each of their bodies and of those
    of the loops in them, by identity.  behind: the statements of the function that hang on the sums, its
    result among them.  values: what the pullback has to know for all this.  anew: the values of the loops."""

    loops: tuple[ir.For, ...]
    terms: dict[int, tuple[Term, ...]]
    behind: tuple[ir.Prim | ir.Cast, ...]
    values: tuple[ir.Var, ...]
    anew: frozenset[ir.Var]

    def has(self, stmt: ir.Stmt) -> bool:
        """Whether a statement at the top of the function is left to the pullback."""
        return any(stmt is each for each in (*self.loops, *self.behind))

    def fits(self, plan: Plan, where: Scopes) -> bool:
        """Whether the pullback has all of it without a tape."""
        if any(id(scope.block) in self.terms and taped for scope, taped in plan.taped.items()):
            return False
        again = [
            s
            for scope in plan.recomputed
            if id(scope.block) in self.terms
            for s in plan.recomputed[scope]
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
    terms: dict[int, tuple[Term, ...]] = {}
    behind: dict[int, ir.Prim | ir.Cast] = {}
    for loop in fn.body.stmts:
        if not isinstance(loop, ir.For) or not has_reverse(loop, active):
            continue
        of_loop, after = _terms(loop, found), _after(fn, loop)
        if of_loop is None or after is None:
            continue
        hanging = {*loop.outs, *(stmt.out for stmt in after)}
        if fn.result in hanging and not kept & hanging:
            loops.append(loop)
            terms |= of_loop
            behind |= {id(stmt): stmt for stmt in after}
    if not loops:
        return None
    ordered = tuple(sorted(behind.values(), key=lambda s: where.position[id(s)]))
    made = {*(stmt.out for stmt in ordered), *(v for loop in loops for v in loop.outs)}
    read = [term.value for of_body in terms.values() for term in of_body]
    read += [v for stmt in ordered for v in operands(stmt)]
    read += [v for loop in loops for v in loop.inits]
    values = tuple(dict.fromkeys(v for v in read if isinstance(v, ir.Var) and v not in made))
    anew = frozenset(v for loop in loops for s in walk(loop.body) for v in outs(s))
    return Sweep(tuple(loops), terms, ordered, values, anew)


def _changes_arguments(fn: ir.Function, memory: Memory) -> bool:
    arguments = (root[0] == "arg" for w in memory.writes for root in memory.base_roots(w.array))
    return any(arguments) or any(isinstance(s, (ir.SetField, ir.ListOp)) for s in walk(fn.body))


def _terms(loop: ir.For, found: Uses) -> dict[int, tuple[Term, ...]] | None:
    """What the loop and those in it add up, by their bodies; None where they do anything else."""
    inside = list(walk(loop.body))
    every = [loop, *(s for s in inside if isinstance(s, ir.For))]
    own = {v for s in inside for v in outs(s)}
    if not all(isinstance(s, _FLAT) for s in inside) or any(each.parallel for each in every):
        return None
    if any(isinstance(s, ir.Load) and s.array in own for s in inside):
        return None
    of: dict[ir.Operand, ir.Var] = {}  # the sum that a value is a part of
    for k, out in enumerate(loop.outs):
        added = additions_to(loop, k, found)
        if not added:
            return None
        of |= dict.fromkeys([loop.params[k], *added], out)
    for each in every[1:]:  # outer ones come first
        for param, init, out in zip(each.params, each.inits, each.outs, strict=True):
            if init not in of:
                return None
            of[param] = of[out] = of[init]
    terms: dict[int, tuple[Term, ...]] = {}
    for each in every:
        additions = [s for s in each.body.stmts if isinstance(s, ir.Prim) and s.out in of]
        terms[id(each.body)] = tuple(
            Term(of[s.out], s, next(v for v in s.args if v not in of)) for s in additions
        )
    return terms


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
