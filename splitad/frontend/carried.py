"""What a loop carries: found by lowering its body until nothing new turns up.

A variable that the body changes needs a parameter, and a parameter the type that Numba's unification gives
its values.  Names to look at follow from the syntax; fields of objects are seen to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.core import types

from splitad.frontend import merge, replaced
from splitad.frontend.normal import plain
from splitad.frontend.state import Context, Key, LoopMemo, State, lookup
from splitad.frontend.structured import (
    RESULT,
    RETURNED,
    Branch,
    ForLoop,
    Node,
    SetFlag,
    SetResult,
    Simple,
    WhileLoop,
    names_assigned,
)
from splitad.frontend.values import FALSE, Value
from splitad.ir import nodes as ir
from splitad.ir.types import unify


@dataclass
class _Carried:
    """A key that the loop changes: its value at first and at the top of an iteration."""

    key: Key
    init: Value
    param: Value
    operands: list[ir.Operand]  # the slots of param: a Var of the loop, or the init itself


@dataclass
class Result:
    params: list[ir.Var]
    inits: list[ir.Operand]
    body: ir.Block
    outs: list[ir.Var]


def fixed_point(
    c: Context, node: ForLoop | WhileLoop, first: list[str], body: Callable[[], None]
) -> Result:
    """Lowers the body until the carried variables and their types are right; sets the names to the outs."""
    memo = c.memo.setdefault((c.frame.path, id(node)), LoopMemo())
    wanted = node.head | node.live
    names = [*first, *(n for n in assigned(node.body) if n in wanted and n not in first)]
    before, known = c.save(), len(c.objects)
    while True:
        keys: list[Key] = [*names, *memo.heap]
        carried = _enter(c, node, keys, first, memo)
        start = c.save()
        with c.b.block() as stmts:
            body()
        end, dead = c.save(), c.dead
        if not dead:
            end = replaced.as_in(c, end, start, dict.fromkeys([*names, *wanted]))
        c.dead = False
        c.restore(before)
        if _settled(c, memo, carried, first, start, end, dead):
            break
    for item in carried:
        if any(oid >= known for oid in merge.objects(lookup(end, item.key), end[1])):
            name = item.key if isinstance(item.key, str) else item.key[1]
            c.refuse(
                f"`{name}` is an object or list that is made in a loop and used after an iteration.",
                "Make it before the loop and change it there.",
            )
    return _leave(c, carried, stmts, end, dead)


def assigned(nodes: list[Node]) -> list[str]:
    """The names that the nodes set, in order."""
    found: dict[str, None] = {}
    for node in nodes:
        match node:
            case Simple(stmt=stmt):
                found.update(dict.fromkeys(sorted(names_assigned(stmt))))
            case SetFlag(name=name):
                found[name] = None
            case SetResult():
                found[RESULT] = None
            case Branch():
                found.update(dict.fromkeys(assigned(node.then) + assigned(node.orelse)))
            case ForLoop(stmt=stmt, go=go):
                assert isinstance(stmt.target, ast.Name)
                found[stmt.target.id] = None
                if go:
                    found[go] = None
                found.update(dict.fromkeys(assigned(node.body)))
            case WhileLoop(go=go):
                found[go] = None
                found.update(dict.fromkeys(assigned(node.body)))
    return list(found)


def statements_of(nodes: list[Node], name: str) -> list[ast.stmt]:
    """The statements that assign the name, in order."""
    found: list[ast.stmt] = []
    for node in nodes:
        match node:
            case Simple(stmt=stmt) if name in names_assigned(stmt):
                found.append(stmt)
            case Branch():
                found += statements_of(node.then, name) + statements_of(node.orelse, name)
            case ForLoop() | WhileLoop():
                found += statements_of(node.body, name)
    return found


def _enter(
    c: Context, node: ForLoop | WhileLoop, keys: list[Key], first: list[str], memo: LoopMemo
) -> list[_Carried]:
    """Binds every carried key to parameters."""
    carried = []
    for key in keys:
        init = c.get(key)
        if init is None and isinstance(key, str):
            init = _undefined(c, node, key)
        if init is None:
            carried.append(_Carried(key, None, None, []))  # type: ignore[arg-type]
            continue
        name = key if isinstance(key, str) else key[1]
        operands: list[ir.Operand] = []
        for i, operand in enumerate(merge.slots(init)):
            if (key, i) in memo.constant:
                operands.append(operand)
                continue
            type = memo.types.get((key, i), types.unliteral(operand.type))
            operands.append(c.b.fresh(plain(name), type))
        param = merge.rebuild(init, list(operands))
        c.set(key, _at_head(key, param))
        carried.append(_Carried(key, init, param, operands))
    return carried


def _at_head(key: Key, param: Value) -> Value:
    """What is known where an iteration begins: the loop has not been left, nothing was returned."""
    if key == RETURNED or (isinstance(key, str) and key.startswith("%broke")):
        return FALSE
    return merge.undefined_like(param) if key == RESULT else param


def _undefined(c: Context, node: ForLoop | WhileLoop, name: str) -> Value | None:
    """What a variable holds that is assigned in the loop only: undefined operands of its type."""
    if name == RESULT:
        return c.undefined(c.frame.typing.return_type)
    kinds = [c.frame.typing.type_of(stmt) for stmt in statements_of(node.body, name)]
    kinds = [kind for kind in kinds if kind is not None]
    type = unify(kinds) if kinds else None
    return c.undefined(type) if type is not None else None


def _settled(
    c: Context,
    memo: LoopMemo,
    carried: list[_Carried],
    first: list[str],
    start: State,
    end: State,
    dead: bool,
) -> bool:
    """Whether the parameters fit what the body did; else `memo` says what to do differently."""
    if dead:
        return True
    good = True
    for heap_key, before in start[1].items():
        if heap_key not in memo.heap and not merge.same(before, end[1].get(heap_key)):
            memo.heap.append(heap_key)
            good = False
    for item in carried:
        value: Any = lookup(end, item.key)
        name = item.key if isinstance(item.key, str) else item.key[1]
        if item.init is None or not merge.slots(item.init):
            if value is not None and merge.slots(value):
                c.refuse(
                    f"`{name}` is first assigned in a loop, and its type is not supported there."
                )
            if item.init is not None:
                merge.align(c, name, item.init, value)
            continue
        if value is None:
            continue
        param, value = merge.align(c, name, item.param, value)
        if len(merge.slots(param)) != len(item.operands):
            c.refuse(f"`{name}` is not the same kind of thing in every iteration.")
        for i, (have, new, init) in enumerate(
            zip(item.operands, merge.slots(value), merge.slots(item.init), strict=True)
        ):
            slot = (item.key, i)
            if slot in memo.constant:
                if not merge.same(have, new):
                    memo.constant.discard(slot)
                    memo.varying.add(slot)
                    good = False
                continue
            if merge.same(have, new) and slot not in memo.varying and item.key not in first:
                memo.constant.add(slot)
                good = False
                continue
            type = merge.common_type(c, name, init, new)
            if not merge.is_undefined(new) and not merge.same(have, new):
                type = merge.common_type(c, name, ir.Lit(0, type), new)
            known = memo.types.get(slot, types.unliteral(init.type))
            if type != known:
                widened = unify((known, type))
                if merge.is_undefined(init) and slot not in memo.types:
                    widened = type  # so far a guess
                if widened is None:
                    c.refuse(f"`{name}` is {known} at first and {type} later.")
                if widened != known:
                    memo.types[slot] = widened
                    good = False
    return good


def _leave(
    c: Context,
    carried: list[_Carried],
    stmts: list[ir.Stmt],
    end: State,
    dead: bool,
) -> Result:
    """Casts inits and yields to the parameters' types, and binds the keys to the outs."""
    result = Result([], [], ir.Block(()), [])
    yields: list[ir.Operand] = []
    for item in carried:
        value = lookup(end, item.key)
        name = item.key if isinstance(item.key, str) else item.key[1]
        if item.init is None or not merge.slots(item.init):
            if value is not None:
                c.set(item.key, value)
            continue
        if value is None or dead:
            news: list[ir.Operand] = [ir.Lit(ir.UNDEF, p.type) for p in item.operands]
        else:
            news = merge.slots(merge.align(c, name, item.param, value)[1])
        after: list[ir.Operand] = []
        for param, new, init in zip(item.operands, news, merge.slots(item.init), strict=True):
            if param is init or not isinstance(param, ir.Var) or merge.same(param, init):
                after.append(init)
                continue
            out = c.b.fresh(plain(name), param.type)
            result.params.append(param)
            result.inits.append(c.cast(init, param.type, plain(name)))
            yields += merge.in_block(
                c,
                stmts,
                lambda v=new, t=param.type, n=name: [c.cast(v, t, plain(n))],  # type: ignore[misc]
            )
            result.outs.append(out)
            after.append(out)
        c.set(item.key, merge.rebuild(item.init, after))
    result.body = ir.Block(tuple(stmts), tuple(yields))
    return result
