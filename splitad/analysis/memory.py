"""Which arrays may share memory: every array's roots, and who writes what.

A root is where memory comes from: ``("arg", leaf)``, ``("new", variable)`` for an allocation,
``("lit", key)`` for a frozen global.  Inside the body of a loop that only permutes the arrays it carries
(three swapped buffers), each carried array has a root of its own, ``("slot", parameter)``: there they
cannot be the same array.  Seen from outside of that loop a slot is any of the arrays it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from numba import types

from splitad.analysis.scopes import Scope, Scopes
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, operands, walk

Root = tuple[str, object]
Roots = frozenset[Root]


def is_array(operand: object) -> bool:
    return isinstance(getattr(operand, "type", None), types.Array)


@dataclass(frozen=True, eq=False)
class Write:
    """A statement that writes an array's elements."""

    stmt: ir.Stmt
    array: ir.Var
    scope: Scope


@dataclass(frozen=True, eq=False)
class Memory:
    """Facts about arrays; see the module."""

    roots: dict[ir.Var, Roots]
    slot_loops: dict[
        ir.Var, tuple[Scope, Roots]
    ]  # slot parameter -> its loop's body, roots outside
    writes: tuple[Write, ...]
    escaping: Roots  # roots that the caller can reach after the call
    scopes: Scopes

    def lift(self, roots: Roots, scope: Scope) -> Roots:
        """roots as they are seen from `scope`: slots of loops that are not around it are opened."""
        result: set[Root] = set()
        pending = list(roots)
        while pending:
            root = pending.pop()
            if root[0] == "slot":
                body, outside = self.slot_loops[root[1]]  # type: ignore[index]
                if not scope.inside(body):
                    pending.extend(outside)
                    continue
            result.add(root)
        return frozenset(result)

    def base_roots(self, array: ir.Operand) -> Roots:
        """The arguments, allocations and globals that array's memory can be part of."""
        if isinstance(array, ir.Lit):
            return frozenset([("lit", array.key)])
        return self.lift(self.roots[array], self.scopes.root)

    def may_alias(self, a: ir.Var, b: ir.Var) -> bool:
        """Whether a and b can share memory while both are visible."""
        if isinstance(a, ir.Lit) or isinstance(b, ir.Lit):
            return False  # a frozen global cannot be written
        scope_b = self.scopes.of[b]
        common = next(s for s in self.scopes.of[a].chain() if scope_b.inside(s))
        return bool(self.lift(self.roots[a], common) & self.lift(self.roots[b], common))

    def writes_to(self, array: ir.Var, within: Scope) -> Iterator[Write]:
        """The writes inside `within` that may change what array (visible there or outside) holds."""
        for write in self.writes:
            if write.scope.inside(within) and self.may_alias(array, write.array):
                yield write


def memory(
    fn: ir.Function, where: Scopes, written: dict[int, tuple[ir.Var, ...]], args_alias: bool
) -> Memory:
    """Roots of every array of fn.

    written: arrays that an ArrayCall writes, by the statement's identity (from its rule).
    args_alias: the arguments may overlap each other; then they have one root.
    """
    roots: dict[ir.Var, Roots] = {}
    slots: dict[ir.Var, tuple[Scope, Roots]] = {}
    listed: dict[object, Roots] = {}  # of the arrays in lists, by their kind
    for leaf in fn.leaves:
        if is_array(leaf.var):
            roots[leaf.var] = frozenset([("arg", None if args_alias else leaf.var)])

    def get(operand: ir.Operand) -> Roots:
        if isinstance(operand, ir.Lit):
            return frozenset([("lit", operand.key)])
        return roots.get(operand, frozenset())

    def visit(block: ir.Block) -> None:
        for stmt in block.stmts:
            if isinstance(stmt, ir.View):
                roots[stmt.out] = get(stmt.base)
            elif isinstance(stmt, (ir.Alloc, ir.ListItems)):
                roots[stmt.out] = frozenset([("new", stmt.out)])
            elif isinstance(stmt, ir.Refer):
                key = kind_of(stmt)
                listed[key] = listed.get(key, frozenset()) | get(stmt.array)
            elif isinstance(stmt, ir.ListArrays):
                roots[stmt.outs[0]] = frozenset([("new", stmt.outs[0])])
                own = list_root(stmt.obj, args_alias)
                listed[stmt.kind] = listed.get(stmt.kind, frozenset()) | {own}
            elif isinstance(stmt, ir.Deref):
                roots[stmt.outs[0]] = listed.get(kind_of(stmt), frozenset())
            elif isinstance(stmt, ir.ArrayCall):
                for out in stmt.outs:
                    if is_array(out):
                        roots[out] = frozenset([("new", out)])
            elif isinstance(stmt, ir.If):
                visit(stmt.then)
                visit(stmt.orelse)
                for k, out in enumerate(stmt.outs):
                    if is_array(out):
                        sides = (stmt.then.yields, stmt.orelse.yields)
                        roots[out] = frozenset().union(*(get(s[k]) for s in sides if k < len(s)))
            elif isinstance(stmt, (ir.For, ir.While)):
                visit_loop(stmt)

    def visit_loop(loop: ir.For | ir.While) -> None:
        carried = [k for k, p in enumerate(loop.params) if is_array(p)]
        outside = {k: get(loop.inits[k]) for k in carried}
        if carried and _permutes(loop, carried, outside, get):
            body = where.at(loop.body)
            for k in carried:
                roots[loop.params[k]] = frozenset([("slot", loop.params[k])])
            visit(loop.body)
            union = frozenset().union(*outside.values(), *(_fresh(loop, k, get) for k in carried))
            for k in carried:
                slots[loop.params[k]] = (body, union)
                roots[loop.outs[k]] = union
            return
        current = dict(outside)
        while True:
            for k in carried:
                roots[loop.params[k]] = current[k]
            visit(loop.body)
            grown = {k: current[k] | get(loop.body.yields[k]) for k in carried}
            if grown == current:
                break
            current = grown
        for k in carried:
            roots[loop.outs[k]] = current[k]

    visit(fn.body)
    if listed:  # what is put into a list in one place may be found in another, before it too
        before: object = None
        while before != (listed, roots):
            before = dict(listed), dict(roots)
            slots.clear()
            visit(fn.body)
    writes = []
    for scope in where.all:
        for stmt in scope.block.stmts:
            if isinstance(stmt, ir.Store):
                writes.append(Write(stmt, stmt.array, scope))
            elif isinstance(stmt, ir.ArrayCall):
                writes.extend(Write(stmt, a, scope) for a in written.get(id(stmt), ()))
    facts = Memory(roots, slots, tuple(writes), frozenset(), where)
    reachable = [leaf.exit for leaf in fn.leaves] + [leaf.var for leaf in fn.leaves]
    reachable += list(tree_leaves(fn.result))
    escaping = frozenset().union(*(facts.base_roots(a) for a in reachable if is_array(a)))
    escaping |= {list_root(each.param, args_alias) for each in fn.lists if each.kind is not None}
    kinds = {each.kind for each in changed_lists(fn)}
    for kind in kinds & listed.keys():
        escaping |= facts.lift(listed[kind], where.root)
    return Memory(roots, slots, tuple(writes), escaping, where)


def changed_lists(fn: ir.Function) -> tuple[ir.ListArg, ...]:
    """The lists of arrays among the arguments that may hold other arrays at exit than at entry."""
    changed = {stmt.obj for stmt in walk(fn.body) if isinstance(stmt, ir.ListOp)}
    return tuple(each for each in fn.lists if each.kind is not None and each.param in changed)


def list_root(argument: ir.Var, args_alias: bool) -> Root:
    """The memory of all arrays in a list argument."""
    return ("arg", None if args_alias else argument)


def kind_of(stmt: ir.Refer | ir.Deref | ir.ListArrays) -> types.Array:
    """What a Refer and a Deref share where they may be of one array."""
    return stmt.outs[0].type if isinstance(stmt, ir.Deref) else stmt.kind


def tree_leaves(tree: ir.Tree) -> Iterator[ir.Operand]:
    """The scalars and arrays of a result, in order."""
    if isinstance(tree, ir.TupleTree):
        for item in tree.items:
            yield from tree_leaves(item)
    elif tree is not None:
        yield tree


def _fresh(loop: ir.For | ir.While, k: int, get: Callable[[ir.Operand], Roots]) -> Roots:
    y = loop.body.yields[k]
    return frozenset() if y in loop.params else get(y)


def _permutes(
    loop: ir.For | ir.While,
    carried: list[int],
    outside: dict[int, Roots],
    get: Callable[[ir.Operand], Roots],
) -> bool:
    """Whether the loop's carried arrays stay distinct: see the module."""
    if any(isinstance(stmt, ir.Refer) for stmt in walk(loop.body)):
        return False  # a list may have the arrays of earlier iterations
    params = [loop.params[k] for k in carried]
    inside_new = {
        out
        for stmt in walk(loop.body)
        for out in (
            (stmt.out,) if isinstance(stmt, ir.Alloc)
            else stmt.outs if isinstance(stmt, ir.ArrayCall) else ()
        )
    }  # fmt: skip
    yields = [loop.body.yields[k] for k in carried]
    if len(set(yields)) != len(yields):
        return False
    if any(y not in params and y not in inside_new for y in yields):
        return False
    seen: set[Root] = set()
    for k in carried:
        if seen & outside[k]:
            return False
        seen |= outside[k]
    own = set(params)
    used = {v for stmt in walk(loop.body) for v in operands(stmt) if is_array(v)}
    used |= {
        v for stmt in walk(loop.body) for block in blocks(stmt) for v in block.yields if is_array(v)
    }
    return not any(get(v) & seen for v in used - own if isinstance(v, (ir.Var, ir.Lit)))
