"""The text of a partial derivative: what it may contain, what it needs, how it is put in its place."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from splitad.errors import SplitadError
from splitad.rules.namespace import NAMES


class RuleError(SplitadError):
    """A rule that is malformed, or registered twice."""


@dataclass(frozen=True)
class Adjoint:
    """What to give instead of a partial: the complete contribution to the operand; `d` is d_out."""

    text: str


@dataclass(frozen=True)
class Partial:
    """A partial derivative as text.

    needs: the arguments and "out" that it names.  constant: it names none (a number).
    bounded: it is a choice between numbers, hence finite whatever the operands: a zero cotangent
    times it is zero without a guard.  adjoint: the text is the whole contribution, over `d` too.
    helpers: what it calls, by name, apart from builtins; inject these as globals.
    """

    text: str
    needs: tuple[str, ...]
    constant: bool
    bounded: bool
    adjoint: bool
    helpers: tuple[tuple[str, Any], ...] = field(compare=False)

    def render(self, names: Mapping[str, str]) -> str:
        """The text with arguments, `out` and `d` replaced by what they are called at the place of use."""
        pieces, at = [], 0
        for start, end, name in name_spans(self.text):
            if name in names:
                new = names[name]
                pieces += [self.text[at:start], new if new.isidentifier() else f"({new})"]
                at = end
        return "".join([*pieces, self.text[at:]])


def name_spans(text: str) -> list[tuple[int, int, str]]:
    """Where the names in an expression are; texts are ASCII, so byte offsets are offsets."""
    tree = ast.parse(text, mode="eval")
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    return sorted((n.col_offset, n.end_col_offset or 0, n.id) for n in found)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant)


def _is_bounded(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_bounded(node.body) and _is_bounded(node.orelse)
    return _is_number(node)


class _ForComplex(ast.NodeTransformer):
    """math -> cmath, a / b -> fdiv(a, b)."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name("cmath", node.ctx) if node.id == "math" else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name("fdiv", ast.Load()), [node.left, node.right], [])


def partial(
    rule: str,
    params: tuple[str, ...],
    given: str | Adjoint | None,
    extra: Mapping[str, Any],
    for_complex: bool = False,
) -> Partial | None:
    if given is None:
        return None
    adjoint = isinstance(given, Adjoint)
    text = given.text if isinstance(given, Adjoint) else given
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise RuleError(f"rule {rule}: {text!r} is not an expression") from error
    if not text.isascii() or "\n" in text:
        raise RuleError(f"rule {rule}: {text!r} is not one line of ASCII")
    if for_complex:
        body = _ForComplex().visit(body)
        text = ast.unparse(body)
    used = dict.fromkeys(name for _, _, name in name_spans(text))
    values = (*params, "out")
    allowed = {**NAMES, **extra}
    for name in used:
        if name not in values and name not in allowed and not (adjoint and name == "d"):
            raise RuleError(
                f"rule {rule}: {text!r} names {name}, which is neither a parameter ({' '.join(params)}), "
                "nor out, nor a helper"
            )
    needs = tuple(n for n in used if n in values)
    helpers = tuple((n, allowed[n]) for n in used if n not in values and n in allowed)
    return Partial(
        text,
        needs,
        constant=not adjoint and _is_number(body),
        bounded=not adjoint and _is_bounded(body),
        adjoint=adjoint,
        helpers=tuple((n, v) for n, v in helpers if v is not None),
    )
