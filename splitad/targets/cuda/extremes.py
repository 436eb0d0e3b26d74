"""Finds out whose offer an element holds in the end, where `cuda.atomic.max` or `min` has an adjoint.

The cotangent of the element goes to the offer that it holds; to what it held before, where no offer was
larger (or smaller); where threads offer the same, to one of them.  What was not larger than what was there,
or is NaN, is no offer: `offers` is False.  (What the operation returns decides no more than that: on a GPU it
is a value that was there at some time before, also for an operation that changed nothing.)

Of an argument's array, which the kernel only offers to, what it holds is known when the kernel has ended.
The launch keeps a copy, and the reverse kernel compares:

    cuda.atomic.max(y, i, v)           old, offers, offered = atomic.max(y, i, v)
                                       the winner: who offered what y's copy holds, and claims the place first

Of a shared array, it is known at the next barrier, before anything is written behind it:

    if c:                              if c: old, offers, offered = atomic.max(s, i, v)
        cuda.atomic.max(s, i, v)       yielded: offers, offered, i, or False, 0, 0
    cuda.syncthreads()                 cuda.syncthreads()
                                       hit = claim(s, offers, i, offered)   s[i] == offered; all that hit
                                       cuda.syncthreads()                   write their number to one place,
                                       won = confirm(s, i, hit)             and one finds its own there
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from numba import types

from splitad.analysis.activity import Activity
from splitad.analysis.memory import Root
from splitad.analysis.reverse import has_reverse
from splitad.analysis.scopes import Scope
from splitad.analysis.threads import is_barrier, ops_of
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.threads import ArrayOp
from splitad.ir.walk import blocks, map_blocks, walk
from splitad.transform.fresh import Fresh

_HINT = "Take the extremum in a loop over the values, or find its place in an integer array."
_SHARED_BYTES = 48 * 1024  # what a block may have without asking for more


def run(fn: ir.Function, active: Activity) -> ir.Function:
    """fn, with what decides who won; refuses what that cannot be decided for."""
    calls = [stmt for stmt, op in ops_of(fn) if op.kind in ("max", "min") and active(stmt.args[0])]
    if not calls:
        return fn
    checks = _Checks(fn, active)
    shared = {id(stmt) for stmt in calls if checks.is_shared(stmt)}
    _check_size(fn, [stmt for stmt in calls if id(stmt) in shared])
    return _Rewrite(fn, {id(stmt) for stmt in calls}, shared).function()


# ---- what can be decided -------------------------------------------------------------------------------


class _Checks:
    def __init__(self, fn: ir.Function, active: Activity) -> None:
        self.fn, self.active, self.memory = fn, active, active.memory
        self.where = active.memory.scopes
        self.scope_of = {id(s): scope for scope in self.where.all for s in scope.block.stmts}

    def is_shared(self, call: ir.ArrayCall) -> bool:
        """Whether the next barrier decides, and not the end of the kernel."""
        array = call.args[0]
        assert isinstance(array, ir.Var)
        made = self.where.definition.get(array)
        if isinstance(made, ir.Alloc) and made.kind == "shared":
            self._check_shared(call, array)
            return True
        if any(leaf.var == array for leaf in self.fn.leaves):
            self._check_argument(call, array)
            return False
        what = "of a view"
        if isinstance(made, ir.Alloc):
            what = "of a local array" if made.kind == "local" else "of dynamic shared memory"
        self._refuse(
            call,
            f"{what} has no derivative here",
            call.loc,
            "Let it be of an argument, or of a shared array of constant size, and not of a view of one.",
        )
        return False

    def _refuse(self, call: ir.ArrayCall, why: str, other: object, hint: str = _HINT) -> None:
        name = getattr(call.fn, "__name__", "")
        line = getattr(other, "line", None)
        if line is not None and other != call.loc:
            why += f" (line {line})"
        raise UnsupportedError(f"{name} {why}, where values carry a derivative.", call.loc, hint)

    def _touches(self, stmt: ir.Stmt, roots: frozenset[Root]) -> str | None:
        """How the statement itself touches this memory: "store", "load" with an adjoint, or "max", "add"."""
        if isinstance(stmt, ir.Store):
            return "store" if self.memory.base_roots(stmt.array) & roots else None
        if isinstance(stmt, ir.Load):
            found = has_reverse(stmt, self.active) and self.memory.base_roots(stmt.array) & roots
            return "load" if found else None
        if isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, ArrayOp) and not is_barrier(stmt):
            return stmt.fn.kind if self.memory.base_roots(stmt.args[0]) & roots else None
        return None

    # ---- arguments ---------------------------------------------------------------------------------

    def _check_argument(self, call: ir.ArrayCall, array: ir.Var) -> None:
        roots = self.memory.base_roots(array)
        assert isinstance(call.fn, ArrayOp)
        for stmt in walk(self.fn.body):
            how = self._touches(stmt, roots)
            if how == "store":
                self._refuse(
                    call,
                    f"is of {array.name}, which the kernel writes too",
                    stmt.loc,
                    "Write it in a kernel of its own, before or after this one.",
                )
            if how == "load" and self._comes_before(stmt, call):
                self._refuse(
                    call,
                    f"is of {array.name}, which is read before it",
                    stmt.loc,
                    "Read it in a kernel of its own, before or after this one.",
                )
            if how not in (None, "store", "load", call.fn.kind):
                self._refuse(
                    call,
                    f"and cuda.atomic.{how} are of one array: what it holds depends on their order",
                    stmt.loc,
                    "Give each an array of its own.",
                )

    def _comes_before(self, stmt: ir.Stmt, call: ir.ArrayCall) -> bool:
        """Whether it may be executed before the call."""
        position = self.where.position
        if position[id(stmt)] < position[id(call)]:
            return True
        loops = {id(s) for s in self.scope_of[id(call)].chain() if s.is_loop}
        return any(id(s) in loops for s in self.scope_of[id(stmt)].chain())

    # ---- shared arrays -----------------------------------------------------------------------------

    def _check_shared(self, call: ir.ArrayCall, array: ir.Var) -> None:
        """Between the call and the next barrier nothing else may happen to the element."""
        roots = self.memory.base_roots(array)
        assert isinstance(call.fn, ArrayOp)
        behind, beside = list(self._until_barrier(call)), list(self._since_barrier(call))
        for stmt in behind:
            how = self._touches(stmt, roots)
            if how in ("store", "load"):
                verb = "written" if how == "store" else "read"
                self._refuse(
                    call,
                    f"is of {array.name}, which is {verb} again before the next cuda.syncthreads()",
                    stmt.loc,
                    "Put a cuda.syncthreads() behind it.",
                )
        for stmt in (*beside, *behind):
            how = self._touches(stmt, roots)
            if how not in (None, "store", "load", call.fn.kind):
                self._refuse(
                    call,
                    f"and cuda.atomic.{how} are of one array, with no cuda.syncthreads() between them",
                    stmt.loc,
                    "Put a cuda.syncthreads() between them, or give each an array of its own.",
                )

    def _until_barrier(self, call: ir.ArrayCall) -> Iterator[ir.Stmt]:
        stmt: ir.Stmt = call
        scope = self.scope_of[id(call)]
        while True:
            at = next(k for k, s in enumerate(scope.block.stmts) if s is stmt)
            for after in scope.block.stmts[at + 1 :]:
                if is_barrier(after):
                    return
                yield after
                for inner in _within(after):
                    if is_barrier(inner):
                        self._refuse(
                            call,
                            "is not followed by a cuda.syncthreads() that is passed whatever happens",
                            inner.loc,
                            "Put one behind it, in the same block.",
                        )
                    yield inner
            if scope.is_loop:
                assert scope.owner is not None
                self._refuse(
                    call,
                    "of a shared array is in a loop with no cuda.syncthreads() behind it",
                    scope.owner.loc,
                    "Take the extremum of the loop's values in a variable, and offer it behind the loop.",
                )
            if scope.parent is None:
                self._refuse(
                    call,
                    "of a shared array has no cuda.syncthreads() behind it",
                    call.loc,
                    "Put one behind it, before the array is read.",
                )
            assert scope.owner is not None and scope.parent is not None
            stmt, scope = scope.owner, scope.parent

    def _since_barrier(self, call: ir.ArrayCall) -> Iterator[ir.Stmt]:
        """What other threads may be doing meanwhile, and more."""
        stmt: ir.Stmt = call
        scope: Scope | None = self.scope_of[id(call)]
        while scope is not None:
            at = next(k for k, s in enumerate(scope.block.stmts) if s is stmt)
            for before in reversed(scope.block.stmts[:at]):
                if is_barrier(before):
                    return
                yield before
                yield from _within(before)
            if scope.owner is not None:  # the other side of a branch, other iterations of a loop
                yield from _within(scope.owner)
                stmt = scope.owner
            scope = scope.parent


def _within(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
    for block in blocks(stmt):
        yield from walk(block)


def _check_size(fn: ir.Function, calls: list[ir.ArrayCall]) -> None:
    """A claim takes 8 bytes of shared memory for each element."""
    allocs = [s for s in fn.body.stmts if isinstance(s, ir.Alloc) and s.kind == "shared"]
    claimed = {call.args[0] for call in calls}
    total = 0
    for stmt in allocs:
        size = math.prod(n.value for n in stmt.shape if isinstance(n, ir.Lit))
        total += size * (types.unliteral(stmt.out.type.dtype).bitwidth // 8)
        total += 8 * size * (stmt.out in claimed)
    if claimed and total > _SHARED_BYTES:
        raise UnsupportedError(
            f"{calls[0].fn.__name__}: to tell who won takes 8 bytes more for each element of the shared "  # type: ignore[attr-defined]
            f"array, {total} in all, and a block has {_SHARED_BYTES}.",
            calls[0].loc,
            "Let a smaller array hold the extrema.",
        )


# ---- how it is decided ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pending:
    """An offer to a shared array, until the next barrier.  won: what will say whether it is what the element
    holds."""

    array: ir.Var
    offers: ir.Operand
    offered: ir.Operand
    index: tuple[ir.Operand, ...]
    won: ir.Var


class _Rewrite:
    def __init__(self, fn: ir.Function, calls: set[int], shared: set[int]) -> None:
        self.fn, self.calls, self.shared = fn, calls, shared
        self.fresh = Fresh(fn)

    def function(self) -> ir.Function:
        body, pending = self.block(self.fn.body)
        assert not pending, "an offer is not decided"
        return replace(self.fn, body=body)

    def block(self, body: ir.Block) -> tuple[ir.Block, list[_Pending]]:
        stmts: list[ir.Stmt] = []
        pending: list[_Pending] = []
        for stmt in body.stmts:
            if id(stmt) in self.calls:
                assert isinstance(stmt, ir.ArrayCall)
                stmts.append(self.offer(stmt, pending))
            elif isinstance(stmt, ir.If):
                stmts.append(self.branch(stmt, pending))
            elif is_barrier(stmt) and pending:
                stmts += [stmt, *self.decide(stmt, pending)]
                pending.clear()
            else:
                stmts.append(map_blocks(stmt, self.closed))
        return ir.Block(tuple(stmts), body.yields), pending

    def closed(self, body: ir.Block) -> ir.Block:
        """A block behind which nothing is pending: that of a loop."""
        made, pending = self.block(body)
        assert not pending, "an offer is not decided"
        return made

    def offer(self, stmt: ir.ArrayCall, pending: list[_Pending]) -> ir.ArrayCall:
        array, *index, value = stmt.args
        assert isinstance(array, ir.Var) and isinstance(stmt.fn, ArrayOp)
        kind = array.type.dtype
        old = stmt.outs or (self.fresh("old", kind),)
        offers, offered = self.fresh("offers", types.boolean), self.fresh("offered", kind)
        winner: tuple[ir.Var, ...] = (offers, offered)
        if id(stmt) in self.shared:
            winner = (self.fresh("won", types.boolean),)
            pending.append(_Pending(array, offers, offered, tuple(index), *winner))
        op = replace(stmt.fn, winner=winner)
        return replace(stmt, fn=op, outs=(*old, offers, offered))

    def branch(self, stmt: ir.If, pending: list[_Pending]) -> ir.If:
        """What is pending at the end of a side is handed out of it."""
        then, of_then = self.block(stmt.then)
        orelse, of_else = self.block(stmt.orelse)
        outs = list(stmt.outs)
        sides = ([], [])  # type: tuple[list[ir.Operand], list[ir.Operand]]
        for own, (other, found) in enumerate(((1, of_then), (0, of_else))):
            for one in found:
                given: list[ir.Operand] = []
                for value in (one.offers, one.offered, *one.index):
                    if isinstance(value, ir.Lit):
                        given.append(value)
                        continue
                    out = self.fresh(value.name, value.type)
                    outs.append(out)
                    sides[own].append(value)
                    sides[other].append(ir.Lit(0, types.unliteral(value.type)))
                    given.append(out)
                offers, offered, *index = given
                pending.append(_Pending(one.array, offers, offered, tuple(index), one.won))
        return replace(
            stmt,
            then=replace(then, yields=(*then.yields, *sides[0])),
            orelse=replace(orelse, yields=(*orelse.yields, *sides[1])),
            outs=tuple(outs),
        )

    def decide(self, barrier: ir.Stmt, pending: list[_Pending]) -> Iterator[ir.Stmt]:
        hits = [self.fresh("hit", types.boolean) for _ in pending]
        for one, hit in zip(pending, hits, strict=True):
            op, args = ArrayOp("claim", len(one.index)), (one.array, one.offers, *one.index)
            yield ir.ArrayCall((hit,), op, (*args, one.offered), loc=barrier.loc)
        yield ir.ArrayCall((), ArrayOp("barrier", 0), (), loc=barrier.loc)
        for one, hit in zip(pending, hits, strict=True):
            op = ArrayOp("confirm", len(one.index))
            yield ir.ArrayCall((one.won,), op, (one.array, *one.index, hit), loc=barrier.loc)
