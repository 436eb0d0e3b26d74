"""A function that is called while it is being called: it is not inlined but keeps a pair of its own.

Such a call is an `ArrayCall` whose fn is a `RecursiveFunction`.  It may read and write every array that it
is given, and its results depend on every argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
from numba import types


@dataclass(frozen=True)
class RecursiveFunction:
    """A function for some argument types, with the options under which it is called.

    results: the types of the scalars that it returns; is_tuple: whether in a tuple.
    """

    function: Callable[..., Any]
    argtypes: tuple[types.Type, ...]
    flags: Any
    results: tuple[types.Type, ...]
    is_tuple: bool

    @property
    def __name__(self) -> str:
        py_func = getattr(self.function, "py_func", self.function)
        return str(py_func.__name__)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


@cache
def jitted(function: Callable[..., Any]) -> Any:
    """The function itself if it is compiled, else its njit form."""
    return function if hasattr(function, "py_func") else numba.njit(function)
