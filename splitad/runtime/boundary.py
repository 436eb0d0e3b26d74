"""What of arrays overlaps in memory.

A note is an array's layout (not its contents) as int64 words:
data pointer, itemsize, ndim, shape..., strides...

    note_words(ndim) -> 3 + 2 * ndim
    note_array(address, offset, a)
        Writes the note of `a` at address + offset, in the tape say.
    overlap(a, b) -> bool
        Whether two arrays share a byte; in Python too.
    notes_overlap(note, other) -> bool
        The same for noted arrays, whose memory must still be their own: memory that was freed may be
        another array's by now.
    note_lies_in(note, other) -> bool
        Whether all bytes of a noted array belong to another one, which is C-contiguous.
    note_overlaps_itself(note) -> bool
        Whether two elements share a byte; exact for all that slicing and broadcasting can make.

Whether two arrays overlap is exact.  Mostly their extents are disjoint, which takes some nanoseconds; else
NumPy decides, called back from compiled code.  Where that is too hard for it, they count as overlapping.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic, overload, register_jitable

from splitad.tape.columns import column, pointer

_i32, _i64 = ir.IntType(32), ir.IntType(64)
_WORD = np.int64
DATA, ITEMSIZE, NDIM, SHAPE = range(4)  # the words of a note; the strides follow the shape

# ---- notes ---------------------------------------------------------------------------------------------


@register_jitable
def note_words(ndim: int) -> int:
    """How many words the note of an array takes."""
    return SHAPE + 2 * ndim


@intrinsic
def note_array(typingctx: Any, address: Any, offset: Any, array: Any) -> Any:
    """Write an array's data pointer, itemsize, ndim, shape and strides into the tape."""
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        base = pointer(builder, args[0], args[1])
        _write_note(context, builder, array, args[2], builder.bitcast(base, _i64.as_pointer()))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, array), codegen


@intrinsic(prefer_literal=True)
def stack_words(typingctx: Any, count: Any) -> Any:
    """The address of so many 64-bit words that live until the calling function returns."""
    if not isinstance(count, types.IntegerLiteral):
        return None

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = cgutils.alloca_once(builder, _i64, count.literal_value)
        return builder.ptrtoint(words, _i64)

    return types.int64(count), codegen


@intrinsic
def stack_note(typingctx: Any, array: Any) -> Any:
    """The address of a note that lives until the calling function returns."""
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = cgutils.alloca_once(builder, _i64, note_words(array.ndim))
        _write_note(context, builder, array, args[0], words)
        return builder.ptrtoint(words, _i64)

    return types.int64(array), codegen


def _write_note(context: Any, builder: Any, array_type: Any, value: Any, words: Any) -> None:
    array = context.make_array(array_type)(context, builder, value)
    note = [
        builder.ptrtoint(array.data, _i64),
        array.itemsize,
        _i64(array_type.ndim),
        *cgutils.unpack_tuple(builder, array.shape),
        *cgutils.unpack_tuple(builder, array.strides),
    ]
    for k, word in enumerate(note):
        builder.store(word, builder.gep(words, [_i64(k)]))


def _need_array(array: Any) -> None:
    if not isinstance(array, types.Array):
        raise NumbaTypeError(f"an array is needed, not {array}")


# ---- do two overlap? -----------------------------------------------------------------------------------


class _Noted:
    """A NumPy view of a note's array; its memory is not touched."""

    def __init__(self, address: int) -> None:
        head = (ctypes.c_int64 * SHAPE).from_address(address)
        ndim = head[NDIM]
        rest = (ctypes.c_int64 * (2 * ndim)).from_address(address + 8 * SHAPE)
        self.__array_interface__ = {
            "version": 3,
            "data": (head[DATA], True),
            "typestr": f"|V{head[ITEMSIZE]}",
            "shape": tuple(rest[:ndim]),
            "strides": tuple(rest[ndim:]),
        }


_MAX_WORK = 100_000


def _shares_memory(a: Any, b: Any) -> bool:
    try:
        return bool(np.shares_memory(a, b, max_work=_MAX_WORK))  # type: ignore[arg-type]
    except Exception:  # too hard: to say that they overlap is the careful answer
        return True


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64)
def _overlap_callback(note: int, other: int) -> int:
    try:
        return int(_shares_memory(np.asarray(_Noted(note)), np.asarray(_Noted(other))))
    except Exception:
        return 1


llvm.add_symbol("splitad_overlap", ctypes.cast(_overlap_callback, ctypes.c_void_p).value)


@intrinsic
def _ask_numpy(typingctx: Any, note: Any, other: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        callback = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_i32, [_i64, _i64]), "splitad_overlap"
        )
        return builder.icmp_signed("!=", builder.call(callback, args), _i32(0))

    return types.boolean(types.int64, types.int64), codegen


@njit
def _span(note: int) -> tuple[int, int]:
    """[lo, hi) of a noted array's bytes; lo == hi where it has no elements."""
    words = column(note, 0, _WORD)
    ndim = words[NDIM]
    lo, hi = words[DATA], words[DATA] + words[ITEMSIZE]
    for k in range(SHAPE, SHAPE + ndim):
        if words[k] == 0:
            return words[DATA], words[DATA]
        reach = (words[k] - 1) * words[k + ndim]
        lo += min(reach, 0)
        hi += max(reach, 0)
    return lo, hi


@njit
def notes_overlap(note: int, other: int) -> bool:
    """Whether two noted arrays share a byte; note, other: addresses of the notes."""
    lo, hi = _span(note)
    other_lo, other_hi = _span(other)
    if lo == hi or other_lo == other_hi or hi <= other_lo or other_hi <= lo:
        return False
    return _ask_numpy(note, other)


@njit
def same_notes(note: int, other: int) -> bool:
    """Whether two notes, of arrays of as many dimensions, say the same."""
    words, others = column(note, 0, _WORD), column(other, 0, _WORD)
    for k in range(note_words(words[NDIM])):
        if words[k] != others[k]:
            return False
    return True


@njit
def note_lies_in(note: int, other: int) -> bool:
    """Whether all bytes of a noted array belong to another one, which is C-contiguous."""
    words = column(other, 0, _WORD)
    ndim, expected = words[NDIM], words[ITEMSIZE]
    for k in range(SHAPE + ndim - 1, SHAPE - 1, -1):
        if words[k] > 1 and words[k + ndim] != expected:
            return False
        expected *= words[k]
    lo, hi = _span(note)
    other_lo, other_hi = _span(other)
    return other_lo <= lo and hi <= other_hi


def overlap(a: Any, b: Any) -> bool:
    """Whether two arrays share a byte."""
    return _shares_memory(a, b)


@overload(overlap, strict=False)
def _overlap(a: Any, b: Any) -> Any:
    return lambda a, b: notes_overlap(stack_note(a), stack_note(b))


@njit
def note_overlaps_itself(note: int) -> bool:
    """Whether an array's strides do not nest: each must step over all that the smaller ones reach."""
    words = column(note, 0, _WORD)
    ndim = words[NDIM]
    nests = True
    for k in range(SHAPE, SHAPE + ndim):
        if words[k] == 0:
            return False
        stride, reach = abs(words[k + ndim]), words[ITEMSIZE]
        for j in range(SHAPE, SHAPE + ndim):
            other = abs(words[j + ndim])
            if other < stride or (other == stride and j < k):
                reach += (words[j] - 1) * other
        nests = nests and (words[k] == 1 or stride >= reach)
    return not nests


def bar_overlaps(bar: Any, shadow: Any) -> bool:
    """Whether a result_bar shares memory with a shadow; None does not."""
    return bar is not None and overlap(bar, shadow)


@overload(bar_overlaps, strict=False)
def _bar_overlaps(bar: Any, shadow: Any) -> Any:
    if isinstance(bar, types.Array):
        return lambda bar, shadow: overlap(bar, shadow)
    return lambda bar, shadow: False
