"""Make a failing program smaller: drop statements, unwrap blocks, simplify expressions.

What is kept fails in the same way as the program did.  In the end it gets its own copies of the helpers.
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
    target.write_text(HEADER + ast.unparse(_self_contained(tree)) + "\n", encoding="utf-8")
    return found


def _self_contained(tree: ast.Module) -> ast.Module:
    """The program with copies of the helpers that it uses, instead of their import."""
    helpers = ast.parse(Path(__file__).with_name("helpers.py").read_text(encoding="utf-8"))
    known = {name: node for node in helpers.body for name in _defined(node)}
    body = [
        node for node in tree.body
        if not (isinstance(node, ast.ImportFrom) and node.module == "tests.fuzz.helpers")
    ]  # fmt: skip
    if len(body) == len(tree.body):
        return tree
    needed: set[str] = set()
    pending = [node for node in body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    while pending:
        for name in _names(pending.pop()) & known.keys() - needed:
            needed.add(name)
            pending.append(known[name])
    imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    rest = [node for node in body if node not in imports]
    written = {ast.unparse(node) for node in imports}
    copies = [
        node for node in helpers.body
        if needed & set(_defined(node)) and ast.unparse(node) not in written
    ]  # fmt: skip
    return ast.Module([*rest[:1], *imports, *copies, *rest[1:]], type_ignores=[])


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if (
        isinstance(node, (ast.Import, ast.ImportFrom))
        and getattr(node, "module", "") != "__future__"
    ):
        return [alias.asname or alias.name for alias in node.names]
    return []


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Versions with one thing less, the largest steps first."""
    yield from _plainer(tree)
    for where in _blocks(_f(tree)):
        length = _length(tree, where)
        for part in (length // 2, length // 4):  # several statements at once
            if part > 1:
                for position in range(0, length, part):
                    yield from _edited(
                        tree, where, position, lambda *at, n=part: _remove_some(*at, n)
                    )
    for where in _blocks(_f(tree)):
        for position in range(_length(tree, where)):
            yield from _edited(tree, where, position, _remove)
    for where in _blocks(_f(tree)):
        for position in range(_length(tree, where)):
            yield from _edited(tree, where, position, _unwrap)
    yield from _simpler_expressions(tree)


def _plainer(tree: ast.Module) -> Iterator[ast.Module]:
    """Without the options of the check."""
    for position, node in enumerate(tree.body):
        if isinstance(node, ast.Assign) and _defined(node)[:1] in (["SPLIT"], ["JIT"], ["EXTRA"]):
            value = ast.literal_eval(node.value)
            if value:
                new = copy.deepcopy(tree)
                new.body[position].value = ast.parse(repr(type(value)()), mode="eval").body
                yield new


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


def _remove_some(block: list[ast.stmt], position: int, field: str, count: int) -> bool:
    del block[position : position + count]
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
