"""Which arrays share memory: their extents, grouped; and copies of elements in njit code.

A table is an int64 array with one row per array: [lo, hi) of the bytes that it may touch, then what grouping
found: the row that leads its group, and in that leader's row where the group starts, how many bytes it
spans (0 where there is one array only), and the meminfo of what stands for it in the shadow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LO, HI, LEADER, GROUP_LO, GROUP_SIZE, MEMORY, COLUMNS = range(7)


def groups(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """(lo, hi, members) of each group of spans that overlap one another; empty spans are in none."""
    ordered = sorted((lo, hi, k) for k, (lo, hi) in enumerate(spans) if lo < hi)
    members: list[int] = []
    start = end = 0
    for lo, hi, k in ordered:
        if members and lo >= end:
            yield start, end, members
            members = []
        if not members:
            start, end = lo, hi
        members.append(k)
        end = max(end, hi)
    if members:
        yield start, end, members


@intrinsic
def copy_items(typingctx: Any, to: Any, source: Any) -> Any:
    """``to[...] = source`` for arrays of equal shape and dtype, any layout."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = [
            context.make_array(typ)(context, builder, value)
            for typ, value in zip(sig.args, args, strict=True)
        ]
        shape = cgutils.unpack_tuple(builder, arrays[1].shape)
        with cgutils.loop_nest(builder, shape, context.get_value_type(types.intp)) as indices:
            there, here = (
                _item_pointer(context, builder, typ, array, shape, indices)
                for typ, array in zip(sig.args, arrays, strict=True)
            )
            cgutils.raw_memcpy(builder, there, here, arrays[1].itemsize, 1)
        return context.get_dummy_value()

    return types.none(to, source), codegen


def _item_pointer(
    context: Any, builder: Any, typ: Any, array: Any, shape: list[Any], indices: Any
) -> Any:
    strides = cgutils.unpack_tuple(builder, array.strides)
    return cgutils.get_item_pointer2(
        context, builder, array.data, shape, strides, typ.layout, indices
    )
