"""Inner functions and lambdas become functions of their own, with what they capture as first arguments.

    def f(x, a):                           def f(x, a):
        def g(y):                              _t1 = g(a, x)      # g is an njit dispatcher of
            return y * a              ->       return _t1         # def g(a, y): ...
        return g(x)

A closure sees a variable's value at the time of the call, and so does the argument.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba

from splitad.frontend.emit import Emitter, MISSING
from splitad.frontend.normal import NormalFunction, remember
from splitad.frontend.render import plain_name, render
from splitad.frontend.scopes import local_names, parameters

Function = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, eq=False)
class Inner:
    """An inner function, lifted.  captured: the user's name -> the name in the function around it."""

    title: str
    helper: str  # the global name of the dispatcher
    dispatcher: Callable[..., Any]
    captured: dict[str, str]


def names_read(node: ast.AST) -> list[str]:
    """Every name that occurs in the function, in order, without doubles."""
    return list(dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name)))


def captures(around: Emitter, inner: dict[str, Inner], node: Function) -> dict[str, str]:
    """The variables of the function around it that an inner function uses."""
    own = local_names(node)
    found: dict[str, str] = {}
    for name in names_read(node):
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


def constant_defaults(around: Emitter, node: Function) -> tuple[Any, ...]:
    values = []
    for default in node.args.defaults:
        value = default.value if isinstance(default, ast.Constant) else around.static(default)
        if value is MISSING:
            around.refuse(
                "The default of an inner function's parameter must be a constant.",
                default,
                "Pass it as an argument.",
            )
        values.append(value)
    return tuple(values)


def check_parameters(around: Emitter, node: Function) -> None:
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs:
        around.refuse("An inner function may have plain parameters only.", node)


def make_inner(
    around: Emitter, title: str, captured: dict[str, str], normal: NormalFunction, defaults: Any
) -> Inner:
    """Turns the normalised inner function into a dispatcher that `read` knows."""
    source, _ = render(normal)
    scope = {"__name__": around.pyfunc.__module__, **normal.namespace()}
    exec(compile(source, f"<inner function {normal.name}>", "exec"), scope)
    pyfunc: types.FunctionType = scope[plain_name(normal.name)]
    pyfunc.__defaults__ = defaults or None
    normal.pyfunc = pyfunc
    normal.globals = scope
    remember(normal)
    name = title
    while around.is_local(name) or name in around.helpers:
        name = f"_h_{name}"
    return Inner(title, name, numba.njit(pyfunc), captured)


def inner_parameters(captured: dict[str, str], node: Function) -> list[str]:
    return [*captured, *parameters(node.args)]
