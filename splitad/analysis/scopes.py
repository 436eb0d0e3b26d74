"""Where every value is defined: its block, the statement that defines it, and the loops around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, inner_defs, outs


@dataclass(frozen=True, eq=False)
class Scope:
    """One block of a function.

    owner: the For, While or If that holds it (None for the body of the function).
    depth: how many loops are around its statements.
    """

    block: ir.Block
    parent: Scope | None
    owner: ir.Stmt | None
    depth: int

    def chain(self) -> list[Scope]:
        """This scope and those around it, innermost first."""
        found: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            found.append(scope)
            scope = scope.parent
        return found

    def inside(self, other: Scope) -> bool:
        """Whether this scope is `other` or nested in it."""
        return any(scope is other for scope in self.chain())

    @property
    def is_loop(self) -> bool:
        return isinstance(self.owner, (ir.For, ir.While))

    @property
    def record(self) -> Scope:
        """The scope whose tape record holds this one's values: branches share that of their loop."""
        return next(s for s in self.chain() if s.is_loop or s.parent is None)


@dataclass(frozen=True, eq=False)
class Scopes:
    """All scopes of a function, by the identity of their blocks, in order of appearance."""

    root: Scope
    all: tuple[Scope, ...]
    _by_block: dict[int, Scope]
    of: dict[ir.Var, Scope]  # where a value is visible from: params and counters in the loop's body
    definition: dict[ir.Var, ir.Stmt | None] = field(
        repr=False
    )  # None for parameters of the function
    position: dict[int, int] = field(repr=False)  # statement (by identity) -> order of appearance

    def at(self, block: ir.Block) -> Scope:
        return self._by_block[id(block)]

    def holding(self, stmt: int) -> Scope:
        """Where a statement stands, which is given by its identity."""
        return next(s for s in self.all if any(id(x) == stmt for x in s.block.stmts))


def scopes(fn: ir.Function) -> Scopes:
    """Walk fn once and note where everything is."""
    by_block: dict[int, Scope] = {}
    order: list[Scope] = []
    of: dict[ir.Var, Scope] = {}
    definition: dict[ir.Var, ir.Stmt | None] = {}
    position: dict[int, int] = {}

    def visit(block: ir.Block, parent: Scope | None, owner: ir.Stmt | None, depth: int) -> Scope:
        scope = Scope(block, parent, owner, depth)
        by_block[id(block)] = scope
        order.append(scope)
        for stmt in block.stmts:
            position[id(stmt)] = len(position)
            for out in outs(stmt):
                of[out], definition[out] = scope, stmt
            inner = depth + isinstance(stmt, (ir.For, ir.While))
            for child in blocks(stmt):
                child_scope = visit(child, scope, stmt, inner)
                if child_scope.is_loop:
                    for var in inner_defs(stmt):
                        of[var], definition[var] = child_scope, stmt
        return scope

    root = visit(fn.body, None, None, 0)
    for var in fn.params:
        of[var], definition[var] = root, None
    return Scopes(root, tuple(order), by_block, of, definition, position)
