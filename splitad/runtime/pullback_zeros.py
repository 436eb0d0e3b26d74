"""make_zero of a pullback whose Duplicated arguments are plain (plain_zero.py).

It starts from the arrays that the forward returned to be kept, so nothing is compiled for a call from Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from splitad.runtime.plain_zero import emit_zeros, plain_arrays, shadow_type
from splitad.runtime.zero import shadows_of


class PlainZeros:
    """The zeros of a pullback's Duplicated arguments, which have these types, from the arrays that its
    forward returned: those of the arguments are there at `positions`."""

    def __init__(self, arguments: Sequence[types.Type], positions: Sequence[int]) -> None:
        self._arguments = types.Tuple(arguments)
        self.type = shadow_type(self._arguments)
        found = plain_arrays(self._arguments)
        self._places: list[tuple[int, Any]] = [
            (k, "F" if typ.layout == "F" else "C") for k, typ in zip(positions, found, strict=True)
        ]
        self._only_arrays = all(isinstance(each, types.Array) for each in arguments)

    def __call__(self, held: Sequence[np.ndarray]) -> tuple[Any, ...]:
        """In Python."""
        if len(self._places) > 1:
            arrays = [held[k] for k, _ in self._places]
            if _may_share(arrays):
                shadows = shadows_of(arrays)
                return self._tuple([shadows[id(a)] for a in arrays])
        made = []
        for k, order in self._places:
            array = held[k]
            made.append(np.zeros(array.shape, array.dtype, order))
        return self._tuple(made)

    def _tuple(self, made: list[np.ndarray]) -> tuple[Any, ...]:
        """The shadows of the arguments, of which these are the arrays."""
        return tuple(made) if self._only_arrays else _zeros(self._arguments, iter(made))

    def emit(self, context: Any, builder: Any, held: Any) -> Any:
        """In njit code.  held: the tuple of those arrays."""
        arrays = [builder.extract_value(held, k) for k, _ in self._places]
        return emit_zeros(context, builder, self._arguments, arrays, cgutils.true_bit)


def _may_share(arrays: list[np.ndarray]) -> bool:
    """Whether the bytes that two of the arrays span overlap; of two that do, one does not own its memory."""
    if len(set(map(id, arrays))) < len(arrays):
        return True
    for k, array in enumerate(arrays):
        if not array.flags.owndata:
            for j, other in enumerate(arrays):
                if j != k and np.may_share_memory(array, other):
                    return True
    return False


def _zeros(x: types.Type, made: Iterator[np.ndarray]) -> Any:
    if isinstance(x, types.Array):
        return next(made)
    if isinstance(x, types.BaseTuple):
        items = [_zeros(item, made) for item in x.types]
        return x.instance_class(*items) if isinstance(x, types.BaseNamedTuple) else tuple(items)
    return None if isinstance(x, types.NoneType) else 0j if isinstance(x, types.Complex) else 0.0
