"""Inner functions and lambdas become functions of their own, with what they capture as first arguments.

    def f(x, a):                           def f(x, a):
        def g(y):                              _t1 = g(a, x)      # g is an njit dispatcher of
            return y * a              ->       return _t1         # def g(a, y): ...
        return g(x)

A closure sees a variable's value at the time of the call, and so does the argument.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba

from splitad.frontend.emit import Emitter
from splitad.frontend.normal import NormalFunction, remember
from splitad.frontend.render import execute, render
from splitad.frontend.scopes import Function, free_names, local_names


@dataclass(frozen=True, eq=False)
class Inner:
    """An inner function, lifted.

    captured: the user's name -> the name in the function around it.  node: the definition.
    defaults: parameter -> the variable that holds its default, where that is not a constant.
    """

    title: str
    helper: str  # the global name of the dispatcher
    dispatcher: Callable[..., Any]
    captured: dict[str, str]
    node: Function
    parameters: tuple[str, ...]  # without the captured ones
    defaults: dict[str, str]

    def arguments_left_out(self, call: ast.Call) -> list[str]:
        """Parameters with a default in a variable, which this call does not give."""
        given = {*self.parameters[: len(call.args)], *(k.arg for k in call.keywords)}
        return [name for name in self.defaults if name not in given]


def captures(around: Emitter, inner: dict[str, Inner], node: Function) -> dict[str, str]:
    """The variables of the function around it that an inner function uses."""
    own = local_names(node)
    found: dict[str, str] = {}
    for name in free_names(node):
        if name in own or not around.is_local(name):
            continue
        known = inner.get(around.renamed(name))
        if known is None:
            found[name] = around.renamed(name)
        elif own & set(known.captured):
            clash = ", ".join(sorted(own & set(known.captured)))
            around.refuse(
                f"Two inner functions use different variables called {clash}.", node, "Rename one."
            )
        else:
            found.update(known.captured)
    return found


class _Constants(ast.NodeTransformer):
    """Puts constants in the place of variables."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id)
        return node if value is None else ast.copy_location(copy.deepcopy(value), node)


def with_constants(node: Function, values: dict[str, ast.expr]) -> Function:
    """The definition with constants in the place of what it captures; defaults too."""
    return _Constants(values).visit(copy.deepcopy(node))  # type: ignore[no-any-return]


def without_parameters(node: Function, functions: dict[str, str]) -> Function:
    """The definition without these parameters, called by other names in its body: functions of the function
    around it, which it then captures."""
    made = copy.deepcopy(node)
    plain = made.args.args
    first = len(plain) - len(made.args.defaults)
    defaults = {a.arg: d for a, d in zip(plain[first:], made.args.defaults, strict=True)}
    made.args.args = [a for a in plain if a.arg not in functions]
    made.args.defaults = [defaults[a.arg] for a in made.args.args if a.arg in defaults]
    names: dict[str, ast.expr] = {old: ast.Name(new, ast.Load()) for old, new in functions.items()}
    for old, new in functions.items():
        assert old != new
    return _Constants(names).visit(made)  # type: ignore[no-any-return]


def constant_default(around: Emitter, default: ast.expr) -> Any:
    """The value of a default that is a constant or a global, else MISSING."""
    return default.value if isinstance(default, ast.Constant) else around.static(default)


def check_parameters(around: Emitter, node: Function) -> None:
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs:
        around.refuse("An inner function may have plain parameters only.", node)


def make_dispatcher(normal: NormalFunction, defaults: tuple[Any, ...]) -> Callable[..., Any]:
    """Turns the normalised inner function into a dispatcher that `read` knows."""
    source, _ = render(normal)
    pyfunc = execute(normal, source, f"<inner function {normal.name}>")
    pyfunc.__defaults__ = defaults or None
    normal.pyfunc = pyfunc
    normal.globals = pyfunc.__globals__
    remember(normal)
    return numba.njit(pyfunc)  # type: ignore[no-any-return]


def unused_name(around: Emitter, title: str) -> str:
    while around.is_local(title) or title in around.helpers:
        title = f"_h_{title}"
    return title
