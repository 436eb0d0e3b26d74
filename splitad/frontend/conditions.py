"""Short circuits, conditional expressions and chained comparisons: an `if` on a temporary.

y = a if x > 0 and b else c            _t2 = x > 0
                                       if _t2:
                                           _t1 = bool(b)
                                       else:
                                           _t1 = False
                                       if _t1:
                                           _t3 = a
                                       else:
                                           _t3 = c
                                       y = _t3
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from splitad.frontend.emit import Emitter


class Conditions(Emitter):
    """The part of Expressions that branches."""

    def atom(self, expr: ast.expr) -> Any:
        raise NotImplementedError

    def flat(self, expr: ast.expr) -> ast.expr:
        raise NotImplementedError

    def chain(
        self, left: ast.expr, ops: list[ast.cmpop], right: ast.expr, more: list[ast.expr]
    ) -> ast.expr:
        """a < b < c with atoms a and b: b is evaluated once, c only if a < b."""
        first = ast.Compare(left, [ops[0]], [right])
        if not more:
            return first
        known, middle = self.temp(first), self.stable(right, more)
        return self.branch(
            known, lambda: self.chain(middle, ops[1:], self.atom(more[0]), more[1:]), lambda: known
        )

    def boolop(self, expr: ast.BoolOp) -> ast.expr:
        first = self.atom(expr.values[0])
        if len(expr.values) == 1:
            return first
        first = self.stable(first, expr.values[1:])
        test = first if isinstance(first, ast.Name) else self.temp(first)
        rest = ast.copy_location(ast.BoolOp(expr.op, expr.values[1:]), expr.values[1])
        if isinstance(expr.op, ast.And):
            return self.branch(test, lambda: self.boolop(rest), lambda: test)
        return self.branch(test, lambda: test, lambda: self.boolop(rest))

    def conditional(self, expr: ast.IfExp) -> ast.expr:
        test = self.test(expr.test)
        if isinstance(test, ast.Constant):
            return self.flat(expr.body if test.value else expr.orelse)
        return self.branch(test, lambda: self.flat(expr.body), lambda: self.flat(expr.orelse))

    def branch(
        self, test: ast.Name, then: Callable[[], ast.expr], orelse: Callable[[], ast.expr]
    ) -> ast.Name:
        """A temporary assigned in both branches."""
        name = self.fresh()
        with self.block() as body:
            self.assign(name, then())
        with self.block() as other:
            self.assign(name, orelse())
        self.emit(ast.If(test, body, other))
        return self.read(name)

    def test(self, expr: ast.expr) -> Any:
        """A condition as an atom.  In `a and b` the operands count by their truth only."""
        with self.located(expr):
            if isinstance(expr, ast.BoolOp):
                return self.test_all(expr.op, expr.values)
            if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not):
                return self.test_not(expr.operand)
            return self.atom(expr)

    def test_not(self, expr: ast.expr) -> Any:
        """`not` moves inwards, so that Numba sees `x is not None` and prunes by it."""
        if isinstance(expr, ast.BoolOp):
            op: ast.boolop = ast.Or() if isinstance(expr.op, ast.And) else ast.And()
            negated: list[ast.expr] = [
                ast.copy_location(ast.UnaryOp(ast.Not(), v), v) for v in expr.values
            ]
            return self.test_all(op, negated)
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not):
            return self.test(expr.operand)
        if isinstance(expr, ast.Compare) and isinstance(expr.ops[0], ast.Is | ast.IsNot):
            flipped: ast.cmpop = ast.IsNot() if isinstance(expr.ops[0], ast.Is) else ast.Is()
            if len(expr.ops) == 1:
                return self.test(
                    ast.copy_location(ast.Compare(expr.left, [flipped], expr.comparators), expr)
                )
        inner = self.test(expr)
        if isinstance(inner, ast.Constant):
            return self.const(not inner.value)
        return self.temp(ast.UnaryOp(ast.Not(), inner))

    def test_all(self, op: ast.boolop, values: list[ast.expr]) -> Any:
        first = self.test(values[0])
        if len(values) == 1:
            return first
        is_and = isinstance(op, ast.And)
        if isinstance(first, ast.Constant):
            return self.test_all(op, values[1:]) if bool(first.value) == is_and else first
        short = self.const(not is_and)

        def rest() -> ast.expr:
            return self.truth(self.test_all(op, values[1:]), values[1:])

        if is_and:
            return self.branch(first, rest, lambda: short)
        return self.branch(first, lambda: short, rest)

    def truth(self, atom: Any, exprs: list[ast.expr]) -> ast.expr:
        """bool(atom), unless it is one already: both branches of a short circuit get one type."""
        if isinstance(atom, ast.Constant):
            return self.const(bool(atom.value))
        last = exprs[-1]
        is_not = isinstance(last, ast.UnaryOp) and isinstance(last.op, ast.Not)
        if len(exprs) > 1 or is_not or isinstance(last, ast.BoolOp | ast.Compare):
            return atom  # type: ignore[no-any-return]
        return ast.Call(self.builtin("bool"), [atom], [])
