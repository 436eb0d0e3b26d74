"""Checks at the boundary: what overlaps in memory, and whether shadows fit.

On the forward's side, a note of an array in the tape (its layout, not its contents):

    note_array(address, offset, a)      writes `note_words(a.ndim)` int64 words at address + offset:
                                        data pointer, itemsize, ndim, shape..., strides...
    note_words(ndim) -> 3 + 2 * ndim
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

from splitad.tape.columns import pointer

_i64 = ir.IntType(64)


def note_words(ndim: int) -> int:
    """How many words the note of an array takes."""
    return 3 + 2 * ndim


@intrinsic
def note_array(typingctx: Any, address: Any, offset: Any, array: Any) -> Any:
    """Write an array's data pointer, itemsize, ndim, shape and strides into the tape."""
    _need_array(array)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        base = pointer(builder, args[0], args[1])
        words = builder.bitcast(base, _i64.as_pointer())
        for k, word in enumerate(_layout(context, builder, array, args[2])):
            builder.store(word, builder.gep(words, [_i64(k)]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, array), codegen


def _layout(context: Any, builder: Any, array_type: Any, value: Any) -> list[Any]:
    """The words of an array's note."""
    array = context.make_array(array_type)(context, builder, value)
    return [
        builder.ptrtoint(array.data, _i64),
        array.itemsize,
        _i64(array_type.ndim),
        *cgutils.unpack_tuple(builder, array.shape),
        *cgutils.unpack_tuple(builder, array.strides),
    ]


def _need_array(array: Any) -> None:
    if not isinstance(array, types.Array):
        raise NumbaTypeError(f"an array is needed, not {array}")
