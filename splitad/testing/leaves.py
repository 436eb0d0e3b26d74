"""The scalars and arrays inside an argument or a result, found and changed by their path.

A path holds positions (tuples, lists) and names (fields of structs and of record arrays). Arrays are
changed in place, scalars by rebuilding what holds them, so the aliasing among arrays is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.typed import List

from splitad.testing.structs import address, field_names, get_field, is_struct, set_field

Path = tuple[Any, ...]
# Given a path and a leaf: the new scalar; for an array, whatever (it is changed in place).
Change = Callable[[Path, Any], Any]
Values = dict[Path, np.ndarray]

_SCALARS = (bool, int, float, complex, np.generic)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar and array in a value; a record array counts as its fields."""
    if isinstance(value, np.ndarray):
        yield from _array_leaves(value, path)
    elif isinstance(value, _SCALARS):
        yield path, value
    elif isinstance(value, (tuple, list, List)):
        for position, item in enumerate(value):
            yield from leaves(item, (*path, position))
    elif is_struct(value):
        for name in field_names(value):
            yield from leaves(get_field(value, name), (*path, name))


def _array_leaves(array: np.ndarray, path: Path) -> Iterator[tuple[Path, np.ndarray]]:
    if array.dtype.names is None:
        yield path, array
        return
    for name in array.dtype.names:
        yield from _array_leaves(array[name], (*path, name))


def change(value: Any, how: Change, path: Path = ()) -> Any:
    """The value with each leaf changed: arrays and structs in place, the rest rebuilt."""
    if isinstance(value, np.ndarray):
        for where, array in _array_leaves(value, path):
            how(where, array)
        return value
    if isinstance(value, _SCALARS):
        return how(path, value)
    if isinstance(value, tuple):
        items = [change(item, how, (*path, k)) for k, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, (list, List)):
        for position, item in enumerate(value):
            _put_item(value, position, item, change(item, how, (*path, position)))
        return value
    if is_struct(value):
        for name in field_names(value):
            old = get_field(value, name)
            new = change(old, how, (*path, name))
            if not isinstance(old, np.ndarray) and not is_struct(old):
                set_field(value, name, new)
        return value
    return value


def _put_item(items: Any, position: int, old: Any, new: Any) -> None:
    if not isinstance(old, np.ndarray) and not is_struct(old):
        items[position] = new


def is_active(leaf: Any) -> bool:
    """Whether a leaf is a float or complex number, or an array of them."""
    return np.asarray(leaf).dtype.kind in "fc"


def active_leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    return [(where, leaf) for where, leaf in leaves(value, path) if is_active(leaf)]


def shared_scalars(value: Any) -> list[list[Path]]:
    """The paths to each scalar field of a struct that is reached in more than one way."""
    found: dict[tuple[int, str], list[Path]] = {}

    def visit(value: Any, path: Path) -> None:
        if isinstance(value, (tuple, list, List)):
            for position, item in enumerate(value):
                visit(item, (*path, position))
        elif is_struct(value):
            for name in field_names(value):
                field = get_field(value, name)
                if isinstance(field, _SCALARS):
                    found.setdefault((address(value), name), []).append((*path, name))
                visit(field, (*path, name))

    visit(value, ())
    return [paths for paths in found.values() if len(paths) > 1]


def snapshot(value: Any, path: Path = ()) -> Values:
    """A copy of what every active leaf holds."""
    return {where: np.array(leaf) for where, leaf in active_leaves(value, path)}


def contents(value: Any, path: Path = ()) -> dict[Path, tuple[Any, ...]]:
    """Bytes, dtype and shape of every leaf, to compare bit for bit (one NaN equals another)."""
    found = {}
    for where, leaf in leaves(value, path):
        array = np.array(leaf)
        if array.dtype.kind in "fc":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
        found[where] = (array.dtype.str, array.shape, array.tobytes())
    return found


def path_text(path: Path) -> str:
    """``(0, 'h', 2)`` as ``argument 0.h[2]``; ``('result', 1)`` as ``result[1]``."""
    if not path:
        return "result"
    head, *rest = path
    text = f"argument {head}" if isinstance(head, int) else str(head)
    for part in rest:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text
