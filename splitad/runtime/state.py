"""Putting the contents of an array or of a list back."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import overload

from splitad.runtime.lists import LISTS, put_items, same_arrays


def put_back(array: Any, contents: Any) -> None:
    """``array[...] = contents``, of one shape and dtype; as a loop, which compiles much faster."""
    array[...] = contents


@overload(put_back, strict=False)
def _put_back(array: Any, contents: Any) -> Any:
    if isinstance(array, LISTS) and isinstance(array.dtype, types.Array):

        def impl(array: Any, contents: Any) -> None:
            items, values = contents
            if not same_arrays(array, items):
                put_items(array, items)
            for k in range(len(array)):
                put_back(array[k], values[k])

        return impl
    if isinstance(array, LISTS):
        return lambda array, contents: put_items(array, contents)
    if not isinstance(array, types.Array):
        return None
    index = ", ".join(f"k{axis}" for axis in range(array.ndim))
    lines = ["def impl(array, contents):"]
    for axis in range(array.ndim):
        lines.append("    " * (axis + 1) + f"for k{axis} in range(array.shape[{axis}]):")
    lines.append("    " * len(lines) + f"array[{index or '()'}] = contents[{index or '()'}]")
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return scope["impl"]
