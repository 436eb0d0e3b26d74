"""Reading and rewriting IR, derived from the dataclass fields of the nodes.

The only knowledge kept here is how fields are named: `out` and `outs` define values in the enclosing
block, `counter` and `params` inside the node's own blocks; a field that is a Block is a nested block;
every Var or Lit in any other field, however deep in tuples and Slices, is an operand.  A new node that
keeps to these names needs no change here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from splitad.ir import nodes as ir

_OUTER = ("out", "outs")
_INNER = ("counter", "params")

T = TypeVar("T")


def _fields(stmt: ir.Stmt) -> tuple[str, ...]:
    """The names of a node's fields that are its own (not its location)."""
    return _fields_of(type(stmt))  # type: ignore[arg-type]


@cache
def _fields_of(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls) if f.name != "loc")


def _leaves(value: Any) -> Iterator[ir.Operand]:
    if isinstance(value, (ir.Var, ir.Lit)):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, ir.Slice):
        yield from _leaves((value.start, value.stop, value.step))


def _named(stmt: ir.Stmt, names: tuple[str, ...]) -> tuple[ir.Var, ...]:
    found: list[ir.Var] = []
    for name in _fields(stmt):
        if name in names:
            found.extend(_leaves(getattr(stmt, name)))  # type: ignore[arg-type]
    return tuple(found)


# ---- reading -----------------------------------------------------------------------------------------


def operands(stmt: ir.Stmt) -> Iterator[ir.Operand]:
    """What the statement itself reads: not what its nested blocks read or yield."""
    for name in _fields(stmt):
        if name not in _OUTER and name not in _INNER:
            yield from _leaves(getattr(stmt, name))


def outs(stmt: ir.Stmt) -> tuple[ir.Var, ...]:
    """The values that the statement defines in its block."""
    return _named(stmt, _OUTER)


def inner_defs(stmt: ir.Stmt) -> tuple[ir.Var, ...]:
    """The values that it defines at the top of its own block: a loop's counter and params."""
    return _named(stmt, _INNER)


def blocks(stmt: ir.Stmt) -> tuple[ir.Block, ...]:
    """Its nested blocks."""
    values = (getattr(stmt, name) for name in _fields(stmt))
    return tuple(value for value in values if isinstance(value, ir.Block))


def walk(block: ir.Block) -> Iterator[ir.Stmt]:
    """Every statement in the block and in the blocks nested in it, each before what it contains."""
    for stmt in block.stmts:
        yield stmt
        for inner in blocks(stmt):
            yield from walk(inner)


def walk_blocks(block: ir.Block) -> Iterator[ir.Block]:
    """The block itself and every block nested in it, outer ones first."""
    yield block
    for stmt in block.stmts:
        for inner in blocks(stmt):
            yield from walk_blocks(inner)


def uses(block: ir.Block) -> Iterator[ir.Operand]:
    """Everything read in the block and the blocks nested in it, yields included; with repetitions."""
    for inner in walk_blocks(block):
        for stmt in inner.stmts:
            yield from operands(stmt)
        yield from inner.yields


def tree_leaves(tree: ir.Tree) -> Iterator[ir.Operand]:
    """The values in a function's result."""
    if isinstance(tree, ir.TupleTree):
        for item in tree.items:
            yield from tree_leaves(item)
    elif tree is not None:
        yield tree


def exits(fn: ir.Function) -> Iterator[ir.Operand]:
    """What a function still needs after its last statement: its result and its leaves."""
    yield from tree_leaves(fn.result)
    for leaf in fn.leaves:
        yield leaf.var
        yield leaf.exit
    for each in fn.lists:
        yield from (each.var, each.exit, each.length)


def defs(fn: ir.Function) -> dict[ir.Var, tuple[ir.Stmt, ir.Block]]:
    """Each value (but the function's params) to the statement that defines it and the block which
    that statement stands in; a loop's counter and params to the loop."""
    found: dict[ir.Var, tuple[ir.Stmt, ir.Block]] = {}
    for block in walk_blocks(fn.body):
        for stmt in block.stmts:
            for var in (*outs(stmt), *inner_defs(stmt)):
                found[var] = (stmt, block)
    return found


def names(fn: ir.Function) -> set[str]:
    """Every name in use, for those who need a fresh one."""
    return {var.name for var in (*fn.params, *defs(fn))}


# ---- rewriting ---------------------------------------------------------------------------------------


def map_blocks(stmt: ir.Stmt, f: Callable[[ir.Block], ir.Block]) -> ir.Stmt:
    """The statement with each of its nested blocks replaced by f(block)."""
    changed: dict[str, Any] = {
        name: f(value)
        for name in _fields(stmt)
        if isinstance(value := getattr(stmt, name), ir.Block)
    }
    return dataclasses.replace(stmt, **changed) if changed else stmt


def _map_value(value: Any, f: Callable[[ir.Operand], ir.Operand]) -> Any:
    """`value` with f applied to its leaves; the same object where nothing changed."""
    if isinstance(value, (ir.Var, ir.Lit)):
        return f(value)
    if isinstance(value, tuple):
        items = tuple(_map_value(item, f) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, ir.Slice):
        parts = (value.start, value.stop, value.step)
        new = _map_value(parts, f)
        return value if new is parts else ir.Slice(*new)
    if isinstance(value, ir.TupleTree):
        items = _map_value(value.items, f)
        return value if items is value.items else ir.TupleTree(value.type, items)
    return value


def map_operands(stmt: ir.Stmt, f: Callable[[ir.Operand], ir.Operand]) -> ir.Stmt:
    """The statement with f applied to each of `operands(stmt)`; nested blocks are left alone."""
    changed = {}
    for name in _fields(stmt):
        value = getattr(stmt, name)
        if name not in _OUTER and name not in _INNER and not isinstance(value, ir.Block):
            new = _map_value(value, f)
            if new is not value:
                changed[name] = new
    return dataclasses.replace(stmt, **changed) if changed else stmt


def map_tree(tree: ir.Tree, f: Callable[[ir.Operand], ir.Operand]) -> ir.Tree:
    """A function's result with f applied to the values in it."""
    return _map_value(tree, f)  # type: ignore[no-any-return]


def map_list(each: ir.ListArg, f: Callable[[ir.Operand], ir.Operand]) -> ir.ListArg:
    """A list argument with f applied to what it is at exit."""
    return dataclasses.replace(each, exit=f(each.exit), length=f(each.length))


def map_names(fn: ir.Function, mapping: Mapping[ir.Var, ir.Var]) -> ir.Function:
    """The function with definitions and uses replaced in all of it."""
    f = _lookup(mapping)

    def new(var: ir.Var) -> ir.Var:
        return mapping.get(var, var)

    return dataclasses.replace(
        fn,
        params=tuple(map(new, fn.params)),
        leaves=tuple(ir.Leaf(leaf.path, new(leaf.var), f(leaf.exit)) for leaf in fn.leaves),
        body=rename(fn.body, mapping),
        result=map_tree(fn.result, f),
        lists=tuple(
            dataclasses.replace(map_list(each, f), param=new(each.param), var=new(each.var))
            for each in fn.lists
        ),
    )


def _lookup(mapping: Mapping[ir.Var, ir.Operand]) -> Callable[[ir.Operand], ir.Operand]:
    return lambda use: mapping.get(use, use) if isinstance(use, ir.Var) else use


def substitute(node: T, mapping: Mapping[ir.Var, ir.Operand]) -> T:
    """A statement, block or function with every *use* of a key replaced, nested blocks included.

    One step, not repeated: values of the mapping are not looked up again.  Definitions stay, and so
    does what a function's leaves are at entry.
    """
    if not mapping:
        return node
    f = _lookup(mapping)

    def block(b: ir.Block) -> ir.Block:
        return ir.Block(tuple(stmt(s) for s in b.stmts), _map_value(b.yields, f))

    def stmt(s: ir.Stmt) -> ir.Stmt:
        return map_blocks(map_operands(s, f), block)

    if isinstance(node, ir.Block):
        return block(node)  # type: ignore[return-value]
    if isinstance(node, ir.Function):
        leaves = tuple(dataclasses.replace(leaf, exit=f(leaf.exit)) for leaf in node.leaves)
        body, result = block(node.body), map_tree(node.result, f)
        lists = tuple(map_list(each, f) for each in node.lists)
        return dataclasses.replace(node, leaves=leaves, body=body, result=result, lists=lists)
    return stmt(node)  # type: ignore[return-value, arg-type]


def rename(node: T, mapping: Mapping[ir.Var, ir.Var]) -> T:
    """A statement or block with both definitions and uses replaced, nested blocks included."""
    if not mapping:
        return node
    f = _lookup(mapping)

    def block(b: ir.Block) -> ir.Block:
        return ir.Block(tuple(stmt(s) for s in b.stmts), _map_value(b.yields, f))

    def stmt(s: ir.Stmt) -> ir.Stmt:
        changed = {name: _map_value(getattr(s, name), f) for name in _fields(s)}
        return map_blocks(dataclasses.replace(s, **changed), block)

    return block(node) if isinstance(node, ir.Block) else stmt(node)  # type: ignore
