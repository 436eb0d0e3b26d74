"""Definitions of inner functions and lambdas, and their use (see inner.py for what becomes of them)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
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
    literals: dict[str, ast.expr]  # the numbers that are assigned to names

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
        return Inner(title, helper, dispatcher, captured, node, tuple(params), variable)

    # ---- inner functions as values ----------------------------------------------------------------

    def constants(self, names: Iterable[str]) -> dict[str, ast.expr] | None:
        """What these variables of the user's are, if each is assigned once, a number; else None."""
        found: dict[str, ast.expr] = {}
        for name in names:
            value = self.literals.get(name)
            if value is None or self.counts[name] != 1:
                return None
            found[name] = value
        return found

    def without_captures(self, known: Inner) -> Inner | None:
        """The inner function with constants for what it captures; None where these are no constants.  Numba
        allows no other inner function as a value."""
        values = self.constants(known.captured)
        if values is None or known.defaults:
            return None
        hidden, self.inner = self.inner, {}
        try:
            for name, earlier in hidden.items():
                if earlier is known:
                    break
                plain = self.without_captures(earlier) if earlier.captured else earlier
                self.inner[name] = plain or earlier
            return self.lift(inner.with_constants(known.node, values), known.title)
        finally:
            self.inner = hidden

    def specialised(self, known: Inner, expr: ast.Call) -> tuple[Inner, ast.Call]:
        """A call of an inner function that is given others which capture variables: one of its own for these,
        which captures what they capture."""
        given = dict(zip(known.parameters, expr.args, strict=False))
        given |= {k.arg: k.value for k in expr.keywords if k.arg is not None}
        found = {parameter: self._passed(arg) for parameter, arg in given.items()}
        passed = {parameter: i for parameter, i in found.items() if i is not None}
        starred = any(isinstance(a, ast.Starred) for a in expr.args)
        if starred or not any(i.captured for i in passed.values()):
            return known, expr
        functions: dict[str, str] = {}
        for parameter, function in passed.items():
            alias = functions[parameter] = self.fresh(function.title)
            self.locals.add(alias)
            self.inner[alias] = function
        made = self.lift(inner.without_parameters(known.node, functions), known.title)
        rest = [a for p, a in zip(known.parameters, expr.args, strict=False) if p not in functions]
        keywords = [k for k in expr.keywords if k.arg not in functions]
        return made, ast.copy_location(ast.Call(expr.func, rest, keywords), expr)

    def _passed(self, arg: ast.expr) -> Inner | None:
        """The inner function that is passed here."""
        if isinstance(arg, ast.Lambda):
            return self.lift(arg, "lambda_")
        return self.inner.get(self.renamed(arg.id)) if isinstance(arg, ast.Name) else None

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


def assigned_literals(node: Function) -> dict[str, ast.expr]:
    """Names that are somewhere assigned a number, and the number."""
    found: dict[str, ast.expr] = {}
    body = node.body if isinstance(node.body, list) else [node.body]
    for part in body:
        for stmt in own_nodes(part):
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_number(value):
                    found[name] = value
    return found


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float | complex)
