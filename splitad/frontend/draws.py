"""Arrays of random numbers: one draw an element, in the order in which Numba draws them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import types

from splitad.frontend.allocation import sizes_of
from splitad.frontend.array_context import ArrayContext, is_scalar
from splitad.frontend.pathwise import bound, drawn
from splitad.frontend.values import TupleVal, is_none
from splitad.ir import nodes as ir

# The number of parameters before `size`; None: all arguments are sizes.
_PARAMETERS: dict[str, int | None] = {
    "rand": None,
    "randn": None,
    "random": 0,
    "random_sample": 0,
    "ranf": 0,
    "sample": 0,
    "standard_normal": 0,
    "standard_exponential": 0,
    "normal": 2,
    "uniform": 2,
    "exponential": 1,
    "gamma": 2,
    "standard_gamma": 1,
    "beta": 2,
    "poisson": 1,
    "binomial": 2,
    "randint": 2,
    "lognormal": 2,
    "laplace": 2,
    "gumbel": 2,
    "logistic": 2,
    "rayleigh": 1,
    "chisquare": 1,
    "standard_t": 1,
    "weibull": 1,
    "pareto": 1,
    "power": 1,
    "geometric": 1,
}
_SCALAR = {"rand": np.random.random, "randn": np.random.standard_normal}


def is_random(fn: Any) -> bool:
    return isinstance(getattr(fn, "__self__", None), (np.random.RandomState, random.Random))


def draw(
    ctx: ArrayContext,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result_type: types.Type,
) -> ir.Var:
    name = fn.__name__
    if name not in _PARAMETERS or not isinstance(result_type, types.Array):
        ctx.refuse(f"np.random.{name} of arrays is not supported.", "Draw numbers in a loop.")
    count = _PARAMETERS[name]
    if count is None:
        shape: Any = TupleVal(tuple(args), types.none)
        parameters: Sequence[Any] = ()
    else:
        parameters = args[:count]
        shape = args[count] if len(args) > count else kwargs.get("size")
        named = {key: value for key, value in kwargs.items() if key != "size"}
        if named:
            parameters = bound(fn, parameters, named) or ()
        if len(parameters) < count:
            ctx.refuse(f"This form of np.random.{name} is not supported.", "Pass all parameters.")
    if shape is None or is_none(shape) or not all(map(is_scalar, parameters)):
        ctx.refuse(f"This form of np.random.{name} is not supported.", "Draw numbers in a loop.")
    sizes = sizes_of(ctx, shape)
    out = ctx.alloc(sizes, result_type, name="drawn")
    with ctx.nest(sizes) as index:
        value = drawn(ctx.b, fn, parameters)
        if value is None:
            value = ctx.b.fresh("drawn_value", result_type.dtype)
            ctx.b.emit(ir.Impure(value, _SCALAR.get(name, fn), tuple(parameters), loc=ctx.b.loc))
        ctx.b.store(out, index, value, wraps=False)
    return out
