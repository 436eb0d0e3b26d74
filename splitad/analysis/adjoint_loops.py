"""How the adjoint of a loop can be written so that it vectorises.

Four facts about statements and innermost loops:

- **accumulation** ``a[i] = a[i] + e``, the element read for nothing else: its adjoint only reads the
  shadow, ``d_e += d_a[i]``; nothing is zeroed or added.
- **gathered**: an adjoint that adds to the same element in every iteration adds to a scalar instead, and
  that to the element once, behind the loop.
- **deferred**: adjoints that add to different elements of one array in one iteration (``u[i-1]``,
  ``u[i]``, ``u[i+1]``) put what they add into a buffer; loops of their own then add the buffers.  In one
  loop, LLVM must assume that each addition depends on the last.  Those whose index is the counter and a
  constant (`Shift`) are added by one loop that gathers, for each element, what the iterations around
  have for it.
- **ascending**: iterations that do not depend on each other are reversed in forward order.

The last three need that no adjoint in the loop reads a shadow that another one there adds to.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from splitad.analysis.activity import Activity
from splitad.analysis.memory import Memory
from splitad.analysis.offsets import offset, unit_loop
from splitad.analysis.reasons import Reason, Why
from splitad.analysis.reverse import has_reverse
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, operands, outs, walk

SIMPLE = (ir.Prim, ir.Cast, ir.Dim, ir.Load, ir.Store)


FARTHEST = 8  # how far apart the elements may be that one loop gathers


@dataclass(frozen=True)
class Shift:
    """An index that is ``counter + by`` along one axis, never negative, and that the loop does not change
    along the others.  place: the array, and the index with the counter itself along the axis."""

    by: int
    place: tuple[ir.Var, tuple[ir.Operand, ...]]


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """gathered: loads, by identity, and a number for each.  independent: whether no adjoint in
    the loop reads what another adds; then the loop can vectorise.  deferred: for each such load, the
    statements that compute its index from the counter.  shifts: of some of them.
    because: why it is not reversed in forward order, or why it can be."""

    gathered: dict[int, int] = field(default_factory=dict)
    deferred: dict[int, tuple[ir.Stmt, ...]] = field(default_factory=dict)
    shifts: dict[int, Shift] = field(default_factory=dict)
    loads: tuple[ir.Load, ...] = ()
    independent: bool = False
    ascending: bool = False
    because: Reason = Reason(Why.LEFT_OUT)


def accumulations(
    block: ir.Block, memory: Memory, uses: dict[ir.Var, int]
) -> Iterator[tuple[ir.Load, ir.Store]]:
    """The (load, store) pairs of ``a[i] = a[i] + e`` in a block.

    uses: how often each value is read in the whole function.
    """
    defined = {out: s for s in block.stmts if (out := getattr(s, "out", None)) is not None}
    position = {id(s): k for k, s in enumerate(block.stmts)}
    for store in block.stmts:
        if not isinstance(store, ir.Store) or not isinstance(store.value, ir.Var):
            continue
        total = defined.get(store.value)
        if not isinstance(total, ir.Prim) or uses.get(total.out, 0) != 1:
            continue
        if total.fn not in (operator.add, operator.iadd, operator.sub, operator.isub):
            continue
        terms = total.args if total.fn in (operator.add, operator.iadd) else total.args[:1]
        for term in terms:
            load = defined.get(term) if isinstance(term, ir.Var) else None
            if (
                isinstance(load, ir.Load)
                and load.array == store.array
                and load.index == store.index
                and uses.get(load.out, 0) == 1
            ):
                between = block.stmts[position[id(load)] + 1 : position[id(store)]]
                if not any(_writes(s, store.array, memory) for s in between):
                    yield load, store
                    break


def _writes(stmt: ir.Stmt, array: ir.Operand, memory: Memory) -> bool:
    inner = {id(stmt)} | {id(s) for b in blocks(stmt) for s in walk(b)}
    return any(
        id(w.stmt) in inner and memory.may_alias(array, w.array)  # type: ignore[arg-type]
        for w in memory.writes
    )


def count_uses(fn: ir.Function) -> dict[ir.Var, int]:
    """How often each value is read: by statements, yields, the result and the leaves at exit."""
    found: dict[ir.Var, int] = {}

    def add(operand: object) -> None:
        if isinstance(operand, ir.Var):
            found[operand] = found.get(operand, 0) + 1

    def tree(node: ir.Tree) -> None:
        if isinstance(node, ir.TupleTree):
            for item in node.items:
                tree(item)
        else:
            add(node)

    for stmt in walk(fn.body):
        for operand in operands(stmt):
            add(operand)
        for block in blocks(stmt):
            for y in block.yields:
                add(y)
    tree(fn.result)
    for leaf in fn.leaves:
        add(leaf.exit)
    for each in fn.lists:
        add(each.exit)
        add(each.length)
    return found


def loop_plan(
    loop: ir.For,
    memory: Memory,
    active: Activity,
    accumulated: frozenset[int],
    uses: dict[ir.Var, int],
    known: Container[ir.Var],
) -> LoopPlan:
    """accumulated: loads and stores (by identity) of the accumulations.  known: what the reverse has of the
    values that the function computes; an index may be on the tape where what it was computed from is not."""
    for stmt in loop.body.stmts:
        # a branch without an adjoint (a check that may raise) is not there in the reversed loop
        silent = isinstance(stmt, ir.If) and not has_reverse(stmt, active)
        if not isinstance(stmt, SIMPLE) and not silent:
            return LoopPlan(because=Reason(Why.NESTED, stmt))
    reversed_ = [s for s in loop.body.stmts if has_reverse(s, active)]
    adds = [s for s in reversed_ if isinstance(s, ir.Load) and id(s) not in accumulated]
    reads = [s for s in reversed_ if isinstance(s, ir.Store)]
    definition = {out: s for s in loop.body.stmts for out in outs(s)}
    inside = {*definition, loop.counter, *loop.params}
    for add in adds:
        if add.array in inside:
            return LoopPlan(because=Reason(Why.CHOSEN, add))
        if any(memory.may_alias(add.array, r.array) for r in reads):
            return LoopPlan(because=Reason(Why.READ_AND_STORED, add))
    gathered = {id(s): k for k, s in enumerate(s for s in adds if not inside & set(s.index))}
    rest = [s for s in adds if id(s) not in gathered]
    deferred: dict[int, tuple[ir.Stmt, ...]] = {}
    shifts: dict[int, Shift] = {}
    if unit_loop(loop) and all(_affine(s, loop, definition) for s in rest):
        for s in rest:
            others = [o for o in rest if o is not s and memory.may_alias(o.array, s.array)]
            if any(o.index != s.index or o.array != s.array for o in others):
                sums = (offset(entry, loop, definition) for entry in s.index if entry in definition)
                made_by = tuple(stmt for total in sums if total for stmt in total.made_by)
                inputs = {v for stmt in made_by for v in operands(stmt) if isinstance(v, ir.Var)}
                if not all(v in known for v in inputs - inside):
                    continue
                deferred[id(s)] = made_by
                shift = _shift(s, loop, definition)
                if shift is not None:
                    shifts[id(s)] = shift
    conflicts = [s for s in rest if id(s) not in deferred]
    for k, s in enumerate(conflicts):
        for o in conflicts[:k]:
            if memory.may_alias(o.array, s.array) and (o.array, o.index) != (s.array, s.index):
                because = Reason(Why.SAME_ELEMENT, s)
                return LoopPlan(gathered, {}, {}, tuple(adds), because=because)
    hindered = _hindered(loop, active, uses, definition, reads, rest, memory)
    because = Reason(Why.INDEPENDENT) if hindered is None else hindered
    return LoopPlan(gathered, deferred, shifts, tuple(adds), True, hindered is None, because)


def _hindered(
    loop: ir.For,
    active: Activity,
    uses: dict[ir.Var, int],
    definition: dict[ir.Var, ir.Stmt],
    stores: list[ir.Store],
    loads: list[ir.Load],
    memory: Memory,
) -> Reason | None:
    """Why the iterations cannot be reversed in forward order; None where they can."""
    if not unit_loop(loop):
        return Reason(Why.STEP)
    for param in loop.params:
        if active(param) and not _summed(param, loop, definition, uses):
            return Reason(Why.ONWARD, about=(param,))
    # accumulations too, although they write no shadow: the pair forces of nbody, reversed in
    # forward order, are not vectorised (four times slower)
    if not stored_apart(stores, loop, definition, memory):
        return Reason(Why.STORED_TWICE)
    unknown = next((s for s in loads if not _affine(s, loop, definition)), None)
    return None if unknown is None else Reason(Why.UNKNOWN_ELEMENT, unknown)


def _summed(
    param: ir.Var, loop: ir.For, definition: dict[ir.Var, ir.Stmt], uses: dict[ir.Var, int]
) -> bool:
    """Whether the loop only adds to this carried value, or takes from it: its cotangent is then the same
    throughout."""

    def adds_to_it(value: ir.Operand) -> bool:
        if not isinstance(value, ir.Var) or uses.get(value, 0) != 1:
            return False
        if value == param:
            return True
        total = definition.get(value)
        if not isinstance(total, ir.Prim):
            return False
        if total.fn in (operator.add, operator.iadd):
            return any(map(adds_to_it, total.args))
        return total.fn in (operator.sub, operator.isub) and adds_to_it(total.args[0])

    return adds_to_it(loop.body.yields[loop.params.index(param)])


def _affine(stmt: ir.Load | ir.Store, loop: ir.For, definition: dict[ir.Var, ir.Stmt]) -> bool:
    """Whether each index is the counter plus something that the loop does not change, or such a thing
    alone, and one of them has the counter in it."""
    found = False
    for entry in stmt.index:
        if entry not in definition and entry not in (*loop.params, loop.counter):
            continue
        total = offset(entry, loop, definition)
        if total is None or total.counters != 1:
            return False
        found = True
    return found


def _shift(load: ir.Load, loop: ir.For, definition: dict[ir.Var, ir.Stmt]) -> Shift | None:
    """Of a load whose index is affine; None where it is so otherwise."""
    moving = [
        k for k, entry in enumerate(load.index) if entry in definition or entry == loop.counter
    ]
    if load.wraps or len(moving) != 1:
        return None
    (axis,) = moving
    total = offset(load.index[axis], loop, definition)
    if total is None or not total.alone:
        return None
    place = (*load.index[:axis], loop.counter, *load.index[axis + 1 :])
    return Shift(total.constant, (load.array, place))


def stored_apart(
    stores: list[ir.Store], loop: ir.For, definition: dict[ir.Var, ir.Stmt], memory: Memory
) -> bool:
    """Whether the stores of different iterations are to different elements."""
    for k, store in enumerate(stores):
        if store.wraps or not _affine(store, loop, definition):
            return False
        for other in stores[:k]:
            if memory.may_alias(store.array, other.array):
                if (store.array, store.index) != (other.array, other.index):
                    return False
    return True
