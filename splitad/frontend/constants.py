"""Python objects as values: frozen globals, defaults, constants in the source."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types

from splitad.frontend.values import NONE, PyVal, TupleVal, Value
from splitad.ir import nodes as ir


def constant(value: Any) -> Value:
    """A Python object as a value: numbers, strings and arrays are literals, the rest is itself."""
    match value:
        case None:
            return NONE
        case bool() | np.bool_():
            return ir.Lit(bool(value), types.boolean)
        case np.generic() if isinstance(value, (np.number,)):
            return ir.Lit(value.item(), numba.from_dtype(value.dtype))
        case int() if type(value) is int:
            return ir.Lit(value, types.intp if value < 2**63 else types.uint64)
        case float() if type(value) is float:
            return ir.Lit(value, types.float64)
        case complex() if type(value) is complex:
            return ir.Lit(value, types.complex128)
        case str():
            return ir.Lit(value, types.unicode_type)
        case tuple():
            items = tuple(map(constant, value))
            return TupleVal(items, tuple_type(items, type(value)))
        case np.ndarray():
            kind = numba.typeof(value)
            return ir.Lit(value, kind.copy(readonly=True))
    return PyVal(value)


def tuple_type(items: tuple[Value, ...], cls: type = tuple) -> types.Type | None:
    """The type of a tuple of these, None where an item has none."""
    kinds = [types.unliteral(kind) for item in items if (kind := getattr(item, "type", None))]
    if len(kinds) < len(items):
        return None
    if cls is not tuple:
        return types.BaseTuple.from_types(kinds, cls)
    return types.BaseTuple.from_types(kinds)
