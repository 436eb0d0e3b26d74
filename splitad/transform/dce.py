"""Drops what has no effect: unused values, unused carried values, loops and branches left empty,
and arrays that are only written.

    w = empty((4), float64)                       for i in 0..n step 1 [s = s0] -> s_1:
    for i in 0..n step 1 [s = s0, c = 0] -> s_1, c_1:
      t = x[i]                             ->       t = x[i]
      u = add(s, t)                                 u = add(s, t)
      d = add(c, 1)                                 yield u
      w[0] = u                                    return s_1
      yield u, d
    return s_1

What may raise stays, so does a `while` (it might not end) and whatever draws a random number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from splitad.analysis.bounds import Bounds
from splitad.analysis.memory import Memory, Root, is_array, memory
from splitad.analysis.scopes import scopes
from splitad.analysis.traps import may_trap
from splitad.ir import nodes as ir
from splitad.ir import walk


def run(fn: ir.Function, error_model: str, boundscheck: bool = False) -> ir.Function:
    """boundscheck: an access may raise, so it is kept where its value is not used."""
    live = _Liveness(fn, error_model, boundscheck)
    return dataclasses.replace(fn, body=live.block(fn.body))


class _Liveness:
    """Marks from the effects backwards; what is not reached has none."""

    def __init__(self, fn: ir.Function, error_model: str, boundscheck: bool) -> None:
        self.fn, self.error_model, self.boundscheck = fn, error_model, boundscheck
        self.defs = walk.defs(fn)
        self.bounds = Bounds(fn)
        self.facts: Memory = memory(fn, scopes(fn), {}, args_alias=True)
        self.values: set[ir.Var] = set()
        self.stmts: set[int] = set()
        self.roots: set[Root] = set()
        self.owner: dict[int, ir.Stmt | None] = {}
        self.stores: dict[Root, list[ir.Stmt]] = {}
        self.pending: list[ir.Var] = []
        effects = self.scan(fn.body, None)
        for operand in walk.exits(fn):
            self.use(operand)
            self.read(operand)
        for stmt in effects:
            self.keep(stmt)
        while self.pending:
            self.follow(self.pending.pop())

    # ---- what has an effect -----------------------------------------------------------------

    def scan(self, block: ir.Block, owner: ir.Stmt | None) -> list[ir.Stmt]:
        """Note who owns whom and who stores where; the statements that must stay."""
        effects: list[ir.Stmt] = []
        for stmt in block.stmts:
            self.owner[id(stmt)] = owner
            if isinstance(stmt, ir.Store):
                roots = self.facts.base_roots(stmt.array)
                if not roots or any(kind != "new" for kind, _ in roots):
                    effects.append(stmt)
                for root in roots:
                    self.stores.setdefault(root, []).append(stmt)
            elif self.has_effect(stmt):
                effects.append(stmt)
            for inner in walk.blocks(stmt):
                effects += self.scan(inner, stmt)
        return effects

    def has_effect(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Prim():
                return may_trap(stmt, self.error_model)
            case ir.Load():
                return self.boundscheck
            case ir.View():  # a reshape raises where the sizes do not agree
                scalar = any(isinstance(entry, (ir.Var, ir.Lit)) for entry in stmt.index)
                return stmt.kind == "reshape" or (self.boundscheck and scalar)
            case ir.Alloc():  # a negative size raises
                return not all(self.bounds.nonnegative(size) for size in stmt.shape)
            case ir.For():  # a step of zero raises
                return self.bounds.of(stmt.step)[0] <= 0 <= self.bounds.of(stmt.step)[1]
            case ir.Cast() | ir.Dim() | ir.Stride() | ir.Deref() | ir.GetField() | ir.TupleGet():
                return False
            case ir.If():
                return False
        return True

    # ---- marking ----------------------------------------------------------------------------

    def use(self, operand: ir.Operand) -> None:
        if isinstance(operand, ir.Var) and operand not in self.values:
            self.values.add(operand)
            self.pending.append(operand)

    def read(self, operand: ir.Operand) -> None:
        """Somebody sees the contents of this array: what was stored into it matters."""
        if not isinstance(operand, ir.Var) or not is_array(operand):
            return
        for root in self.facts.base_roots(operand) - self.roots:
            self.roots.add(root)
            for store in self.stores.get(root, ()):
                self.keep(store)

    def keep(self, stmt: ir.Stmt | None) -> None:
        """The statement stays, and so does what decides whether it runs."""
        while stmt is not None and id(stmt) not in self.stmts:
            self.stmts.add(id(stmt))
            for operand in _needs(stmt):
                self.use(operand)
                if not isinstance(stmt, (ir.Store, ir.Dim, ir.Stride, ir.View)):
                    self.read(operand)
            stmt = self.owner[id(stmt)]

    def follow(self, var: ir.Var) -> None:
        """What a value that is used is made of."""
        if var not in self.defs:
            return  # a parameter of the function
        stmt = self.defs[var][0]
        self.keep(stmt)
        if isinstance(stmt, ir.If):
            position = stmt.outs.index(var)
            self.use(stmt.then.yields[position])
            self.use(stmt.orelse.yields[position])
        elif isinstance(stmt, (ir.For, ir.While)):
            for variables in (stmt.params, stmt.outs):
                if var in variables:
                    position = variables.index(var)
                    self.use(stmt.params[position])
                    self.use(stmt.inits[position])
                    self.use(stmt.body.yields[position])

    # ---- rebuilding -------------------------------------------------------------------------

    def block(self, block: ir.Block, kept: list[int] | None = None) -> ir.Block:
        """The block without what is not marked, and of its yields those at the positions kept."""
        stmts = tuple(self.statement(s) for s in block.stmts if id(s) in self.stmts)
        yields = block.yields if kept is None else tuple(block.yields[k] for k in kept)
        return ir.Block(stmts, yields)

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.If):
            kept = [k for k, out in enumerate(stmt.outs) if out in self.values]
            then, orelse = self.block(stmt.then, kept), self.block(stmt.orelse, kept)
            return dataclasses.replace(stmt, then=then, orelse=orelse, outs=_pick(stmt.outs, kept))
        if isinstance(stmt, (ir.For, ir.While)):
            pairs = enumerate(zip(stmt.params, stmt.outs, strict=True))
            kept = [k for k, pair in pairs if any(var in self.values for var in pair)]
            return dataclasses.replace(
                stmt,
                params=_pick(stmt.params, kept),
                inits=_pick(stmt.inits, kept),
                body=self.block(stmt.body, kept),
                outs=_pick(stmt.outs, kept),
            )
        return stmt


def _needs(stmt: ir.Stmt) -> Iterator[ir.Operand]:
    """What a statement that stays needs; of a loop what decides how often it runs."""
    if isinstance(stmt, ir.For):
        yield from (stmt.start, stmt.stop, stmt.step)
    elif isinstance(stmt, ir.While):
        yield stmt.params[0]
    else:
        yield from walk.operands(stmt)


def _pick(items: tuple, kept: list[int]) -> tuple:  # type: ignore[type-arg]
    return tuple(items[k] for k in kept)
