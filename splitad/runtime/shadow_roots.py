"""Shadows of arrays that may be views which control flow chose: by their root's number, and the place in it.

    roots = shadow_table(np.uint8, 1, "C")                 a root: the memory of a shadow, as bytes
    table_set(roots, 0, root_of(base + 16, d_x))
    d_row = shadow_a(roots, id_row, at_row, size, shape, strides, np.float64)

`at` is how many bytes the array's first element lies behind its root's, in the primal.  So a root has to
be laid out as its primal is: a shadow of the caller's that is not has its contents moved into one that is,
and back at the end.  Views that overlap have shadows that overlap likewise, whatever chose them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from splitad.errors import ShadowError
from splitad.runtime.boundary import (
    ITEMSIZE,
    NDIM,
    SHAPE,
    note_overlaps_itself,
    stack_note,
)
from splitad.runtime.shadow_table import ShadowTable, get_value
from splitad.tape.arrays import sizes_of
from splitad.tape.columns import column, scalar_type
from splitad.tape.ops import address_of

_ROOT = types.Array(types.uint8, 1, "C")
_i64 = ir.IntType(64)

# ---- roots ---------------------------------------------------------------------------------------------


@njit
def root_of(note: int, shadow: Any) -> Any:
    """The memory of a shadow, if it is laid out as the noted array is; else other memory that is."""
    mine = stack_note(shadow)
    a, b = column(note, 0, np.int64), column(mine, 0, np.int64)
    ndim = a[NDIM]
    same = True
    for k in range(SHAPE, SHAPE + ndim):
        same = same and (a[k] <= 1 or a[k + ndim] == b[k + ndim])
    if same:
        return _root(shadow)
    if note_overlaps_itself(note):
        raise ShadowError(
            "the shadow of an argument that overlaps itself in memory must be laid out as the argument "
            "is, where control flow chooses views of it"
        )
    return new_root(note)


@njit
def new_root(note: int) -> Any:
    """Zeros for the shadow of the noted array."""
    words = column(note, 0, np.int64)
    ndim = words[NDIM]
    before, behind = 0, words[ITEMSIZE]  # bytes in front of the first element, and from there on
    for k in range(SHAPE, SHAPE + ndim):
        reach = max(words[k] - 1, 0) * words[k + ndim]
        if reach < 0:
            before -= reach
        else:
            behind += reach
    return np.zeros(before + behind, np.uint8)[before:]


@njit
def move(target: Any, source: Any) -> None:
    """``target[...] = source``, unless they are the same memory."""
    if address_of(target) != address_of(source):
        for index in np.ndindex(target.shape):
            target[index] = source[index]


# ---- shadows in them -----------------------------------------------------------------------------------


@intrinsic  # type: ignore[misc]
def _root(typingctx: Any, a: Any) -> Any:
    """The array's memory from its first element on, as bytes; its length says nothing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(a)(context, builder, args[0])
        one = context.get_constant(types.intp, 1)
        made = context.make_array(_ROOT)(context, builder)
        made.meminfo, made.parent = array.meminfo, array.parent
        made.data = builder.bitcast(array.data, made.data.type)
        made.nitems, made.itemsize = one, one
        made.shape = cgutils.pack_array(builder, [one])
        made.strides = cgutils.pack_array(builder, [one])
        value = made._getvalue()
        context.nrt.incref(builder, _ROOT, value)
        return value

    return _ROOT(a), codegen


def _extent(builder: Any, itemsize: Any, sizes: list[Any], strides: list[Any]) -> tuple[Any, Any]:
    """The bytes in front of an array's first element, and from there on."""
    zero, before, behind = _i64(0), _i64(0), itemsize
    for n, stride in zip(sizes, strides, strict=True):
        steps = builder.sub(n, _i64(1))
        steps = builder.select(builder.icmp_signed("<", steps, zero), zero, steps)
        reach = builder.mul(steps, stride)
        backwards = builder.icmp_signed("<", reach, zero)
        before = builder.sub(before, builder.select(backwards, reach, zero))
        behind = builder.add(behind, builder.select(backwards, zero, reach))
    return before, behind


def _placed(
    roots: Any, shape: Any, strides: Any, dtype: Any, layout: str, aligned: bool = True
) -> Any:
    """The typing and the code of the array at byte `at` of a root; strides: None where the layout says.

    The arguments are roots, key, at, size, shape, strides if there are any, and dtype.  A negative key is an
    array that is never looked up again.
    """
    if not isinstance(roots, ShadowTable) or not isinstance(shape, types.BaseTuple):
        raise TypingError(f"no place in {roots} for an array of shape {shape}")
    result = types.Array(scalar_type(dtype), len(shape), layout, aligned=aligned)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        table, key, at, size, dims = args[:5]
        itemsize = _i64(context.get_abi_sizeof(context.get_data_type(result.dtype)))
        sizes = sizes_of(context, builder, shape, dims)
        if strides is not None:
            steps = sizes_of(context, builder, strides, args[5])
        else:
            steps = [itemsize] * len(sizes)
            order = range(len(sizes)) if layout == "F" else range(len(sizes) - 1, -1, -1)
            step = itemsize
            for k in order:
                steps[k], step = step, builder.mul(step, sizes[k])
        unknown = builder.icmp_signed("<", key, _i64(0))
        before, behind = _extent(builder, itemsize, sizes, steps)
        nbytes = builder.select(unknown, builder.add(before, behind), size)
        root = get_value(context, builder, roots, table, key, [nbytes])
        memory = context.make_array(roots.arrays)(context, builder, root)
        count = _i64(1)
        for n in sizes:
            count = builder.mul(count, n)
        made = context.make_array(result)(context, builder)
        first = builder.gep(memory.data, [builder.select(unknown, before, at)])
        made.meminfo, made.parent = memory.meminfo, memory.parent
        made.data = builder.bitcast(first, made.data.type)
        made.nitems, made.itemsize = count, itemsize
        made.shape = cgutils.pack_array(builder, sizes, _i64)
        made.strides = cgutils.pack_array(builder, steps, _i64)
        return made._getvalue()  # the reference to the root is now its own

    given = [roots, types.intp, types.intp, types.intp, shape]
    given += [dtype] if strides is None else [strides, dtype]
    return result(*given), codegen


@intrinsic  # type: ignore[misc]
def shadow_c(
    typingctx: Any, roots: Any, key: Any, at: Any, size: Any, shape: Any, dtype: Any
) -> Any:
    """The shadow of a C-contiguous array in root `key`."""
    return _placed(roots, shape, None, dtype, "C")


@intrinsic  # type: ignore[misc]
def shadow_f(
    typingctx: Any, roots: Any, key: Any, at: Any, size: Any, shape: Any, dtype: Any
) -> Any:
    """Likewise of an F-contiguous array."""
    return _placed(roots, shape, None, dtype, "F")


@intrinsic  # type: ignore[misc]
def shadow_a(
    typingctx: Any, roots: Any, key: Any, at: Any, size: Any, shape: Any, strides: Any, dtype: Any
) -> Any:
    """Likewise of any array."""
    return _placed(roots, shape, strides, dtype, "A")


@intrinsic  # type: ignore[misc]
def shadow_packed(
    typingctx: Any, roots: Any, key: Any, at: Any, size: Any, shape: Any, strides: Any, dtype: Any
) -> Any:
    """Likewise of any array whose elements may not be aligned."""
    return _placed(roots, shape, strides, dtype, "A", aligned=False)
