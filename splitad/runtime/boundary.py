"""Checks at the boundary: what overlaps in memory, and whether shadows fit.

A note is an array's layout (not its contents) as int64 words:
data pointer, itemsize, ndim, shape..., strides...

    note_words(ndim) -> 3 + 2 * ndim
    note_array(address, offset, a)
        Writes the note of `a` at address + offset, in the tape say.
    overlap(a, b) -> bool
        Whether two arrays share a byte; in Python too.
    overlap_noted(address, offset, a) -> bool
        The same for a noted array, whose memory must still be its own: memory that was freed may be
        another array's by now.
    overlaps_itself(a) -> bool
        Whether two elements of `a` share a byte; exact for all that slicing and broadcasting can make.
    first_overlap(arrays, written) -> int
        For tuples of arrays and of bools: i * len(arrays) + j for the first two (i > j) that overlap, one of
        them being written; -1 where there are none.
    shadow_fault(address, offset, shadow, alive) -> code
        Whether a shadow fits the noted primal: WRONG_SHAPE; ON_PRIMAL, which is looked for only where
        `alive` says that the primal's memory was kept.
    pair_fault(address, offset, shadow, other_offset, other_shadow, written) -> code
        Whether two shadows overlap as their noted primals do: TOUCHING where the primals do not, or at
        other byte offsets; SEPARATE where the primals do and one of them is written.
    fault(code, name, other="") -> (exception class, message)
        In Python, for the text of a `raise`.

Codes are 0 where all is well.  The functions return them rather than raise, since in compiled code an
exception from a callee leaks what the caller holds and a `raise` of its own does not.

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
from numba.extending import intrinsic, overload

from splitad.errors import AliasingError, ShadowError, SplitadError
from splitad.tape.columns import column, pointer

_i32, _i64 = ir.IntType(32), ir.IntType(64)
_WORD = np.int64
_DATA, _ITEMSIZE, _NDIM, _SHAPE = range(4)

WRONG_SHAPE, ON_PRIMAL, TOUCHING, SEPARATE = 1, 2, 3, 4


def fault(code: int, name: str, other: str = "") -> tuple[type[SplitadError], str]:
    """The exception class and message of a code, for arguments of these names."""
    if code == WRONG_SHAPE:
        return ShadowError, f"the shadow of '{name}' has another shape than '{name}' had"
    if code == ON_PRIMAL:
        return ShadowError, f"the shadow of '{name}' overlaps '{other or name}' in memory"
    if code == TOUCHING:
        return ShadowError, (
            f"the shadows of '{name}' and '{other}' overlap in memory, but '{name}' and '{other}' "
            "did not, or not at the same byte offsets"
        )
    assert code == SEPARATE
    return AliasingError, (
        f"'{name}' and '{other}' overlapped in memory and one of them is written, so their shadows "
        "must overlap at the same byte offsets: make_zero() gives such shadows"
    )


# ---- notes ---------------------------------------------------------------------------------------------


def note_words(ndim: int) -> int:
    """How many words the note of an array takes."""
    return _SHAPE + 2 * ndim


@intrinsic
def note_array(typingctx: Any, address: Any, offset: Any, array: Any) -> Any:
    """Write an array's data pointer, itemsize, ndim, shape and strides into the tape."""
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        base = pointer(builder, args[0], args[1])
        _write_note(context, builder, array, args[2], builder.bitcast(base, _i64.as_pointer()))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, array), codegen


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
        head = (ctypes.c_int64 * _SHAPE).from_address(address)
        ndim = head[_NDIM]
        rest = (ctypes.c_int64 * (2 * ndim)).from_address(address + 8 * _SHAPE)
        self.__array_interface__ = {
            "version": 3,
            "data": (head[_DATA], True),
            "typestr": f"|V{head[_ITEMSIZE]}",
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
    ndim = words[_NDIM]
    lo, hi = words[_DATA], words[_DATA] + words[_ITEMSIZE]
    for k in range(_SHAPE, _SHAPE + ndim):
        if words[k] == 0:
            return words[_DATA], words[_DATA]
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


def overlap(a: Any, b: Any) -> bool:
    """Whether two arrays share a byte."""
    return _shares_memory(a, b)


@overload(overlap, strict=False)
def _overlap(a: Any, b: Any) -> Any:
    return lambda a, b: notes_overlap(stack_note(a), stack_note(b))


@njit
def overlap_noted(address: int, offset: int, a: Any) -> bool:
    """Whether `a` shares a byte with the array noted at address + offset."""
    return notes_overlap(address + offset, stack_note(a))


@njit
def _note_overlaps_itself(note: int) -> bool:
    """Whether an array's strides do not nest: each must step over all that the smaller ones reach."""
    words = column(note, 0, _WORD)
    ndim = words[_NDIM]
    nests = True
    for k in range(_SHAPE, _SHAPE + ndim):
        if words[k] == 0:
            return False
        stride, reach = abs(words[k + ndim]), words[_ITEMSIZE]
        for j in range(_SHAPE, _SHAPE + ndim):
            other = abs(words[j + ndim])
            if other < stride or (other == stride and j < k):
                reach += (words[j] - 1) * other
        nests = nests and (words[k] == 1 or stride >= reach)
    return not nests


@njit
def overlaps_itself(a: Any) -> bool:
    """Whether two elements of `a` share a byte (a broadcast array, a sliding window)."""
    return _note_overlaps_itself(stack_note(a))


def first_overlap(arrays: Any, written: Any) -> int:
    """The first two of `arrays` that overlap, one of them being written: i * len(arrays) + j, or -1."""
    for i in range(len(arrays)):
        for j in range(i):
            if (written[i] or written[j]) and overlap(arrays[i], arrays[j]):
                return i * len(arrays) + j
    return -1


@overload(first_overlap, strict=False)
def _first_overlap(arrays: Any, written: Any) -> Any:
    if len(arrays) < 2:
        return lambda arrays, written: -1
    notes = "".join(f"stack_note(arrays[{k}]), " for k in range(len(arrays)))
    lines = [
        "def impl(arrays, written):",
        f"notes = ({notes})",
        "for i in range(len(notes)):",
        "    for j in range(i):",
        "        if (written[i] or written[j]) and notes_overlap(notes[i], notes[j]):",
        "            return i * len(notes) + j",
        "return -1",
    ]
    scope: dict[str, Any] = {"stack_note": stack_note, "notes_overlap": notes_overlap}
    exec("\n    ".join(lines), scope)
    return scope["impl"]


def bar_overlaps(bar: Any, shadow: Any) -> bool:
    """Whether a result_bar shares memory with a shadow; None does not."""
    return bar is not None and overlap(bar, shadow)


@overload(bar_overlaps, strict=False)
def _bar_overlaps(bar: Any, shadow: Any) -> Any:
    if isinstance(bar, types.Array):
        return lambda bar, shadow: overlap(bar, shadow)
    return lambda bar, shadow: False


# ---- do shadows fit? -----------------------------------------------------------------------------------


@njit
def shadow_fault(address: int, offset: int, shadow: Any, alive: bool) -> int:
    """0, WRONG_SHAPE, or ON_PRIMAL (looked for only where the primal's memory is kept alive)."""
    words = column(address, offset, _WORD)
    for k in range(shadow.ndim):
        if words[_SHAPE + k] != shadow.shape[k]:
            return WRONG_SHAPE
    if alive and overlap_noted(address, offset, shadow):
        return ON_PRIMAL
    return 0


@njit
def _pair_fault(primal: int, shadow: int, other_primal: int, other: int, written: bool) -> int:
    primals = notes_overlap(primal, other_primal)
    shadows = notes_overlap(shadow, other)
    if not primals:
        return TOUCHING if shadows else 0
    if not shadows:
        return SEPARATE if written else 0
    p, s = column(primal, 0, _WORD), column(shadow, 0, _WORD)
    q, t = column(other_primal, 0, _WORD), column(other, 0, _WORD)
    same = p[_DATA] - q[_DATA] == s[_DATA] - t[_DATA]
    if same and _same_strides(primal, shadow) and _same_strides(other_primal, other):
        return 0
    return SEPARATE if written else TOUCHING


@njit
def _same_strides(note: int, other: int) -> bool:
    a, b = column(note, 0, _WORD), column(other, 0, _WORD)
    ndim = a[_NDIM]
    for k in range(_SHAPE, _SHAPE + ndim):
        if a[k] > 1 and a[k + ndim] != b[k + ndim]:
            return False
    return True


@njit
def pair_fault(
    address: int, offset: int, shadow: Any, other_offset: int, other_shadow: Any, written: bool
) -> int:
    """0, TOUCHING, or SEPARATE; the primals are noted at address + offset and address + other_offset."""
    return _pair_fault(
        address + offset,
        stack_note(shadow),
        address + other_offset,
        stack_note(other_shadow),
        written,
    )
