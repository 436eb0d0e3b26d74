"""Gives the first and last iterations, which reach around a ring or are told apart, a loop of their own.

for i in 0..n step 1:             m = sub(n, 1)
  j = add(i, 1)                   for i in 1..m step 1:              the inner ones
  w = ge(j, n)                      j = add(i, 1)
  k = select(w, 0, j)               t = x[j]
  t = x[k]                ->        l = sub(i, 1)
  l = sub(i, 1)                     u = x[l]
  u = x[l]                          ...
  ...                             for e in 0..min(n, 2) step 1:      the outer ones, as they were
                                    i_1 = select(lt(e, 1), e, add(e, max(sub(n, 2), 0)))
                                    ...

In the inner ones no index wraps around and what is asked of the counter is known, so they vectorise, and so
does their adjoint.  Only loops whose iterations can run in any order: they carry nothing, none reads what
another one writes, and none can raise.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator
from typing import Any

from numba import types

from splitad.analysis.adjoint_loops import stored_apart
from splitad.analysis.bounds import Bounds
from splitad.analysis.memory import memory
from splitad.analysis.scopes import scopes
from splitad.analysis.traps import may_trap
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.rules.ops import select
from splitad.transform.fresh import Fresh

FARTHEST = 8  # how many iterations at either end may be special
_INT = types.int64
_SIMPLE = (ir.Prim, ir.Cast, ir.Dim, ir.Load, ir.Store, ir.If)

Sum = tuple[ir.Operand | None, int]  # a value and a constant; a constant alone


def run(fn: ir.Function, error_model: str, boundscheck: bool, args_alias: bool) -> ir.Function:
    """boundscheck: an access may raise, and then the order of iterations matters."""
    if boundscheck:
        return fn
    return dataclasses.replace(fn, body=_Peeler(fn, error_model, args_alias).block(fn.body))


class _Peeler:
    def __init__(self, fn: ir.Function, error_model: str, args_alias: bool) -> None:
        self.error_model = error_model
        self.memory = memory(fn, scopes(fn), {}, args_alias)
        self.fresh, self.defs, self.bounds = Fresh(fn), walk.defs(fn), Bounds(fn)

    def block(self, block: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, ir.For) and self.any_order(stmt):
                ends = _Ends(stmt, self.defs)
                if ends.head or ends.tail:
                    stmts += self.apart(stmt, ends)
                else:  # what all iterations know
                    body = walk.substitute(stmt.body, ends.known())
                    stmts.append(dataclasses.replace(stmt, body=body))
            else:
                stmts.append(walk.map_blocks(stmt, self.block))
        return ir.Block(tuple(stmts), block.yields)

    def any_order(self, loop: ir.For) -> bool:
        zero, one = ir.Lit(0, _INT), ir.Lit(1, _INT)
        if loop.params or (loop.start, loop.step) != (zero, one) or loop.stop.type != _INT:
            return False
        if self.bounds.of(loop.stop)[1] <= 2 * FARTHEST:
            return False  # it has no inner iterations, or few
        stmts = list(walk.walk(loop.body))
        for stmt in stmts:
            if not isinstance(stmt, _SIMPLE):
                return False
            if isinstance(stmt, ir.Prim) and may_trap(stmt, self.error_model):
                return False
        stores = [s for s in stmts if isinstance(s, ir.Store)]
        loads = [s for s in stmts if isinstance(s, ir.Load)]
        for store in stores:
            for load in loads:
                if self.memory.may_alias(store.array, load.array) and (
                    (store.array, store.index) != (load.array, load.index)
                ):
                    return False
        definition = {v: s for s in stmts for v in walk.outs(s)}
        return bool(stores) and stored_apart(stores, loop, definition, self.memory)

    def apart(self, loop: ir.For, ends: _Ends) -> Iterator[ir.Stmt]:
        """The inner iterations, then the outer ones."""
        loc, head, tail, stop = loop.loc, ends.head, ends.tail, loop.stop
        zero, both = ir.Lit(0, _INT), ir.Lit(head + tail, _INT)
        if not self.bounds.nonnegative(stop):  # what is subtracted from it is not to overflow
            stop = self.fresh("stop", _INT)
            yield ir.Prim(stop, max, (loop.stop, zero), loc=loc)
        end = stop
        if tail:
            end = self.fresh("end", _INT)
            yield ir.Prim(end, operator.sub, (stop, ir.Lit(tail, _INT)), loc=loc)
        inner = walk.substitute(loop.body, ends.known())
        yield dataclasses.replace(loop, start=ir.Lit(head, _INT), stop=end, body=inner)

        count = self.fresh("count", _INT)
        yield ir.Prim(count, min, (stop, both), loc=loc)
        edge, counter = self.fresh("edge", _INT), self.fresh(loop.counter.name, _INT)
        before: list[ir.Stmt] = []

        def prim(name: str, fn: Any, *args: ir.Operand, type: types.Type = _INT) -> ir.Var:
            out = self.fresh(name, type)
            before.append(ir.Prim(out, fn, args, loc=loc))
            return out

        if tail == 0:
            before.append(ir.Prim(counter, operator.add, (edge, zero), loc=loc))
        else:
            skipped = prim("skipped", max, prim("skipped", operator.sub, stop, both), zero)
            behind = prim("behind", operator.add, edge, skipped)
            first = prim("first", operator.lt, edge, ir.Lit(head, _INT), type=types.boolean)
            before.append(ir.Prim(counter, select, (first, edge, behind), loc=loc))
        mapping = {loop.counter: counter}
        for stmt in walk.walk(loop.body):
            mapping.update({v: self.fresh(v.name, v.type) for v in walk.outs(stmt)})
        body = walk.rename(loop.body, mapping)
        outer = ir.Block((*before, *body.stmts), body.yields)
        yield dataclasses.replace(loop, counter=edge, start=zero, stop=count, body=outer)


class _Ends:
    """How many iterations at the head and the tail of a loop are special, and what is known of the others.

    truth: conditions, each with what it is between them.
    """

    def __init__(self, loop: ir.For, defs: dict[ir.Var, tuple[ir.Stmt, ir.Block]]) -> None:
        self.loop, self.defs = loop, defs
        self.head = self.tail = 0
        self.truth: dict[ir.Var, bool] = {}
        self.stop = self.sum(loop.stop)
        for stmt in walk.walk(loop.body):
            if isinstance(stmt, ir.Prim) and len(stmt.args) == 2 and stmt.fn in _COMPARED:
                self.compared(stmt)
        for stmt in walk.walk(loop.body):
            if isinstance(stmt, (ir.Load, ir.Store)) and stmt.wraps:
                for entry in stmt.index:
                    base, by = self.sum(self.inner(entry))
                    if base == loop.counter and -FARTHEST <= by < 0:
                        self.head = max(self.head, -by)

    def sum(self, operand: ir.Operand) -> Sum:
        """An integer as another one and a constant."""
        if isinstance(operand, ir.Lit):
            is_int = type(operand.value) is int
            return (None, operand.value) if is_int else (operand, 0)
        stmt = self.defs[operand][0] if operand in self.defs else None
        if isinstance(stmt, ir.Prim) and operand.type == _INT:
            if stmt.fn in (operator.add, operator.sub):
                (left, by), (right, other) = map(self.sum, stmt.args)
                if stmt.fn is operator.sub and right is None:
                    return left, by - other
                if stmt.fn is operator.add and (left is None or right is None):
                    return (left if right is None else right), by + other
        return operand, 0

    def compared(self, stmt: ir.Prim) -> None:
        """A comparison of the counter with what is near an end of its range."""
        (left, by), (right, other) = map(self.sum, stmt.args)
        compare = stmt.fn
        if right == self.loop.counter:
            left, by, right, other = right, other, left, by
            compare = _COMPARED[compare]
        if left != self.loop.counter or any(abs(n) > 2**31 for n in (by, other)):
            return
        base, stop = self.stop
        if right is None and other - by < FARTHEST:  # i <> place, from the front
            place = other - by
            self.head = max(self.head, place if compare in _AT_LIMIT else place + 1)
            self.truth[stmt.out] = compare in (operator.gt, operator.ge, operator.ne)
        elif right == base and stop - (other - by) <= FARTHEST:  # i <> stop - place
            place = stop - (other - by)
            self.tail = max(self.tail, place if compare not in _PAST_LIMIT else place - 1)
            self.truth[stmt.out] = compare in (operator.lt, operator.le, operator.ne)

    def known(self) -> dict[ir.Var, ir.Operand]:
        """What stands for values of the body in the inner iterations."""
        found: dict[ir.Var, ir.Operand] = {
            var: ir.Lit(value, types.boolean) for var, value in self.truth.items()
        }
        for stmt in walk.walk(self.loop.body):
            if isinstance(stmt, ir.Prim):
                instead = self.inner(stmt.out)
                if instead != stmt.out and instead.type == stmt.out.type:
                    found[stmt.out] = instead
        return found

    def inner(self, operand: ir.Operand) -> ir.Operand:
        """A value that is the same in the inner iterations."""
        stmt = self.defs[operand][0] if operand in self.defs else None  # type: ignore[index]
        if isinstance(stmt, ir.Prim):
            if stmt.fn is select and stmt.args[0] in self.truth:
                return self.inner(stmt.args[1 if self.truth[stmt.args[0]] else 2])
            if stmt.fn is max and stmt.args[1] == ir.Lit(0, _INT):
                base, by = self.sum(stmt.args[0])
                if base == self.loop.counter and -FARTHEST <= by and -by <= self.head:
                    return self.inner(stmt.args[0])
        return operand


# each comparison, and the one with its sides exchanged
_COMPARED = {
    operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge,
    operator.ge: operator.le, operator.eq: operator.eq, operator.ne: operator.ne,
}  # fmt: skip
_AT_LIMIT = (operator.lt, operator.ge)  # decided from the iteration at the limit on
_PAST_LIMIT = (operator.le, operator.gt)  # decided up to the iteration at the limit
