"""The functions that the text of a kernel calls, as functions for CUDA (and its simulator).

On the CPU, what generated code is full of is lowered in place (rules/ops.py); here the same functions are
plain device functions, which CUDA's compiler inlines.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda, types
from numba.cuda import libdevice

from splitad.errors import InternalError
from splitad.rules import ops


def fdiv(a, b):  # type: ignore[no-untyped-def]
    return a / b


def guarded_mul(p, d):  # type: ignore[no-untyped-def]
    return p * d if d != 0 else d


def trip_count(n):  # type: ignore[no-untyped-def]
    return max(n, 0)


def at_most(n, limit):  # type: ignore[no-untyped-def]
    return min(n, limit)


_PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {
    ops.fdiv: fdiv,
    ops.guarded_mul: guarded_mul,
    ops.guarded_mul_branch: guarded_mul,
    ops.trip_count: trip_count,
    ops.at_most: at_most,
}


@cache
def _device(fn: Callable[..., Any]) -> Any:
    return cuda.jit(device=True)(fn)


def for_device(names: dict[str, object]) -> dict[str, object]:
    """The globals of a kernel's text, from those that were collected for the CPU."""
    own = {"cuda": cuda, "libdevice": libdevice, "math": math}
    return {**own, **{name: _one(name, value) for name, value in names.items()}}


def _one(name: str, value: Any) -> Any:
    if value is math or value is np or isinstance(value, types.Type):
        return value
    if getattr(builtins, name, None) is value:
        return value
    if value in _PLAIN:
        return _device(_PLAIN[value])
    plain = getattr(value, "py_func", value)
    if isinstance(plain, FunctionType) and plain.__module__ == "splitad.rules.namespace":
        return _device(plain)
    raise InternalError(f"a kernel's text calls {name}, which is not known on the device")
