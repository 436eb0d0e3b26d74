"""The normalised form of a function: what `normalize` makes, and what typing and lowering read.

    user                                    normalised
    y[i] += np.sin(x[i]) * a                _t1 = y[i]
                                            _t2 = np.sin
                                            _t3 = x[i]
                                            _t4 = _t2(_t3)
                                            _t5 = _t4 * a
                                            _t1 += _t5
                                            y[i] = _t1             (writeback)

The statements are `ast` nodes, one operation each.  An *atom* is a Name or a Constant.

    Name = E            E: atom, atom op atom, op atom, atom cmp atom, atom(atoms, k=atom), atom.attr,
                        atom[index], (atoms), [atoms]; an argument of a call may also be *atom
    atom[index] = atom; atom.attr = atom; Name op= atom
    Names = atom        unpacking a tuple
    if Name             both branches; short circuits and conditional expressions become this
    for Name in range(atoms), prange(atoms)
    while True          its test is an `if c: pass; else: break` with the attribute `loop_test`; that
                        break is the normal exit, so it runs the loop's `else`
    return atom, break, continue, pass, raise Name(atoms), Expr(call)

index: an atom, a Slice of atoms, or a Tuple of these, None and Ellipsis.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from splitad.errors import Loc

_REMEMBERED = "__splitad_normal__"
_TEMP = re.compile(r"_t\d+(?:_(\w+))?$")


def is_temp(name: str) -> bool:
    """Whether a local of a normalised function is the normaliser's own (users' are renamed away)."""
    return _TEMP.match(name) is not None


def plain(name: str) -> str:
    """A name for printed code: temporaries and the lowering's flags (%go) lose their marks."""
    temp = _TEMP.match(name)
    return name.replace("%", "") if temp is None else temp[1] or "t"


@dataclass(eq=False)
class NormalFunction:
    """A function, one operation a statement.  Treat it as read-only: it is cached and shared."""

    name: str
    args: list[str]  # positional, in order; defaults are the caller's business
    body: list[ast.stmt]
    globals: dict[str, Any]
    pyfunc: Callable[..., Any]
    file: str
    vararg: str | None = None  # the name of *args
    helpers: dict[str, Any] = field(default_factory=dict)  # what normalising added to the globals
    locals: dict[str, Any] = field(default_factory=dict)  # njit(locals={name: type})

    def loc_of(self, node: ast.AST) -> Loc:
        line = getattr(node, "lineno", self.pyfunc.__code__.co_firstlineno)
        return Loc(self.file, line, self.name, getattr(node, "col_offset", 0))

    @property
    def loc(self) -> Loc:
        return Loc(self.file, self.pyfunc.__code__.co_firstlineno, self.name)

    def resolve(self, name: str) -> Any:
        """What a free name stands for: a helper, a closure cell's content, a global, a builtin."""
        return lookup(name, self.pyfunc, self.helpers)

    def namespace(self) -> dict[str, Any]:
        """Globals in which the normalised text can be executed."""
        return {**self.globals, **closure_of(self.pyfunc), **self.helpers}


def closure_of(pyfunc: Callable[..., Any]) -> dict[str, Any]:
    """The contents of the closure cells; a cell that is still empty is left out."""
    found = {}
    for name, cell in zip(pyfunc.__code__.co_freevars, pyfunc.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def lookup(name: str, pyfunc: Callable[..., Any], helpers: dict[str, Any]) -> Any:
    """The value of a free name, or NameError."""
    for scope in (helpers, closure_of(pyfunc), pyfunc.__globals__, vars(builtins)):
        if name in scope:
            return scope[name]
    raise NameError(f"name {name!r} is not defined")


def remember(normal: NormalFunction) -> None:
    """Ties an inner function that splitad made to its normalised form: it has no source of its own."""
    setattr(normal.pyfunc, _REMEMBERED, normal)


def remembered(pyfunc: Callable[..., Any]) -> NormalFunction | None:
    normal = getattr(pyfunc, _REMEMBERED, None)
    # functools.wraps copies attributes
    return normal if normal is not None and normal.pyfunc is pyfunc else None
