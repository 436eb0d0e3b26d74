"""Loops over anything become loops over a range; list comprehensions become loops.

for i, x in enumerate(xs):             _t1_n = len(xs)
    s += i * x                         for _t2_k in range(_t1_n):
                                           i = _t2_k
                                           x = xs[_t2_k]
                                           ...
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from splitad.frontend.iterables import NO_TARGET, Items, Iterables
from splitad.frontend.scopes import comprehension_targets


class Loops(Iterables):
    """The part of Statements that loops."""

    def assign_target(self, target: ast.expr, value: ast.expr) -> None:
        raise NotImplementedError

    # ---- the loop itself ------------------------------------------------------------------------

    def loop(
        self,
        target: ast.expr,
        items: Items,
        body: Callable[[], None],
        orelse: Callable[[], None] | None = None,
    ) -> None:
        at = self.at
        counter = self.fresh(target.id if isinstance(target, ast.Name) else "k")
        call = items.direct or ast.Call(self.builtin("range"), [items.length], [])
        with self.block() as stmts:
            with self.located(target):
                self.bind(target, items, self.read(counter))
            body()
        with self.block() as other:
            if orelse is not None:
                orelse()
        self.at = at
        self.emit(ast.For(ast.Name(counter, ast.Store()), call, stmts, other))

    def bind(self, target: ast.expr, items: Items, counter: ast.Name) -> None:
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        parts = items.parts or ()
        if len(names) == len(parts) > 0 and all(_simple(n) for n in names):
            # i, x = k, xs[k] one after the other: the targets are other names than the counter
            for name, part in zip(names, parts, strict=True):
                self.assign_target(name, part(counter))
        else:
            self.assign_target(target, items.item(counter))

    # ---- lists --------------------------------------------------------------------------------------

    def list_display(self, expr: ast.List) -> ast.expr:
        if not any(isinstance(e, ast.Starred) for e in expr.elts):
            return ast.List(self.atoms(expr.elts), ast.Load())
        result = self.temp(ast.List([], ast.Load()))
        for item in expr.elts:
            if isinstance(item, ast.Starred):
                items = self.items(item.value, [NO_TARGET])
                name = self.fresh("item")
                target = ast.copy_location(ast.Name(name, ast.Store()), item)
                self.loop(target, items, partial(self.append, result, self.read(name)))
            else:
                self.append(result, self.atom(item))
        return result

    def append(self, result: ast.Name, value: Any) -> None:
        method = self.temp(ast.Attribute(result, "append", ast.Load()))
        self.emit(ast.Expr(ast.Call(method, [value], [])))

    def listcomp(self, expr: ast.ListComp) -> ast.expr:
        result = self.temp(ast.List([], ast.Load()))

        def append() -> None:
            self.append(result, self.atom(expr.elt))

        # the first iterable is evaluated in the scope around
        first = self.items(expr.generators[0].iter, [expr.generators[0].target])
        with self.scope(comprehension_targets(expr)):
            self.generators(expr.generators, first, append)
        return result

    def generators(
        self, generators: list[ast.comprehension], items: Items, innermost: Callable[[], None]
    ) -> None:
        this, *more = generators

        def body() -> None:
            self.filtered(this.ifs, inside)

        def inside() -> None:
            if more:
                self.generators(more, self.items(more[0].iter, [more[0].target]), innermost)
            else:
                innermost()

        with self.located(this.target):
            self.loop(this.target, items, body)

    def filtered(self, conditions: list[ast.expr], inside: Callable[[], None]) -> None:
        if not conditions:
            inside()
            return
        test = self.test(conditions[0])
        with self.block() as stmts:
            self.filtered(conditions[1:], inside)
        test = test if isinstance(test, ast.Name) else self.temp(test)
        self.emit(ast.If(test, stmts, []))


def _simple(target: ast.expr) -> bool:
    return isinstance(target, ast.Name | ast.Tuple | ast.List)
