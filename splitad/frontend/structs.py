"""Objects taken apart: jitclass and structref instances, namedtuples, and the arguments of the function.

    s.p1 = s.p1 + 1.0           s_p1 = GetField s.p1          (once, at entry)
                                t = s_p1 + 1.0
                                SetField s.p1 = t             (the side effect; reads use t)

An instance that the function makes itself has its fields in the state only, and no SetField.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import types

from splitad.frontend import arrays, lists, merge, opaque, scalars
from splitad.frontend.constants import constant
from splitad.frontend.inline import inline
from splitad.frontend.pending import is_arrayish, settle
from splitad.frontend.state import Context, describe, tuple_types
from splitad.frontend.values import (
    NONE,
    GrowVal,
    MethodVal,
    OpaqueVal,
    PyVal,
    StructVal,
    TupleVal,
    Value,
    is_scalar,
)
from splitad.ir import nodes as ir
from splitad.ir.types import overload_dispatcher, part_overload, struct_fields

_FIELD_TYPES = (types.Number, types.Boolean, types.Array, types.BaseTuple)


# ---- arguments -------------------------------------------------------------------------------------


class Entry:
    """Takes the arguments apart, and knows their leaves."""

    def __init__(self, c: Context) -> None:
        self.c = c
        self.found: list[tuple[tuple[int | str, ...], ir.Var, tuple[int, str] | None]] = []
        self.lists: list[tuple[int, GrowVal, ir.Var]] = []

    def argument(self, param: ir.Var, position: int) -> Value:
        return self.part(param, (position,), None)

    def part(
        self, var: ir.Var, path: tuple[int | str, ...], field: tuple[int, str] | None
    ) -> Value:
        """The value of an argument or of a part of one; field: the struct's field that it is in."""
        type, c = var.type, self.c
        if isinstance(type, (types.Number, types.Boolean, types.Array)):
            self.found.append((path, var, field))
            if isinstance(type, types.Array):
                c.arrays.origins.outside(var)
            return var
        if isinstance(type, types.BaseTuple):
            items = []
            for k, kind in enumerate(tuple_types(type)):
                item = c.b.fresh(f"{var.name}_{k}", types.unliteral(kind))
                if not _is_static(kind):
                    c.b.emit(ir.TupleGet(item, var, k, loc=c.b.loc))
                items.append(self.part(item, (*path, k), field))
            return TupleVal(tuple(items), type)
        fields = struct_fields(type)
        if fields is not None:
            return self.struct(var, fields, path)
        followed = opaque.is_list_of_numbers(type) or opaque.is_list_of_arrays(type)
        if followed and len(path) == 1:
            return self.list(var, path[0])
        if isinstance(type, types.UnicodeType):
            return var
        if type == types.none or isinstance(type, types.Omitted):
            return constant(getattr(type, "value", None))
        if isinstance(type, types.Dispatcher):
            return PyVal(type.dispatcher)
        if isinstance(type, types.NumberClass):
            return PyVal(type.instance_type)
        if isinstance(type, types.DType):
            return PyVal(type)
        if isinstance(type, types.Function) and hasattr(type, "typing_key"):
            return PyVal(type.typing_key)
        return self.opaque(type, path)

    def list(self, var: ir.Var, position: int | str) -> GrowVal:
        """A list argument: its items go into an array, and what f changes is done to both."""
        assert isinstance(position, int)
        made, items = lists.from_outside(self.c, var)
        self.lists.append((position, made, items))
        return made

    def opaque(self, type: types.Type, path: tuple[int | str, ...]) -> OpaqueVal:
        self.c.has_opaque = True
        normal = self.c.frame.normal
        first, *rest = path
        assert isinstance(first, int)
        name = [*normal.args, normal.vararg][first] or ""
        name += "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in rest)
        return OpaqueVal(type, name)

    def struct(
        self, var: ir.Var, fields: dict[str, types.Type], path: tuple[int | str, ...]
    ) -> StructVal:
        c = self.c
        made = c.new_object(var.type)
        c.roots[made.oid] = var
        for name, kind in fields.items():
            key = (made.oid, name)
            if isinstance(kind, _FIELD_TYPES) or struct_fields(kind) is not None:
                item = c.b.fresh(f"{var.name}_{name}", kind)
                c.b.emit(ir.GetField(item, var, name, loc=c.b.loc))
                c.heap[key] = self.part(item, (*path, name), key)
            else:
                c.heap[key] = self.opaque(kind, (*path, name))
        return made

    def leaves(self) -> Iterator[ir.Leaf]:
        """Every scalar and array, with what it is at exit."""
        for path, var, field in self.found:
            end: ir.Operand = var
            if field is not None and not self.c.dead:
                end = self._at_exit(path, field)
            yield ir.Leaf(path, var, end)

    def list_arguments(self) -> Iterator[ir.ListArg]:
        """Every list, with the array of its items at entry and at exit."""
        for position, made, items in self.lists:
            end, length = (items, self.c.b.intp(0)) if self.c.dead else lists.at_exit(self.c, made)
            item = made.type.dtype
            kind = item if isinstance(item, types.Array) else None
            yield ir.ListArg(position, self.c.roots[made.oid], items, end, length, kind)

    def _at_exit(self, path: tuple[int | str, ...], field: tuple[int, str]) -> ir.Operand:
        value = self.c.heap[field]
        for step in path[len(path) - 1 - path[::-1].index(field[1]) + 1 :]:
            assert isinstance(value, TupleVal) and isinstance(step, int)
            value = value.items[step]
        assert isinstance(value, (ir.Var, ir.Lit))
        return value


def _is_static(type: types.Type) -> bool:
    return type == types.none or isinstance(
        type, (types.Dispatcher, types.NumberClass, types.DType, types.Function)
    )


# ---- attributes --------------------------------------------------------------------------------------


def attribute(c: Context, owner: Any, name: str, type: types.Type | None, hint: str) -> Any:
    """``owner.name``"""
    if isinstance(owner, PyVal):
        if isinstance(owner.value, types.Type) and name == "type":
            return owner  # of a dtype: what converts to it
        if not hasattr(owner.value, name):
            c.refuse(f"{describe(owner)} has no attribute `{name}`.")
        return c.freeze(constant(getattr(owner.value, name)))
    if isinstance(owner, StructVal):
        return _struct_attribute(c, owner, name)
    if isinstance(owner, GrowVal):
        return MethodVal(owner, name)
    if isinstance(owner, TupleVal) and isinstance(owner.type, types.BaseNamedTuple):
        fields = owner.type.fields
        if name in fields:
            return owner.items[fields.index(name)]
    if is_arrayish(owner):
        if isinstance(type, types.BoundFunction):
            return MethodVal(owner, name)
        return arrays.attribute(c.arrays, owner, name, type)
    if isinstance(owner, arrays.RecordVal):
        return arrays.get_field(c.arrays, owner, name)
    if is_scalar(owner):
        return _scalar_attribute(c, owner, name, type, hint)
    if isinstance(type, types.BoundFunction):
        return MethodVal(owner, name)
    c.refuse(f"{describe(owner)} has no attribute `{name}` that splitad knows.")


def _scalar_attribute(
    c: Context, owner: ir.Operand, name: str, type: types.Type | None, hint: str
) -> Any:
    is_complex = isinstance(owner.type, types.Complex)
    if name in ("real", "imag") and is_complex:
        fn = c.ops.real if name == "real" else c.ops.imag
        return scalars.prim(c, fn, owner, name=hint)
    if name == "real":
        return owner
    if name == "imag":
        return c.cast(c.b.intp(0), types.unliteral(owner.type))
    if isinstance(type, types.BoundFunction):
        return MethodVal(owner, name)
    c.refuse(f"The attribute `{name}` of a number is not supported.")


def _struct_attribute(c: Context, owner: StructVal, name: str) -> Value:
    key = (owner.oid, name)
    if key in c.heap:
        value = c.heap[key]
        if isinstance(value, OpaqueVal):
            opaque.refuse(c, value)
        return value
    type = owner.type
    if isinstance(type, types.ClassInstanceType):
        if name in type.jit_props and "get" in type.jit_props[name]:
            settle(c)
            return inline(c, type.jit_props[name]["get"], [owner], {}, ("get", name))
        if name in type.jit_methods:
            return MethodVal(owner, name)
        static = getattr(type, "jit_static_methods", {})
        if name in static:
            return PyVal(static[name])
    overload = part_overload(type, name)
    if overload is not None:
        found = overload_dispatcher(overload, (type,))
        if found is not None:  # an attribute, that is a method without arguments
            return inline(c, found, [owner], {}, ("get", name))
        return MethodVal(owner, name)
    c.refuse(f"A value of type {type} has no field or method `{name}`.")


def set_attribute(c: Context, owner: Any, name: str, value: Any, writeback: bool) -> None:
    """``owner.name = value``"""
    if isinstance(owner, arrays.RecordVal):
        arrays.set_field(c.arrays, owner, name, value)
        return
    if not isinstance(owner, StructVal):
        c.refuse(f"Assigning to the attribute `{name}` of {describe(owner)} is not supported.")
    fields = struct_fields(owner.type) or {}
    type = owner.type
    if name not in fields:
        props = getattr(type, "jit_props", {})
        if name in props and "set" in props[name]:
            inline(c, props[name]["set"], [owner, value], {}, ("set", name))
            return
        c.refuse(f"A value of type {type} has no field `{name}`.")
    kind = fields[name]
    key = (owner.oid, name)
    before = c.heap.get(key)
    if isinstance(before, OpaqueVal):
        c.refuse(f"The field `{name}` is a {before.type}, which cannot be assigned to here.")
    if writeback and merge.same(before, value):
        return  # an array that was changed in place
    value = c.conform(value, kind, name)
    if isinstance(value, StructVal) or isinstance(before, StructVal):
        if owner.oid in c.roots or not (before is None or merge.same(before, value)):
            c.refuse(f"Assigning another object to the field `{name}` is not supported yet.")
    c.heap[key] = value
    if owner.oid in c.roots:
        _write_back(c, c.roots[owner.oid], name, value)


def _write_back(c: Context, root: ir.Var, name: str, value: Value) -> None:
    """The side effect on an object that came in as an argument."""
    if not isinstance(value, (ir.Var, ir.Lit)):
        c.refuse(
            f"Assigning a tuple to the field `{name}` of an argument is not supported yet.",
            "Keep its items in fields of their own.",
        )
    c.b.emit(ir.SetField(root, name, value, loc=c.b.loc))


# ---- making and using instances -------------------------------------------------------------------------


def construct(
    c: Context, cls: Any, args: list[Value], kwargs: dict[str, Value], type: types.Type
) -> Value:
    """``Cls(*args)`` of a jitclass: fields set to zero, then its __init__; of a structref: its fields."""
    made = c.new_object(type)
    if isinstance(type, types.StructRef):
        given = dict(zip(struct_fields(type) or {}, args, strict=False)) | kwargs
        for name, kind in (struct_fields(type) or {}).items():
            if name not in given:
                c.refuse(f"The field `{name}` of {cls.__name__} is not given.")
            c.heap[(made.oid, name)] = c.conform(given[name], kind, name)
        return made
    for name, kind in (struct_fields(type) or {}).items():
        zero: Value | None = c.undefined(kind)
        if isinstance(kind, (types.Number, types.Boolean)):
            zero = (
                c.cast(ir.Lit(False, types.boolean), kind)
                if kind == types.boolean
                else c.cast(c.b.intp(0), kind)
            )
        c.heap[(made.oid, name)] = zero if zero is not None else OpaqueVal(kind)
    inline(c, type.jit_methods["__init__"], [made, *args], kwargs, ("init", type.name))
    return made


def call_method(
    c: Context, owner: StructVal, name: str, args: list[Value], kwargs: dict[str, Value], site: Any
) -> Value:
    methods = getattr(owner.type, "jit_methods", {})
    if name in methods:
        return inline(c, methods[name], [owner, *args], kwargs, site)
    overload = part_overload(owner.type, name)
    if overload is not None and not kwargs:
        kinds = tuple(c.type_of(arg) for arg in args)
        found = overload_dispatcher(overload, (owner.type, *kinds))
        if found is not None:
            return inline(c, found, [owner, *args], {}, site)
    c.refuse(f"The method `{name}` of {owner.type} is not supported yet.")


def operator_method(c: Context, fn: Any, left: Any, right: Any) -> Value:
    """An operator between instances: the jitclass's own special method."""
    name = f"__{fn.__name__.strip('_')}__"
    for owner, method, other in (
        (left, name, right),
        (right, name.replace("__", "__r", 1), left),
    ):
        if isinstance(owner, StructVal) and method in getattr(owner.type, "jit_methods", {}):
            return call_method(c, owner, method, [other], {}, ("operator", name))
    c.refuse(f"{describe(left)} and {describe(right)} are operands of an operator here.")


__all__ = ["NONE", "Entry", "attribute", "call_method", "construct", "set_attribute"]
