"""A normalised function as text: what Numba is asked to type, one statement a line."""

from __future__ import annotations

import ast
from keyword import iskeyword
from types import FunctionType

from splitad.frontend.normal import NormalFunction
from splitad.frontend.quiet import compile_quietly

_MISSING = object()


def render(normal: NormalFunction, first_line: int = 1) -> tuple[str, dict[int, ast.stmt]]:
    """The function as Python source, and which statement is on which line."""
    return _Writer(first_line).function(normal)


render_for_typing = render


def execute(normal: NormalFunction, text: str, filename: str) -> FunctionType:
    """The function that the text defines, in the user's globals and closure."""
    scope = {**normal.namespace(), "__name__": normal.pyfunc.__module__}
    name = plain_name(normal.name)
    before = scope.get(name, _MISSING)
    exec(compile_quietly(text, filename), scope)
    made = scope.pop(name)
    if before is not _MISSING:
        scope[name] = before  # a recursive function calls the user's own, a dispatcher
    assert isinstance(made, FunctionType)
    return made


class _Negatives(ast.NodeTransformer):
    """-1.0 is printed as an operation on 1.0, lest `Constant(-1.0) ** x` come out as -(1.0 ** x)."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if isinstance(value, int | float) and repr(value).startswith("-"):
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return node


class _Writer:
    def __init__(self, first_line: int) -> None:
        self.lines: list[str] = []
        self.stmts: dict[int, ast.stmt] = {}
        self.first = first_line
        self.exits = 0
        self.exit_flags: list[str | None] = []  # of the loops around, how a normal exit is noted

    def function(self, normal: NormalFunction) -> tuple[str, dict[int, ast.stmt]]:
        args = list(normal.args)
        if normal.vararg is not None:
            args.append("*" + normal.vararg)
        self.line(0, f"def {plain_name(normal.name)}({', '.join(args)}):")
        self.block(1, normal.body)
        return "\n".join(self.lines) + "\n", self.stmts

    def line(self, depth: int, text: str, stmt: ast.stmt | None = None) -> None:
        if stmt is not None:
            self.stmts[self.first + len(self.lines)] = stmt
        self.lines.append(" " * depth + text)

    def block(self, depth: int, body: list[ast.stmt]) -> None:
        for stmt in body:
            self.stmt(depth, stmt)
        if not body:
            self.line(depth, "pass")

    def stmt(self, depth: int, stmt: ast.stmt) -> None:
        if isinstance(stmt, ast.If):
            if getattr(stmt, "loop_test", False):
                self.loop_test(depth, stmt)
                return
            self.line(depth, f"if {ast.unparse(stmt.test)}:", stmt)
            self.block(depth + 1, stmt.body)
            if stmt.orelse:
                self.line(depth, "else:")
                self.block(depth + 1, stmt.orelse)
        elif isinstance(stmt, ast.For):
            self.line(depth, f"for {ast.unparse(stmt.target)} in {text(stmt.iter)}:", stmt)
            self.exit_flags.append(None)
            self.block(depth + 1, stmt.body)
            self.exit_flags.pop()
            if stmt.orelse:
                self.line(depth, "else:")
                self.block(depth + 1, stmt.orelse)
        elif isinstance(stmt, ast.While):
            self.loop(depth, stmt)
        else:
            self.line(depth, text(stmt), stmt)

    def loop(self, depth: int, stmt: ast.While) -> None:
        """The `else` of a loop runs when its test fails: a flag says so."""
        flag = None
        if stmt.orelse:
            self.exits += 1
            flag = f"_exit{self.exits}"
            self.line(depth, f"{flag} = False")
        self.line(depth, "while True:", stmt)
        self.exit_flags.append(flag)
        self.block(depth + 1, stmt.body)
        self.exit_flags.pop()
        if flag is not None:
            self.line(depth, f"if {flag}:")
            self.block(depth + 1, stmt.orelse)

    def loop_test(self, depth: int, stmt: ast.If) -> None:
        flag = self.exit_flags[-1]
        self.line(depth, f"if {ast.unparse(stmt.test)}:", stmt)
        self.line(depth + 1, "pass")
        self.line(depth, "else:")
        if flag is not None:
            self.line(depth + 1, f"{flag} = True")
        self.line(depth + 1, "break")


def text(node: ast.AST) -> str:
    """One statement or expression on one line."""
    copy = _copy(node)
    return ast.unparse(ast.fix_missing_locations(_Negatives().visit(copy)))


def _copy(node: ast.AST) -> ast.AST:
    fields = {
        name: [_copy(v) if isinstance(v, ast.AST) else v for v in value]
        if isinstance(value, list)
        else _copy(value)
        if isinstance(value, ast.AST)
        else value
        for name, value in ast.iter_fields(node)
    }
    return type(node)(**fields)


def plain_name(name: str) -> str:
    """The last part of a qualified name, as an identifier."""
    name = name.rpartition(".")[2]
    return name if name.isidentifier() and not iskeyword(name) else "lambda_"
