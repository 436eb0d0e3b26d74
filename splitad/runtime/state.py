"""Putting arguments back as they were: the contents of what a call writes, and the fields it rebinds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Path = tuple[int | str, ...]


@dataclass
class Saved:
    """Copies of arrays, and values of fields."""

    arrays: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    fields: list[tuple[Any, str, Any]] = field(default_factory=list)

    def restore(self) -> None:
        """Fields first: an array may be reached through one."""
        for obj, name, value in self.fields:
            setattr(obj, name, value)
        for array, contents in self.arrays:
            array[...] = contents


def save(args: tuple[Any, ...], paths: tuple[tuple[Path, bool], ...]) -> Saved:
    """paths: the leaves that the call changes, each with whether its contents are written (an array) or
    its field is assigned."""
    saved = Saved()
    for path, assigned in paths:
        owner, value = None, args
        for step in path:
            owner, value = value, value[step] if isinstance(step, int) else getattr(value, step)
        if assigned:
            saved.fields.append((owner, str(path[-1]), value))
        elif isinstance(value, np.ndarray):
            saved.arrays.append((value, value.copy()))
    return saved
