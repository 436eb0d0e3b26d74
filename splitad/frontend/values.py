"""What a name can stand for while a function is lowered: an operand, or a thing of compile time only.

Scalars and arrays are IR operands (`ir.Var`, `ir.Lit`); None, strings and undefined values are `ir.Lit` too.
Everything else is taken apart or known at compile time, so that the IR never sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeGuard, Union

from numba.core import types

from splitad.ir import nodes as ir


@dataclass(frozen=True, eq=False)
class TupleVal:
    """A tuple or namedtuple, as its items."""

    items: tuple[Value, ...]
    type: types.Type


@dataclass(frozen=True, eq=False)
class ListVal:
    """A list display that is used once, as an argument (``np.array([x, y])``): it is never changed."""

    items: tuple[Value, ...]
    type: types.Type | None


@dataclass(frozen=True)
class StructVal:
    """A jitclass or structref instance; its fields live in the state under (oid, field)."""

    oid: int
    type: types.Type = field(compare=False)


@dataclass(frozen=True)
class GrowVal:
    """A list; its arrays and its length live in the state, like the fields of an object."""

    oid: int
    type: types.Type = field(compare=False)


@dataclass(frozen=True)
class PyVal:
    """A Python object known at compile time: a module, function, class, dtype, Numba type, dispatcher."""

    value: Any = field(compare=False)
    key: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", id(self.value))


@dataclass(frozen=True, eq=False)
class MethodVal:
    """A bound method, ``owner.name``, not called yet."""

    owner: Value
    name: str


@dataclass(frozen=True, eq=False)
class RangeVal:
    """A range object."""

    start: ir.Operand
    stop: ir.Operand
    step: ir.Operand
    length: ir.Operand


@dataclass(frozen=True, eq=False)
class OpaqueVal:
    """A part of an argument that splitad does not look into; using it is refused.

    name: what messages call it.
    """

    type: types.Type
    name: str = ""


Value = Union[
    ir.Var,
    ir.Lit,
    ir.Slice,
    TupleVal,
    ListVal,
    GrowVal,
    StructVal,
    PyVal,
    MethodVal,
    RangeVal,
    OpaqueVal,
]  # LazyMap of arrays.py is one more, in compiler temporaries only

NONE = ir.Lit(None, types.none)
TRUE, FALSE = ir.Lit(True, types.boolean), ir.Lit(False, types.boolean)


def is_lit(value: object) -> TypeGuard[ir.Lit]:
    """A number, bool, string or None known at compile time."""
    return isinstance(value, ir.Lit) and value.value is not ir.UNDEF


def is_none(value: object) -> bool:
    return isinstance(value, ir.Lit) and value.value is None


def is_array(value: object) -> TypeGuard[ir.Var]:
    return isinstance(value, ir.Var) and isinstance(value.type, types.Array)


def is_scalar(value: object) -> TypeGuard[ir.Operand]:
    """A number or bool: something that a scalar operation takes."""
    return isinstance(value, (ir.Var, ir.Lit)) and isinstance(
        types.unliteral(value.type), (types.Number, types.Boolean)
    )
