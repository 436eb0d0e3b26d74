"""The iterations at the ends of a loop that reach around a ring, or that are told apart there.

for i in 0..n step 1:             the inner iterations, 1 <= i < n - 1, know that
  j = add(i, 1)                     w is False
  w = ge(j, n)                      k is add(i, 1)
  k = select(w, 0, j)               p is add(i, -1), and the access x[p] does not wrap around
  t = x[k]
  p = sub(i, 1)                   head = 1, tail = 1
  u = x[p]

Where the iterations are reversed in any order, the inner ones can be reversed in a loop of their own, which
vectorises; see transform/reversed_blocks.py.  What only the others do must leave the order open as well
(`ends_apart`): the last one may overwrite or load what an inner one stored.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping

from numba import types

from splitad.analysis.activity import Activity
from splitad.analysis.adjoint_loops import stored_apart
from splitad.analysis.bounds import Bounds
from splitad.analysis.reverse import has_reverse
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.rules.ops import select

FARTHEST = 8  # how many iterations at either end may be special
_FAR = 2**31  # constants up to here are followed: sums of such do not overflow
_INT = types.int64

Definitions = Mapping[ir.Var, ir.Stmt | None]
Sum = tuple[ir.Operand | None, int]  # a value and a constant; a constant alone

# each comparison, and the one with its sides exchanged
_EXCHANGED = {
    operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge,
    operator.ge: operator.le, operator.eq: operator.eq, operator.ne: operator.ne,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Inner:
    """What is known in the iterations from the head-th up to the tail-th from the end.

    truth: conditions.  counted: integers, as the counter plus a constant.  read: which of both something
    else reads.  loads: those that do not wrap around there, by the identity of the statements as they are.
    """

    head: int
    tail: int
    truth: Mapping[ir.Var, bool]
    counted: Mapping[ir.Var, ir.Prim]
    read: frozenset[ir.Operand]
    loads: Mapping[int, ir.Load]

    def side(self, stmt: ir.If) -> ir.Block | None:
        """The side that is taken; None where both may be."""
        if not isinstance(stmt.cond, ir.Var) or stmt.cond not in self.truth:
            return None
        return stmt.then if self.truth[stmt.cond] else stmt.orelse

    def instead(self, stmt: ir.Stmt) -> ir.Stmt:
        """The statement as it is in these iterations."""
        if isinstance(stmt, (ir.Prim, ir.Cast)) and stmt.out in self.counted:
            return self.counted[stmt.out]
        return self.loads.get(id(stmt), stmt)

    def loop(self, loop: ir.For) -> ir.For:
        """The loop of these iterations alone, for analyses: what the conditions decide is decided, and a
        branch's results are casts of what the side yields."""
        return dataclasses.replace(
            loop, body=ir.Block(tuple(self._flat(loop.body)), loop.body.yields)
        )

    def _flat(self, block: ir.Block) -> list[ir.Stmt]:
        found: list[ir.Stmt] = []
        for stmt in block.stmts:
            side = self.side(stmt) if isinstance(stmt, ir.If) else None
            if side is None:
                found.append(self.instead(stmt))
                continue
            assert isinstance(stmt, ir.If)
            found += self._flat(side)
            for out, y in zip(stmt.outs, side.yields, strict=True):
                found.append(self.counted.get(out) or ir.Cast(out, y, loc=stmt.loc))
        return found


def inner(loop: ir.For, definition: Definitions, bounds: Bounds) -> Inner | None:
    """What the inner iterations know; None where all iterations are alike, or few.

    loop: from zero upwards in steps of one.  bounds: of the integers of the whole function.
    """
    if bounds.of(loop.stop)[1] <= 2 * FARTHEST:
        return None
    return _Finder(loop, definition, bounds).find()


def ends_apart(loop: ir.For, active: Activity, accumulated: frozenset[int]) -> bool:
    """Whether all of the loop's stores, and its loads from where it stores, leave the order of its
    iterations open; those of the inner ones do.

    accumulated: loads and stores (by identity) of the accumulations.
    """
    stmts = list(walk.walk(loop.body))
    reversed_ = [s for s in stmts if has_reverse(s, active)]
    if not all(isinstance(s, (ir.Prim, ir.Cast, ir.Load, ir.Store, ir.If)) for s in reversed_):
        return False
    stores = [s for s in reversed_ if isinstance(s, ir.Store)]
    loads = [s for s in reversed_ if isinstance(s, ir.Load) and id(s) not in accumulated]
    memory = active.memory
    if any(memory.may_alias(load.array, s.array) for load in loads for s in stores):
        return False
    inside = {v: s for s in stmts for v in walk.outs(s)}
    return stored_apart(stores, loop, inside, memory)


class _Finder:
    def __init__(self, loop: ir.For, definition: Definitions, bounds: Bounds) -> None:
        self.loop, self.definition, self.bounds = loop, definition, bounds
        self.head = self.tail = 0
        self.truth: dict[ir.Var, bool] = {}
        self.known: dict[ir.Operand, Sum] = {}
        self.stop = self.sum(loop.stop)

    def find(self) -> Inner | None:
        self.block(self.loop.body)
        stmts = list(walk.walk(self.loop.body))
        loads = [s for s in stmts if isinstance(s, ir.Load) and s.wraps]
        for load in loads:
            for entry in load.index:
                base, by = self.sum(entry)
                if base == self.loop.counter and -FARTHEST <= by < 0:
                    self.head = max(self.head, -by)
        if self.head == self.tail == 0:
            return None
        own = {v for s in stmts for v in walk.outs(s) if v.type == _INT}
        sums = {v: self.sum(v) for v in own}
        counted = {v: by for v, (base, by) in sums.items() if base == self.loop.counter}
        read: set[ir.Operand] = set()
        for stmt in stmts:
            if isinstance(stmt, ir.If) and stmt.cond in self.truth:
                read |= {*stmt.then.yields, *stmt.orelse.yields}
            elif not any(v in counted or v in self.truth for v in walk.outs(stmt)):
                read.update(walk.operands(stmt))
        return Inner(
            self.head,
            self.tail,
            self.truth,
            {v: self.counted(v, by) for v, by in counted.items()},
            frozenset(read),
            {
                id(load): dataclasses.replace(load, wraps=False)
                for load in loads
                if all(map(self.nonnegative, load.index))
            },
        )

    def counted(self, var: ir.Var, by: int) -> ir.Prim:
        args = (self.loop.counter, ir.Lit(by, _INT))
        return ir.Prim(var, operator.add, args, loc=self.loop.loc)

    def nonnegative(self, entry: ir.Operand) -> bool:
        base, by = self.sum(entry)
        if base == self.loop.counter:
            return self.head + by >= 0
        return self.bounds.nonnegative(entry)

    # ---- what is known, statement by statement ---------------------------------------------------

    def block(self, block: ir.Block) -> None:
        for stmt in block.stmts:
            if isinstance(stmt, ir.Prim) and len(stmt.args) == 2 and stmt.fn in _EXCHANGED:
                self.compared(stmt)
            elif isinstance(stmt, ir.Prim) and stmt.out.type == types.boolean:
                self.combined(stmt)
            elif isinstance(stmt, ir.Prim) and stmt.fn is select:
                cond = self.truth.get(stmt.args[0])  # type: ignore[arg-type]
                if cond is not None:
                    self.learn(stmt.out, stmt.args[1 if cond else 2])
            elif isinstance(stmt, ir.If):
                self.branch(stmt)

    def branch(self, stmt: ir.If) -> None:
        self.block(stmt.then)
        self.block(stmt.orelse)
        cond = self.truth.get(stmt.cond)  # type: ignore[arg-type]
        if cond is not None:
            side = stmt.then if cond else stmt.orelse
            for out, y in zip(stmt.outs, side.yields, strict=True):
                self.learn(out, y)

    def learn(self, var: ir.Var, value: ir.Operand) -> None:
        """In the inner iterations, var is value."""
        if var.type == _INT and value.type == _INT:
            self.known[var] = self.sum(value)
        elif var.type == types.boolean and (truth := self.holds(value)) is not None:
            self.truth[var] = truth

    def holds(self, operand: ir.Operand) -> bool | None:
        if isinstance(operand, ir.Lit):
            return operand.value if isinstance(operand.value, bool) else None
        return self.truth.get(operand)

    def combined(self, stmt: ir.Prim) -> None:
        """Conditions made of others."""
        args = [self.holds(arg) for arg in stmt.args]
        if stmt.fn is operator.not_ and args[0] is not None:
            self.truth[stmt.out] = not args[0]
        elif stmt.fn is operator.and_ and (False in args or None not in args):
            self.truth[stmt.out] = False not in args
        elif stmt.fn is operator.or_ and (True in args or None not in args):
            self.truth[stmt.out] = True in args

    def compared(self, stmt: ir.Prim) -> None:
        """A comparison of the counter with what is near an end of its range."""
        (left, by), (right, other) = map(self.sum, stmt.args)
        compare = stmt.fn
        if right == self.loop.counter:
            left, by, right, other = right, other, left, by
            compare = _EXCHANGED[compare]
        if left != self.loop.counter:
            return
        base, stop = self.stop
        if right is None and other - by < FARTHEST:  # the counter and `place`
            place = other - by
            at_place = compare in (operator.lt, operator.ge)  # there, it is decided already
            self.head = max(self.head, place if at_place else place + 1)
            self.truth[stmt.out] = compare in (operator.gt, operator.ge, operator.ne)
        elif right == base and stop - (other - by) <= FARTHEST:  # the counter and `stop - place`
            place = stop - (other - by)
            at_place = compare in (operator.le, operator.gt)
            self.tail = max(self.tail, place - 1 if at_place else place)
            self.truth[stmt.out] = compare in (operator.lt, operator.le, operator.ne)

    def sum(self, operand: ir.Operand) -> Sum:
        """An integer as another one and a constant."""
        if operand not in self.known:
            self.known[operand] = self.find_sum(operand)
        return self.known[operand]

    def find_sum(self, operand: ir.Operand) -> Sum:
        if isinstance(operand, ir.Lit):
            followed = type(operand.value) is int and abs(operand.value) <= _FAR
            return (None, operand.value) if followed else (operand, 0)
        stmt = self.definition.get(operand)
        if not isinstance(stmt, ir.Prim) or operand.type != _INT:
            return operand, 0
        sums = [self.sum(arg) for arg in stmt.args]
        if stmt.fn is max and sums[1] == (None, 0):
            base, by = sums[0]
            if base == self.loop.counter and -FARTHEST <= by:
                self.head = max(self.head, -by)
                return sums[0]
        if stmt.fn in (operator.add, operator.sub):
            (left, by), (right, other) = sums
            total = by - other if stmt.fn is operator.sub else by + other
            if abs(total) <= _FAR:
                if right is None:
                    return left, total
                if left is None and stmt.fn is operator.add:
                    return right, total
        return operand, 0
