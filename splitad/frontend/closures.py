"""Definitions of inner functions and lambdas, and their use (see inner.py for what becomes of them)."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from typing import Any

from splitad.frontend import inner
from splitad.frontend.emit import MISSING, mangled
from splitad.frontend.inner import Inner
from splitad.frontend.loops import Loops
from splitad.frontend.normal import NormalFunction
from splitad.frontend.scopes import Function, local_names, own_nodes, parameters


class Closures(Loops):
    """The part of Statements that deals with inner functions."""

    counts: Counter[str]  # how often each name is bound

    def function(self, node: Function, params: list[str], types: Any) -> NormalFunction:
        raise NotImplementedError

    def define(self, stmt: ast.FunctionDef) -> None:
        if stmt.decorator_list:
            self.refuse("A decorated inner function is not supported.", stmt)
        self.name_inner(stmt.name, stmt)

    def names_lambda(self, stmt: ast.Assign) -> bool:
        target = stmt.targets[0]
        if len(stmt.targets) > 1 or not isinstance(target, ast.Name):
            return False
        assert isinstance(stmt.value, ast.Lambda)
        self.name_inner(target.id, stmt.value)
        return True

    def name_inner(self, name: str, node: Function) -> None:
        renamed = self.renamed(name)
        if self.counts[renamed] > 1:
            self.refuse(
                f"{name} is bound more than once, once to an inner function.",
                node,
                "Use two names.",
            )
        self.inner[renamed] = self.lift(node, name)

    def lambda_(self, expr: ast.Lambda) -> ast.expr:
        return self.inner_value(expr, self.lift(expr, "lambda_"))

    def lift(self, node: Function, title: str) -> Inner:
        inner.check_parameters(self, node)
        captured = inner.captures(self, self.inner, node)
        if title in captured:
            self.refuse(f"The inner function {title} calls itself.", node, "Move it out.")
        params = parameters(node.args)
        constant, variable = self.defaults(node, params)
        own = {mangled(n, self.class_name) for n in {*local_names(node), *captured}}
        name = f"{self.name}.{title}"
        made = type(self)(name, self.file, self.pyfunc, own, self.class_name)
        made.inner = {
            known: replace(i, captured={u: made.renamed(u) for u in i.captured})
            for known, i in self.inner.items()
            if known not in own
        }
        made.helpers = {i.helper: i.dispatcher for i in made.inner.values()}
        normal = made.function(node, [*captured, *params], {})
        dispatcher = inner.make_dispatcher(normal, constant)
        helper = inner.unused_name(self, title)
        return Inner(title, helper, dispatcher, captured, tuple(params), variable)

    def defaults(self, node: Function, params: list[str]) -> tuple[tuple[Any, ...], dict[str, str]]:
        """The defaults as constants, and for those that are none the variables that hold them."""
        constant: list[Any] = []
        variable: dict[str, str] = {}
        defaults = node.args.defaults
        for name, default in zip(params[len(params) - len(defaults) :], defaults, strict=True):
            value = inner.constant_default(self, default)
            constant.append(None if value is MISSING else value)
            if value is MISSING:
                atom = self.atom(default)
                variable[name] = self.temp(atom).id
        return tuple(constant), variable


def binding_counts(node: Function) -> Counter[str]:
    """How often each name is bound."""
    counts = Counter(parameters(node.args))
    body = node.body if isinstance(node.body, list) else [node.body]
    for part in body:
        for found in own_nodes(part):
            if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Store):
                counts[found.id] += 1
            elif isinstance(found, ast.FunctionDef):
                counts[found.name] += 1
    return counts
