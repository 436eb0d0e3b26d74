"""Functions that make new arrays: np.zeros, np.full_like, np.array, np.arange, np.eye, copies."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import types

from splitad.frontend.array_context import ArrayContext, is_array, is_scalar
from splitad.frontend.broadcast import Sizes
from splitad.frontend.elements import LazyMap, lazy_of, materialize
from splitad.frontend.elementwise import astype
from splitad.frontend.values import ListVal, TupleVal, is_none
from splitad.ir import nodes as ir
from splitad.ir.types import numpy_dtype

Maker = Callable[[ArrayContext, Sequence[Any], Mapping[str, Any], types.Array], Any]


# ---- by shape -----------------------------------------------------------------------------------------


def sizes_of(ctx: ArrayContext, shape: Any) -> Sizes:
    """A shape argument, an integer or a tuple of them, as sizes."""
    items: tuple[Any, ...] = shape.items if isinstance(shape, TupleVal) else (shape,)
    if not all(is_scalar(item) for item in items):
        ctx.refuse("A shape that is not an integer or a tuple of integers.")
    return tuple(ctx.shapes.intp(item) for item in items)


def filled(ctx: ArrayContext, sizes: Sizes, type: types.Array, value: ir.Operand | None) -> ir.Var:
    """A new array full of value; of zeros for None."""
    if value is None:
        return ctx.alloc(sizes, type, "zeros")
    out = ctx.alloc(sizes, type)
    value = ctx.b.cast(value, type.dtype)
    with ctx.nest(ctx.shapes.dims(out)) as index:
        ctx.b.store(out, index, value, wraps=False)
    return out


def one(type: types.Array) -> ir.Lit:
    return constant(1, type.dtype)


def constant(value: int, type: types.Type) -> ir.Lit:
    """A small integer as a literal of any numeric type."""
    kinds = {types.Float: float, types.Complex: complex, types.Boolean: bool}
    for kind, make in kinds.items():
        if isinstance(type, kind):
            return ir.Lit(make(value), type)
    return ir.Lit(value, type)


def empty(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    return ctx.alloc(sizes_of(ctx, argument(ctx, args, kwargs, 0, "shape")), type)


def zeros(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    return filled(ctx, sizes_of(ctx, argument(ctx, args, kwargs, 0, "shape")), type, None)


def ones(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    return filled(ctx, sizes_of(ctx, argument(ctx, args, kwargs, 0, "shape")), type, one(type))


def full(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    sizes = sizes_of(ctx, argument(ctx, args, kwargs, 0, "shape"))
    return filled(ctx, sizes, type, argument(ctx, args, kwargs, 1, "fill_value"))


def _like(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, name: str) -> Sizes:
    model = argument(ctx, args, kwargs, 0, name)
    if is_scalar(model):
        return ()
    return lazy_of(ctx, model).sizes


def empty_like(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    name = "arr" if "arr" in kwargs else "prototype"
    return ctx.alloc(_like(ctx, args, kwargs, name), _newable(type))


def zeros_like(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    return filled(ctx, _like(ctx, args, kwargs, "a"), _newable(type), None)


def ones_like(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    return filled(ctx, _like(ctx, args, kwargs, "a"), _newable(type), one(type))


def full_like(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    value = argument(ctx, args, kwargs, 1, "fill_value")
    return filled(ctx, _like(ctx, args, kwargs, "a"), _newable(type), value)


def _newable(type: types.Array) -> types.Array:
    return type if type.layout in "CF" else type.copy(layout="C")


# ---- by content ---------------------------------------------------------------------------------------


def array(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    """``np.array`` of (nested) lists and tuples of numbers, or of an array (a copy)."""
    content = argument(ctx, args, kwargs, 0, "object")
    if isinstance(content, LazyMap) or is_array(content):
        return copy(ctx, content, type)
    if is_scalar(content):
        return filled(ctx, (), type, content)
    shape: list[int] = []
    level = content
    while isinstance(level, (TupleVal, ListVal)):
        shape.append(len(level.items))
        if not level.items:
            ctx.refuse("np.array of an empty list.", "Use np.empty.")
        level = level.items[0]
    if len(shape) != type.ndim:
        ctx.refuse("np.array of something else than nested lists of numbers.")
    out = ctx.alloc(tuple(ctx.b.intp(n) for n in shape), type)

    def fill(part: Any, place: tuple[int, ...]) -> None:
        if len(place) == len(shape):
            if not is_scalar(part):
                ctx.refuse("np.array of something else than nested lists of numbers.")
            ctx.b.store(out, tuple(ctx.b.intp(i) for i in place), part, wraps=False)
            return
        if not isinstance(part, (TupleVal, ListVal)) or len(part.items) != shape[len(place)]:
            ctx.refuse("np.array of lists of different lengths.")
        for i, item in enumerate(part.items):
            fill(item, (*place, i))

    fill(content, ())
    return out


def copy(ctx: ArrayContext, value: Any, type: types.Array) -> ir.Var:
    """A new array with the same elements, converted if need be."""
    source = lazy_of(ctx, value)
    out: ir.Var = materialize(ctx, astype(ctx, source, _newable(type)), "copy")
    return out


def copied(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    value = argument(ctx, args, kwargs, 0, "a")
    return filled(ctx, (), type, value) if is_scalar(value) else copy(ctx, value, type)


def contiguous(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    """np.ascontiguousarray, np.asfortranarray: the array itself, or a copy where it is not contiguous."""
    value = argument(ctx, args, kwargs, 0, "a")
    if isinstance(value, LazyMap):
        value = materialize(ctx, value)
    if not is_array(value) or value.type.ndim == 0:
        ctx.refuse("A number made into a contiguous array.")
    if value.type.layout == type.layout or (value.type.ndim == 1 and value.type.layout in "CF"):
        return value
    if value.type.layout == "A":
        return _contiguous_or_copy(ctx, value, type)
    return copy(ctx, value, type)


def _contiguous_or_copy(ctx: ArrayContext, value: ir.Var, type: types.Array) -> ir.Var:
    """Of an array whose layout is only known at run time; the test is Numba's."""
    if isinstance(value.type.dtype, types.Record):
        ctx.refuse("A contiguous array of records.", "Use .copy().")
    b = ctx.b
    fits = _is_contiguous(ctx, value, type.layout)
    with b.block() as then:
        same = ctx.view(value, "contiguous", (), type)
    with b.block() as orelse:
        new = copy(ctx, value, type)
    out = b.fresh(value.name, type)
    blocks = ir.Block(tuple(then), (same,)), ir.Block(tuple(orelse), (new,))
    b.emit(ir.If(fits, *blocks, (out,), loc=b.loc))
    ctx.origins.merged(out, (same, new))
    ctx.shapes.define(out, ctx.shapes.keys(value))
    return out


def _is_contiguous(ctx: ArrayContext, array: ir.Var, layout: str) -> ir.Operand:
    """Whether the elements lie in this order without gaps; axes of one element may have any stride,
    but for those between two longer ones, as in Numba."""
    b = ctx.b
    axes = list(range(array.type.ndim))[:: -1 if layout == "C" else 1]  # the fastest first
    sizes = [ctx.shapes.dim(array, axis) for axis in axes]
    strides = [b.stride(array, axis) for axis in axes]

    def test(fn: Callable[..., Any], x: ir.Operand, y: ir.Operand) -> ir.Operand:
        return b.prim(fn, x, y, type=types.boolean, name="fits")

    short = [test(operator.le, size, b.intp(1)) for size in sizes]
    itemsize = b.intp(numpy_dtype(array.type.dtype).itemsize)
    before: ir.Operand | None = None  # whether all faster axes are short
    fits: ir.Operand | None = None
    for k, stride in enumerate(strides):
        starts = test(operator.or_, short[k], test(operator.eq, stride, itemsize))
        if before is None or fits is None:
            before, fits = short[k], starts
            continue
        starts = test(operator.or_, starts, b.prim(operator.not_, before, type=types.boolean))
        fits = test(operator.and_, fits, starts)
        extent = b.prim(operator.mul, strides[k - 1], sizes[k - 1], type=types.intp, name="extent")
        goes_on = test(operator.or_, test(operator.eq, stride, extent), before)
        after = short[k]
        for other in short[k + 1 :]:
            after = test(operator.and_, after, other)
        fits = test(operator.and_, fits, test(operator.or_, goes_on, after))
        before = test(operator.and_, before, short[k])
    assert fits is not None
    return fits


def asarray(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    """np.asarray: an array of the right dtype as it is, anything else as np.array does it."""
    value = argument(ctx, args, kwargs, 0, "a")
    if isinstance(value, LazyMap) and value.type.dtype == type.dtype:
        return materialize(ctx, value)
    if is_array(value) and value.type.dtype == type.dtype:
        return value
    return array(ctx, [value], {}, type)


# ---- by formula ---------------------------------------------------------------------------------------


def arange(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    """``start + i * step`` for as many i as Numba takes."""
    b = ctx.b
    start, stop, step = (argument(ctx, args, kwargs, i, n, None) for i, n in enumerate(_ARANGE))
    if stop is None or is_none(stop):
        start, stop = b.intp(0), start
    if step is None or is_none(step):
        step = b.intp(1)
    for bound in (start, stop, step):
        if not is_scalar(bound) or isinstance(types.unliteral(bound.type), types.Complex):
            ctx.refuse("np.arange of something else than real numbers.")
    is_simple = all(isinstance(types.unliteral(x.type), types.Integer) for x in (start, stop, step))
    if isinstance(step, ir.Lit) and step.value == 1 and is_simple:
        start_, stop_ = ctx.shapes.intp(start), ctx.shapes.intp(stop)
        size = stop_
        if not (isinstance(start, ir.Lit) and start.value == 0):
            size = ctx.prim(operator.sub, stop_, start_)
        if not isinstance(size, ir.Lit):
            size = ctx.prim(max, size, b.intp(0), type=types.intp, name="n")
        elif size.value < 0:
            size = b.intp(0)
    else:
        if isinstance(step, ir.Lit):
            if step.value == 0:
                ctx.refuse("np.arange with a step of zero.")
        else:
            zero = b.prim(operator.eq, step, b.intp(0), type=types.boolean)
            ctx.raise_if(zero, ValueError, "Maximum allowed size exceeded")
        length = ctx.prim(operator.sub, stop, start)
        kind = types.float64
        count = ctx.prim(ctx.ops.fdiv, b.cast(length, kind), b.cast(step, kind), type=kind)
        whole = b.cast(ctx.prim(math.ceil, count), types.intp)
        size = ctx.prim(max, whole, b.intp(0), type=types.intp, name="n")
    out = ctx.alloc((size,), type)
    with ctx.nest((size,)) as (i,):
        value = ctx.prim(operator.add, start, ctx.prim(operator.mul, i, step))
        b.store(out, (i,), value, wraps=False)
    return out


_ARANGE = ("start", "stop", "step")


def linspace(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    """``start + i * step``, and exactly stop at the end."""
    b, dtype = ctx.b, type.dtype
    start = argument(ctx, args, kwargs, 0, "start")
    stop = argument(ctx, args, kwargs, 1, "stop")
    num = ctx.shapes.intp(argument(ctx, args, kwargs, 2, "num", b.intp(50)))
    start, stop = b.cast(start, dtype), b.cast(stop, dtype)
    out = ctx.alloc((num,), type)
    div = ctx.prim(operator.sub, num, b.intp(1))
    # Where div is zero there is one element, i = 0, or none; any step will do.
    some = ctx.select(b.prim(operator.gt, div, b.intp(0), type=types.boolean), div, b.intp(1))
    delta = b.prim(operator.sub, stop, start, type=dtype)
    step = b.prim(ctx.ops.fdiv, delta, b.cast(some, dtype), type=dtype)
    with ctx.nest((num,)) as (i,):
        moved = b.prim(operator.mul, b.cast(i, dtype), step, type=dtype)
        b.store(out, (i,), b.prim(operator.add, start, moved, type=dtype), wraps=False)
    many = b.prim(operator.gt, num, b.intp(1), type=types.boolean)
    with b.block() as then:
        b.store(out, (div,), stop, wraps=False)
    b.emit(ir.If(many, ir.Block(tuple(then)), ir.Block(()), (), loc=b.loc))
    return out


def eye(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    b = ctx.b
    rows = ctx.shapes.intp(argument(ctx, args, kwargs, 0, "N"))
    columns = argument(ctx, args, kwargs, 1, "M", None)
    columns = rows if columns is None or is_none(columns) else ctx.shapes.intp(columns)
    shift = argument(ctx, args, kwargs, 2, "k", b.intp(0))
    if isinstance(shift, ir.Lit) and shift.value == 0:
        return _diagonal(ctx, rows, columns, type)
    shift, zero = ctx.shapes.intp(shift), b.intp(0)
    right = ctx.prim(max, shift, zero, type=types.intp, name="right")
    down = ctx.prim(operator.sub, right, shift, type=types.intp, name="down")
    fits = [
        ctx.prim(operator.sub, size, apart, type=types.intp)
        for size, apart in ((rows, down), (columns, right))
    ]
    count = ctx.prim(max, ctx.prim(min, *fits, type=types.intp), zero, type=types.intp, name="n")
    out = ctx.alloc((rows, columns), type, "zeros")
    with ctx.nest((count,)) as (i,):
        place = [ctx.prim(operator.add, i, apart, type=types.intp) for apart in (down, right)]
        b.store(out, tuple(place), one(type), wraps=False)
    return out


def indices(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    """np.indices: along the first axis, the index of each place in each axis"""
    sizes = sizes_of(ctx, argument(ctx, args, kwargs, 0, "dimensions"))
    out = ctx.alloc((ctx.b.intp(len(sizes)), *sizes), type)
    for axis in range(len(sizes)):
        with ctx.nest(sizes) as index:
            ctx.b.store(out, (ctx.b.intp(axis), *index), index[axis], wraps=False)
    return out


def identity(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Array) -> ir.Var:
    size = ctx.shapes.intp(argument(ctx, args, kwargs, 0, "n"))
    return _diagonal(ctx, size, size, type)


def _diagonal(
    ctx: ArrayContext, rows: ir.Operand, columns: ir.Operand, type: types.Array
) -> ir.Var:
    out = ctx.alloc((rows, columns), type, "zeros")
    size = rows
    if not ctx.shapes.same(rows, columns):
        size = ctx.prim(min, rows, columns, type=types.intp)
    with ctx.nest((size,)) as (i,):
        ctx.b.store(out, (i, i), one(type), wraps=False)
    return out


# ---- arguments ------------------------------------------------------------------------------------------


_MISSING = object()


def argument(
    ctx: ArrayContext,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    position: int,
    name: str,
    default: Any = _MISSING,
) -> Any:
    """An argument of a call, given by position or by name."""
    if position < len(args):
        return args[position]
    value = kwargs.get(name, default)
    if value is _MISSING:
        ctx.refuse(f"The argument {name} is missing.")
    return value


MAKERS: dict[Callable[..., Any], Maker] = {
    np.empty: empty,
    np.zeros: zeros,
    np.ones: ones,
    np.full: full,
    np.empty_like: empty_like,
    np.zeros_like: zeros_like,
    np.ones_like: ones_like,
    np.full_like: full_like,
    np.array: array,
    np.copy: copied,
    np.ascontiguousarray: contiguous,
    np.asfortranarray: contiguous,
    np.asarray: asarray,
    np.arange: arange,
    np.linspace: linspace,
    np.eye: eye,
    np.identity: identity,
    np.indices: indices,
}
