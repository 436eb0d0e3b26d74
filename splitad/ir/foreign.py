"""Functions that ctypes calls: Python cannot hash them, so they cannot be keys of tables as they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# the class of all functions that ctypes makes
_CTYPES: Any = ctypes.CFUNCTYPE(None).__mro__[1]


@dataclass(frozen=True)
class Foreign:
    """Stands for a ctypes function, the first one that was met for its address."""

    address: int
    function: Any = field(compare=False)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "function")


_known: dict[int, Foreign] = {}  # it keeps the functions alive, so addresses stay theirs


def hashable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for fn in tables and in the IR."""
    if isinstance(fn, _CTYPES):
        address = ctypes.cast(fn, ctypes.c_void_p).value or 0
        return _known.setdefault(address, Foreign(address, fn))
    return fn


def callable_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What Numba can call."""
    return fn.function if isinstance(fn, Foreign) else fn
