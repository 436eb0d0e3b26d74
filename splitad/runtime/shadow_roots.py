"""Shadows of arrays that may be views which control flow chose: by their root's number, and the place in it.

    roots = [root_of(base + 16, d_x), no_root()]           a root: the memory of a shadow, as bytes
    d_row = shadow_a(roots, id_row, at_row, size, shape, strides, np.float64)

`at` is how many bytes the array's first element lies behind its root's, in the primal.  So a root has to
be laid out as its primal is: a shadow of the caller's that is not has its contents moved into one that is,
and back at the end.  Views that overlap have shadows that overlap likewise, whatever chose them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
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
from splitad.tape.columns import column, scalar_type
from splitad.tape.ops import address_of

_ROOT = types.Array(types.uint8, 1, "C")

# ---- roots ---------------------------------------------------------------------------------------------


@njit
def no_root() -> Any:
    """Stands for memory that was not yet needed."""
    return np.empty(0, np.uint8)


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
def root_get(roots: Any, key: int, size: int) -> Any:
    """The memory of root number `key`, zeros where it has none yet."""
    while len(roots) <= key:
        roots.append(np.empty(0, np.uint8))
    if roots[key].size == 0:
        roots[key] = np.zeros(max(size, 1), np.uint8)
    return roots[key]


@njit
def root_drop(roots: Any, key: int) -> None:
    """Forget the shadow of an array that did not exist before this point of the forward."""
    if 0 <= key < len(roots):
        roots[key] = np.empty(0, np.uint8)


@njit
def move(target: Any, source: Any) -> None:
    """``target[...] = source``, unless they are the same memory."""
    if address_of(target) != address_of(source):
        for index in np.ndindex(target.shape):
            target[index] = source[index]


# ---- shadows in them -----------------------------------------------------------------------------------


@njit
def shadow_c(roots: Any, key: int, at: int, size: int, shape: Any, dtype: Any) -> Any:
    """The shadow of a C-contiguous array in root `key`.

    A negative key is an array that is never looked up again (undefined, or a frozen global).
    """
    if key < 0:
        return np.zeros(shape, dtype)
    return _place_c(root_get(roots, key, size), at, shape, dtype)


@njit
def shadow_f(roots: Any, key: int, at: int, size: int, shape: Any, dtype: Any) -> Any:
    """Likewise of an F-contiguous array."""
    if key < 0:
        return np.zeros(shape[::-1], dtype).T
    return _place_f(root_get(roots, key, size), at, shape, dtype)


@njit
def shadow_a(roots: Any, key: int, at: int, size: int, shape: Any, strides: Any, dtype: Any) -> Any:
    """Likewise of any array."""
    root, start = _root_and_start(roots, key, at, size, shape, strides, dtype)
    return _place_a(root, start, shape, strides, dtype)


@njit
def shadow_packed(
    roots: Any, key: int, at: int, size: int, shape: Any, strides: Any, dtype: Any
) -> Any:
    """Likewise of any array whose elements may not be aligned."""
    root, start = _root_and_start(roots, key, at, size, shape, strides, dtype)
    return _place_packed(root, start, shape, strides, dtype)


@njit
def _root_and_start(
    roots: Any, key: int, at: int, size: int, shape: Any, strides: Any, dtype: Any
) -> Any:
    if key >= 0:
        return root_get(roots, key, size), at
    before, behind = 0, np.empty(1, dtype).itemsize
    for k in range(len(shape)):
        reach = max(shape[k] - 1, 0) * strides[k]
        if reach < 0:
            before -= reach
        else:
            behind += reach
    return np.zeros(before + behind, np.uint8), before


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


def _placed(
    root: Any, at: Any, shape: Any, strides: Any, dtype: Any, layout: str, aligned: bool = True
) -> Any:
    """The typing and the code of the array at byte `at` of a root; strides: None where the layout says."""
    if root != _ROOT or not isinstance(shape, types.BaseTuple):
        raise TypingError(f"no place in {root} for an array of shape {shape}")
    result = types.Array(scalar_type(dtype), len(shape), layout, aligned=aligned)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        memory = context.make_array(_ROOT)(context, builder, args[0])
        made = context.make_array(result)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(result.dtype))
        itemsize = context.get_constant(types.intp, size)
        sizes = [
            context.cast(builder, n, t, types.intp)
            for n, t in zip(cgutils.unpack_tuple(builder, args[2]), shape, strict=True)
        ]
        if strides is not None:
            steps = [
                context.cast(builder, n, t, types.intp)
                for n, t in zip(cgutils.unpack_tuple(builder, args[3]), strides, strict=True)
            ]
        else:
            steps = [itemsize] * len(sizes)
            order = range(len(sizes)) if layout == "F" else range(len(sizes) - 1, -1, -1)
            step = itemsize
            for k in order:
                steps[k], step = step, builder.mul(step, sizes[k])
        count = context.get_constant(types.intp, 1)
        for n in sizes:
            count = builder.mul(count, n)
        data = builder.bitcast(builder.gep(memory.data, [args[1]]), made.data.type)
        made.meminfo, made.parent, made.data = memory.meminfo, memory.parent, data
        made.nitems, made.itemsize = count, itemsize
        made.shape = cgutils.pack_array(builder, sizes, itemsize.type)
        made.strides = cgutils.pack_array(builder, steps, itemsize.type)
        value = made._getvalue()
        context.nrt.incref(builder, result, value)
        return value

    return result, codegen


@intrinsic  # type: ignore[misc]
def _place_c(typingctx: Any, root: Any, at: Any, shape: Any, dtype: Any) -> Any:
    result, codegen = _placed(root, at, shape, None, dtype, "C")
    return result(root, types.intp, shape, dtype), codegen


@intrinsic  # type: ignore[misc]
def _place_f(typingctx: Any, root: Any, at: Any, shape: Any, dtype: Any) -> Any:
    result, codegen = _placed(root, at, shape, None, dtype, "F")
    return result(root, types.intp, shape, dtype), codegen


@intrinsic  # type: ignore[misc]
def _place_a(typingctx: Any, root: Any, at: Any, shape: Any, strides: Any, dtype: Any) -> Any:
    result, codegen = _placed(root, at, shape, strides, dtype, "A")
    return result(root, types.intp, shape, strides, dtype), codegen


@intrinsic  # type: ignore[misc]
def _place_packed(typingctx: Any, root: Any, at: Any, shape: Any, strides: Any, dtype: Any) -> Any:
    result, codegen = _placed(root, at, shape, strides, dtype, "A", aligned=False)
    return result(root, types.intp, shape, strides, dtype), codegen
