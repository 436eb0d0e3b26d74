"""Loops over time of which the pullback runs the iterations again, instead of taping what they compute.

    for t in range(steps):                 the forward saves x and v at the start of each step, n values;
        for i in range(n):                 the pullback puts them into copies of its own, runs the step again
            for j in range(n):             with a small tape, on which n * n values are, and reverses it from
                f += math.exp(-...)        there; then the step before, on the same small tape
            v[i] += dt * f
        ...

It can be done where an iteration depends on nothing from outside but scalars, arrays that it only reads, and
arrays that it writes, its `state`.  A second time it must take the same branches.  With the options of the
forward it comes out the same to the bit, unless these are fastmath or the forward calls vector forms of
functions: then no branch, index or trip count may depend on a float that may differ.  Where none depends on
any computed float at all (`loose`), a replay has the options of the pullback, and is faster.

It is worth it where what would be on the tape for an iteration is a higher power of the sizes than the
state, and where nothing is computed in deeper loops than that.  A loose replay then takes about as long as
taping and loading did; one that must be exact takes as long as the function itself, until the tape leaves the
caches.  So that is done where the tape has a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from numba import types

from splitad.analysis.activity import Activity, is_differentiable
from splitad.analysis.identity import Identity
from splitad.analysis.memory import Memory, is_array
from splitad.analysis.reverse import Replay, has_reverse
from splitad.analysis.save_plan import Plan
from splitad.analysis.scopes import Scope, Scopes
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, inner_defs, operands, outs, walk
from splitad.rules import registry
from splitad.rules.spelling import cheap

_KNOWN = (
    ir.Prim,
    ir.Cast,
    ir.Dim,
    ir.Load,
    ir.Store,
    ir.View,
    ir.Alloc,
    ir.For,
    ir.While,
    ir.If,
    ir.Raise,
)
_SHOWN = (ir.SetField, ir.Print)  # for others to see: not done again
_ELEMENTS = (ir.Load, ir.Store, ir.Dim)


def repeated(block: ir.Block) -> Iterator[ir.Stmt]:
    """What a replay of the block does."""
    return (stmt for stmt in walk(block) if not isinstance(stmt, _SHOWN))


def replayable(
    fn: ir.Function,
    where: Scopes,
    active: Activity,
    identity: Identity,
    fastmath: object,
    vector: bool,
) -> tuple[Replay, ...]:
    """All loops of which it can be done.  vector: whether the forward calls functions of libmvec."""
    rebound = any(is_array(leaf.var) and leaf.exit != leaf.var for leaf in fn.leaves)
    if identity.place or rebound:
        return ()
    found = []
    for stmt in fn.body.stmts:
        if isinstance(stmt, ir.For) and has_reverse(stmt, active):
            replay = _replay(stmt, where, active.memory, identity)
            if replay is None:
                continue
            loose = _same_branches(replay, where, active.memory, fastmath=True, vector=True)
            if loose or _same_branches(replay, where, active.memory, fastmath, vector):
                found.append(replace(replay, loose=loose))
    return tuple(found)


def _replay(loop: ir.For, where: Scopes, memory: Memory, identity: Identity) -> Replay | None:
    body = where.at(loop.body)
    stmts = list(repeated(loop.body))
    if not loop.body.stmts or isinstance(loop.body.stmts[-1], ir.Raise):
        return None
    if any(not _is_known(stmt) for stmt in walk(loop.body)) or any(map(is_array, loop.params)):
        return None
    used: dict[ir.Var, None] = {}
    for value in _uses(stmts, loop.body):
        if isinstance(value, ir.Var) and (
            where.of[value] is where.root or value in inner_defs(loop)
        ):
            used[value] = None
    arrays = [value for value in used if is_array(value)]
    scalars = tuple(value for value in used if not is_array(value))
    if not all(_is_number(value.type) for value in scalars) or loop.counter.type != types.intp:
        return None
    for array in arrays:
        apart = array not in identity.id and len(memory.base_roots(array)) == 1
        if not apart or not _by_element(array, stmts):
            return None
    written = {
        root
        for write in memory.writes
        if write.scope.inside(body)
        for root in memory.base_roots(write.array)
    }
    state = []
    for root in written:
        if root[0] == "new" and root[1] in where.of and where.of[root[1]].inside(body):  # type: ignore[index]
            continue
        its = [array for array in arrays if root in memory.base_roots(array)]
        if len(its) != 1:
            return None  # views of it, of which one may write what is read through another
        state += its
    return Replay(
        loop,
        body,
        scalars,
        tuple(array for array in arrays if array in state),
        tuple(array for array in arrays if array not in state),
    )


def _is_known(stmt: ir.Stmt) -> bool:
    """No array is chosen, nothing is called that may come out otherwise, or that others see."""
    if isinstance(stmt, ir.SetField):
        return not is_array(stmt.value)
    if isinstance(stmt, (ir.For, ir.While, ir.If)):
        return not any(map(is_array, (*outs(stmt), *inner_defs(stmt))))
    return isinstance(stmt, (*_KNOWN, ir.Print))


def _uses(stmts: list[ir.Stmt], body: ir.Block) -> Iterator[ir.Operand]:
    for stmt in stmts:
        yield from operands(stmt)
        for block in blocks(stmt):
            yield from block.yields
    yield from body.yields


def _is_number(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), (types.Number, types.Boolean))


def _by_element(array: ir.Var, stmts: list[ir.Stmt]) -> bool:
    """Whether a contiguous copy of the array can stand for it: it is contiguous itself, or only its elements
    are used."""
    plain = array.type.layout == "C" and array.type.aligned
    if not _is_number(array.type.dtype):
        return False
    return plain or all(isinstance(stmt, _ELEMENTS) for stmt in stmts if array in operands(stmt))


# ---- the same a second time --------------------------------------------------------------------------------


def _same_branches(
    replay: Replay, where: Scopes, memory: Memory, fastmath: object, vector: bool
) -> bool:
    """Whether no branch, index or trip count can come out otherwise."""
    stmts = list(repeated(replay.loop.body))
    unsure = _unsure(stmts, replay, where, memory, fastmath, vector)
    for stmt in stmts:
        if isinstance(stmt, ir.Prim):
            rule = registry.scalar_rule(stmt.fn)
            jumps = rule is None or rule.kind == "zero" or not is_differentiable(stmt.out.type)
            if jumps and unsure & set(stmt.args):
                return False
        elif isinstance(stmt, ir.Cast):
            if not is_differentiable(stmt.out.type) and stmt.arg in unsure:
                return False
    return True


def _unsure(
    stmts: list[ir.Stmt],
    replay: Replay,
    where: Scopes,
    memory: Memory,
    fastmath: object,
    vector: bool,
) -> set[ir.Operand]:
    """The floats whose last bits may be others."""
    unsure: set[ir.Operand] = set()
    stores = [(s, where.holding(id(s))) for s in stmts if isinstance(s, ir.Store)]

    def carried(targets: tuple[ir.Var, ...], *sources: tuple[ir.Operand, ...]) -> None:
        for k, target in enumerate(targets):
            if any(k < len(values) and values[k] in unsure for values in sources):
                unsure.add(target)

    def before(store: ir.Store, scope: Scope, load: ir.Load) -> bool:
        """Whether the load may read what the store stored, in one iteration."""
        around = [s for s in where.of[load.out].chain() if s.inside(replay.body) and s.is_loop]
        together = any(scope.inside(s) for s in around if s is not replay.body)
        return together or where.position[id(store)] < where.position[id(load)]

    known = -1
    while known != len(unsure):
        known = len(unsure)
        for stmt in stmts:
            if isinstance(stmt, ir.Prim) and is_differentiable(stmt.out.type):
                if fastmath or (vector and _is_dear(stmt)) or unsure & set(stmt.args):
                    unsure.add(stmt.out)
            elif isinstance(stmt, ir.Cast) and stmt.arg in unsure:
                unsure.add(stmt.out)
            elif isinstance(stmt, ir.Load) and isinstance(stmt.array, ir.Var):
                for store, scope in stores:
                    if store.value in unsure and memory.may_alias(stmt.array, store.array):
                        if before(store, scope, stmt):
                            unsure.add(stmt.out)
            elif isinstance(stmt, (ir.For, ir.While)):
                carried(stmt.params, stmt.inits, stmt.body.yields)
                carried(stmt.outs, stmt.inits, stmt.body.yields)
            elif isinstance(stmt, ir.If):
                carried(stmt.outs, stmt.then.yields, stmt.orelse.yields)
    return unsure


def _is_dear(stmt: ir.Prim) -> bool:
    """Whether it may be one of libmvec's."""
    rule = registry.scalar_rule(stmt.fn)
    return rule is None or not cheap(rule, stmt.args)


# ---- what it costs -----------------------------------------------------------------------------------------


def is_worth(replay: Replay, plan: Plan, where: Scopes, limited: bool) -> bool:
    """plan: what is on the tape without it.  limited: whether there is a limit to the tape."""
    inner = [(s, _loops(s, replay.body)) for s in where.all if s.inside(replay.body)]
    taped = max((depth for s, depth in inner if plan.taped.get(s)), default=0)
    computed = (depth for s, depth in inner if any(map(_is_computed, s.block.stmts)))
    kept = max((_axes(array, replay) for array in replay.state), default=taped)
    once = all(_axes(array, replay) <= taped + 1 for array in replay.read)
    if not (replay.loose or limited):
        return False
    return once and taped > kept > 0 and taped >= max(computed, default=0)


def _is_computed(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Prim) and is_differentiable(stmt.out.type)


def _loops(scope: Scope, body: Scope) -> int:
    """How many loops around it are in the body, without those of constant length."""
    inner = scope.chain()[: scope.chain().index(body)]
    return sum(s.is_loop and not _is_short(s.owner) for s in inner)


def _is_short(loop: ir.Stmt | None) -> bool:
    return (
        isinstance(loop, ir.For)
        and isinstance(loop.start, ir.Lit)
        and isinstance(loop.stop, ir.Lit)
    )


def _axes(array: ir.Var, replay: Replay) -> int:
    """How many axes an array has that the sizes of the problem are lengths of: not those whose indices are
    constants or counters of short loops."""
    short: set[ir.Operand] = set()
    long: set[int] = set()
    for stmt in repeated(replay.loop.body):
        if isinstance(stmt, ir.For) and _is_short(stmt):
            short.add(stmt.counter)
        if isinstance(stmt, (ir.Load, ir.Store)) and stmt.array == array:
            for axis, entry in enumerate(stmt.index):
                if not isinstance(entry, ir.Lit) and entry not in short:
                    long.add(axis)
        elif array in operands(stmt) and not isinstance(stmt, ir.Dim):
            return int(array.type.ndim)
    return len(long)
