"""Structs that are given to a recursive function: handed over as their fields.

    step(s, n)                s_h_1 = call step(s, s_h, s_u, n)      s itself goes along where it is an
    (s.h = s.h * 0.5 ...)     s_h_1 is what s.h is from now on       argument: its fields are written

The function gets the scalars and arrays in the fields as arguments of its own, and returns what the scalars
are when it ends, behind its result.  In what it is made of, reads and writes of fields are then those
of SSA values, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from numba.core import types

from splitad.frontend import merge
from splitad.frontend.opaque import refuse as refuse_opaque
from splitad.frontend.state import Context
from splitad.frontend.values import OpaqueVal, StructVal, Value
from splitad.ir import nodes as ir
from splitad.ir.types import struct_fields

_SCALAR = (types.Number, types.Boolean)


def fields(c: Context, struct: StructVal) -> Iterator[tuple[tuple[int, str], types.Type]]:
    """The scalar and array fields of a struct and of those in it, with their types, in order."""
    for name, kind in (struct_fields(struct.type) or {}).items():
        key = (struct.oid, name)
        value = c.heap.get(key)
        if isinstance(value, StructVal):
            yield from fields(c, value)
        elif isinstance(kind, (*_SCALAR, types.Array)):
            yield key, types.unliteral(kind)
        elif isinstance(value, OpaqueVal):
            refuse_opaque(c, value)
        else:
            c.refuse(
                f"The field `{name}` is a {kind}, and its struct is given to a recursive function.",
                "Keep its items in fields of their own.",
            )


def given(c: Context, struct: StructVal) -> tuple[list[ir.Operand], list[types.Type]]:
    """What is handed over for a struct: itself if it is an argument's, then its fields; and their types."""
    operands: list[ir.Operand] = []
    kinds: list[types.Type] = []
    if struct.oid in c.roots:
        operands.append(c.roots[struct.oid])
        kinds.append(struct.type)
    for key, kind in fields(c, struct):
        value = c.conform(c.heap[key], kind)
        assert isinstance(value, (ir.Var, ir.Lit))
        operands.append(value)
        kinds.append(kind)
    return operands, kinds


def scalars(c: Context, struct: StructVal) -> list[tuple[tuple[int, str], types.Type]]:
    """The fields that a call may change."""
    return [(key, kind) for key, kind in fields(c, struct) if isinstance(kind, _SCALAR)]


def holds_struct(type: types.Type) -> bool:
    """Whether a result is a struct, or has one in it."""
    if isinstance(type, types.BaseTuple):
        return any(map(holds_struct, type))  # type: ignore[call-overload]
    return struct_fields(type) is not None


class Entry:
    """Makes the arguments of a recursive function's own IR."""

    def __init__(self, c: Context) -> None:
        self.c = c
        self.params: list[ir.Var] = []
        self.leaves: list[ir.Leaf] = []
        self.structs: list[StructVal] = []
        self.arrays: list[tuple[tuple[int, str], ir.Var]] = []

    def argument(self, name: str, type: types.Type, rooted: bool) -> Value:
        """rooted: a struct that exists outside of the function, as an object."""
        if struct_fields(type) is None:
            return self._leaf(name, type)
        root = self._param(name, type) if rooted else None
        made = self._struct(name, type, root)
        self.structs.append(made)
        return made

    def _param(self, name: str, type: types.Type) -> ir.Var:
        var = self.c.b.fresh(name, types.unliteral(type))
        self.params.append(var)
        return var

    def _leaf(self, name: str, type: types.Type) -> ir.Var:
        var = self._param(name, type)
        self.leaves.append(ir.Leaf((len(self.params) - 1,), var, var))
        if isinstance(var.type, types.Array):
            self.c.arrays.origins.outside(var)
        return var

    def _struct(self, name: str, type: types.Type, root: ir.Var | None) -> StructVal:
        c = self.c
        made = c.new_object(type)
        if root is not None:
            c.roots[made.oid] = root
        for field, kind in (struct_fields(type) or {}).items():
            key, inner = (made.oid, field), None
            if struct_fields(kind) is None:
                leaf = self._leaf(f"{name}_{field}", kind)
                c.heap[key] = leaf
                if isinstance(kind, types.Array):
                    self.arrays.append((key, leaf))
                continue
            if root is not None:
                inner = c.b.fresh(f"{name}_{field}", kind)
                c.b.emit(ir.GetField(inner, root, field, loc=c.b.loc))
            c.heap[key] = self._struct(f"{name}_{field}", kind, inner)
        return made

    def result(self, value: Value) -> ir.TupleTree | None:
        """A struct that is returned, a new one, as its fields.  None for other results."""
        c = self.c
        if c.dead or not isinstance(value, StructVal):
            return None
        known = {oid for struct in self.structs for oid in merge.objects(struct, c.heap)}
        if known & set(merge.objects(value, c.heap)):
            c.refuse(
                "A recursive function returns a struct that is one of its arguments, or holds one.",
                "Return a new one with copies of its arrays.",
            )
        items: list[ir.Tree] = []
        for key, kind in fields(c, value):
            part = c.conform(c.heap[key], kind)
            assert isinstance(part, (ir.Var, ir.Lit))
            items.append(part)
        return ir.TupleTree(types.none, tuple(items))

    def exits(self) -> tuple[ir.Tree, ...]:
        """What the scalars in the fields are when the function ends."""
        c = self.c
        for (oid, field), array in self.arrays:
            if not c.dead and not merge.same(c.heap[oid, field], array):
                c.refuse(
                    f"A recursive function assigns the field `{field}`, which is an array.",
                    "Write into the array: s.x[:] = ...",
                )
        found: list[ir.Tree] = []
        for struct in self.structs:
            for key, kind in scalars(c, struct):
                value = ir.Lit(ir.UNDEF, kind) if c.dead else c.heap[key]
                assert isinstance(value, (ir.Var, ir.Lit))
                found.append(value)
        return tuple(found)
