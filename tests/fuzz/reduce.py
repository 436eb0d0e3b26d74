"""Make a failing program smaller: drop statements, unwrap blocks, simplify expressions.

What is kept fails in the same way as the program did.
"""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.outcome import Outcome, check_file

HEADER = "# ruff: noqa\n"  # programs are not written by people
Check = Callable[[Path], Outcome]


def category(outcome: Outcome) -> str:
    """What kind of failure it is, whatever the names and numbers."""
    if "disagrees" in outcome.why:
        return "disagrees"
    return re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?|\W", " ", outcome.headline)[:60]


def reduce(path: Path, target: Path, check: Check = check_file, seconds: float = 600.0) -> Outcome:
    """Write the smallest failing version found to target."""
    text = path.read_text(encoding="utf-8")
    found = check(path)
    if found.kind != "failed":
        raise ValueError(f"{path} does not fail: {found.kind} {found.headline}")
    wanted, deadline = category(found), time.monotonic() + seconds
    target.write_text(text, encoding="utf-8")
    trial = target.with_suffix(".trial.py")
    tree, progress = ast.parse(text), True
    while progress and time.monotonic() < deadline:
        progress = False
        for smaller in _smaller(tree):
            if time.monotonic() > deadline:
                break
            trial.write_text(HEADER + ast.unparse(smaller) + "\n", encoding="utf-8")
            outcome = check(trial)
            if outcome.kind == "failed" and category(outcome) == wanted:
                tree, found, progress = smaller, outcome, True
                target.write_text(trial.read_text(encoding="utf-8"), encoding="utf-8")
                break
    trial.unlink(missing_ok=True)
    return found


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Versions with one thing less in f, the largest steps first."""
    for where in _blocks(_f(tree)):
        for position in range(_length(tree, where)):
            yield from _edited(tree, where, position, _remove)
    for where in _blocks(_f(tree)):
        for position in range(_length(tree, where)):
            yield from _edited(tree, where, position, _unwrap)
    yield from _simpler_expressions(tree)


def _f(tree: ast.Module) -> ast.FunctionDef:
    return next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "f")


Where = tuple[tuple[str, int], ...]


def _blocks(node: ast.AST, where: Where = ()) -> list[tuple[Where, str]]:
    """Every list of statements in a function, outermost first."""
    found = []
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block:
            found.append((where, field))
            for k, child in enumerate(block):
                found += _blocks(child, (*where, (field, k)))
    return found


def _block(tree: ast.Module, where: tuple[Where, str]) -> list[ast.stmt]:
    node: ast.AST = _f(tree)
    for field, k in where[0]:
        node = getattr(node, field)[k]
    return getattr(node, where[1])


def _length(tree: ast.Module, where: tuple[Where, str]) -> int:
    return len(_block(tree, where))


def _edited(tree, where, position, edit) -> Iterator[ast.Module]:
    new = copy.deepcopy(tree)
    if edit(_block(new, where), position, where[1]):
        yield new


def _remove(block: list[ast.stmt], position: int, field: str) -> bool:
    if isinstance(block[position], ast.Pass) and len(block) == 1 and field == "body":
        return False
    del block[position]
    if not block and field == "body":
        block.append(ast.Pass())
    return True


def _unwrap(block: list[ast.stmt], position: int, field: str) -> bool:
    node = block[position]
    if not isinstance(node, (ast.If, ast.For, ast.While)):
        return False
    block[position : position + 1] = [*node.body, *node.orelse]
    return True


def _simpler_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    count = sum(1 for _ in _expressions(_f(tree)))
    for number in range(count):
        for choice in range(2):
            new = copy.deepcopy(tree)
            node, put = list(_expressions(_f(new)))[number]
            parts = _parts(node)
            if choice < len(parts):
                put(parts[choice])
                yield new


def _expressions(
    function: ast.FunctionDef,
) -> Iterator[tuple[ast.expr, Callable[[ast.expr], None]]]:
    """Expressions that have simpler parts, each with a function that replaces it."""
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            items = value if isinstance(value, list) else [value]
            for k, item in enumerate(items):
                if isinstance(item, ast.expr) and _parts(item):
                    yield item, _putter(parent, field, k if isinstance(value, list) else None)


def _putter(parent: ast.AST, field: str, k: int | None) -> Callable[[ast.expr], None]:
    def put(new: ast.expr) -> None:
        if k is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[k] = new

    return put


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        return node.args[:2]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values[:2]
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        return [node.operand]
    return []
