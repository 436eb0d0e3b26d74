"""Reductions of arrays to a scalar, or along one axis, as loops that add in the order in which Numba does.

An operand that is not computed yet is reduced without being stored: Numba stores it and reads it back,
which gives the same numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import types

from splitad.frontend.allocation import constant
from splitad.frontend.array_context import ArrayContext, Index
from splitad.frontend.elements import (
    Convert,
    Elements,
    Expr,
    LazyMap,
    Op,
    element_of,
    lazy_of,
    materialize,
)
from splitad.ir import nodes as ir
from splitad.ir.types import scalar_result

Values = tuple[ir.Operand, ...]
Step = Callable[[Values, ir.Operand], Sequence[ir.Operand]]


def reduce(ctx: ArrayContext, value: Any, inits: Sequence[ir.Operand], step: Step) -> Values:
    """Folds over the elements: step takes the values so far and an element."""
    source = lazy_of(ctx, value)
    expr = element_of(value)
    elements = Elements(ctx, [expr], source.sizes)

    def body(index: Index, values: Values) -> Sequence[ir.Operand]:
        (element,) = elements.at(index, [expr])
        return step(values, element)

    return ctx.fold(source.sizes, inits, body, source.type.layout)


def size_of(ctx: ArrayContext, value: Any) -> ir.Operand:
    """How many elements there are."""
    total: ir.Operand = ctx.b.intp(1)
    for size in lazy_of(ctx, value).sizes:
        if isinstance(total, ir.Lit) and isinstance(size, ir.Lit):
            total = ctx.b.intp(total.value * size.value)
        elif isinstance(total, ir.Lit) and total.value == 1:
            total = size
        else:
            total = ctx.b.prim(operator.mul, total, size, type=types.intp, name="size")
    return total


def _accumulated(
    ctx: ArrayContext, value: Any, fn: Any, start: int, type: types.Type
) -> ir.Operand:
    """``acc = fn(acc, element)`` with an accumulator of the given type.

    Of an array that was not written since, the same once more is what it was (np.std after np.mean).
    """

    def step(values: Values, element: ir.Operand) -> list[ir.Operand]:
        return [ctx.b.prim(fn, values[0], ctx.b.cast(element, type), type=type, name="acc")]

    how = fn, type
    known = None if isinstance(value, LazyMap) else ctx.reduced.get(value, how)
    if known is not None:
        return known
    (out,) = reduce(ctx, value, (constant(start, type),), step)
    if not isinstance(value, LazyMap):
        ctx.reduced.set(value, how, out)
    return out


def total(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    """np.sum"""
    return _accumulated(ctx, value, operator.add, 0, type)


def sum_along(ctx: ArrayContext, value: LazyMap, axis: int, type: types.Array) -> ir.Var:
    """np.sum of an expression along one axis: element by element, each sum in the order of that axis"""
    sizes, expr = value.sizes, element_of(value)
    others = (*sizes[:axis], *sizes[axis + 1 :])
    last = axis == len(others)
    out = ctx.alloc(others, type, "empty" if last else "zeros", "total")
    elements = Elements(ctx, [expr], sizes)

    def added(acc: ir.Operand, index: Index) -> ir.Var:
        (element,) = elements.at(index, [expr])
        element = ctx.b.cast(element, type.dtype)
        return ctx.b.prim(operator.add, acc, element, type=type.dtype, name="acc")

    if last:
        with ctx.nest(others) as index:
            start = constant(0, type.dtype)

            def body(k: Index, values: Values, index: Index = index) -> list[ir.Operand]:
                return [added(values[0], (*index, *k))]

            (acc,) = ctx.fold(sizes[axis:], (start,), body)
            ctx.b.store(out, index, acc, wraps=False)
        return out
    with ctx.nest(sizes) as index:
        place = (*index[:axis], *index[axis + 1 :])
        ctx.b.store(out, place, added(ctx.b.load(out, *place, wraps=False), index), wraps=False)
    return out


def product(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    """np.prod"""
    return _accumulated(ctx, value, operator.mul, 1, type)


def _mean_type(dtype: types.Type) -> types.Type:
    """float32 for float32 in new releases of Numba, whose mean of an empty array is NaN; in older ones
    float64, and they raise ZeroDivisionError."""
    found = scalar_result(np.mean, (types.Array(dtype, 1, "C"),))
    assert found is not None
    return found


def mean(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    """np.mean"""
    dtype = value.type.dtype
    kind = dtype if isinstance(dtype, (types.Float, types.Complex)) else types.float64
    acc = _accumulated(ctx, value, operator.add, 0, kind)
    return _over_size(ctx, acc, value, type, raises=_mean_type(types.float32) != types.float32)


def _over_size(
    ctx: ArrayContext, acc: ir.Operand, value: Any, type: types.Type, raises: bool
) -> ir.Operand:
    """raises: whether no elements are an error where the division of scalars by zero is one."""
    # float32 / int64 is divided in double precision and rounded
    size = size_of(ctx, value)
    wide = scalar_result(operator.truediv, (types.unliteral(acc.type), types.intp))
    assert wide is not None
    is_complex = isinstance(wide, types.Complex)  # raises under either error model
    if raises and (is_complex or ctx.error_model == "python"):
        is_empty = ctx.b.prim(operator.eq, size, ctx.b.intp(0), type=types.boolean)
        message = "complex division by zero" if is_complex else "division by zero"
        ctx.raise_if(is_empty, ZeroDivisionError, message)
    pair = ctx.b.cast(acc, wide), ctx.b.cast(size, wide)
    return ctx.b.cast(ctx.b.prim(ctx.ops.fdiv, *pair, type=wide), type)


def variance(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    """np.var: the mean of the squared differences from the mean, summed in double precision.

    The elements are needed twice: a cheap expression is computed twice, others are stored.
    """
    if not isinstance(value, LazyMap) or not _is_cheap(ctx, value.expr):
        value = materialize(ctx, value)
    dtype = value.type.dtype
    kind = dtype if isinstance(dtype, (types.Float, types.Complex)) else types.float64
    kind = kind if kind == types.float64 else _mean_type(kind)
    middle = mean(ctx, value, kind)

    def step(values: Values, element: ir.Operand) -> list[ir.Operand]:
        apart = ctx.b.prim(operator.sub, ctx.b.cast(element, kind), middle, type=kind)
        square = _squared(ctx, apart)
        wide = ctx.b.cast(square, types.float64)
        return [ctx.b.prim(operator.add, values[0], wide, type=types.float64, name="acc")]

    (acc,) = reduce(ctx, value, (ir.Lit(0.0, types.float64),), step)
    return ctx.b.cast(_over_size(ctx, acc, value, types.float64, raises=True), type)


def _is_cheap(ctx: ArrayContext, expr: Expr) -> bool:
    """Whether an expression is arithmetic, no more than a few operations."""
    match expr:
        case Convert(arg):
            return _is_cheap(ctx, arg)
        case Op(fn, args):
            rule = ctx.rules.scalar_rule(fn)
            known = rule is not None and rule.cheap
            return known and all(_is_cheap(ctx, arg) for arg in args)
    return True


def _squared(ctx: ArrayContext, value: ir.Var) -> ir.Var:
    """value * conj(value), a real number"""
    kind = types.unliteral(value.type)
    if not isinstance(kind, types.Complex):
        return ctx.b.prim(operator.mul, value, value, type=kind)
    other = ctx.b.prim(np.conj, value, type=kind)
    square = ctx.b.prim(operator.mul, value, other, type=kind)
    return ctx.b.prim(ctx.ops.real, square, type=kind.underlying_float)


def deviation(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    """np.std: a norm of the differences from the mean, hence of derivative 0 where these are all 0."""
    var = variance(ctx, value, types.float64)
    half, one, zero = (ir.Lit(number, types.float64) for number in (0.5, 1.0, 0.0))
    none = ctx.b.prim(operator.eq, var, zero, type=types.boolean)
    root = ctx.b.prim(operator.pow, ctx.select(none, one, var), half, type=types.float64)
    return ctx.b.cast(ctx.select(none, zero, root), type)


# ---- extremes ------------------------------------------------------------------------------------------


def smallest(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    return _extreme(ctx, value, operator.ge, "minimum")


def largest(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    return _extreme(ctx, value, operator.le, "maximum")


def _extreme(ctx: ArrayContext, value: Any, keeps: Any, name: str) -> ir.Operand:
    """The first smallest or largest element, or the first NaN; complex numbers by their real parts first.

    The loop finds *where* it is, so that the derivative is that of one load.  keeps(element, best) is
    whether the best so far remains; with a NaN it is False, so a NaN is taken, and then kept.
    """
    source, expr = lazy_of(ctx, value), element_of(value)
    b, dtype, sizes = ctx.b, source.type.dtype, source.sizes
    message = f"zero-size array to reduction operation {name} which has no identity"
    is_empty = b.prim(operator.eq, size_of(ctx, source), b.intp(0), type=types.boolean)
    ctx.raise_if(is_empty, ValueError, message)
    zeros = (b.intp(0),) * len(sizes)
    elements = Elements(ctx, [expr], sizes)
    (first,) = elements.at(zeros, [expr])

    def body(index: Index, values: Values) -> list[ir.Operand]:
        best, *where = values
        (element,) = elements.at(index, [expr])
        keep = _keeps(ctx, keeps, element, best)
        if isinstance(dtype, types.Float):
            found_nan = b.prim(operator.ne, best, best, type=types.boolean)
            keep = b.prim(operator.or_, keep, found_nan, type=types.boolean)
        pairs = zip((best, *where), (element, *index), strict=True)
        return [ctx.select(keep, old, new) for old, new in pairs]

    _, *place = ctx.fold(sizes, (first, *zeros), body, source.type.layout, name="best")
    (best,) = elements.at(tuple(place), [expr])
    return best


def _keeps(ctx: ArrayContext, keeps: Any, element: ir.Operand, best: ir.Operand) -> ir.Operand:
    """``element keeps best``; of complex numbers: unless the real part of the element goes further, or is
    equal and the imaginary part goes further, so that a NaN is not taken, as in Numba"""
    kind = types.unliteral(best.type)

    def test(fn: Any, x: ir.Operand, y: ir.Operand) -> ir.Operand:
        return ctx.b.prim(fn, x, y, type=types.boolean)

    if not isinstance(kind, types.Complex):
        return test(keeps, element, best)
    part = kind.underlying_float
    beyond = operator.lt if keeps is operator.ge else operator.gt
    (x, y), (u, v) = (
        [ctx.b.prim(fn, z, type=part) for fn in (ctx.ops.real, ctx.ops.imag)]
        for z in (element, best)
    )
    tied = test(operator.and_, test(operator.eq, x, u), test(beyond, y, v))
    taken = test(operator.or_, test(beyond, x, u), tied)
    return ctx.b.prim(operator.not_, taken, type=types.boolean)


# ---- truth ---------------------------------------------------------------------------------------------


def any_true(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    return _truth(ctx, value, operator.or_, False)


def all_true(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    return _truth(ctx, value, operator.and_, True)


def _truth(ctx: ArrayContext, value: Any, fn: Any, start: bool) -> ir.Operand:
    def step(values: Values, element: ir.Operand) -> list[ir.Operand]:
        return [ctx.b.prim(fn, values[0], _is_true(ctx, element), type=types.boolean, name="acc")]

    (out,) = reduce(ctx, value, (ir.Lit(start, types.boolean),), step)
    return out


def count_true(ctx: ArrayContext, value: Any, type: types.Type) -> ir.Operand:
    """np.count_nonzero"""

    def step(values: Values, element: ir.Operand) -> list[ir.Operand]:
        one = ctx.b.cast(_is_true(ctx, element), type)
        return [ctx.b.prim(operator.add, values[0], one, type=type, name="count")]

    (out,) = reduce(ctx, value, (constant(0, type),), step)
    return out


def _is_true(ctx: ArrayContext, element: ir.Operand) -> ir.Operand:
    if types.unliteral(element.type) == types.boolean:
        return element
    zero = constant(0, types.unliteral(element.type))
    return ctx.b.prim(operator.ne, element, zero, type=types.boolean)


# ---- running -------------------------------------------------------------------------------------------


def running(ctx: ArrayContext, value: Any, fn: Any, start: int, type: types.Array) -> ir.Var:
    """np.cumsum, np.cumprod of all elements, in C order."""
    source = lazy_of(ctx, value)
    expr = element_of(value)
    out = ctx.alloc((size_of(ctx, value),), type)
    elements = Elements(ctx, [expr], source.sizes)
    flat = len(source.sizes) == 1  # else the place in `out` is counted

    def body(index: Index, values: Values) -> list[ir.Operand]:
        (element,) = elements.at(index, [expr])
        wide = ctx.b.cast(element, type.dtype)
        acc = ctx.b.prim(fn, values[0], wide, type=type.dtype, name="acc")
        ctx.b.store(out, index if flat else (values[1],), acc, wraps=False)
        if flat:
            return [acc]
        return [acc, ctx.b.prim(operator.add, values[1], ctx.b.intp(1), type=types.intp)]

    first = constant(start, type.dtype)
    ctx.fold(source.sizes, (first,) if flat else (first, ctx.b.intp(0)), body)
    return out


def cumsum(ctx: ArrayContext, value: Any, type: types.Array) -> ir.Var:
    return running(ctx, value, operator.add, 0, type)


def cumprod(ctx: ArrayContext, value: Any, type: types.Array) -> ir.Var:
    return running(ctx, value, operator.mul, 1, type)


Reduction = Callable[[ArrayContext, Any, Any], ir.Operand]

REDUCTIONS: dict[Any, Reduction] = {
    np.sum: total,
    np.prod: product,
    np.mean: mean,
    np.var: variance,
    np.std: deviation,
    np.min: smallest,
    np.amin: smallest,
    np.max: largest,
    np.amax: largest,
    np.any: any_true,
    np.all: all_true,
    np.count_nonzero: count_true,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
}
