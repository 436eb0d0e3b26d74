"""Reading and writing parts of arrays: elements, slices, and index arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from numba.core import types

from splitad.frontend.array_context import ArrayContext, Index, is_array, is_scalar
from splitad.frontend.broadcast import Sizes, check_fits
from splitad.frontend.elements import (
    Elements,
    Expr,
    LazyMap,
    Leaf,
    converted,
    element_of,
    lazy_of,
    leaves,
    materialize,
)
from splitad.frontend.elementwise import reads_other
from splitad.ir import nodes as ir

# An entry of an index: an integer, a slice, None, "..." (also Python's Ellipsis), or an index array.
Entry = Union[ir.Var, ir.Lit, ir.Slice, ir.NewAxis, str, LazyMap]

FULL = ir.Slice(None, None, None)


@dataclass(frozen=True, eq=False)
class RecordVal:
    """An element of a record array: a reference, read and written by its fields."""

    array: ir.Var
    index: Index
    wraps: bool

    @property
    def type(self) -> types.Type:
        return self.array.type.dtype


# ---- reading ----------------------------------------------------------------------------------------


def getitem(
    ctx: ArrayContext, array: Any, index: Sequence[Entry], result_type: types.Type
) -> ir.Operand | RecordVal:
    """``array[index]``: an element, a view, or (by an index array) a new array."""
    array = materialize(ctx, array)
    name = _field_name(index)
    if name is not None:
        return field_view(ctx, array, name)
    entries = expand(ctx, array, index)
    if any(_is_index_array(entry) for entry in entries):
        return _gather(ctx, array, entries, result_type)
    if all(_is_integer(entry) for entry in entries) and not isinstance(result_type, types.Array):
        return load(ctx, array, tuple(entries))  # type: ignore[arg-type]
    return basic_view(ctx, array, entries, result_type)


def load(ctx: ArrayContext, array: ir.Var, index: Index) -> ir.Operand | RecordVal:
    """One element."""
    wraps = may_wrap(index)
    if isinstance(array.type.dtype, types.Record):
        return RecordVal(array, index, wraps)
    return ctx.b.load(array, *index, wraps=wraps)


def basic_view(
    ctx: ArrayContext, array: ir.Var, entries: Sequence[Entry], type: types.Array | None = None
) -> ir.Var:
    """A view by integers, slices and new axes; the array itself where all of it is meant."""
    if all(entry == FULL for entry in entries) and (type is None or type == array.type):
        return array
    index = tuple(entries)
    if type is None:
        ndim = sum(isinstance(entry, (ir.Slice, ir.NewAxis)) for entry in entries)
        type = array.type.copy(ndim=ndim, layout="A")
    return ctx.view(array, "index", index, type)  # type: ignore[arg-type]


def may_wrap(index: Index) -> bool:
    """Whether an index may be negative, as far as its type says."""
    for entry in index:
        kind = types.unliteral(entry.type)
        negative = isinstance(entry, ir.Lit) and entry.value < 0
        if negative or (isinstance(entry, ir.Var) and getattr(kind, "signed", False)):
            return True
    return False


def expand(ctx: ArrayContext, array: ir.Var, index: Sequence[Entry]) -> list[Entry]:
    """One entry for each dimension, and the new axes: no Ellipsis, trailing slices written out."""
    used = sum(not (isinstance(entry, ir.NewAxis) or _is_ellipsis(entry)) for entry in index)
    missing = array.type.ndim - used
    if missing < 0:
        ctx.refuse("More indices than dimensions.")
    out: list[Entry] = []
    seen = False
    for entry in index:
        if _is_ellipsis(entry):
            out += [FULL] * missing
            seen = True
        else:
            out.append(_entry(ctx, entry))
    if not seen:
        out += [FULL] * missing
    return out


def _entry(ctx: ArrayContext, entry: Any) -> Entry:
    """An entry in the form that the IR takes."""
    if isinstance(entry, LazyMap):
        entry = materialize(ctx, entry)
    if isinstance(entry, ir.Slice):
        return ir.Slice(*(_bound(ctx, part) for part in (entry.start, entry.stop, entry.step)))
    if isinstance(entry, ir.Lit) and entry.value is None:
        return ir.NewAxis()
    if is_array(entry) and entry.type.ndim == 0:
        entry = ctx.b.load(entry, wraps=False)
    if isinstance(entry, (ir.Var, ir.Lit)) and isinstance(
        types.unliteral(entry.type), types.Boolean
    ):
        ctx.refuse("A bool as an index.", "Use an integer, or a mask array.")
    return entry


def _field_name(index: Sequence[Entry]) -> str | None:
    """The field that `array["x"]` names."""
    if len(index) == 1 and isinstance(index[0], ir.Lit) and isinstance(index[0].value, str):
        return index[0].value
    return None


def _bound(ctx: ArrayContext, bound: ir.Operand | None) -> ir.Operand | None:
    if bound is None or (isinstance(bound, ir.Lit) and bound.value is None):
        return None
    return bound if isinstance(bound, ir.Lit) else ctx.shapes.intp(bound)


def _is_ellipsis(entry: object) -> bool:
    return entry is Ellipsis or (isinstance(entry, str) and entry == "...")


def _is_integer(entry: object) -> bool:
    return is_scalar(entry)


def _is_index_array(entry: object) -> bool:
    return is_array(entry)


# ---- writing ----------------------------------------------------------------------------------------


def setitem(ctx: ArrayContext, array: ir.Var, index: Sequence[Entry], value: Any) -> None:
    """``array[index] = value``"""
    name = _field_name(index)
    if name is not None:
        return assign(ctx, field_view(ctx, array, name), value)
    entries = expand(ctx, array, index)
    if any(_is_index_array(entry) for entry in entries):
        return _scatter(ctx, array, entries, value)
    if all(_is_integer(entry) for entry in entries):
        place: Index = tuple(entries)  # type: ignore[arg-type]
        return store(ctx, array, place, value)
    assign(ctx, basic_view(ctx, array, entries), value)


def store(ctx: ArrayContext, array: ir.Var, index: Index, value: Any) -> None:
    """One element."""
    if isinstance(value, RecordVal) and isinstance(array.type.dtype, types.Record):
        return _copy_record(ctx, RecordVal(array, index, may_wrap(index)), value)
    if isinstance(value, LazyMap) or is_array(value):  # a 0-d array
        value = getitem(ctx, value, (), value.type.dtype)
    if not is_scalar(value):
        ctx.refuse("Only numbers can be stored in an array.")
    ctx.b.store(array, index, value, wraps=may_wrap(index))


def assign(ctx: ArrayContext, target: ir.Var, value: Any) -> None:
    """``target[...] = value`` for a scalar or array value, broadcast to the target."""
    if isinstance(target.type.dtype, types.Record):
        return _assign_records(ctx, target, value)
    sizes = ctx.shapes.dims(target)
    if is_scalar(value):
        value = ctx.b.cast(value, target.type.dtype)
        with ctx.nest(sizes) as index:
            ctx.b.store(target, index, value, wraps=False)
        return
    if not (isinstance(value, LazyMap) or is_array(value)):
        ctx.refuse("Only numbers and arrays can be assigned to a part of an array.")
    source = lazy_of(ctx, value)
    if isinstance(value, ir.Var) and ctx.origins.same(value, target):
        return  # x[s] = x[s]
    rest = check_fits(ctx, source.sizes, sizes)
    if reads_other(ctx, source, target):
        # Numba copies the source where it overlaps the target.
        source = LazyMap(Leaf(_copy(ctx, source)), source.sizes, source.type)
    source = drop_leading(ctx, source, len(rest))
    expr = converted(element_of(source), target.type.dtype)
    elements = Elements(ctx, [expr], sizes)
    with ctx.nest(sizes) as index:
        (result,) = elements.at(index, [expr])
        ctx.b.store(target, index, result, wraps=False)


def _copy(ctx: ArrayContext, source: LazyMap) -> ir.Var:
    kind = types.Array(source.type.dtype, source.type.ndim, "C")
    out: ir.Var = materialize(ctx, LazyMap(source.expr, source.sizes, kind), "copy")
    return out


def drop_leading(ctx: ArrayContext, source: LazyMap, ndim: int) -> LazyMap:
    """source without leading axes, which have size one, so that ndim are left."""
    if len(source.sizes) <= ndim:
        return source
    array = materialize(ctx, source)
    extra = len(source.sizes) - ndim
    entries: list[Entry] = [*[ctx.b.intp(0)] * extra, *[FULL] * ndim]
    return lazy_of(ctx, basic_view(ctx, array, entries))


# ---- index arrays -------------------------------------------------------------------------------------


def _gather(
    ctx: ArrayContext, array: ir.Var, entries: list[Entry], result_type: types.Type
) -> ir.Var:
    """``array[..., indices, ...]``: a new array, filled by loads, so that repeated indices add up."""
    if isinstance(array.type.dtype, types.Record):
        ctx.refuse("An index array on an array of records.", "Index its fields instead.")
    assert isinstance(result_type, types.Array)
    picked = _Picked(ctx, array, entries)
    out = ctx.alloc(picked.sizes, result_type, name="picked")

    def move(source: Index, place: Index) -> None:
        value = ctx.b.load(picked.view, *source, wraps=picked.wraps)
        ctx.b.store(out, place, value, wraps=False)

    picked.loop(move)
    return out


def _scatter(ctx: ArrayContext, array: ir.Var, entries: list[Entry], value: Any) -> None:
    """``array[..., indices, ...] = value``, in index order."""
    if isinstance(array.type.dtype, types.Record):
        ctx.refuse("An index array on an array of records.", "Index its fields instead.")
    picked = _Picked(ctx, array, entries)
    expr: Expr
    if is_scalar(value):
        value = ctx.b.cast(value, array.type.dtype)
        picked.loop(lambda place, _: ctx.b.store(picked.view, place, value, wraps=picked.wraps))
        return
    if not (isinstance(value, LazyMap) or is_array(value)):
        ctx.refuse("Only numbers and arrays can be assigned to a part of an array.")
    source = lazy_of(ctx, value)
    if any(ctx.origins.may_overlap(leaf, array) for leaf in leaves(source.expr)):
        source = LazyMap(Leaf(_copy(ctx, source)), source.sizes, source.type)
    rest = check_fits(ctx, source.sizes, picked.sizes)
    source = drop_leading(ctx, source, len(rest))
    expr = converted(element_of(source), array.type.dtype)
    elements = Elements(ctx, [expr], picked.sizes)

    def move(place: Index, index: Index) -> None:
        (result,) = elements.at(index, [expr])
        ctx.b.store(picked.view, place, result, wraps=picked.wraps)

    picked.loop(move)


class _Picked:
    """The elements that one index array picks, among integers, slices and new axes.

    view: the array with all other entries applied, and a full slice where the index array was.
    """

    def __init__(self, ctx: ArrayContext, array: ir.Var, entries: list[Entry]) -> None:
        self.ctx = ctx
        arrays = [i for i, entry in enumerate(entries) if _is_index_array(entry)]
        if len(arrays) != 1:
            ctx.refuse("More than one index array.", "Write a loop over the indices.")
        (where,) = arrays
        self._refuse_far_integers(entries, where)
        self.selector: ir.Var = entries[where]  # type: ignore[assignment]
        self.is_mask = isinstance(self.selector.type.dtype, types.Boolean)
        if self.is_mask and self.selector.type.ndim != 1:
            ctx.refuse("A mask with more than one dimension.", "Write loops, or use np.where.")
        rest: list[Entry] = [FULL if i == where else entry for i, entry in enumerate(entries)]
        self.view = basic_view(ctx, array, rest)
        kept = [isinstance(entry, (ir.Slice, ir.NewAxis)) for entry in rest[:where]]
        self.axis = sum(kept)
        signed = getattr(self.selector.type.dtype, "signed", False)
        self.wraps = bool(signed) and not self.is_mask
        if self.is_mask:
            middle: Sizes = (self._count(),)
        else:
            middle = ctx.shapes.dims(self.selector)
        around = ctx.shapes.dims(self.view)
        self.before, self.after = around[: self.axis], around[self.axis + 1 :]
        self.sizes: Sizes = (*self.before, *middle, *self.after)

    def _refuse_far_integers(self, entries: list[Entry], where: int) -> None:
        """Integers count as index arrays; if they are not next to the array, its axes come first."""
        integers = [i for i, entry in enumerate(entries) if _is_integer(entry)]
        if integers and {*integers, where} != set(
            range(min(*integers, where), max(*integers, where) + 1)
        ):
            self.ctx.refuse(
                "Integers and an index array with a slice between them.",
                "Take the view by the integers first.",
            )

    def _count(self) -> ir.Operand:
        ctx, b = self.ctx, self.ctx.b
        size = ctx.shapes.dim(self.selector, 0)

        def step(index: Index, values: tuple[ir.Operand, ...]) -> list[ir.Operand]:
            hit = b.cast(b.load(self.selector, *index, wraps=False), types.intp)
            return [b.prim(operator.add, values[0], hit, type=types.intp, name="count")]

        (count,) = ctx.fold((size,), (b.intp(0),), step, name="count")
        return count

    def loop(self, move: Any) -> None:
        """Calls move(index in view, index in result) in loops over all that is picked."""
        ctx, b = self.ctx, self.ctx.b
        if self.is_mask:
            return self._loop_mask(move)
        ndim = self.selector.type.ndim
        with ctx.nest(self.sizes) as index:
            middle = index[self.axis : self.axis + ndim]
            at = b.load(self.selector, *middle, wraps=False)
            source = (*index[: self.axis], at, *index[self.axis + ndim :])
            move(source, index)

    def _loop_mask(self, move: Any) -> None:
        ctx, b = self.ctx, self.ctx.b
        size = ctx.shapes.dim(self.selector, 0)

        def step(index: Index, values: tuple[ir.Operand, ...]) -> list[ir.Operand]:
            (hit,) = [b.load(self.selector, *index, wraps=False)]
            with b.block() as then:
                with ctx.nest((*self.before, *self.after)) as around:
                    before, after = around[: self.axis], around[self.axis :]
                    move((*before, *index, *after), (*before, values[0], *after))
                position = b.prim(operator.add, values[0], b.intp(1), type=types.intp)
            out = b.fresh("position", types.intp)
            b.emit(
                ir.If(
                    hit, ir.Block(tuple(then), (position,)), ir.Block((), (values[0],)), (out,),
                    loc=b.loc,
                )
            )  # fmt: skip
            return [out]

        ctx.fold((size,), (b.intp(0),), step, name="position")


# ---- records -------------------------------------------------------------------------------------------


def field_view(ctx: ArrayContext, array: ir.Var, name: str) -> ir.Var:
    """``array.name`` or ``array["name"]`` of an array of records."""
    record = array.type.dtype
    if name not in record.fields:
        ctx.refuse(f"The records have no field {name}.")
    kind = record.typeof(name)
    if isinstance(kind, types.NestedArray):
        ctx.refuse(
            f"The field `{name}` of the records is an array, which is not supported.",
            f"Give each component a field of its own (`{name}_0`, `{name}_1`), or keep `{name}` in an "
            "array beside the records.",
        )
    type = array.type.copy(dtype=kind, layout="A")
    return ctx.view(array, "field", (ir.Lit(name, types.unicode_type),), type)


def get_field(ctx: ArrayContext, record: RecordVal, name: str) -> ir.Operand:
    view = field_view(ctx, record.array, name)
    return ctx.b.load(view, *record.index, wraps=record.wraps)


def set_field(ctx: ArrayContext, record: RecordVal, name: str, value: ir.Operand) -> None:
    view = field_view(ctx, record.array, name)
    ctx.b.store(view, record.index, value, wraps=record.wraps)


def _copy_record(ctx: ArrayContext, target: RecordVal, source: RecordVal) -> None:
    if target.type != source.type:
        ctx.refuse("A record is assigned to a record of another type.")
    names = list(target.type.fields)
    values = [get_field(ctx, source, name) for name in names]
    for name, value in zip(names, values, strict=True):
        set_field(ctx, target, name, value)


def _assign_records(ctx: ArrayContext, target: ir.Var, value: Any) -> None:
    if not is_array(value) or value.type.dtype != target.type.dtype:
        ctx.refuse(
            "Only records of the same type can be assigned to a part of an array of records."
        )
    for name in target.type.dtype.fields:
        assign(ctx, field_view(ctx, target, name), field_view(ctx, value, name))
