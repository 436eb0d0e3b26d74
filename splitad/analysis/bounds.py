"""Intervals of integer values: which index cannot be negative, which loop surely runs.

An interval is proven for the machine's wrapping integers, on one assumption about the physical world: no
array has `LARGE` elements along an axis, no loop runs `LARGE` times, and loops in loops not `_ALL` times in
one call.  Products of two such numbers may overflow, hence nothing is claimed of them.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types

from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.rules.ops import select

LARGE = 2**42  # iterations, or elements along an axis
_ALL = 2**52  # iterations of all loops
_GROWTH = 2**10  # the most that a carried integer may grow by in an iteration for it to be followed
_INT64 = (-(2**63), 2**63 - 1)

Interval = tuple[int, int]


class Bounds:
    """Lower and upper bounds of the integers of one function, found on demand."""

    def __init__(self, fn: ir.Function) -> None:
        self._defs = walk.defs(fn)
        self._known: dict[ir.Var, Interval] = {}
        self._pending: set[ir.Var] = set()
        self._nested = False  # whether the growth just found is partly that in a nested loop
        self._cut = False  # whether an answer rests on a value that was still being looked for

    def of(self, operand: ir.Operand) -> Interval:
        """The smallest interval that is known to hold operand; all of its type's where nothing is."""
        whole = _range(operand.type)
        if isinstance(operand, ir.Lit):
            value = operand.value
            return (int(value), int(value)) if isinstance(value, (bool, int)) else whole
        if operand in self._known:
            return self._known[operand]
        if operand in self._pending:
            self._cut = True
            return whole
        if operand not in self._defs or not _is_integral(operand.type):
            return whole
        outer, self._cut = self._cut, False
        self._pending.add(operand)
        low, high = self._find(operand, self._defs[operand][0])
        self._pending.discard(operand)
        found = (low, high) if whole[0] <= low and high <= whole[1] else whole
        if not self._cut or not self._pending:  # otherwise a later question may be answered better
            self._known[operand] = found
        self._cut = self._cut or outer
        return found

    def nonnegative(self, operand: ir.Operand) -> bool:
        return self.of(operand)[0] >= 0

    def runs(self, loop: ir.For) -> bool:
        """Whether the loop surely has an iteration."""
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        return (step[0] > 0 and start[1] < stop[0]) or (step[1] < 0 and start[0] > stop[1])

    # ---- how a value is computed -----------------------------------------------------------------

    def _find(self, var: ir.Var, stmt: ir.Stmt) -> Interval:
        match stmt:
            case ir.Dim():
                return 0, LARGE
            case ir.Cast():
                if _is_integral(stmt.arg.type):
                    return self.of(stmt.arg)
            case ir.Prim():
                return _apply(stmt.fn, [self.of(arg) for arg in stmt.args]) or _range(var.type)
            case ir.If():
                sides = [block.yields[stmt.outs.index(var)] for block in (stmt.then, stmt.orelse)]
                return _union([self.of(s) for s in sides if not _undef(s)]) or _range(var.type)
            case ir.For() if var == stmt.counter:
                return self._counter(stmt)
            case ir.For() | ir.While():
                return self._carried(var, stmt)
        return _range(var.type)

    def _counter(self, loop: ir.For) -> Interval:
        start, stop, step = self.of(loop.start), self.of(loop.stop), self.of(loop.step)
        if step[0] != step[1] or abs(step[0]) > _GROWTH:
            return _range(loop.counter.type)
        if step[0] > 0:  # in the body the counter is below stop
            return start[0], min(start[1] + LARGE * step[0], stop[1] - 1)
        return stop[0] + 1, min(start[1], stop[1] - LARGE * step[0])

    def _carried(self, var: ir.Var, loop: ir.For | ir.While) -> Interval:
        """A carried value: what it grows by times the iterations, or all that is ever bound to it."""
        variables = loop.params if var in loop.params else loop.outs
        position = variables.index(var)
        param, last = loop.params[position], loop.body.yields[position]
        own = {param} - self._pending  # what is asked of it while it is being looked for is unknown
        self._pending |= own
        low, high = self.of(loop.inits[position])
        outer, self._nested = self._nested, False
        grows = self._increment(last, param)
        times = _ALL if self._nested else LARGE
        self._nested = outer
        if grows is not None and max(map(abs, grows)) <= _GROWTH:
            low, high = low + min(grows[0], 0) * times, high + max(grows[1], 0) * times
        else:
            end = self.of(last)
            low, high = min(low, end[0]), max(high, end[1])
        self._pending -= own
        return low, high

    def _increment(self, value: ir.Operand, param: ir.Var) -> Interval | None:
        """Bounds of value - param where value is param plus something of which bounds are known.

        What is added in a nested loop counts once: its iterations are among those of `_ALL` loops.
        """
        if value == param:
            return 0, 0
        if not isinstance(value, ir.Var) or value not in self._defs:
            return None
        stmt = self._defs[value][0]
        if isinstance(stmt, ir.If):
            position = stmt.outs.index(value)
            sides = [self._increment(b.yields[position], param) for b in (stmt.then, stmt.orelse)]
            return None if None in sides else _union([s for s in sides if s is not None])
        if isinstance(stmt, (ir.For, ir.While)) and value in stmt.outs:
            position = stmt.outs.index(value)
            before = self._increment(stmt.inits[position], param)
            inside = self._increment(stmt.body.yields[position], stmt.params[position])
            self._nested = True
            if before is None or inside is None:
                return None
            return before[0] + min(inside[0], 0), before[1] + max(inside[1], 0)
        if isinstance(stmt, ir.Prim) and stmt.fn in (operator.add, operator.sub):
            left, right = stmt.args
            for base, other in ((left, right), (right, left)):
                if stmt.fn is operator.sub and base is right:
                    break
                if (found := self._increment(base, param)) is not None:
                    return _apply(stmt.fn, [found, self.of(other)])
        return None


def _undef(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Lit) and operand.value is ir.UNDEF


def _is_integral(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), (types.Integer, types.Boolean))


def _range(type: types.Type) -> Interval:
    type = types.unliteral(type)
    if isinstance(type, types.Integer):
        return int(type.minval), int(type.maxval)
    return (0, 1) if isinstance(type, types.Boolean) else _INT64


def _union(intervals: list[Interval]) -> Interval | None:
    if not intervals:
        return None
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _apply(fn: Any, args: list[Interval]) -> Interval | None:
    """Bounds of fn's result in unbounded integers; the caller sees whether they fit the type."""
    if len(args) == 1:
        ((low, high),) = args
        if fn is operator.neg:
            return -high, -low
        if fn is operator.pos:
            return low, high
        if fn is abs:
            return max(low, -high, 0), max(abs(low), abs(high))
        return None
    if fn is select:
        return _union(args[1:])
    if len(args) != 2:
        return None
    (a, b), (c, d) = args
    if fn is operator.add:
        return a + c, b + d
    if fn is operator.sub:
        return a - d, b - c
    if fn is operator.mul:
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if fn is min:
        return min(a, c), min(b, d)
    if fn is max:
        return max(a, c), max(b, d)
    if fn is operator.mod and c >= 0:  # of zero it raises, or gives 0
        return 0, max(d - 1, 0)
    if fn is operator.floordiv and c > 0:
        corners = (a // c, a // d, b // c, b // d)
        return min(corners), max(corners)
    if fn is operator.and_ and (a >= 0 or c >= 0):
        return 0, min(x for low, x in args if low >= 0)
    if fn is operator.rshift and c == d and 0 <= c < 64:
        return a >> c, b >> c
    return None
