"""Deep copies of arguments that keep who shares memory with whom.

Arrays that overlap are copied as one stretch of memory, so views overlap their base in the copy at the
same offsets, with the same strides. Structs are copied field by field, each instance once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.typed import List

from splitad.runtime.zero import make_zero
from splitad.testing.structs import address, field_names, get_field, is_struct, set_field

_ALIGN = 64  # copies lie in a cache line as their originals do


def copy_args(args: tuple[Any, ...], *, widen: bool = False) -> tuple[Any, ...]:
    """The arguments again, on memory of their own.

    widen: float32 and complex64 become float64 and complex128 (ValueError where a struct, a list or a
    record stands in the way), so that differences can be taken in higher precision.
    """
    return _Copier(args, widen).copy(args)  # type: ignore[no-any-return]


def arrays_in(value: Any) -> list[np.ndarray]:
    """Every array reachable from a value, as often as there are ways to it."""
    found: list[np.ndarray] = []
    _collect(value, found.append, frozenset())
    return found


def _collect(value: Any, found: Callable[[np.ndarray], None], around: frozenset[int]) -> None:
    if isinstance(value, np.ndarray):
        found(value)
    elif isinstance(value, (tuple, list, List)):
        for item in value:
            _collect(item, found, around)
    elif is_struct(value) and address(value) not in around:
        for name in field_names(value):
            _collect(get_field(value, name), found, around | {address(value)})


def _byte_range(array: np.ndarray) -> tuple[int, int]:
    """First and one past the last address of an array's elements."""
    low = high = int(array.ctypes.data)
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + array.itemsize


def aliasing(value: Any, *, active: bool = False) -> list[tuple[int, int] | None]:
    """For each array, in order: the first array that shares its stretch of memory, and the offset to it.

    Two values of one structure have equal lists if and only if their arrays overlap alike.
    active: only arrays of floats, complex numbers and records.
    """
    arrays = [a for a in arrays_in(value) if not active or a.dtype.kind in "fcV"]
    spans = _spans(arrays)
    first: dict[int, tuple[int, int]] = {}
    result: list[tuple[int, int] | None] = []
    for k, array in enumerate(arrays):
        if array.size == 0:
            result.append(None)
            continue
        low, start = _span_of(array, spans)[0], int(array.ctypes.data)
        leader, origin = first.setdefault(low, (k, start))
        result.append((leader, start - origin))
    return result


def _spans(arrays: list[np.ndarray]) -> list[tuple[int, int]]:
    """The stretches of memory that the arrays cover; overlapping ranges are merged."""
    spans: list[tuple[int, int]] = []
    for low, high in sorted(_byte_range(a) for a in arrays if a.size):
        if spans and low < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((low, high))
    return spans


def _span_of(array: np.ndarray, spans: list[tuple[int, int]]) -> tuple[int, int]:
    start = int(array.ctypes.data)
    return next((low, high) for low, high in spans if low <= start < high)


def single_items(value: Any) -> bool:
    """Whether a typed list holds single precision, which its items do not show in Python."""
    kind = numba.typeof(value).dtype if isinstance(value, List) else None
    return kind in (types.float32, types.complex64)


class _Copier:
    def __init__(self, args: tuple[Any, ...], widen: bool) -> None:
        self.widen = widen
        self.structs: dict[int, Any] = {}
        self.lists: dict[int, Any] = {}
        arrays = arrays_in(args)
        self.spans = _spans(arrays)
        self.memory = {low: self._stretch(low, high, arrays) for low, high in self.spans}

    def _stretch(self, low: int, high: int, arrays: list[np.ndarray]) -> tuple[np.ndarray, int]:
        """The bytes of a stretch (aligned as the original is), and by what its sizes have grown."""
        inside = [a for a in arrays if a.size and low <= int(a.ctypes.data) < high]
        old = np.empty(high - low, np.uint8)
        # The arrays alone are read: what lies in the gaps between them may be nobody's.
        for array in inside:
            there = _view(old, _offset(array, low), array, array.dtype, 1)
            there[...] = array
        widened = {_wide(a.dtype) != a.dtype for a in inside} if self.widen else {False}
        if widened == {True}:
            narrow = old.view(np.float32)
            return _aligned(narrow.astype(np.float64).view(np.uint8), low), 2
        if True in widened:
            raise ValueError("arrays of different precision share memory")
        return _aligned(old, low), 1

    def copy(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, (float, complex, np.generic)):
            return self._scalar(value)
        if isinstance(value, tuple):
            items = [self.copy(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, (list, List)):
            return self._list(value)
        if is_struct(value):
            return self._struct(value)
        return value

    def _list(self, value: Any) -> Any:
        if id(value) not in self.lists:
            if self.widen and single_items(value):
                raise ValueError("single precision inside a list")
            made = self.lists[id(value)] = value.copy()
            for position, item in enumerate(value):
                made[position] = self._as_is(item)
        return self.lists[id(value)]

    def _as_is(self, value: Any) -> Any:
        """A copy inside something whose type cannot be widened."""
        if self.widen and any(_wide(a.dtype) != a.dtype for a in arrays_in(value)):
            raise ValueError("single precision inside a struct or list")
        return self.copy(value)

    def _scalar(self, value: Any) -> Any:
        kind = np.asarray(value).dtype
        return _wide(kind).type(value) if self.widen and _wide(kind) != kind else value

    def _array(self, array: np.ndarray) -> np.ndarray:
        dtype = _wide(array.dtype) if self.widen else array.dtype
        if array.size == 0:
            order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            return np.empty(array.shape, dtype, order=order)  # type: ignore[call-overload, no-any-return]
        low, _ = _span_of(array, self.spans)
        memory, factor = self.memory[low]
        new = _view(memory, _offset(array, low) * factor, array, dtype, factor)
        new.flags.writeable = array.flags.writeable
        return new

    def _struct(self, struct: Any) -> Any:
        where = address(struct)
        if where not in self.structs:
            kept = self.structs[where] = make_zero(struct)
            for name in field_names(struct):
                set_field(kept, name, self._as_is(get_field(struct, name)))
        return self.structs[where]


def _offset(array: np.ndarray, low: int) -> int:
    return int(array.ctypes.data) - low


def _view(
    memory: np.ndarray, offset: int, like: np.ndarray, dtype: np.dtype[Any], factor: int
) -> np.ndarray:
    strides = tuple(stride * factor for stride in like.strides)
    return np.ndarray(like.shape, dtype, buffer=memory.data, offset=offset, strides=strides)


def _aligned(data: np.ndarray, low: int) -> np.ndarray:
    """The same bytes at an address that is congruent to low."""
    room = np.empty(data.size + _ALIGN, np.uint8)
    shift = (low - int(room.ctypes.data)) % _ALIGN
    new = room[shift : shift + data.size]
    new[...] = data
    return new


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    wider = {"f4": np.dtype(np.float64), "c8": np.dtype(np.complex128)}
    if dtype.names is not None and any("f4" in str(d) or "c8" in str(d) for d in dtype.descr):
        raise ValueError("single precision inside a record")
    return wider.get(dtype.str[1:], dtype)
