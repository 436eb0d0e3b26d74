"""Typed access to memory from generated code: tape columns, and array elements without checks.

    column(address, offset, dtype)  a typed pointer c into a block, for c[k] and c[k] = v; dtype is a constant
                                    (np.float64, np.dtype(...), numba.int64, np.bool_, complex too)
    load_at(a, i)   a[i]            no wrap-around of negative indices and no bounds check;
    store_at(a, i, v)  a[i] = v     i is an int or a tuple of as many ints as a has dimensions
    clear_to(a, i, k)               zeros from a[i] to before a[k], of a C-contiguous array of one dimension;
                                    the larger one of i and k
    add_at(a, i, v)  a[i] += v      (`()` for a 0-d array); v is cast to a's dtype

A column is a pointer held in a register, so a loop over k vectorises.  Column accesses are marked as
belonging to the tape and those of load_at, store_at and add_at as not belonging to it, which saves LLVM the
overlap checks between a tape and the user's arrays.  (A snapshot_view is the tape's memory too: read it
by load_at only where no column of the same block is written.)

A last argument, load_at(a, i, 3), numbers the memory that a lies in, below MEMORIES: memory of different
numbers never overlaps while the function runs (analysis/apart.py).  LLVM then moves loads out of loops and
vectorises without checks.  Such a function is not inlined into others: called in a loop, it may find
elsewhere in one iteration what was the other memory's in the one before.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable


class Column(types.Type):
    """A pointer to elements of one dtype."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(f"Column({dtype})")

    @property
    def key(self) -> types.Type:
        return self.dtype


@register_model(Column)
class ColumnModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Column) -> None:
        pointer = dmm.lookup(fe_type.dtype).get_data_type().as_pointer()
        super().__init__(dmm, fe_type, pointer)


def scalar_type(dtype: types.Type) -> types.Type:
    """The element type that a dtype constant stands for."""
    if isinstance(dtype, types.NumberClass):
        return dtype.instance_type
    if isinstance(dtype, types.DType):
        return dtype.dtype
    if isinstance(dtype, types.TypeRef):
        return dtype.instance_type
    if isinstance(dtype, types.Function) and dtype.typing_key is bool:
        return types.boolean
    raise NumbaTypeError(f"not a dtype: {dtype}")


# ---- which memory an access belongs to ------------------------------------------------------------

MEMORIES = 12  # that are told apart; LLVM compares the lists below for each pair of accesses
_TAPE = "tape"


def mark(builder: ir.IRBuilder, since: int, memory: int | str | None) -> None:
    """Tell LLVM which memory the loads and stores from instruction `since` on belong to.

    memory: the tape, a number, or None: not the tape.
    """
    lists = _lists_of(builder.module, memory)
    if isinstance(memory, int):
        builder.function.attributes.add("noinline")
    for instruction in builder.block.instructions[since:]:
        if isinstance(instruction, (ir.instructions.LoadInstr, ir.instructions.StoreInstr)):
            for kind, list_ in lists:
                instruction.set_metadata(kind, list_)


_lists: WeakKeyDictionary[ir.Module, dict[Any, list[tuple[str, Any]]]] = WeakKeyDictionary()


def _lists_of(module: ir.Module, memory: int | str | None) -> list[tuple[str, Any]]:
    """The metadata of an access to that memory: the kinds, and the list of scopes for each."""
    known = _lists.setdefault(module, {})
    if memory not in known:
        domain = module.add_metadata(["splitad"])

        def scopes(of: Iterable[int | str]) -> Any:
            return module.add_metadata([module.add_metadata([f"splitad {m}", domain]) for m in of])

        found = []
        if memory is not None:
            found.append(("alias.scope", scopes([memory])))
        if memory != _TAPE:
            numbers = [] if memory is None else [m for m in range(MEMORIES) if m != memory]
            found.append(("noalias", scopes([_TAPE, *numbers])))
        known[memory] = found
    return known[memory]


def number_of(memory: Any) -> int | None:
    """The number that the type of an optional last argument stands for."""
    if memory is None or isinstance(memory, types.Omitted):
        return None
    if not isinstance(memory, types.IntegerLiteral) or not 0 <= memory.literal_value < MEMORIES:
        raise NumbaTypeError(f"not the number of a memory: {memory}")
    return int(memory.literal_value)


def pointer(builder: ir.IRBuilder, address: ir.Value, offset: ir.Value) -> ir.Value:
    """The byte pointer address + offset."""
    base = builder.inttoptr(address, cgutils.voidptr_t)
    return builder.gep(base, [offset], inbounds=True)


# ---- columns ----------------------------------------------------------------------------------------


@intrinsic
def column(typingctx: Any, address: Any, offset: Any, dtype: Any) -> Any:
    column_type = Column(scalar_type(dtype))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = pointer(builder, args[0], args[1])
        return builder.bitcast(at, context.get_value_type(column_type))

    return column_type(types.int64, types.int64, dtype), codegen


@type_callable(operator.getitem)
def _type_column_getitem(context: Any) -> Any:
    def typer(col: Any, k: Any) -> Any:
        if isinstance(col, Column) and isinstance(k, types.Integer):
            return col.dtype
        return None

    return typer


@type_callable(operator.setitem)
def _type_column_setitem(context: Any) -> Any:
    def typer(col: Any, k: Any, value: Any) -> Any:
        if isinstance(col, Column) and isinstance(k, types.Integer):
            if context.can_convert(value, col.dtype) is not None:
                return types.none
        return None

    return typer


def _column_item(context: Any, builder: Any, k_type: Any, col: Any, k: Any) -> Any:
    index = context.cast(builder, k, k_type, types.intp)
    return builder.gep(col, [index], inbounds=True)


@lower_builtin(operator.getitem, Column, types.Integer)
def _column_getitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    at = _column_item(context, builder, sig.args[1], *args)
    since = len(builder.block.instructions)
    value = context.unpack_value(builder, sig.return_type, at)
    mark(builder, since, _TAPE)
    return value


@lower_builtin(operator.setitem, Column, types.Integer, types.Any)
def _column_setitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    col, k, value = args
    dtype = sig.args[0].dtype
    at = _column_item(context, builder, sig.args[1], col, k)
    value = context.cast(builder, value, sig.args[2], dtype)
    since = len(builder.block.instructions)
    context.pack_value(builder, dtype, value, at)
    mark(builder, since, _TAPE)
    return context.get_dummy_value()


# ---- array elements ---------------------------------------------------------------------------------


def _index_types(array: Any, index: Any) -> Sequence[Any] | None:
    """The types of the single indices, or None where they do not fit the array."""
    parts = index.types if isinstance(index, types.BaseTuple) else (index,)
    fits = isinstance(array, types.Array) and len(parts) == array.ndim
    return parts if fits and all(isinstance(part, types.Integer) for part in parts) else None


def _need_fit(array: Any, index: Any) -> None:
    if _index_types(array, index) is None:
        raise NumbaTypeError(
            f"cannot index {array} with {index}: one integer per dimension is needed"
        )


def element(
    context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any
) -> Any:
    """The address of one element.

    What it needs of the array is taken out of the value: Numba's structs would put all of it into memory
    first, at each access, for LLVM to take out again.
    """
    parts = _index_types(array_type, index_type)
    assert parts is not None
    values = (
        cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
    )
    indices = [context.cast(builder, v, t, types.intp) for v, t in zip(values, parts, strict=True)]
    model = context.data_model_manager[array_type]

    def member(name: str) -> Any:
        return builder.extract_value(array, model.get_field_position(name))

    layout = array_type.layout
    if len(indices) == 1 and layout in "CF":
        return builder.gep(member("data"), indices)
    shape = cgutils.unpack_tuple(builder, member("shape")) if layout in "CF" else []
    strides = [] if layout in "CF" else cgutils.unpack_tuple(builder, member("strides"))
    return cgutils.get_item_pointer2(
        context, builder, member("data"), shape, strides, layout, indices, False, False
    )


def _alignment(array_type: Any) -> int | None:
    return None if array_type.aligned else 1


def load_element(
    context: Any, builder: Any, array_type: Any, at: Any, memory: int | None = None
) -> Any:
    since = len(builder.block.instructions)
    value = context.unpack_value(builder, array_type.dtype, at, align=_alignment(array_type))
    mark(builder, since, memory)
    return value


def store_element(
    context: Any, builder: Any, array_type: Any, value: Any, at: Any, memory: int | None = None
) -> None:
    since = len(builder.block.instructions)
    context.pack_value(builder, array_type.dtype, value, at, align=_alignment(array_type))
    mark(builder, since, memory)


_NONE = types.Omitted(None)


@intrinsic(prefer_literal=True)
def load_at(typingctx: Any, array: Any, index: Any, memory: Any = None) -> Any:
    _need_fit(array, index)
    number = number_of(memory)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = element(context, builder, array, args[0], index, args[1])
        return load_element(context, builder, array, at, number)

    return array.dtype(array, index, memory or _NONE), codegen


@intrinsic(prefer_literal=True)
def store_at(typingctx: Any, array: Any, index: Any, value: Any, memory: Any = None) -> Any:
    _need_fit(array, index)
    _need_conversion(typingctx, value, array)
    number = number_of(memory)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = element(context, builder, array, args[0], index, args[1])
        cast = context.cast(builder, args[2], value, array.dtype)
        store_element(context, builder, array, cast, at, number)
        return context.get_dummy_value()

    return types.none(array, index, value, memory or _NONE), codegen


@intrinsic(prefer_literal=True)
def add_at(typingctx: Any, array: Any, index: Any, value: Any, memory: Any = None) -> Any:
    _need_fit(array, index)
    _need_conversion(typingctx, value, array)
    number = number_of(memory)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        dtype = array.dtype
        at = element(context, builder, array, args[0], index, args[1])
        cast = context.cast(builder, args[2], value, dtype)
        old = load_element(context, builder, array, at, number)
        plus = typingctx.resolve_function_type(operator.add, (dtype, dtype), {})
        total = context.get_function(operator.add, plus)(builder, (old, cast))
        total = context.cast(builder, total, plus.return_type, dtype)
        store_element(context, builder, array, total, at, number)
        return context.get_dummy_value()

    return types.none(array, index, value, memory or _NONE), codegen


@intrinsic
def clear_to(typingctx: Any, array: Any, start: Any, stop: Any) -> Any:
    _need_fit(array, start)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, end = (
            context.cast(builder, v, t, types.intp)
            for v, t in zip(args[1:], sig.args[1:], strict=True)
        )
        more = builder.icmp_signed(">", end, first)
        with builder.if_then(more):
            at = element(context, builder, array, args[0], types.intp, first)
            size = context.get_constant(types.intp, context.get_abi_sizeof(at.type.pointee))
            cgutils.memset(builder, at, builder.mul(builder.sub(end, first), size), 0)
        return builder.select(more, end, first)

    return types.intp(array, types.intp, types.intp), codegen


@intrinsic(prefer_literal=True)
def clear_rows(typingctx: Any, array: Any, index: Any, row: Any, rows: Any, width: Any) -> Any:
    _need_fit(array, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = context.cast(builder, args[1], index, types.intp)
        zero = context.get_constant_null(array.dtype)
        for k in range(rows.literal_value):
            for j in range(width.literal_value):
                by = context.get_constant(types.intp, k * row.literal_value + j)
                at = element(context, builder, array, args[0], types.intp, builder.add(start, by))
                store_element(context, builder, array, zero, at)
        return context.get_dummy_value()

    return types.none(array, index, row, rows, width), codegen


def _need_conversion(typingctx: Any, value: Any, array: Any) -> None:
    if typingctx.can_convert(value, array.dtype) is None:
        raise NumbaTypeError(f"cannot store {value} in {array}")
