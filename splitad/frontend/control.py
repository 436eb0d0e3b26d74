"""Branches and loops."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

import numba
from numba.core import types

from splitad.frontend import merge, replaced, scalars
from splitad.frontend.carried import assigned, fixed_point, statements_of
from splitad.frontend.normal import plain
from splitad.frontend.ranges import is_number, range_bounds, trip_count
from splitad.frontend.state import Context, Key, State, lookup
from splitad.frontend.structured import Branch, ForLoop, Node, WhileLoop
from splitad.frontend.values import FALSE, TRUE, PyVal, Value, is_scalar
from splitad.ir import nodes as ir
from splitad.ir.types import unify

Lower = Callable[[Context, list[Node]], None]


# ---- branches ----------------------------------------------------------------------------------


def branch(c: Context, node: Branch, lower: Lower) -> None:
    """An `if`; where the condition is known now, the side that is taken alone."""
    # a flag of ours that the statement sets is no condition of the user's
    if isinstance(node.stmt, ast.If) and getattr(node.stmt.test, "id", None) == node.test:
        taken = c.frame.typing.taken(node.stmt)
        if taken is not None:  # Numba did not even type the other side
            lower(c, node.then if taken else node.orelse)
            return
    test = c.get(node.test)
    if test is None:
        test = scalars.resolve(c, node.test)
    cond = scalars.truth(c, test)
    if isinstance(cond, ir.Lit):
        taken_side, other = (node.then, node.orelse) if cond.value else (node.orelse, node.then)
        lower(c, taken_side)
        _widen(c, other, node.live)
        return
    choose(c, cond, lambda: lower(c, node.then), lambda: lower(c, node.orelse), node.live)


def _widen(c: Context, other: list[Node], live: frozenset[str]) -> None:
    """Gives variables the type that Numba does, which does not know that `other` is never taken."""
    for name in assigned(other):
        value = c.get(name)
        if name not in live or not is_scalar(value) or c.dead:
            continue
        kinds = [c.frame.typing.type_of(stmt, name) for stmt in statements_of(other, name)]
        kinds = [kind for kind in kinds if kind is not None]
        type = unify((value.type, kinds[-1])) if kinds else None
        if isinstance(type, (types.Number, types.Boolean)):
            c.set(name, c.cast(value, type, plain(name)))


def choose(
    c: Context,
    cond: ir.Operand,
    then: Callable[[], None],
    orelse: Callable[[], None],
    live: frozenset[str],
) -> None:
    """An If node around what the two functions emit; the names and fields that they set are merged."""
    before = c.save()
    with c.b.block() as then_stmts:
        then()
    after_then, then_dead = c.save(), c.dead
    c.restore(before)
    c.dead = False
    with c.b.block() as else_stmts:
        orelse()
    after_else, else_dead = c.save(), c.dead
    c.dead = then_dead and else_dead
    if not (then_dead or else_dead):
        after_then = replaced.as_in(c, after_then, after_else, live)
    outs: list[ir.Var] = []
    yields: tuple[list[ir.Operand], list[ir.Operand]] = ([], [])
    c.restore(after_else if then_dead else after_then)
    if not c.dead:
        for key in _changed(before, after_then, after_else, live):
            values = [
                None if dead else lookup(state, key)
                for state, dead in ((after_then, then_dead), (after_else, else_dead))
            ]
            if values[0] is None and values[1] is None:
                continue
            c.set(
                key,
                _merged(
                    c, key, values[0], values[1], (then_stmts, else_stmts), outs, yields,
                    then_dead or else_dead, cond,
                ),
            )  # fmt: skip
        for name in [n for n in c.frame.names if n not in before[0] and n not in live]:
            del c.frame.names[name]  # made in one of the branches, and not visible any more
    blocks = (
        ir.Block(tuple(then_stmts), tuple(yields[0])),
        ir.Block(tuple(else_stmts), tuple(yields[1])),
    )
    if outs or then_stmts or else_stmts:
        c.b.emit(ir.If(cond, *blocks, tuple(outs), loc=c.b.loc))


def _changed(before: State, one: State, other: State, live: frozenset[str]) -> list[Key]:
    """Live names and all fields that may differ after the two paths, in a fixed order."""
    names = [
        name
        for name in dict.fromkeys([*one[0], *other[0]])
        if name in live
        and not (
            merge.same(one[0].get(name), before[0].get(name))
            and merge.same(other[0].get(name), before[0].get(name))
        )
    ]
    old = {oid for oid, _ in before[1]}
    made = {
        oid
        for name in names
        for state in (one, other)
        for oid in merge.objects(state[0].get(name), state[1])
    }
    fields = [
        key
        for key in dict.fromkeys([*one[1], *other[1]])
        if key[0] in old | made
        and not (
            merge.same(one[1].get(key), before[1].get(key))
            and merge.same(other[1].get(key), before[1].get(key))
        )
    ]
    return [*names, *fields]


def _merged(
    c: Context,
    key: Key,
    a: Value | None,
    b: Value | None,
    blocks: tuple[list[ir.Stmt], list[ir.Stmt]],
    outs: list[ir.Var],
    yields: tuple[list[ir.Operand], list[ir.Operand]],
    one_dead: bool,
    cond: ir.Operand,
) -> Value:
    """The value after an If; appends to its outs and its blocks' yields."""
    name = key if isinstance(key, str) else key[1]
    if merge.same(a, b):
        assert a is not None
        return a
    first, second = merge.align(c, name, a, b)
    result: list[ir.Operand] = []
    for x, y in zip(merge.slots(first), merge.slots(second), strict=True):
        if merge.same(x, y) or (isinstance(x, ir.Lit) and one_dead and b is None):
            result.append(x)
            continue
        if isinstance(y, ir.Lit) and one_dead and a is None:
            result.append(y)
            continue
        type = merge.common_type(c, name, x, y)
        known = None if one_dead else _is_condition(c, cond, x, y)
        if known is not None:
            result.append(known)
            continue
        pair = (x, y)
        for side in (0, 1):
            yields[side].extend(
                merge.in_block(
                    c,
                    blocks[side],
                    lambda v=pair[side], t=type: [c.cast(v, t, name)],  # type: ignore[misc]
                )
            )
        out = c.b.fresh(plain(name), type)
        outs.append(out)
        result.append(out)
    return merge.rebuild(first, result)


def _is_condition(c: Context, cond: ir.Operand, x: ir.Operand, y: ir.Operand) -> ir.Operand | None:
    """What `True if cond else False` is, and the other way round; None for other operands."""
    if x == TRUE and y == FALSE:
        return cond
    if x == FALSE and y == TRUE:
        return scalars.prim(c, operator.not_, cond)
    return None


# ---- loops -------------------------------------------------------------------------------------


def for_loop(c: Context, node: ForLoop, lower: Lower) -> None:
    """A range loop: a For, or with a flag to leave it a While over its trip count."""
    stmt = node.stmt
    assert isinstance(stmt.iter, ast.Call) and isinstance(stmt.target, ast.Name)
    name = stmt.target.id
    start, stop, step = range_bounds(c, stmt)
    known = c.frame.typing.type_of(stmt)
    if known is not None:
        start, stop, step = (c.cast(bound, known) for bound in (start, stop, step))
    if node.go is not None:
        _leaving_for(c, node, (start, stop, step), lower)
        return
    counter = c.b.fresh(plain(name), start.type)
    callee = scalars.name_value(c, stmt.iter.func)
    is_prange = isinstance(callee, PyVal) and callee.value is numba.prange

    def body() -> None:
        c.set(name, counter)
        lower(c, node.body)

    found = fixed_point(c, node, [], body)
    c.b.emit(
        ir.For(
            counter, start, stop, step, tuple(found.params), tuple(found.inits), found.body,
            tuple(found.outs), is_prange and c.frame.flags.parallel, loc=c.b.loc,
        )
    )  # fmt: skip


def _leaving_for(
    c: Context, node: ForLoop, bounds: tuple[ir.Operand, ir.Operand, ir.Operand], lower: Lower
) -> None:
    """``while go: i = start + k * step; body; k += 1; go = go and k < trip``."""
    start, stop, step = bounds
    assert node.go is not None and isinstance(node.stmt.target, ast.Name)
    target = node.stmt.target.id
    trip = trip_count(c, start, stop, step)
    count = f"%{plain(target)}_{node.go}"
    type = start.type
    c.set(node.go, scalars.prim(c, operator.lt, ir.Lit(0, type), trip))
    c.set(count, ir.Lit(0, type))

    def body() -> None:
        k = c.get(count)
        assert isinstance(k, (ir.Var, ir.Lit)) and node.go is not None
        scaled = k if is_number(step, 1) else scalars.prim(c, operator.mul, k, step, type=type)
        at = (
            scaled
            if is_number(start, 0)
            else scalars.prim(c, operator.add, start, scaled, type=type)
        )
        c.set(target, at)
        c.set(node.go, TRUE)
        lower(c, node.body)
        if c.dead:
            return
        after = scalars.prim(c, operator.add, k, ir.Lit(1, type), type=type, name="k")
        c.set(count, after)
        go = c.get(node.go)
        assert isinstance(go, (ir.Var, ir.Lit))
        if go == FALSE:
            return
        more = scalars.prim(c, operator.lt, after, trip, name="go")
        c.set(
            node.go,
            more if go == TRUE else scalars.prim(c, operator.and_, go, more, name="go"),
        )

    _while(c, node, [node.go, count], body)


def while_loop(c: Context, node: WhileLoop, lower: Lower) -> None:
    go = c.get(node.go)
    assert go is not None
    c.set(node.go, scalars.truth(c, go))

    def body() -> None:
        c.set(node.go, TRUE)
        lower(c, node.body)
        go = c.get(node.go)
        if not c.dead and go is not None:
            c.set(node.go, scalars.truth(c, go))

    _while(c, node, [node.go], body)


def _while(
    c: Context, node: ForLoop | WhileLoop, first: list[str], body: Callable[[], None]
) -> None:
    found = fixed_point(c, node, first, body)
    c.b.emit(
        ir.While(
            tuple(found.params), tuple(found.inits), found.body, tuple(found.outs), loc=c.b.loc
        )
    )
