"""What a loop over ``np.ndindex(x.shape)`` needs: a counter turned into an index.

How many dimensions there are is known only once there are types, so these are functions with overloads,
like NumPy's own, and are differentiated (that is, found to be integers) as any call is.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import overload


def count(shape: tuple[int, ...]) -> int:
    """How many elements an array of this shape has."""
    return math.prod(shape)


def unravel(k: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of element number k, in C order."""
    index: tuple[int, ...] = ()
    for size in shape[::-1]:
        index, k = (k % size, *index), k // size
    return index


def _count0(shape):  # type: ignore[no-untyped-def]
    return 1


def _count1(shape):  # type: ignore[no-untyped-def]
    return shape[0]


def _count2(shape):  # type: ignore[no-untyped-def]
    return shape[0] * shape[1]


def _count3(shape):  # type: ignore[no-untyped-def]
    return shape[0] * shape[1] * shape[2]


def _count4(shape):  # type: ignore[no-untyped-def]
    return shape[0] * shape[1] * shape[2] * shape[3]


def _unravel0(k, shape):  # type: ignore[no-untyped-def]
    return ()


def _unravel1(k, shape):  # type: ignore[no-untyped-def]
    return (k,)


def _unravel2(k, shape):  # type: ignore[no-untyped-def]
    return k // shape[1], k % shape[1]


def _unravel3(k, shape):  # type: ignore[no-untyped-def]
    row = k // shape[2]
    return row // shape[1], row % shape[1], k % shape[2]


def _unravel4(k, shape):  # type: ignore[no-untyped-def]
    row = k // shape[3]
    plane = row // shape[2]
    return plane // shape[1], plane % shape[1], row % shape[2], k % shape[3]


_COUNT = (_count0, _count1, _count2, _count3, _count4)
_UNRAVEL = (_unravel0, _unravel1, _unravel2, _unravel3, _unravel4)


@overload(count)
def _overload_count(shape):  # type: ignore[no-untyped-def]
    return _COUNT[len(shape)] if _is_shape(shape) else None


@overload(unravel)
def _overload_unravel(k, shape):  # type: ignore[no-untyped-def]
    return _UNRAVEL[len(shape)] if isinstance(k, types.Integer) and _is_shape(shape) else None


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, types.BaseTuple) and len(shape) < len(_COUNT)
