"""What a generated make_zero calls; see zero_text.py.

`table` notes arrays (extents.py), `seen` structs and lists: a row is what identifies one, and the same of its
shadow.  counters: rows of table, rows of seen, and whether arrays may overlap.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import intrinsic, overload

from splitad.runtime.extents import HI, LO, copy_items, place
from splitad.tape.ops import load_at, store_at

FEW = 32  # so many arrays are compared one by one
OVERLAP = 2
_i64 = ir.IntType(64)


@njit
def scan(table: Any, counters: Any, span: tuple[int, int]) -> None:
    """Note the extent of one more array, and whether it may overlap another."""
    row = load_at(counters, 0)
    store_at(counters, 0, row + 1)
    lo, hi = span
    store_at(table, (row, LO), lo)
    store_at(table, (row, HI), hi)
    if row >= FEW:  # `group` sorts them
        store_at(counters, OVERLAP, 1)
        return
    for k in range(row):
        if lo < load_at(table, (k, HI)) and load_at(table, (k, LO)) < hi:
            store_at(counters, OVERLAP, 1)


@njit
def next_place(table: Any, counters: Any, address: int) -> tuple[int, int]:
    """Where the shadow of the next array goes."""
    row = load_at(counters, 0)
    store_at(counters, 0, row + 1)
    return place(table, row, address)


@njit
def find(seen: Any, counters: Any, identity: int) -> int:
    """The row of a struct or list, -1 where it was not met yet."""
    for row in range(counters[1]):
        if seen[row, 0] == identity:
            return row
    return -1


@njit
def enter(seen: Any, counters: Any, identity: int, shadow: int) -> None:
    """Note a struct or list and its shadow."""
    row = counters[1]
    counters[1] = row + 1
    seen[row, 0], seen[row, 1] = identity, shadow


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
