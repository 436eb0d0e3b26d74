"""The tape's operations in generated code.

A tape handle is an array(int64, 1d, C) of six: [0] address of the block, [1] capacity in bytes,
[2] bytes used (the forward writes it when it is done), [3] limit in bytes, [4] and [5] see
runtime/overlapping.py.  The handle owns the block: when the last reference to it goes, the block goes back
to the pool.

    tape_new(capacity, limit) -> tape           also from Python; the block may be smaller (limit, no memory)
    scratch_tape(limit) -> tape                 an empty one whose handle lies in the caller's frame, and is
                                                not lost with an exception; whoever calls it gives the block
                                                back (tape_release)
    tape_grow(tape, used, total) -> bool        makes capacity >= total, keeping `used` bytes; False: over the
                                                limit.  The address changes: read tape[0] again.
    tape_trim(tape)                             swaps a block that is mostly empty for one of the size used
    tape_release(tape)                          gives the block back now; address, capacity and used are 0
    without_owner(tape) -> tape                 the same handle, but not counted as a reference to it
    column(address, offset, dtype) -> c         c[k], c[k] = v; see columns.py
    snapshot(address, offset, a)                writes a's elements there, in C order
    restore(address, offset, a)                 reads them back into a, an array of the same shape and dtype
    snapshot_view(address, offset, shape, dtype) -> C-contiguous array over that memory, which it does not own
    copy_elements(to, source)                   to[...] = source, shapes and dtypes equal
    memcpy(to_address, from_address, nbytes)
    address_of(a) -> int                        of the first element
    nbytes_of(a) -> int                         what a snapshot of it takes
    load_at, store_at, add_at, clear_rows, clear_to    see columns.py

A column or a view does not keep the tape alive, and Numba drops a variable after its last use: whoever
calls tape_new must use the handle once more after the last access (code that gets it as an argument need
not, its caller holds it).

Addresses and offsets are int64.  Nothing here checks that the tape has room: the generated code reserves
first.  Blocks are 64-byte aligned; columns need not be, a column at an offset that is a multiple of its item
size is fastest and one that is not is an error in the layout.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

from splitad.tape import pool  # its symbols must be there before any code that uses them
from splitad.tape.columns import (
    add_at,
    clear_rows,
    clear_to,
    column,
    load_at,
    pointer,
    scalar_type,
    store_at,
)
from splitad.tape.pool import live_bytes, live_tapes, pooled_bytes, release_memory

__all__ = [
    "TAPE", "add_at", "address_of", "clear_rows", "clear_to", "column", "copy_elements", "live_bytes",
    "live_tapes", "load_at", "memcpy", "nbytes_of", "pooled_bytes", "release_memory", "restore",
    "scratch_tape", "snapshot", "snapshot_view", "store_at", "tape_grow", "tape_new", "tape_release",
    "tape_trim", "without_owner",
]  # fmt: skip

TAPE = types.Array(types.int64, 1, "C")
_i32, _i64 = ir.IntType(32), ir.IntType(64)


def call_pool(builder: ir.IRBuilder, name: str, result: ir.Type, args: list[ir.Value]) -> ir.Value:
    """Call one of the functions of the pool, whose arguments are all integers."""
    assert name in pool.SYMBOLS
    fn = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [_i64] * len(args)), name
    )
    return builder.call(fn, args)


def fill_array(
    context: Any, builder: Any, array_type: Any, data: Any, shape: list[Any], meminfo: Any = None
) -> Any:
    """The value of a C-contiguous array over `data`; without `meminfo` it owns nothing."""
    item = context.get_constant(
        types.intp, context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    )
    strides, nitems = [], context.get_constant(types.intp, 1)
    for n in reversed(shape):
        strides.append(builder.mul(nitems, item))
        nitems = builder.mul(nitems, n)
    array = context.make_array(array_type)(context, builder)
    array.data = builder.bitcast(data, array.data.type)
    array.meminfo = cgutils.get_null_value(array.meminfo.type) if meminfo is None else meminfo
    array.parent = cgutils.get_null_value(array.parent.type)
    array.nitems, array.itemsize = nitems, item
    array.shape = cgutils.pack_array(builder, shape, context.get_value_type(types.intp))
    array.strides = cgutils.pack_array(builder, strides[::-1], context.get_value_type(types.intp))
    return array._getvalue()


# ---- the handle -------------------------------------------------------------------------------------


@intrinsic
def _tape_new(typingctx: Any, capacity: Any, limit: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return make_tape(context, builder, *args)

    return TAPE(types.int64, types.int64), codegen


def make_tape(context: Any, builder: Any, capacity: Any, limit: Any) -> Any:
    """The value of a new handle."""
    void_pointer = cgutils.voidptr_t
    dtor_type = ir.FunctionType(ir.VoidType(), [void_pointer, _i64, void_pointer])
    dtor = cgutils.get_or_insert_function(builder.module, dtor_type, "splitad_tape_dtor")
    size = context.get_constant(types.uintp, 48)
    meminfo = context.nrt.meminfo_alloc_dtor(builder, size, dtor)
    data = context.nrt.meminfo_data(builder, meminfo)
    handle = builder.ptrtoint(data, _i64)
    call_pool(builder, "splitad_tape_init", ir.VoidType(), [handle, capacity, limit])
    return fill_array(context, builder, TAPE, data, [context.get_constant(types.intp, 6)], meminfo)


@njit
def tape_new(capacity: int, limit: int) -> Any:
    """A new tape handle."""
    return _tape_new(capacity, limit)


@intrinsic
def scratch_tape(typingctx: Any, limit: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = [_i64(0), _i64(0), _i64(0), args[0], _i64(0), _i64(0)]
        # in the frame once, also where this stands in a loop
        handle = cgutils.alloca_once(builder, _i64, size=len(words))
        for k, word in enumerate(words):
            builder.store(word, builder.gep(handle, [_i64(k)]))
        size = context.get_constant(types.intp, len(words))
        return fill_array(context, builder, TAPE, handle, [size])

    return TAPE(types.int64), codegen


def handle_of(context: Any, builder: Any, tape: Any) -> Any:
    """The address of the six integers."""
    return builder.ptrtoint(context.make_array(TAPE)(context, builder, tape).data, _i64)


@intrinsic
def tape_grow(typingctx: Any, tape: Any, used: Any, total: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tape, used, total = args
        handle = handle_of(context, builder, tape)
        got = call_pool(builder, "splitad_tape_grow", _i32, [handle, used, total])
        with builder.if_then(builder.icmp_signed("<", got, _i32(0)), likely=False):
            message = "no memory for the tape"
            context.call_conv.return_user_exc(builder, MemoryError, (message,))
        return builder.icmp_signed(">", got, _i32(0))

    return types.boolean(TAPE, types.int64, types.int64), codegen


def _on_handle(name: str) -> Any:
    def typing(typingctx: Any, tape: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            call_pool(builder, name, ir.VoidType(), [handle_of(context, builder, args[0])])
            return context.get_dummy_value()

        return types.none(TAPE), codegen

    typing.__name__ = typing.__qualname__ = name.removeprefix("splitad_")
    return intrinsic(typing)


tape_trim = _on_handle("splitad_tape_trim")
tape_release = _on_handle("splitad_tape_release")


def without_owner_value(context: Any, builder: Any, tape: Any) -> Any:
    """The handle with no reference count: what a callee that may raise must get, since it would leak."""
    array = context.make_array(TAPE)(context, builder, tape)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    return array._getvalue()


@intrinsic
def without_owner(typingctx: Any, tape: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return without_owner_value(context, builder, args[0])

    return TAPE(TAPE), codegen


# ---- whole arrays -----------------------------------------------------------------------------------


def _itemsize(context: Any, dtype: Any) -> int:
    return int(context.get_abi_sizeof(context.get_data_type(dtype)))


def _nbytes(builder: Any, array: Any) -> Any:
    return builder.mul(array.nitems, array.itemsize)


def _transfer(
    context: Any, builder: Any, array_type: Any, value: Any, flat: Any, to_flat: bool
) -> None:
    """Copy an array's elements in C order to the memory at `flat`, or back."""
    array = context.make_array(array_type)(context, builder, value)
    shape = cgutils.unpack_tuple(builder, array.shape)
    strides = cgutils.unpack_tuple(builder, array.strides)

    def straight() -> None:
        to, source = (flat, array.data) if to_flat else (array.data, flat)
        cgutils.raw_memcpy(builder, to, source, _nbytes(builder, array), 1)

    if array_type.layout == "C":
        straight()
        return
    contiguous = cgutils.true_bit
    expected = array.itemsize
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        contiguous = builder.and_(contiguous, builder.icmp_signed("==", stride, expected))
        expected = builder.mul(expected, n)
    with builder.if_else(contiguous) as (then, otherwise):
        with then:
            straight()
        with otherwise:
            items = builder.bitcast(flat, array.data.type)
            size = _itemsize(context, array_type.dtype)
            with cgutils.loop_nest(builder, shape, context.get_value_type(types.intp)) as indices:
                position = context.get_constant(types.intp, 0)
                for i, n in zip(indices, shape, strict=True):
                    position = builder.add(builder.mul(position, n), i)
                at = cgutils.get_item_pointer2(
                    context, builder, array.data, shape, strides, array_type.layout, indices
                )
                there = builder.gep(items, [position])
                to, source = (there, at) if to_flat else (at, there)
                _copy_item(context, builder, array_type, to, source, size)


def _copy_item(
    context: Any, builder: Any, array_type: Any, to: Any, source: Any, size: int
) -> None:
    if isinstance(array_type.dtype, types.Record):
        cgutils.raw_memcpy(builder, to, source, context.get_constant(types.intp, size), 1)
        return
    builder.store(builder.load(source, align=1), to, align=1)


@intrinsic
def snapshot(typingctx: Any, address: Any, offset: Any, array: Any) -> Any:
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        flat = pointer(builder, args[0], args[1])
        _transfer(context, builder, array, args[2], flat, to_flat=True)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, array), codegen


@intrinsic
def restore(typingctx: Any, address: Any, offset: Any, array: Any) -> Any:
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        flat = pointer(builder, args[0], args[1])
        _transfer(context, builder, array, args[2], flat, to_flat=False)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, array), codegen


@intrinsic
def copy_elements(typingctx: Any, to: Any, source: Any) -> Any:
    _need_array(to)
    _need_array(source)
    if to.dtype != source.dtype or to.ndim != source.ndim:
        raise NumbaTypeError(f"cannot copy {source} to {to}")
    if "C" not in (to.layout, source.layout):
        raise NumbaTypeError("one of the arrays must be C-contiguous")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        flat_type, flat, other_type, other = (
            (to, args[0], source, args[1]) if to.layout == "C" else (source, args[1], to, args[0])
        )
        data = context.make_array(flat_type)(context, builder, flat).data
        memory = builder.bitcast(data, cgutils.voidptr_t)
        _transfer(context, builder, other_type, other, memory, to_flat=to.layout == "C")
        return context.get_dummy_value()

    return types.none(to, source), codegen


@intrinsic
def snapshot_view(typingctx: Any, address: Any, offset: Any, shape: Any, dtype: Any) -> Any:
    array_type = types.Array(scalar_type(dtype), len(shape), "C")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        parts = cgutils.unpack_tuple(builder, args[2]) if len(shape) else []
        sizes = [
            context.cast(builder, n, t, types.intp) for n, t in zip(parts, shape.types, strict=True)
        ]
        return fill_array(context, builder, array_type, pointer(builder, args[0], args[1]), sizes)

    return array_type(types.int64, types.int64, shape, dtype), codegen


@intrinsic
def memcpy(typingctx: Any, to: Any, source: Any, nbytes: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        there, here = (builder.inttoptr(a, cgutils.voidptr_t) for a in args[:2])
        cgutils.raw_memcpy(builder, there, here, args[2], 1)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), codegen


@intrinsic
def address_of(typingctx: Any, array: Any) -> Any:
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_array(array)(context, builder, args[0]).data, _i64)

    return types.int64(array), codegen


@intrinsic
def nbytes_of(typingctx: Any, array: Any) -> Any:
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _nbytes(builder, context.make_array(array)(context, builder, args[0]))

    return types.int64(array), codegen


def _need_array(array: Any) -> None:
    if not isinstance(array, types.Array):
        raise NumbaTypeError(f"an array is needed, not {array}")
