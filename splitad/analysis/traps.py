"""Which scalar operations may raise, and so may neither be dropped nor be done where the user did not."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numba import types

from splitad.ir import nodes as ir

_DIVISIONS = {
    operator.truediv, operator.floordiv, operator.mod, divmod, math.fmod,
    np.divide, np.true_divide, np.floor_divide, np.remainder, np.mod, np.divmod, np.fmod,
}  # fmt: skip
_POWERS = {operator.pow, pow, np.power}
_BUILTINS = {abs, min, max, round, bool, int, float, complex}
_HARMLESS = ("math", "cmath", "_operator", "numpy")


def may_trap(stmt: ir.Prim, error_model: str) -> bool:
    """Whether the operation can raise an exception for some values of its arguments.

    Under ``error_model="python"`` divisions of all kinds raise for a zero divisor, integer powers for
    a zero base.  A function of which nothing is known may do anything.
    """
    fn = stmt.fn
    if not _hashable(fn):
        return True
    if fn in _DIVISIONS:
        return error_model != "numpy" and not _nonzero(stmt.args[-1])
    if fn in _POWERS:
        integral = all(_is_integral(arg.type) for arg in stmt.args)
        return error_model != "numpy" and integral and not _nonnegative(stmt.args[1])
    if fn in _BUILTINS or isinstance(fn, np.ufunc):
        return False
    module = getattr(fn, "__module__", None) or ""
    return not (module in _HARMLESS or module.startswith("splitad.rules"))


def _hashable(fn: Any) -> bool:
    try:
        hash(fn)
    except TypeError:
        return False
    return True


def _nonzero(operand: ir.Operand) -> bool:
    number = isinstance(operand, ir.Lit) and isinstance(operand.value, (int, float, complex))
    return number and operand.value != 0  # type: ignore[union-attr]


def _nonnegative(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Lit) and isinstance(operand.value, int) and operand.value >= 0


def _is_integral(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), (types.Integer, types.Boolean))
