"""Which arrays the forward holds a reference to at some statement: an exception there would leak them.

    x = np.empty(n)
    for k in range(n):        at the statement in the loop: x, which is read behind it, and y
        y = x[k:]
        ...
        s += y[0] * x[0]

Numba gives no reference back where an exception passes.  What a statement in a loop raises there leaks.  The
function's arguments are the caller's: generated code counts no references to them.
"""

from __future__ import annotations

from numba import types

from splitad.analysis.memory import tree_leaves
from splitad.analysis.scopes import Scope, Scopes
from splitad.ir import nodes as ir
from splitad.ir.types import struct_fields
from splitad.ir.walk import operands

_NEVER, _ALWAYS = -1, 1 << 60


def is_counted(type: types.Type) -> bool:
    """Whether a value of the type is a reference to memory, or holds one."""
    if isinstance(type, types.BaseTuple):
        return any(is_counted(item) for item in type)
    return isinstance(type, types.Array) or struct_fields(type) is not None


class Held:
    """For one function."""

    def __init__(self, fn: ir.Function, where: Scopes) -> None:
        self.where = where
        # the last statement of the value's own block that reads it, itself or inside
        own = (v for v in where.of if v not in fn.params)
        self.last: dict[ir.Var, int] = {v: _NEVER for v in own if is_counted(v.type)}
        for scope in where.all:
            for stmt in scope.block.stmts:
                for value in operands(stmt):
                    self._read(value, scope, where.position[id(stmt)])
            for value in scope.block.yields:
                self._read(value, scope, _ALWAYS)
        for value in (*tree_leaves(fn.result), *(leaf.exit for leaf in fn.leaves)):
            self._read(value, where.root, _ALWAYS)

    def _read(self, value: ir.Operand, scope: Scope, position: int) -> None:
        if not isinstance(value, ir.Var) or value not in self.last:
            return
        home = self.where.of[value]
        while scope is not home:
            assert scope.parent is not None
            position, scope = self._owner(scope), scope.parent
        self.last[value] = max(self.last[value], position)

    def _owner(self, scope: Scope) -> int:
        return self.where.position[id(scope.owner)]

    def at(self, stmt: ir.Stmt, scope: Scope) -> tuple[ir.Var, ...]:
        """Those that are there before the statement, which is in `scope`, and are read by it or behind it."""
        here: dict[Scope, int] = {}
        position = self.where.position[id(stmt)]
        for around in scope.chain():
            here[around] = position
            if around.parent is not None:
                position = self._owner(around)
        return tuple(
            v
            for v, last in self.last.items()
            if self.where.of[v] in here
            and last >= here[self.where.of[v]]
            and self._defined(v) < here[self.where.of[v]]
        )

    def _defined(self, value: ir.Var) -> int:
        stmt = self.where.definition[value]
        return _NEVER if stmt is None else self.where.position[id(stmt)]
