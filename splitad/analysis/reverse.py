"""What the reverse pass will do: which statements have an adjoint, and which values that reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numba import types

from splitad.analysis.activity import Activity, is_differentiable
from splitad.analysis.identity import Identity
from splitad.analysis.memory import is_array, tree_leaves
from splitad.analysis.reasons import Reason, Why
from splitad.analysis.scopes import Scope
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction
from splitad.ir.threads import ArrayOp
from splitad.ir.walk import blocks, walk
from splitad.rules import registry


@dataclass(frozen=True)
class Term:
    """One partial derivative that a Prim's adjoint uses: of its out in its argument number `arg`."""

    arg: int
    partial: registry.Partial
    operands: dict[str, ir.Operand]  # what the partial's text names


def terms(stmt: ir.Prim, active: Activity) -> tuple[Term, ...]:
    """The contributions of a Prim's adjoint."""
    if not active(stmt.out):
        return ()
    rule = registry.scalar_rule(stmt.fn)
    assert rule is not None
    is_complex = any(isinstance(v.type, types.Complex) for v in (stmt.out, *stmt.args))
    partials = rule.partials_for(is_complex)
    names = {**dict(zip(rule.params, stmt.args, strict=False)), "out": stmt.out}
    return tuple(
        Term(k, partial, {name: names[name] for name in partial.needs})
        for k, (arg, partial) in enumerate(zip(stmt.args, partials, strict=False))
        if partial is not None and active(arg)
    )


def has_reverse(stmt: ir.Stmt, active: Activity) -> bool:
    """Whether the statement has an adjoint."""
    if isinstance(stmt, (ir.Prim, ir.Cast, ir.Load)):
        return active(stmt.out)
    if isinstance(stmt, ir.Store):
        return active(stmt.array)
    if isinstance(stmt, ir.ArrayCall):
        if isinstance(stmt.fn, RecursiveFunction) and stmt.fn.takes_structs:
            return True  # only its pair can be called with the fields of structs
        return any(active(v) for v in (*stmt.outs, *written_by(stmt)))
    if isinstance(stmt, (ir.For, ir.While, ir.If)):
        if any(active(out) and not is_array(out) for out in stmt.outs):
            return True
        return any(has_reverse(s, active) for b in blocks(stmt) for s in b.stmts)
    return False


def written_by(call: ir.ArrayCall) -> tuple[ir.Var, ...]:
    """The argument arrays that the call writes."""
    rule = registry.array_rule(call.fn)
    assert rule is not None
    return tuple(a for k in rule.writes if k < len(call.args) and is_array(a := call.args[k]))  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class Replay:
    """A loop of which the reverse pass runs the iterations again (analysis/replay.py).

    scalars, state, read: what an iteration reads of what is defined outside of it: scalars, the counter and
    those that the loop carries among them; arrays that it writes; arrays that it only reads.
    loose: whether it may come out otherwise in the last bits.  because: why it is replayed."""

    loop: ir.For
    body: Scope
    scalars: tuple[ir.Var, ...]
    state: tuple[ir.Var, ...]
    read: tuple[ir.Var, ...]
    loose: bool = False
    because: Reason = Reason(Why.REPLAYED)


@dataclass(frozen=True, eq=False)
class Reverse:
    """values: scalars that the reverse pass reads, in order of first need.
    contents: the arrays whose elements an ArrayCall's adjoint reads, or the replay of a loop, with the
    statement.
    shadowed: the arrays whose shadows it touches."""

    values: tuple[ir.Var, ...]
    contents: tuple[tuple[ir.ArrayCall | ir.For, ir.Var], ...]
    shadowed: frozenset[ir.Var]


def reverse(
    fn: ir.Function,
    active: Activity,
    identity: Identity,
    lists: tuple[ir.ListArg, ...] = (),
    replays: tuple[Replay, ...] = (),
) -> Reverse:
    """What the reverse pass of fn, which has its identities, will do.

    lists: those that have a shadow of the caller's.  replays: the loops of which it runs iterations again."""
    values: dict[ir.Var, None] = {}
    contents: list[tuple[ir.ArrayCall | ir.For, ir.Var]] = []
    shadowed: dict[ir.Var, None] = {}
    views: dict[ir.Var, ir.View] = {}
    allocs: dict[ir.Var, ir.Alloc] = {}
    fields = _FieldFacts(fn, active)

    def need(operand: object) -> None:
        if isinstance(operand, ir.Var) and not is_array(operand):
            values[operand] = None
        elif isinstance(operand, ir.Slice):
            for part in (operand.start, operand.stop, operand.step):
                need(part)

    def shadow(array: ir.Operand) -> None:
        if not isinstance(array, ir.Var) or array in shadowed or not active(array):
            return
        shadowed[array] = None
        if array in views:
            shadow(views[array].base)
            for entry in views[array].index:
                need(entry)
            return
        for value in identity.values(array):
            need(value)
        for size in allocs[array].shape if array in allocs else identity.dims.get(array, ()):
            need(size)

    for stmt in walk(fn.body):
        if isinstance(stmt, ir.View):
            views[stmt.out] = stmt
        elif isinstance(stmt, ir.Alloc):
            allocs[stmt.out] = stmt
    again = {id(replay.loop): replay for replay in replays}
    inside = {id(stmt) for replay in replays for stmt in walk(replay.loop.body)}
    for stmt in walk(fn.body):
        if not has_reverse(stmt, active) or id(stmt) in inside:
            continue
        if id(stmt) in again:
            for value in again[id(stmt)].scalars:
                need(value)
            for array in again[id(stmt)].read:
                contents.append((stmt, array))  # type: ignore[arg-type]
            for array in (*again[id(stmt)].read, *again[id(stmt)].state):
                shadow(array)
        if isinstance(stmt, ir.Prim):
            for term in terms(stmt, active):
                for operand in term.operands.values():
                    need(operand)
        elif isinstance(stmt, (ir.Load, ir.Store)):
            shadow(stmt.array)
            for entry in stmt.index:
                need(entry)
        elif isinstance(stmt, ir.For):
            for bound in (stmt.start, stmt.stop, stmt.step):
                need(bound)
        elif isinstance(stmt, ir.If):
            need(stmt.cond)
        elif isinstance(stmt, ir.ArrayCall):
            if isinstance(stmt.fn, ArrayOp):
                for entry in stmt.args[1:-1]:  # where an atomic operation is done
                    need(entry)
                for value in stmt.fn.winner:
                    need(value)
            for operand in saved_operands(stmt, active):
                if is_array(operand):
                    if isinstance(operand, ir.Var):
                        contents.append((stmt, operand))
                else:
                    need(operand)
            for operand in (*stmt.args, *stmt.outs):
                if is_array(operand):
                    shadow(operand)
            for array in scratch_of(stmt, active):
                for size in allocs[array].shape if array in allocs else identity.dims[array]:
                    need(size)
    for operand in tree_leaves(fn.result):
        if is_array(operand):
            shadow(operand)
    for leaf in fn.leaves:  # integer fields are copied into shadows that make_zero makes
        if any(isinstance(step, str) for step in leaf.path) and not is_differentiable(
            leaf.var.type
        ):
            need(leaf.exit)
    for leaf in fn.leaves:
        if is_array(leaf.var) and active(leaf.var):
            if leaf.var in identity.dims:
                shadow(leaf.var)
            if fields.rebound:
                shadow(leaf.var)
                shadow(leaf.exit)
                need(identity.id.get(leaf.exit))  # type: ignore[arg-type]
    for each in lists:
        shadow(each.var)
        shadow(each.exit)
    for stmt in fn.body.stmts:
        if isinstance(stmt, ir.ListArrays) and len(stmt.outs) > 1:
            need(stmt.outs[1])
    return Reverse(tuple(values), tuple(contents), frozenset(shadowed))


def scratch_of(call: ir.ArrayCall, active: Activity) -> Iterator[ir.Var]:
    """The arrays for which a recursive function's pullback is given zeros: they carry no derivative."""
    if isinstance(call.fn, RecursiveFunction):
        for v in (*call.args, *call.outs):
            if isinstance(v, ir.Var) and is_array(v) and is_differentiable(v.type):
                if not active(v):
                    yield v


class _FieldFacts:
    """Whether any array field of a struct argument holds another array at exit."""

    def __init__(self, fn: ir.Function, active: Activity) -> None:
        self.rebound = any(is_array(l.var) and l.exit != l.var and active(l.var) for l in fn.leaves)


def saved_operands(call: ir.ArrayCall, active: Activity) -> Iterator[ir.Operand]:
    """The arguments and results whose values or contents the call's pullback reads."""
    rule = registry.array_rule(call.fn)
    assert rule is not None
    saves = set(rule.saves([active(a) for a in call.args]))
    for need in rule.call:
        if need.name in saves and need.kind in ("contents", "out", "residual"):
            value = operand_of(need, call, rule)
            if value is not None:
                yield value


def operand_of(
    need: registry.Need, call: ir.ArrayCall, rule: registry.ArrayRule
) -> ir.Operand | None:
    """What a parameter of a rule's pullback stands for at this call; None where it was not given."""
    if need.kind in ("contents", "shape", "shadow"):
        return call.args[need.index] if need.index < len(call.args) else None
    if need.kind == "residual":
        return call.outs[need.index]
    if need.kind in ("out", "d_out"):
        if rule.overwrites is not None and rule.overwrites < len(call.args):
            return call.args[rule.overwrites]
        return call.outs[need.index]
    return dict(call.static).get(need.name)
