"""What a generated make_zero calls; see zero_text.py.

`table` notes arrays (extents.py), `seen` structs and lists: a row is what identifies one, and the same of its
shadow.  counters: rows of table, rows of seen, and whether arrays may overlap.  The work is done by machine
code that is there already (zero_code.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import intrinsic, overload

from splitad.runtime import zero_code
from splitad.runtime.extents import copy_items
from splitad.tape.arrays import raise_wrong

_i64 = ir.IntType(64)


def call_code(builder: Any, name: str, result: ir.Type, args: list[Any]) -> Any:
    """Call one of the functions of zero_code.py, whose arguments are all integers."""
    assert name in zero_code.SYMBOLS
    kind = ir.FunctionType(result, [_i64] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def on_stack(context: Any, builder: Any, typ: types.Array, value: Any) -> list[Any]:
    """(the address of the struct of an array, its dimensions), as zero_code.py wants an array."""
    return [builder.ptrtoint(cgutils.alloca_once_value(builder, value), _i64), _i64(typ.ndim)]


def room_for(context: Any, builder: Any, typ: types.Array) -> Any:
    """A pointer to room for the struct of an array, which is zeros."""
    kind = context.get_value_type(typ)
    return cgutils.alloca_once_value(builder, cgutils.get_null_value(kind))


def is_fortran(typ: types.Array) -> Any:
    return _i64(int(typ.layout == "F"))


def _words(context: Any, builder: Any, typ: types.Array, array: Any) -> Any:
    """The address of an array's elements."""
    return builder.ptrtoint(context.make_array(typ)(context, builder, array).data, _i64)


def _all_words(context: Any, builder: Any, sig: Any, args: Any, count: int) -> list[Any]:
    """The same of each of the first `count` arguments."""
    pairs = zip(sig.args[:count], args[:count], strict=True)
    return [_words(context, builder, typ, array) for typ, array in pairs]


# ---- arrays --------------------------------------------------------------------------------------------


@intrinsic
def zeros_like(typingctx: Any, array: Any) -> Any:
    """Zeros of an array's shape and type: C order, or Fortran order where the type says so."""
    result = array.copy(readonly=False)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        out = room_for(context, builder, result)
        given = on_stack(context, builder, array, args[0])
        given += [is_fortran(result), builder.ptrtoint(out, _i64)]
        raise_wrong(context, builder, call_code(builder, "splitad_zeros_like", _i64, given))
        return builder.load(out)

    return result(array), codegen


@intrinsic
def note(typingctx: Any, table: Any, counters: Any, array: Any) -> Any:
    """Note the extent of one more array, and whether it may overlap another."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = _all_words(context, builder, sig, args, 2)
        given += on_stack(context, builder, array, args[2])
        call_code(builder, "splitad_zero_note", ir.VoidType(), given)
        return context.get_dummy_value()

    return types.none(table, counters, array), codegen


@intrinsic
def group(typingctx: Any, table: Any, counters: Any) -> Any:
    """Find the groups of arrays whose extents overlap, and begin again with the first."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = _all_words(context, builder, sig, args, 2)
        call_code(builder, "splitad_zero_group", ir.VoidType(), given)
        return context.get_dummy_value()

    return types.none(table, counters), codegen


@intrinsic
def shadow_array(typingctx: Any, table: Any, counters: Any, array: Any) -> Any:
    """A shadow for the next array that was noted: a view of the zeros of its group, or zeros of its own."""
    result = array.copy(readonly=False)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        out = room_for(context, builder, result)
        given = _all_words(context, builder, sig, args, 2)
        given += on_stack(context, builder, array, args[2])
        given += [is_fortran(result), builder.ptrtoint(out, _i64)]
        raise_wrong(context, builder, call_code(builder, "splitad_zero_shadow", _i64, given))
        return builder.load(out)

    return result(table, counters, array), codegen


@intrinsic
def drop_groups(typingctx: Any, table: Any, counters: Any) -> Any:
    """Give back the table's own references to the groups' zeros; the views of them hold theirs."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = _all_words(context, builder, sig, args, 2)
        call_code(builder, "splitad_zero_drop", ir.VoidType(), given)
        return context.get_dummy_value()

    return types.none(table, counters), codegen


# ---- structs and lists ---------------------------------------------------------------------------------


@intrinsic
def find(typingctx: Any, seen: Any, counters: Any, identity: Any) -> Any:
    """The row of a struct or list, -1 where it was not met yet."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = [*_all_words(context, builder, sig, args, 2), args[2]]
        return call_code(builder, "splitad_zero_find", _i64, given)

    return types.int64(seen, counters, types.int64), codegen


@intrinsic
def enter(typingctx: Any, seen: Any, counters: Any, identity: Any, shadow: Any) -> Any:
    """Note a struct or list and its shadow."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = [*_all_words(context, builder, sig, args, 2), *args[2:]]
        call_code(builder, "splitad_zero_enter", ir.VoidType(), given)
        return context.get_dummy_value()

    return types.none(seen, counters, types.int64, types.int64), codegen


@intrinsic
def identity(typingctx: Any, value: Any) -> Any:
    """What identifies a struct or list: the address of its meminfo."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_helper(builder, value, args[0]).meminfo, _i64)

    return types.int64(value), codegen


def _from_meminfo(context: Any, builder: Any, typ: Any, meminfo: Any) -> Any:
    value = context.make_helper(builder, typ)
    value.meminfo = builder.bitcast(meminfo, value.meminfo.type)
    if isinstance(typ, (types.ClassInstanceType, types.ListType)):
        data = context.nrt.meminfo_data(builder, meminfo)
        if isinstance(typ, types.ListType):
            data = builder.load(builder.bitcast(data, cgutils.voidptr_t.as_pointer()))
        value.data = builder.bitcast(data, value.data.type)
    if isinstance(typ, types.List):
        value.parent = cgutils.get_null_value(value.parent.type)
    return value._getvalue()


@intrinsic
def again(typingctx: Any, like: Any, identity: Any) -> Any:
    """One more reference to what `identity` identifies, which is of the same type as `like`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        meminfo = builder.inttoptr(args[1], cgutils.voidptr_t)
        value = _from_meminfo(context, builder, like, meminfo)
        context.nrt.incref(builder, like, value)
        return value

    return like(like, types.int64), codegen


@intrinsic
def new_like(typingctx: Any, like: Any) -> Any:
    """A new struct of the same type, all bytes zero; no __init__ runs."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        memory_type = context.get_data_type(like.get_data_type())
        size = context.get_constant(types.uintp, context.get_abi_sizeof(memory_type))
        dtor = imp_dtor(context, builder.module, like)
        meminfo = context.nrt.meminfo_alloc_dtor(builder, size, dtor)
        cgutils.memset(builder, context.nrt.meminfo_data(builder, meminfo), size, 0)
        return _from_meminfo(context, builder, like, meminfo)

    return like(like), codegen


def copy_discrete(shadow: Any, x: Any) -> None:
    """Copy what has no cotangent."""


@overload(copy_discrete, strict=False)
def _copy_discrete(shadow: Any, x: Any) -> Any:
    dtype = x.dtype
    if isinstance(dtype, (types.Float, types.Complex)):
        return lambda shadow, x: None
    if not isinstance(dtype, types.Record):
        return lambda shadow, x: copy_items(shadow, x)
    lines = [f"    copy_discrete(shadow[{name!r}], x[{name!r}])" for name in dtype.fields]
    scope: dict[str, Any] = {"copy_discrete": copy_discrete}
    exec("\n".join(["def impl(shadow, x):", *lines]), scope)
    return scope["impl"]
