"""Activities as the checker sees them, and what it does to arguments, shadows and results."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.typed import List

from splitad.ir.activities import default
from splitad.runtime.zero import make_zero
from splitad.testing.copying import single_items
from splitad.testing.leaves import (
    Path,
    Values,
    active_leaves,
    change,
    is_active,
    leaves,
)
from splitad.testing.structs import field_names, get_field, is_struct, set_field


def activity_names(args: tuple[Any, ...], activities: tuple[Any, ...] | None) -> tuple[str, ...]:
    """ "Active", "Duplicated" or "Const" for each argument; by its value where none are given."""
    if activities is None:
        return tuple(_by_value(arg) for arg in args)
    if len(activities) != len(args):
        raise TypeError(f"{len(activities)} activities for {len(args)} arguments")
    return tuple(activity.name for activity in activities)


def _by_value(arg: Any) -> str:
    if isinstance(arg, List):  # it may be empty
        return default(numba.typeof(arg)).name
    if not active_leaves(arg):
        return "Const"
    return "Duplicated" if _is_mutable(arg) else "Active"


def _is_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_is_mutable(item) for item in value)
    return isinstance(value, (np.ndarray, list, List)) or is_struct(value)


def has_loose_scalars(value: Any) -> bool:
    """Whether a tuple holds floats itself: their cotangents are returned, not left in the shadow."""
    if isinstance(value, tuple):
        return any(has_loose_scalars(item) for item in value)
    scalar = not isinstance(value, np.ndarray) and isinstance(value, (float, complex, np.generic))
    return scalar and is_active(value)


def random_like(leaf: Any, rng: np.random.Generator) -> np.ndarray:
    """Normal numbers of a leaf's shape and dtype; 0 where the leaf is not finite."""
    array = np.asarray(leaf)
    numbers = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(array.shape)
    return np.where(np.isfinite(array), numbers, 0.0).astype(array.dtype)


def direction(args: tuple[Any, ...], wanted: tuple[int, ...], rng: np.random.Generator) -> Values:
    """A random direction in the active leaves of the wanted arguments, as long as the leaves are."""
    found = {}
    for k in wanted:
        for path, leaf in active_leaves(args[k], (k,)):
            array = np.asarray(leaf)
            finite = np.abs(array[np.isfinite(array)])
            size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
            found[path] = random_like(leaf, rng) * array.dtype.type(size or 1.0)
    return found


def add(value: Any, values: Values, path: Path = (), factor: float = 1.0) -> Any:
    """The value with factor * values added to the leaves that values name."""

    def how(where: Path, leaf: Any) -> Any:
        if where not in values:
            return leaf
        if isinstance(leaf, np.ndarray):
            leaf += (factor * values[where]).astype(leaf.dtype)
            return leaf
        return type(leaf)(leaf + factor * values[where][()])

    return change(value, how, path)


def bar_like(result: Any, rng: np.random.Generator) -> Any:
    """A random result_bar: the result's structure, None where there is nothing to differentiate."""
    if isinstance(result, tuple):
        items = [bar_like(item, rng) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    if isinstance(result, list):
        return [bar_like(item, rng) for item in result]
    if isinstance(result, np.ndarray):
        return random_like(result, rng) if is_active(result) else None
    if is_struct(result) or isinstance(result, List):
        zero = make_zero(result)
        numbers = {path: random_like(leaf, rng) for path, leaf in active_leaves(zero)}
        return add(zero, numbers)
    if has_loose_scalars(result):
        return type(result)(random_like(result, rng)[()])
    return None


def spoil(args: tuple[Any, ...]) -> None:
    """Overwrite all that can be: arrays with NaN or 0, fields of structs with NaN and other arrays."""

    def how(_: Path, leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return type(leaf)(np.nan) if is_active(leaf) else leaf
        if leaf.flags.writeable:
            leaf[...] = np.nan if is_active(leaf) else np.zeros((), leaf.dtype)
        return leaf

    for arg in args:
        change(arg, how)
        _rebind(arg)


def _rebind(value: Any) -> None:
    """Give every struct's array fields new arrays, of other sizes; make lists of numbers longer."""
    if isinstance(value, (tuple, list, List)):
        for item in value:
            _rebind(item)
        if not isinstance(value, tuple) and len(value) and isinstance(value[0], (float, complex)):
            value.append(value[0])
    elif is_struct(value):
        for name in field_names(value):
            old = get_field(value, name)
            if isinstance(old, np.ndarray) and old.dtype.names is None and old.ndim:
                new = np.zeros(tuple(size + 1 for size in old.shape), old.dtype)
                fortran = old.flags.f_contiguous and not old.flags.c_contiguous
                set_field(value, name, np.asfortranarray(new) if fortran else new)
            else:
                _rebind(old)


def vector(values: Values, paths: list[Path]) -> np.ndarray | None:
    """The values at the paths in one vector; None where one of them is missing."""
    if any(path not in values for path in paths):
        return None
    parts = [np.asarray(values[path]).ravel() for path in paths]
    if not parts:
        return np.zeros(0)
    wide = np.complex128 if any(p.dtype.kind == "c" for p in parts) else np.float64
    return np.concatenate(parts).astype(wide)


def single_precision(value: Any) -> bool:
    if isinstance(value, tuple) and any(single_items(item) for item in value):
        return True
    return any(np.asarray(leaf).dtype.str[1:] in ("f4", "c8") for _, leaf in leaves(value))
