"""Values that come together from two paths: where they differ, what they are made of, their common type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeGuard

from numba.core import types

from splitad.frontend.state import Context
from splitad.frontend.values import GrowVal, ListVal, OpaqueVal, PyVal, StructVal, TupleVal, Value
from splitad.ir import nodes as ir
from splitad.ir.types import unify


def is_slot(value: object) -> TypeGuard[ir.Operand]:
    """Whether a value is one that the IR carries: a scalar or an array, also an undefined one."""
    return isinstance(value, ir.Var) or (
        isinstance(value, ir.Lit)
        and isinstance(types.unliteral(value.type), (types.Number, types.Boolean, types.Array))
    )


def is_undefined(value: Value) -> bool:
    return isinstance(value, ir.Lit) and value.value is ir.UNDEF


def slots(value: Value | None) -> list[ir.Operand]:
    """The operands in a value, in order."""
    if isinstance(value, (TupleVal, ListVal)):
        return [operand for item in value.items for operand in slots(item)]
    return [value] if value is not None and is_slot(value) else []  # type: ignore[list-item]


def rebuild(value: Value, operands: list[ir.Operand]) -> Value:
    """The value with other operands, which are taken from the front of the list."""
    if isinstance(value, TupleVal):
        items = tuple(rebuild(item, operands) for item in value.items)
        return TupleVal(items, _tuple_type(value, items))
    if isinstance(value, ListVal):
        return ListVal(tuple(rebuild(item, operands) for item in value.items), value.type)
    return operands.pop(0) if is_slot(value) else value


def _tuple_type(value: TupleVal, items: tuple[Value, ...]) -> types.Type:
    """Items may have been widened (an int that is a float on the other path)."""
    kinds = [getattr(item, "type", None) for item in items]
    if not items or any(kind is None for kind in kinds):
        return value.type
    if isinstance(value.type, types.BaseNamedTuple):
        return types.BaseTuple.from_types(kinds, value.type.instance_class)
    return types.BaseTuple.from_types([types.unliteral(kind) for kind in kinds])


def same(a: Value | None, b: Value | None) -> bool:
    """Whether two values are known to be one."""
    if a is b:
        return True
    if isinstance(a, TupleVal) and isinstance(b, TupleVal):
        return len(a.items) == len(b.items) and all(map(same, a.items, b.items))
    if isinstance(a, ir.Var) and isinstance(b, ir.Var):
        return a.name == b.name
    if isinstance(a, (ir.Lit, StructVal, GrowVal, PyVal)):
        return type(a) is type(b) and a == b
    return False


def objects(value: Value | None, heap: Mapping[tuple[int, str], Value]) -> Iterator[int]:
    """The structs and lists that can be reached from a value."""
    if isinstance(value, (TupleVal, ListVal)):
        for item in value.items:
            yield from objects(item, heap)
    elif isinstance(value, (StructVal, GrowVal)):
        yield value.oid
        for (oid, _), part in heap.items():
            if oid == value.oid:
                yield from objects(part, heap)


def align(c: Context, name: str, a: Value | None, b: Value | None) -> tuple[Value, Value]:
    """Both values with one structure: what is missing on one side becomes undefined operands there."""
    if a is None and b is not None:
        return undefined_like(b), b
    if b is None and a is not None:
        return a, undefined_like(a)
    assert a is not None and b is not None
    if isinstance(a, TupleVal) and isinstance(b, TupleVal) and len(a.items) == len(b.items):
        pairs = [align(c, name, x, y) for x, y in zip(a.items, b.items, strict=True)]
        return (
            TupleVal(tuple(x for x, _ in pairs), a.type),
            TupleVal(tuple(y for _, y in pairs), b.type),
        )
    if is_slot(a) and is_slot(b):
        return a, b
    if is_undefined(a):
        return undefined_like(b), b
    if is_undefined(b):
        return a, undefined_like(a)
    if same(a, b):
        return a, b
    c.refuse(
        f"{_shown(name)} is not the same kind of thing on every path that leads here.",
        _hint(a, b),
    )


def undefined_like(value: Value) -> Value:
    """The same kind of thing, never assigned."""
    if isinstance(value, TupleVal):
        return TupleVal(tuple(map(undefined_like, value.items)), value.type)
    if isinstance(value, ListVal):
        return ListVal(tuple(map(undefined_like, value.items)), value.type)
    if is_slot(value):
        return ir.Lit(ir.UNDEF, types.unliteral(value.type))  # type: ignore[union-attr]
    return value  # known at compile time: on the other path nobody reads it


def _shown(name: str) -> str:
    return "The result" if name == "%result" else f"`{name}`"


def _hint(a: Value, b: Value) -> str:
    if isinstance(a, ir.Lit) and a.value is None or isinstance(b, ir.Lit) and b.value is None:
        return (
            "A value that is sometimes None is not supported: use a number with a flag beside it."
        )
    if isinstance(a, (StructVal, GrowVal)) or isinstance(b, (StructVal, GrowVal)):
        return (
            "Which object a name means must not depend on the path; choose between fields instead."
        )
    if isinstance(a, OpaqueVal) or isinstance(b, OpaqueVal):
        return "splitad does not look into values of this type."
    return "Which function or tuple a name means must not depend on the path."


def common_type(c: Context, name: str, a: ir.Operand, b: ir.Operand) -> types.Type:
    """The type of a variable that is a on one path and b on the other."""
    if is_undefined(a):
        return types.unliteral(b.type)
    if is_undefined(b):
        return types.unliteral(a.type)
    found = unify((a.type, b.type))
    if found is None or isinstance(found, types.Optional):
        c.refuse(f"{_shown(name)} is {a.type} on one path and {b.type} on another.")
    return found


def in_block(
    c: Context, stmts: list[ir.Stmt], make: Callable[[], list[ir.Operand]]
) -> list[ir.Operand]:
    """Emits more at the end of a block that was already left."""
    with c.b.block() as more:
        found = make()
    stmts += more
    return found
