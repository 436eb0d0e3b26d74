"""The state of one normalisation: the statements written so far, names, and helpers."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from splitad.errors import Loc, UnsupportedError
from splitad.frontend.normal import is_temp, lookup
from splitad.frontend.scopes import bound_by_walrus

Atom = ast.Name | ast.Constant
Node = TypeVar("Node", bound=ast.AST)
_MISSING = object()


class Emitter:
    """Writes normalised statements.  The base of Expressions, Loops and Statements."""

    def __init__(
        self,
        name: str,
        file: str,
        pyfunc: Callable[..., Any],
        locals_: set[str],
        class_name: str | None,
    ) -> None:
        self.name, self.file, self.pyfunc, self.class_name = name, file, pyfunc, class_name
        self.locals = locals_
        self.helpers: dict[str, Any] = {}
        self.at: ast.AST = ast.Pass(lineno=0, col_offset=0)
        self._blocks: list[list[ast.stmt]] = []
        self._scopes: list[dict[str, str]] = [
            {n: self._unlike_temp(n) for n in locals_ if is_temp(n)}
        ]
        self._count = 0

    # ---- statements --------------------------------------------------------------------------

    def place(self, node: Node) -> Node:
        """Gives a new node, and all within that have none, the place of the user's code."""
        ast.copy_location(node, self.at)
        return ast.fix_missing_locations(node)

    def emit(self, stmt: ast.stmt) -> None:
        self._blocks[-1].append(self.place(stmt))

    def assign(self, name: str, value: ast.expr) -> None:
        self.emit(ast.Assign([ast.Name(name, ast.Store())], value))

    @contextmanager
    def block(self) -> Iterator[list[ast.stmt]]:
        """Statements emitted inside go to the list that `as` names."""
        stmts: list[ast.stmt] = []
        self._blocks.append(stmts)
        try:
            yield stmts
        finally:
            self._blocks.pop()

    @contextmanager
    def located(self, node: ast.AST) -> Iterator[None]:
        """What is emitted inside comes from this piece of the user's code."""
        before = self.at
        if hasattr(node, "lineno"):
            self.at = node
        try:
            yield
        finally:
            self.at = before

    def refuse(self, reason: str, node: ast.AST | None = None, hint: str = "") -> NoReturn:
        where: Any = self.at if node is None or not hasattr(node, "lineno") else node
        loc = Loc(self.file, where.lineno, self.name, where.col_offset)
        raise UnsupportedError(reason, loc, hint)

    # ---- names -------------------------------------------------------------------------------

    def fresh(self, hint: str = "") -> str:
        self._count += 1
        return f"_t{self._count}_{hint}" if hint else f"_t{self._count}"

    def temp(self, value: ast.expr, hint: str = "") -> ast.Name:
        """A new temporary holding the value."""
        name = self.fresh(hint)
        self.assign(name, value)
        return self.read(name)

    def read(self, name: str) -> ast.Name:
        return self.place(ast.Name(name, ast.Load()))

    def const(self, value: Any) -> ast.Constant:
        return self.place(ast.Constant(value))

    def renamed(self, name: str) -> str:
        """What the user's name is called here: comprehensions have their own, `self.__x` is mangled."""
        name = mangled(name, self.class_name)
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return name

    @contextmanager
    def scope(self, names: set[str]) -> Iterator[None]:
        """Within, these names are other variables than outside (a comprehension's)."""
        self._scopes.append({name: self.fresh(name) for name in sorted(names)})
        try:
            yield
        finally:
            self._scopes.pop()

    def _unlike_temp(self, name: str) -> str:
        name = "u" + name
        while name in self.locals:
            name += "_"
        return name

    # ---- what is known without types -----------------------------------------------------------

    def is_local(self, name: str) -> bool:
        name = mangled(name, self.class_name)
        return name in self.locals or any(name in scope for scope in self._scopes)

    def static(self, expr: ast.expr) -> Any:
        """The value of a dotted global name (np.newaxis), or MISSING."""
        if isinstance(expr, ast.Attribute):
            base = self.static(expr.value)
            is_module = type(base).__name__ == "module"
            return getattr(base, expr.attr, _MISSING) if is_module else _MISSING
        if isinstance(expr, ast.Name) and not self.is_local(expr.id):
            try:
                return lookup(expr.id, self.pyfunc, self.helpers)
            except NameError:
                return _MISSING
        return _MISSING

    def helper(self, name: str, value: Any) -> ast.Name:
        """A global name for this value: `name` itself if that is what it means here."""
        candidate = name
        while self.is_local(candidate) or self._means(candidate) is not value:
            if not self.is_local(candidate) and self._means(candidate) is _MISSING:
                self.helpers[candidate] = value
                break
            candidate = f"_h_{candidate}"
        return self.read(candidate)

    def builtin(self, name: str) -> ast.Name:
        return self.helper(name, getattr(builtins, name))

    def _means(self, name: str) -> Any:
        try:
            return lookup(name, self.pyfunc, self.helpers)
        except NameError:
            return _MISSING

    def stable(self, atom: ast.expr, later: Sequence[ast.AST]) -> ast.expr:
        """The atom, copied if what is evaluated after it rebinds the name (`x + (x := 2)`)."""
        if isinstance(atom, ast.Name) and any(
            atom.id in {self.renamed(n) for n in bound_by_walrus(node)} for node in later
        ):
            return self.temp(atom)
        return atom


def mangled(name: str, class_name: str | None) -> str:
    """Python's rule for private names in a class body."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


MISSING = _MISSING
