"""Computes an integer that grows by the same amount in each iteration from the loop's counter.

    for i in 0..n step 1 [c = 0, s = s0] -> c_1, s_1:       for i in 0..n step 1 [s = s0] -> s_1:
      for j in 0..m step 1 [d = c, ...] -> d_1, ...:          k = mul(i, m)
        t = x[d]                                              for j in 0..m step 1 ...:
        ...                                          ->         d = add(k, j)
        e = add(d, 1)                                           t = x[d]
        yield e, ...                                            ...
      yield d_1, ...                                        c_1 = mul(n, m)

A carried value would have to be on the tape, one for each iteration; this is exact, since integers wrap.
The innermost loop goes first; what it leaves behind (`add(c, m)`) is seen when the pass runs again.

What is added may contain the counter, once or more (the index into a packed triangle grows by the length of
row i): then the sum has i * (i - 1) / 2 in it.
"""

from __future__ import annotations

import dataclasses
import operator

from numba import types

from splitad.analysis.bounds import Bounds
from splitad.errors import Loc
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.transform.fresh import Fresh

_INT = types.int64


def run(fn: ir.Function) -> ir.Function:
    return dataclasses.replace(fn, body=_Rewriter(fn).block(fn.body))


class _Emit:
    """Statements being written, with the neutral cases of integer arithmetic left out."""

    def __init__(self, fresh: Fresh, loc: Loc) -> None:
        self.fresh, self.loc = fresh, loc
        self.stmts: list[ir.Stmt] = []

    def prim(self, fn: object, left: ir.Operand, right: ir.Operand, name: str) -> ir.Operand:
        if fn is operator.add and _is(left, 0):
            return right
        if fn in (operator.add, operator.sub) and _is(right, 0):
            return left
        if fn is operator.mul and (_is(left, 1) or _is(right, 1)):
            return right if _is(left, 1) else left
        if fn is operator.mul and (_is(left, 0) or _is(right, 0)):
            return ir.Lit(0, _INT)
        out = self.fresh(name, _INT)
        self.stmts.append(ir.Prim(out, fn, (left, right), loc=self.loc))  # type: ignore[arg-type]
        return out

    def pairs(self, n: ir.Operand, times: int) -> ir.Operand:
        """n * (n - 1) / 2 * times; the even factor is halved, so it is exact where the product wraps."""
        name = n.name if isinstance(n, ir.Var) else "n"
        half = self.prim(operator.rshift, n, ir.Lit(1, _INT), name)
        odd = self.prim(
            operator.or_, self.prim(operator.sub, n, ir.Lit(1, _INT), name), ir.Lit(1, _INT), name
        )
        found = self.prim(operator.mul, half, odd, name)
        return self.prim(operator.mul, found, ir.Lit(times, _INT), name)

    def cast(self, arg: ir.Operand, name: str) -> ir.Operand:
        if isinstance(arg, ir.Lit):
            return ir.Lit(int(arg.value), _INT)
        if arg.type == _INT:
            return arg
        out = self.fresh(name, _INT)
        self.stmts.append(ir.Cast(out, arg, loc=self.loc))
        return out


class _Rewriter:
    def __init__(self, fn: ir.Function) -> None:
        self.fresh, self.bounds, self.defs = Fresh(fn), Bounds(fn), walk.defs(fn)

    def block(self, block: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, ir.For):
                stmts += self.loop(stmt)
            else:
                stmts.append(walk.map_blocks(stmt, self.block))
        return ir.Block(tuple(stmts), block.yields)

    def loop(self, loop: ir.For) -> list[ir.Stmt]:
        """The loop without the carried values that can be computed, and what computes them."""
        found = [
            (position, amount)
            for position in range(len(loop.params))
            if (amount := self.amount(loop, position)) is not None
        ]
        if not found or not _is_integer(loop.step) or loop.step.value == 0:  # type: ignore[union-attr]
            return [walk.map_blocks(loop, self.block)]
        before, top, after = (_Emit(self.fresh, loop.loc) for _ in range(3))
        iteration = self.iteration(loop, top)
        trips = self.trips(loop, after)
        for position, terms in found:
            init, param, out = loop.inits[position], loop.params[position], loop.outs[position]
            counted = sum(sign for sign, term in terms if term == loop.counter)
            terms = [each for each in terms if each[1] != loop.counter]
            terms += [(1 if counted > 0 else -1, loop.start)] * abs(counted)
            each = self.total(terms, before, param.name)
            for emit, count, var in ((top, iteration, param), (after, trips, out)):
                first = init
                if counted:
                    first = emit.prim(operator.add, init, emit.pairs(count, counted), var.name)
                # the last statement defines the variable itself, so that its name stays
                if _is(first, 0):
                    last = ir.Prim(var, operator.mul, (count, each), loc=loop.loc)
                else:
                    grown = emit.prim(operator.mul, count, each, var.name)
                    last = ir.Prim(var, operator.add, (first, grown), loc=loop.loc)
                emit.stmts.append(last)
        gone = {position for position, _ in found}
        body = self.block(loop.body)
        kept = [k for k in range(len(loop.params)) if k not in gone]
        body = ir.Block((*top.stmts, *body.stmts), tuple(body.yields[k] for k in kept))
        loop = dataclasses.replace(
            loop,
            params=tuple(loop.params[k] for k in kept),
            inits=tuple(loop.inits[k] for k in kept),
            outs=tuple(loop.outs[k] for k in kept),
            body=body,
        )
        return [*before.stmts, loop, *after.stmts]

    # ---- what a carried value grows by --------------------------------------------------------

    def amount(self, loop: ir.For, position: int) -> list[tuple[int, ir.Operand]] | None:
        """What is added (1) or subtracted (-1) in an iteration, its counter perhaps among it; None where
        it is something else that changes, or nothing."""
        param = loop.params[position]
        init = loop.inits[position]
        if param.type != _INT or not _is_int_type(init.type):
            return None
        if isinstance(init, ir.Lit) and not _is_integer(init):
            return None  # not assigned before the loop
        inside = {v for s in walk.walk(loop.body) for v in (*walk.outs(s), *walk.inner_defs(s))}
        inside |= set(walk.inner_defs(loop))
        terms: list[tuple[int, ir.Operand]] = []
        value: ir.Operand = loop.body.yields[position]
        while value != param:
            if not isinstance(value, ir.Var) or value not in inside:
                return None
            stmt = self.defs[value][0]
            if not isinstance(stmt, ir.Prim) or value.type != _INT:
                return None
            if stmt.fn not in (operator.add, operator.sub):
                return None
            left, right = stmt.args
            if stmt.fn is operator.add and (left not in inside or left == loop.counter):
                left, right = right, left
            sign = 1 if stmt.fn is operator.add else -1
            if right not in inside and _is_int_type(right.type):
                terms.append((sign, right))
            elif (found := self.with_counter(loop, right, sign, inside)) is not None:
                terms += found
            else:
                return None
            value = left
        return terms or None

    def with_counter(
        self, loop: ir.For, value: ir.Operand, sign: int, inside: set[ir.Var]
    ) -> list[tuple[int, ir.Operand]] | None:
        """The terms of a sum of the counter of a loop and of what the loop does not change."""
        if loop.step != ir.Lit(1, _INT) or value.type != _INT:
            return None
        if value == loop.counter or value not in inside:
            return [(sign, value)]
        stmt = self.defs[value][0] if isinstance(value, ir.Var) else None
        if not isinstance(stmt, ir.Prim) or stmt.fn not in (operator.add, operator.sub):
            return None
        left, right = stmt.args
        first = self.with_counter(loop, left, sign, inside)
        second = self.with_counter(loop, right, sign if stmt.fn is operator.add else -sign, inside)
        return None if first is None or second is None else first + second

    def total(self, terms: list[tuple[int, ir.Operand]], emit: _Emit, name: str) -> ir.Operand:
        constant = 0
        total: ir.Operand = ir.Lit(0, _INT)
        for sign, term in terms:
            if isinstance(term, ir.Lit):
                constant += sign * int(term.value)
            elif sign > 0:
                total = emit.prim(operator.add, total, emit.cast(term, name), name)
            else:
                total = emit.prim(operator.sub, total, emit.cast(term, name), name)
        return emit.prim(operator.add, ir.Lit(constant, _INT), total, name)

    # ---- iterations -----------------------------------------------------------------------------

    def iteration(self, loop: ir.For, emit: _Emit) -> ir.Operand:
        """How many iterations came before this one."""
        counter = emit.cast(loop.counter, loop.counter.name)
        start = emit.cast(loop.start, loop.counter.name)
        since = emit.prim(operator.sub, counter, start, loop.counter.name)
        step = int(loop.step.value)  # type: ignore[union-attr]
        if step == 1:
            return since
        return emit.prim(operator.floordiv, since, ir.Lit(step, _INT), loop.counter.name)

    def trips(self, loop: ir.For, emit: _Emit) -> ir.Operand:
        """How many iterations there are."""
        name = loop.counter.name + "_n"
        step = int(loop.step.value)  # type: ignore[union-attr]
        start, stop = emit.cast(loop.start, name), emit.cast(loop.stop, name)
        if step < 0:
            start, stop, step = stop, start, -step
        span = emit.prim(operator.sub, stop, start, name)
        if step != 1:
            span = emit.prim(operator.add, span, ir.Lit(step - 1, _INT), name)
            span = emit.prim(operator.floordiv, span, ir.Lit(step, _INT), name)
        ends = [self.bounds.of(loop.start), self.bounds.of(loop.stop)]
        low, high = ends if loop.step.value > 0 else ends[::-1]  # type: ignore[union-attr]
        if low[1] <= high[0] or self.ordered(loop):
            return span
        out = emit.fresh(name, _INT)
        emit.stmts.append(ir.Prim(out, max, (span, ir.Lit(0, _INT)), loc=loop.loc))
        return out

    def ordered(self, loop: ir.For) -> bool:
        """Whether a rising loop starts at the counter of a loop around it, or the next integer, and both
        end alike."""
        start = loop.start
        stmt = self.defs[start][0] if isinstance(start, ir.Var) and start in self.defs else None
        if isinstance(stmt, ir.Prim) and stmt.fn is operator.add and ir.Lit(1, _INT) in stmt.args:
            start = stmt.args[0] if stmt.args[1] == ir.Lit(1, _INT) else stmt.args[1]
            stmt = self.defs[start][0] if isinstance(start, ir.Var) and start in self.defs else None
        return (
            isinstance(stmt, ir.For)
            and start == stmt.counter
            and stmt.stop == loop.stop
            and _is(stmt.step, 1)
            and int(loop.step.value) > 0  # type: ignore[union-attr]
        )


def _is(operand: ir.Operand, value: int) -> bool:
    return _is_integer(operand) and operand.value == value  # type: ignore[union-attr]


def _is_integer(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Lit) and type(operand.value) is int


def _is_int_type(type: types.Type) -> bool:
    type = types.unliteral(type)
    return isinstance(type, types.Integer) and (type.signed or type.bitwidth < 64)
