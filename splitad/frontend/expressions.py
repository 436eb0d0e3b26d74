"""Expressions, one operation a statement, in Python's order of evaluation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from splitad.frontend.conditions import Conditions
from splitad.frontend.emit import mangled
from splitad.frontend.inner import Inner


class Expressions(Conditions):
    """`flat` gives a one-operation expression, `atom` a Name or Constant; both emit what comes before."""

    inner: dict[str, Inner]  # functions defined in this one, by name

    def atom(self, expr: ast.expr) -> Any:
        with self.located(expr):
            flat = self.flat(expr)
            return flat if isinstance(flat, ast.Name | ast.Constant) else self.temp(flat)

    def atoms(self, exprs: Sequence[ast.expr]) -> list[Any]:
        """Atoms of expressions that are evaluated one after the other."""
        return [self.stable(self.atom(e), exprs[k + 1 :]) for k, e in enumerate(exprs)]

    def flat(self, expr: ast.expr) -> ast.expr:
        handler = _FLAT.get(type(expr))
        if handler is None:
            self.refuse(f"{type(expr).__name__} is not supported.", expr)
        with self.located(expr):
            return self.place(handler(self, expr))

    # ---- atoms -------------------------------------------------------------------------------

    def constant(self, expr: ast.Constant) -> ast.expr:
        return ast.Constant(expr.value)

    def load(self, expr: ast.Name) -> ast.expr:
        name = self.renamed(expr.id)
        if name in self.inner:
            return self.inner_value(expr, self.inner[name])
        return ast.Name(name, ast.Load())

    def inner_value(self, expr: ast.expr, inner: Inner) -> ast.expr:
        used = {*inner.captured, *inner.defaults}
        plain = self.without_captures(inner) if used else inner
        if plain is None:
            self.refuse(
                f"The inner function {inner.title} is used as a value, and uses the local variables "
                f"{', '.join(sorted(used))}.",
                expr,
                "Only call it, or pass these variables to it as arguments.",
            )
        return self.helper(plain.helper, plain.dispatcher)

    def walrus(self, expr: ast.NamedExpr) -> ast.expr:
        name = self.renamed(expr.target.id)
        self.assign(name, self.flat(expr.value))
        return ast.Name(name, ast.Load())

    # ---- operators ---------------------------------------------------------------------------

    def binop(self, expr: ast.BinOp) -> ast.expr:
        left, right = self.atoms([expr.left, expr.right])
        return ast.BinOp(left, expr.op, right)

    def unary(self, expr: ast.UnaryOp) -> ast.expr:
        operand = self.atom(expr.operand)
        value = operand.value if isinstance(operand, ast.Constant) else None
        if (
            isinstance(expr.op, ast.USub)
            and isinstance(value, int | float)
            and type(value) is not bool
        ):
            return ast.Constant(-value)  # (a complex one would lose the sign of its zero)
        return ast.UnaryOp(expr.op, operand)

    def compare(self, expr: ast.Compare) -> ast.expr:
        left, right = self.atoms([expr.left, expr.comparators[0]])
        return self.chain(left, expr.ops, right, expr.comparators[1:])

    # ---- parts of objects --------------------------------------------------------------------

    def attribute(self, expr: ast.Attribute) -> ast.expr:
        return ast.Attribute(self.atom(expr.value), self.attribute_name(expr.attr), ast.Load())

    def attribute_name(self, name: str) -> str:
        return mangled(name, self.class_name)

    def subscript(self, expr: ast.Subscript) -> ast.expr:
        value = self.stable(self.atom(expr.value), [expr.slice])
        return ast.Subscript(value, self.index(expr.slice), ast.Load())

    def index(self, expr: ast.expr) -> ast.expr:
        """An index: an atom, a slice of atoms, or a tuple of these, None and Ellipsis."""
        if isinstance(expr, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in expr.elts):
            if not expr.elts:
                return self.temp(ast.Tuple([], ast.Load()))
            entries = [
                self.stable_entry(self.entry(e), expr.elts[k + 1 :])
                for k, e in enumerate(expr.elts)
            ]
            return self.place(ast.Tuple(entries, ast.Load()))
        return self.entry(expr)

    def entry(self, expr: ast.expr) -> ast.expr:
        if isinstance(expr, ast.Slice):
            parts = [e for e in (expr.lower, expr.upper, expr.step) if e is not None]
            atoms = iter(self.atoms(parts))
            bounds = [
                None if e is None else next(atoms) for e in (expr.lower, expr.upper, expr.step)
            ]
            return self.place(ast.Slice(*bounds))
        known = self.static(expr)
        if known is None or known is ...:  # np.newaxis
            return self.const(known)
        return self.atom(expr)

    def stable_entry(self, entry: ast.expr, later: Sequence[ast.AST]) -> ast.expr:
        if isinstance(entry, ast.Slice):
            bounds = (entry.lower, entry.upper, entry.step)
            return self.place(ast.Slice(*(b and self.stable(b, later) for b in bounds)))
        return self.stable(entry, later)

    # ---- displays ----------------------------------------------------------------------------

    def tuple_display(self, expr: ast.Tuple) -> ast.expr:
        starred = [isinstance(e, ast.Starred) for e in expr.elts]
        if not any(starred):
            return ast.Tuple(self.atoms(expr.elts), ast.Load())
        # (*a, b) is a + (b,)
        values = self.atoms([e.value if isinstance(e, ast.Starred) else e for e in expr.elts])
        total: ast.expr | None = None
        for value, is_starred in zip(values, starred, strict=True):
            part = value if is_starred else self.temp(ast.Tuple([value], ast.Load()))
            total = part if total is None else self.temp(ast.BinOp(total, ast.Add(), part))
        assert total is not None
        return total

    def fstring(self, expr: ast.JoinedStr) -> ast.expr:
        total: Any = None
        for part in expr.values:
            if isinstance(part, ast.FormattedValue):
                piece: Any = ast.Call(self.builtin("str"), [self.atom(part.value)], [])
            else:
                piece = self.atom(part)
            if total is None:
                total = piece
                continue
            total = total if isinstance(total, ast.Constant | ast.Name) else self.temp(total)
            piece = piece if isinstance(piece, ast.Constant | ast.Name) else self.temp(piece)
            total = ast.BinOp(total, ast.Add(), piece)
        return ast.Constant("") if total is None else total

    # ---- calls -------------------------------------------------------------------------------

    def call(self, expr: ast.Call) -> ast.expr:
        func: Any
        extra: list[ast.expr] = []
        inner = (
            self.inner.get(self.renamed(expr.func.id)) if isinstance(expr.func, ast.Name) else None
        )
        if inner is not None:
            inner, expr = self.specialised(inner, expr)
            func = self.helper(inner.helper, inner.dispatcher)
        operands = [a.value if isinstance(a, ast.Starred) else a for a in expr.args]
        operands += [k.value for k in expr.keywords]
        if inner is None:
            func = self.stable(self.atom(expr.func), operands)
        values = self.atoms(operands)
        if inner is not None:
            extra = [self.read(name) for name in inner.captured.values()]
        args = [
            ast.Starred(v, ast.Load()) if isinstance(a, ast.Starred) else v
            for a, v in zip(expr.args, values, strict=False)
        ]
        keywords = []
        for keyword, value in zip(expr.keywords, values[len(args) :], strict=True):
            if keyword.arg is None:
                self.refuse("** in a call is not supported.", keyword.value)
            keywords.append(ast.keyword(keyword.arg, value))
        if inner is not None:
            keywords += [
                ast.keyword(name, self.read(inner.defaults[name]))
                for name in inner.arguments_left_out(expr)
            ]
        return ast.Call(func, [*extra, *args], keywords)

    # these need loops and functions, and are defined further down
    def list_display(self, expr: ast.List) -> ast.expr:
        raise NotImplementedError

    def listcomp(self, expr: ast.ListComp) -> ast.expr:
        raise NotImplementedError

    def lambda_(self, expr: ast.Lambda) -> ast.expr:
        raise NotImplementedError

    def without_captures(self, known: Inner) -> Inner | None:
        raise NotImplementedError

    def specialised(self, known: Inner, expr: ast.Call) -> tuple[Inner, ast.Call]:
        raise NotImplementedError


_FLAT: dict[type, Callable[[Any, Any], ast.expr]] = {
    ast.Constant: lambda n, e: n.constant(e),
    ast.Name: lambda n, e: n.load(e),
    ast.NamedExpr: lambda n, e: n.walrus(e),
    ast.BinOp: lambda n, e: n.binop(e),
    ast.UnaryOp: lambda n, e: n.unary(e),
    ast.Compare: lambda n, e: n.compare(e),
    ast.BoolOp: lambda n, e: n.boolop(e),
    ast.IfExp: lambda n, e: n.conditional(e),
    ast.Attribute: lambda n, e: n.attribute(e),
    ast.Subscript: lambda n, e: n.subscript(e),
    ast.Tuple: lambda n, e: n.tuple_display(e),
    ast.List: lambda n, e: n.list_display(e),
    ast.JoinedStr: lambda n, e: n.fstring(e),
    ast.Call: lambda n, e: n.call(e),
    ast.ListComp: lambda n, e: n.listcomp(e),
    ast.Lambda: lambda n, e: n.lambda_(e),
}
