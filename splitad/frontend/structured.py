"""A function without jumps: what `structure` makes of normalised statements, and `lower` reads."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Union

RESULT = "%result"
RETURNED = "%returned"


@dataclass(eq=False)
class Simple:
    """A statement without control flow, as it was."""

    stmt: ast.stmt


@dataclass(eq=False)
class SetFlag:
    """``name = value``: a constant, or the value of another name."""

    name: str
    value: bool | str
    stmt: ast.stmt


@dataclass(eq=False)
class SetResult:
    """``return value``, but the function goes on: nothing of what follows is executed."""

    value: ast.expr | None
    stmt: ast.stmt


@dataclass(eq=False)
class Branch:
    test: str
    then: list[Node]
    orelse: list[Node]
    stmt: ast.stmt
    live: frozenset[str] = frozenset()  # names read after it


@dataclass(eq=False)
class ForLoop:
    """A `for` over a range; with `go`, a flag that the body may clear to leave the loop."""

    stmt: ast.For
    body: list[Node]
    go: str | None
    live: frozenset[str] = frozenset()  # names read after it
    head: frozenset[str] = frozenset()  # names that an iteration reads before it assigns them


@dataclass(eq=False)
class WhileLoop:
    """``while go: body``; the body sets `go` again."""

    go: str
    body: list[Node]
    stmt: ast.stmt
    live: frozenset[str] = frozenset()
    head: frozenset[str] = frozenset()


Node = Union[Simple, SetFlag, SetResult, Branch, ForLoop, WhileLoop]


def names_read(node: ast.AST) -> set[str]:
    """Names that a simple statement or expression reads."""
    match node:
        case ast.Assign(targets=[target], value=value):
            found = names_read(value)
            if not isinstance(target, (ast.Name, ast.Tuple)):
                found |= all_names(target)
            return found
    return all_names(node)


def names_assigned(node: ast.stmt) -> set[str]:
    """Names that a simple statement binds."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Assign(targets=[ast.Tuple(elts=items)]):
            return {item.id for item in items if isinstance(item, ast.Name)}
    return set()


def all_names(node: ast.AST) -> set[str]:
    """Every name in it."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
