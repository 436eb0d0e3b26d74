"""A function that is called while it is being called: it is not inlined but keeps a pair of its own.

Such a call is an `ArrayCall` whose fn is a `RecursiveFunction`.  It may read and write every array that it
is given, and its results depend on every argument.  Arrays that it returns are new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
from numba import types

from splitad.ir.types import struct_fields


@dataclass(frozen=True)
class RecursiveFunction:
    """A function for some argument types, with the options under which it is called.

    argtypes: of the call's arguments, which are the function's but for structs: those are handed over as
    their fields.  returned: the type of its result, whose scalars and arrays are the outs of the call;
    behind them come the scalars in structs.  params: the types of the function's own parameters.
    rooted: which of those are structs that exist as objects, which are handed over too.  takes_structs:
    whether there are structs among its parameters or in its result.
    """

    function: Callable[..., Any]
    argtypes: tuple[types.Type, ...]
    flags: Any
    returned: types.Type
    params: tuple[types.Type, ...]
    rooted: tuple[bool, ...]
    takes_structs: bool

    @property
    def __name__(self) -> str:
        py_func = getattr(self.function, "py_func", self.function)
        return str(py_func.__name__)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def parts(type: types.Type, text: str = "") -> Iterator[tuple[types.Type, str]]:
    """The scalars and arrays in a result, each with the text that picks it; a struct's are its fields."""
    fields = struct_fields(type)
    if fields is not None:
        for name, kind in fields.items():
            yield from parts(kind, f"{text}.{name}")
    elif isinstance(type, types.BaseTuple):
        for k, item in enumerate(type):  # type: ignore[arg-type, var-annotated]
            yield from parts(item, f"{text}[{k}]")
    elif type != types.none:
        yield types.unliteral(type), text


@cache
def jitted(function: Callable[..., Any]) -> Any:
    """The function itself if it is compiled, else its njit form."""
    return function if hasattr(function, "py_func") else numba.njit(function)
