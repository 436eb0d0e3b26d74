"""What an error calls a view: the user's name for it, or what it is a view of.

    v = x[1:]                'v' is a view here
    s.h = half(x)            an array here is a view of 'x'
    s.h = (2.0 * x)[1:]      an array here is a view

A view that has no name is a variable of the IR all the same, with a name that says nothing to the user; and
so does the name that it has in a function whose body was inlined.
"""

from __future__ import annotations

import ast
import linecache
import re
from functools import cache

from splitad.errors import Loc
from splitad.ir import nodes as ir
from splitad.ir.walk import walk

_NUMBER = re.compile(r"(_\d+)+$")  # which tells it from others of the name


def view_in_words(fn: ir.Function, view: ir.Operand, loc: Loc) -> str:
    """A sentence's first half; `view` is a variable of fn, loc the place that the error shows."""
    assert isinstance(view, ir.Var)
    made = {stmt.out: stmt for stmt in walk(fn.body) if isinstance(stmt, ir.View)}
    known = _names_at(loc.file, loc.line)
    if known:  # else no source can be read
        known |= {param.name for param in fn.params}
    name = _users(view.name, known)
    if name is not None:
        return f"'{name}' is a view here"
    base: ir.Operand = view
    while base in made:
        base = made[base].base
        name = _users(base.name, known) if isinstance(base, ir.Var) else None
        if name is not None:
            return f"an array here is a view of '{name}'"
    return "an array here is a view"


def _users(name: str, known: frozenset[str]) -> str | None:
    """The user's name that a variable has."""
    if not known or name in known:
        return name
    shorter = _NUMBER.sub("", name)
    return shorter if shorter in known else None


@cache
def _names_at(file: str, line: int) -> frozenset[str]:
    """The variables of the innermost function that has this line."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return frozenset()
    around: ast.AST | None = None
    for node in ast.walk(tree):  # the outer ones first
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            around = node
    inside = list(ast.walk(around)) if around is not None else []
    names = {node.id for node in inside if isinstance(node, ast.Name)}
    return frozenset(names | {node.arg for node in inside if isinstance(node, ast.arg)})
