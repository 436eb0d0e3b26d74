"""Additions of which a loop makes one sum: nothing reads the sum before the loop has ended.

    for i in range(n):                    s = s + e     found: the terms may be added in any order
        s += x[i] * x[i]
        if x[i] > 0.0:
            t += x[i]                     t             found: one side adds, the other hands on
        u += x[i]; y[i] = u               u             not: each part of the sum is stored
    for k in range(n):
        c[i, j] += a[i, k] * b[k, j]      found: one element, which nothing else in the loop may touch

A sum is a chain of additions, each of which waits for the last; in any order, the loop vectorises.  A sum
that something else reads in the loop is left alone: of Kahan's compensated sum, the order is all.
"""

from __future__ import annotations

import operator
from collections import defaultdict

from numba import types

from splitad.analysis.adjoint_loops import accumulations
from splitad.analysis.memory import Memory, is_array
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, exits, inner_defs, operands, outs, walk, walk_blocks


def sums(fn: ir.Function, memory: Memory) -> frozenset[ir.Var]:
    """The results of the additions and subtractions that may be done in any order."""
    uses = Uses(fn)
    counts = {value: len(read) for value, read in uses.of.items()}
    found: set[ir.Var] = set()
    for stmt in walk(fn.body):
        if isinstance(stmt, (ir.For, ir.While)):
            for k in range(len(stmt.params)):
                found |= additions_to(stmt, k, uses) or set()
        if isinstance(stmt, ir.For):
            found |= _element(stmt, counts, memory)
    return frozenset(found)


class Uses:
    """Where values are read: each with the block, and the statement, or None where the block yields it."""

    def __init__(self, fn: ir.Function) -> None:
        self.of: dict[ir.Var, list[tuple[ir.Block, ir.Stmt | None]]] = defaultdict(list)
        self.branch: dict[int, ir.If] = {}  # by the identity of its blocks
        for block in walk_blocks(fn.body):
            read = [(value, stmt) for stmt in block.stmts for value in operands(stmt)]
            for value, stmt in (*read, *((value, None) for value in block.yields)):
                if isinstance(value, ir.Var):
                    self.of[value].append((block, stmt))
            for stmt in block.stmts:
                if isinstance(stmt, ir.If):
                    self.branch |= {id(side): stmt for side in blocks(stmt)}
        for value in exits(fn):
            if isinstance(value, ir.Var):
                self.of[value].append((fn.body, None))


def additions_to(loop: ir.For | ir.While, k: int, uses: Uses) -> set[ir.Var] | None:
    """The additions to what the loop carries in its place k; None if anything else is done with it."""
    param = loop.params[k]
    return _to_end(param, loop.body, k, uses) if isinstance(param.type, types.Float) else None


def _to_end(
    value: ir.Var, block: ir.Block, k: int, uses: Uses, whole: bool = True
) -> set[ir.Var] | None:
    """The additions that make of a value what the block yields in its place k.

    whole: whether all uses of the value are to be in the block.
    """
    found: set[ir.Var] = set()
    while True:
        here = [stmt for where, stmt in uses.of[value] if where is block]
        through: tuple[set[ir.Var], ir.Var] | None = None
        if not here:
            through = _branch(value, block, uses)
        elif len(here) > 1 or (whole and len(uses.of[value]) > 1):
            return None
        elif here[0] is None:
            return found if block.yields[k] == value else None
        elif isinstance(here[0], (ir.For, ir.While)):
            through = _loop(value, here[0], uses)
        elif adds(here[0], value):
            through = {here[0].out}, here[0].out  # type: ignore[union-attr]
        if through is None:
            return None
        found |= through[0]
        value, whole = through[1], True


def _loop(value: ir.Var, loop: ir.For | ir.While, uses: Uses) -> tuple[set[ir.Var], ir.Var] | None:
    """Through a loop that starts from the value: the additions, and what becomes of it."""
    if value not in loop.inits:
        return None
    k = loop.inits.index(value)
    added = additions_to(loop, k, uses)
    return None if added is None else (added, loop.outs[k])


def _branch(value: ir.Var, block: ir.Block, uses: Uses) -> tuple[set[ir.Var], ir.Var] | None:
    """Through a branch in the block, each side of which adds to the value or hands it on."""
    branches = {
        id(stmt): stmt for where, _ in uses.of[value] if (stmt := uses.branch.get(id(where)))
    }
    if len(branches) != 1 or any(id(where) not in uses.branch for where, _ in uses.of[value]):
        return None
    (stmt,) = branches.values()
    if not any(stmt is each for each in block.stmts):
        return None
    for k, out in enumerate(stmt.outs):
        sides = [_to_end(value, side, k, uses, whole=False) for side in (stmt.then, stmt.orelse)]
        if all(side is not None for side in sides):
            return set().union(*sides), out  # type: ignore[arg-type]
    return None


def _element(loop: ir.For, counts: dict[ir.Var, int], memory: Memory) -> set[ir.Var]:
    """The additions ``a[i] = a[i] + e`` with an array and an index that the loop does not change."""
    found: set[ir.Var] = set()
    inside = list(walk(loop.body))
    changed = {loop.counter, *loop.params}
    changed.update(var for stmt in inside for var in (*outs(stmt), *inner_defs(stmt)))
    for load, store in accumulations(loop.body, memory, counts):
        if changed & {store.array, *store.index}:
            continue
        if not any(adds(stmt, load.out) for stmt in loop.body.stmts):
            continue
        others = {
            v
            for stmt in inside
            if stmt is not load and stmt is not store
            for v in operands(stmt)
            if isinstance(v, ir.Var) and is_array(v)
        }
        if not any(memory.may_alias(store.array, array) for array in others):
            found.add(store.value)  # type: ignore[arg-type]
    return found


def adds(stmt: ir.Stmt, value: ir.Var) -> bool:
    """Whether it adds something to the float value, or subtracts something from it."""
    if not isinstance(stmt, ir.Prim) or len(stmt.args) != 2:
        return False
    same = {types.unliteral(each.type) for each in (stmt.out, *stmt.args)}
    if len(same) != 1 or not isinstance(value.type, types.Float):
        return False
    return (stmt.fn is operator.add and value in stmt.args) or (
        stmt.fn is operator.sub and stmt.args[0] == value
    )
