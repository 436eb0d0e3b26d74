"""Draws with a location and a scale: a standard number, moved and scaled as Numba does it.

    y = np.random.normal(m, s)          z = impure standard_normal()
                                        t = mul(s, z)
                                        y = add(m, t)

Then derivatives in location and scale are those of the arithmetic, and the number is drawn once, in the
forward.  The operations are those of Numba's own implementation in the same order, so the result is the
same to the bit, and so are the numbers that are drawn after it.  Other parameters (the shape of a gamma
distribution, say) stay parameters of the standard number: a derivative in one is refused.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types

from splitad.ir import nodes as ir
from splitad.ir.build import Builder

_F = types.float64


@dataclass(frozen=True)
class Family:
    """names: the parameters, in order.  defaults: of those that may be left out.  make: the number from the
    parameters, as floats.  positive: parameters for which Numba raises `error` unless they are positive."""

    names: tuple[str, ...]
    make: Callable[[Builder, Sequence[ir.Operand]], ir.Operand]
    defaults: tuple[float, ...] = ()
    positive: tuple[int, ...] = ()
    error: str = ""


def _standard(b: Builder, fn: Callable[..., Any], *args: ir.Operand) -> ir.Operand:
    out = b.fresh("standard", _F)
    b.emit(ir.Impure(out, fn, args, loc=b.loc))
    return out


def _lit(value: float) -> ir.Lit:
    return ir.Lit(value, _F)


def _moved(fn: Callable[..., Any], *standard: float) -> Any:
    """``loc + scale * z``; standard: the parameters with which fn draws z."""

    def make(b: Builder, p: Sequence[ir.Operand]) -> ir.Operand:
        z = _standard(b, fn, *map(_lit, standard))
        return b.prim(operator.add, p[0], b.prim(operator.mul, p[1], z, type=_F), type=_F)

    return make


def _between(fn: Callable[..., Any]) -> Any:
    """``low + (high - low) * z``"""

    def make(b: Builder, p: Sequence[ir.Operand]) -> ir.Operand:
        width = b.prim(operator.sub, p[1], p[0], type=_F)
        z = _standard(b, fn)
        return b.prim(operator.add, p[0], b.prim(operator.mul, width, z, type=_F), type=_F)

    return make


def _scaled(fn: Callable[..., Any], *standard: float) -> Any:
    """``scale * z``"""
    return lambda b, p: b.prim(operator.mul, p[0], _standard(b, fn, *map(_lit, standard)), type=_F)


def _log_moved(fn: Callable[..., Any], *standard: float) -> Any:
    """``exp(loc + scale * z)``"""
    moved = _moved(fn, *standard)
    return lambda b, p: b.prim(math.exp, moved(b, p), type=_F)


def _shaped(fn: Callable[..., Any], scale: int) -> Any:
    """``scale * z`` with another parameter that z is drawn with; scale: which is the scale."""

    def make(b: Builder, p: Sequence[ir.Operand]) -> ir.Operand:
        z = _standard(b, fn, *(_lit(1.0) if k == scale else q for k, q in enumerate(p)))
        return b.prim(operator.mul, p[scale], z, type=_F)

    return make


def _rate(b: Builder, p: Sequence[ir.Operand]) -> ir.Operand:
    z = _standard(b, random.expovariate, _lit(1.0))
    return b.prim(operator.truediv, z, p[0], type=_F)


_LOC_SCALE = ("loc", "scale")
_GAMMA = "gammavariate: alpha and beta must be > 0.0"

_FAMILIES: dict[Any, Family] = {
    np.random.normal: Family(_LOC_SCALE, _moved(np.random.standard_normal), (0.0, 1.0)),
    np.random.uniform: Family(("low", "high"), _between(np.random.random)),
    np.random.exponential: Family(("scale",), _scaled(np.random.standard_exponential)),
    np.random.laplace: Family(_LOC_SCALE, _moved(np.random.laplace, 0.0, 1.0), (0.0, 1.0)),
    np.random.logistic: Family(_LOC_SCALE, _moved(np.random.logistic, 0.0, 1.0), (0.0, 1.0)),
    np.random.gumbel: Family(_LOC_SCALE, _moved(np.random.gumbel, 0.0, 1.0)),
    np.random.rayleigh: Family(
        ("scale",), _scaled(np.random.rayleigh, 1.0), (), (0,), "rayleigh(): scale <= 0"
    ),
    np.random.lognormal: Family(
        ("mean", "sigma"), _log_moved(np.random.standard_normal), (0.0, 1.0)
    ),
    np.random.gamma: Family(("shape", "scale"), _shaped(np.random.gamma, 1), (), (0, 1), _GAMMA),
    random.gauss: Family(("mu", "sigma"), _moved(random.gauss, 0.0, 1.0)),
    random.normalvariate: Family(("mu", "sigma"), _moved(random.gauss, 0.0, 1.0)),
    random.uniform: Family(("a", "b"), _between(random.random)),
    random.lognormvariate: Family(("mu", "sigma"), _log_moved(random.gauss, 0.0, 1.0)),
    random.expovariate: Family(("lambd",), _rate),
    random.gammavariate: Family(
        ("alpha", "beta"), _shaped(random.gammavariate, 1), (), (0, 1), _GAMMA
    ),
    random.weibullvariate: Family(("alpha", "beta"), _shaped(random.weibullvariate, 0)),
}


def bound(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Any] | None:
    """The parameters by position; None where some are named otherwise than in Numba, or missing."""
    family = _FAMILIES.get(fn)
    if family is None or not set(kwargs) <= set(family.names[len(args) :]):
        return None
    rest = family.names[len(args) :]
    found = [*args, *(kwargs[name] for name in rest if name in kwargs)]
    return (
        found if rest[: len(found) - len(args)] == tuple(n for n in rest if n in kwargs) else None
    )


def drawn(b: Builder, fn: Callable[..., Any], params: Sequence[ir.Operand]) -> ir.Operand | None:
    """A number from fn; None where it is drawn as it stands: by another function, or with constants."""
    family = _FAMILIES.get(fn)
    if family is None or not any(isinstance(p, ir.Var) for p in params):
        return None
    missing = len(family.names) - len(params)
    if missing < 0 or missing > len(family.defaults):
        return None
    floats = [_as_float(b, p) for p in params]
    floats += [_lit(value) for value in family.defaults[len(params) :]]
    for k in family.positive:
        _raise_unless_positive(b, floats[k], family.error)
    return family.make(b, floats)


def _as_float(b: Builder, value: ir.Operand) -> ir.Operand:
    if isinstance(value, ir.Lit) and isinstance(value.value, (bool, int, float)):
        return _lit(float(value.value))
    return b.cast(value, _F)


def _raise_unless_positive(b: Builder, value: ir.Operand, message: str) -> None:
    if isinstance(value, ir.Lit) and value.value > 0.0:
        return
    bad = b.prim(operator.le, value, _lit(0.0), type=types.boolean)
    text = ir.Lit(message, types.unicode_type)
    left = ir.Block((ir.Raise(ValueError, (text,), loc=b.loc),))
    b.emit(ir.If(bad, left, ir.Block(()), (), loc=b.loc))
