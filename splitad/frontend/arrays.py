"""Attributes, methods and functions of arrays, and the one door to everything that lowers them.

    getitem, setitem, get_field, set_field          indexing
    binop, unary, inplace_binop                     operators
    attribute, method, call                         a.shape, a.sum(), np.where(a > 0, a, b)
    materialize                                     an array for a pending LazyMap

Values are those of splitad.frontend.values, and `LazyMap`, which only compiler temporaries may hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import types

from splitad.errors import NoRuleError
from splitad.frontend import elementwise
from splitad.frontend.allocation import MAKERS, argument, copy, filled, sizes_of
from splitad.frontend.array_context import ArrayContext, is_array, is_scalar
from splitad.frontend.broadcast import broadcast
from splitad.frontend.draws import draw, is_random
from splitad.frontend.elements import (
    LazyMap,
    Leaf,
    Repeated,
    is_array_like,
    lazy_of,
    materialize,
    unrounded,
)
from splitad.frontend.elementwise import inplace_binop, into
from splitad.frontend.indexing import (
    RecordVal,
    assign,
    field_view,
    get_field,
    getitem,
    set_field,
    setitem,
)
from splitad.frontend.joining import JOINS
from splitad.frontend.reductions import REDUCTIONS, size_of, sum_along
from splitad.frontend.values import NONE, ListVal, PyVal, TupleVal, is_none
from splitad.ir import nodes as ir
from splitad.ir.types import signature, unify

__all__ = [
    "ArrayContext",
    "LazyMap",
    "RecordVal",
    "attribute",
    "binop",
    "call",
    "function_of",
    "get_field",
    "getitem",
    "handles",
    "inplace_binop",
    "is_array_like",
    "length",
    "materialize",
    "method",
    "only_reads",
    "set_field",
    "setitem",
    "unary",
    "unrounded",
]

Fn = Callable[..., Any]


# ---- operators ------------------------------------------------------------------------------------------


def binop(ctx: ArrayContext, fn: Fn, left: Any, right: Any, result_type: types.Type) -> Any:
    if fn is operator.matmul:
        return _rule_call(ctx, fn, (left, right), {}, result_type)
    return elementwise.binop(ctx, fn, left, right, result_type)


def unary(ctx: ArrayContext, fn: Fn, arg: Any, result_type: types.Type) -> Any:
    return elementwise.unary(ctx, fn, arg, result_type)


# ---- attributes -----------------------------------------------------------------------------------------


def length(ctx: ArrayContext, array: Any) -> ir.Operand:
    """``len(array)``"""
    return lazy_of(ctx, array).sizes[0]


def attribute(ctx: ArrayContext, array: Any, name: str, result_type: types.Type) -> Any:
    """``array.name``"""
    b, type = ctx.b, array.type
    match name:
        case "shape":
            return TupleVal(lazy_of(ctx, array).sizes, result_type)
        case "size":
            return size_of(ctx, array)
        case "ndim":
            return b.intp(type.ndim)
        case "itemsize":
            return b.intp(_itemsize(type))
        case "nbytes":
            size = size_of(ctx, array)
            return ctx.prim(operator.mul, size, b.intp(_itemsize(type)), type=types.intp)
        case "dtype":
            return PyVal(type.dtype)
        case "T":
            return transposed(ctx, array, result_type)
        case "flat":
            return _flat_iterator(ctx, array)
        case "real" | "imag":
            return _part(ctx, array, name, result_type)
    array = materialize(ctx, array)
    if isinstance(type.dtype, types.Record) and name in type.dtype.fields:
        return field_view(ctx, array, name)
    ctx.refuse(f"The attribute {name} of an array is not supported.")


def _flat_iterator(ctx: ArrayContext, array: Any) -> ir.Var:
    """``array.flat``: indexed and iterated like the 1-D view of all elements."""
    array = materialize(ctx, array)
    if array.type.ndim == 1:
        return array
    if array.type.layout != "C":
        ctx.refuse("flat of an array that is not in C order.", "Loop over its indices.")
    kind = array.type.copy(ndim=1, layout="C")
    return ctx.view(array, "reshape", (size_of(ctx, array),), kind)


def _itemsize(type: types.Array) -> int:
    if isinstance(type.dtype, types.Record):
        return int(type.dtype.size)
    return 1 if type.dtype == types.boolean else int(type.dtype.bitwidth) // 8


def transposed(ctx: ArrayContext, array: Any, result_type: types.Type) -> ir.Var:
    array = materialize(ctx, array)
    if array.type.ndim <= 1:
        return array
    assert isinstance(result_type, types.Array)
    return ctx.view(array, "T", (), result_type)


def _part(ctx: ArrayContext, array: Any, name: str, result_type: types.Type) -> ir.Var:
    array = materialize(ctx, array)
    assert isinstance(result_type, types.Array)
    if isinstance(array.type.dtype, types.Complex):
        return ctx.view(array, name, (), result_type)
    if name == "real":
        return array
    return filled(ctx, ctx.shapes.dims(array), result_type.copy(layout="C"), None)


# ---- methods --------------------------------------------------------------------------------------------


def method(
    ctx: ArrayContext,
    array: Any,
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result_type: types.Type,
) -> Any:
    """``array.name(*args, **kwargs)``"""
    match name:
        case "copy":
            return copy(ctx, array, result_type)
        case "astype":
            return elementwise.astype(ctx, array, result_type)
        case "fill":
            assign(ctx, array, args[0])
            return NONE
        case "reshape":
            shape = args[0].items if isinstance(args[0], TupleVal) else args
            return reshape(ctx, array, shape, result_type)
        case "ravel" | "flatten":
            return flat(ctx, array, name == "flatten", result_type)
        case "transpose":
            if not args:
                return transposed(ctx, array, result_type)
            axes = args[0] if len(args) == 1 else args
            return _transpose(ctx, (array, axes), {}, result_type)
        case "sort" if not args and not kwargs:
            in_order = _rule_call(ctx, np.sort, (array,), {}, array.type.copy(layout="C"))
            assign(ctx, array, in_order)
            return NONE
        case "item":
            return _item(ctx, array, args)
        case "conj" | "conjugate":
            return call(ctx, np.conjugate, (array,), {}, result_type)
        case "view":
            return _reinterpreted(ctx, array, result_type)
    fn = function_of(name)
    if fn is None:
        ctx.refuse(f"The method {name} of an array is not supported.")
    return call(ctx, fn, (array, *args), kwargs, result_type)


def function_of(name: str) -> Fn | None:
    """The function that does the same as the method of this name."""
    return getattr(np, name) if name in _FUNCTIONS else None


# Methods that are the function of that name.
_FUNCTIONS = {
    "all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "dot", "max", "mean",
    "min", "nonzero", "prod", "repeat", "searchsorted", "std", "sum", "take", "trace", "var",
}  # fmt: skip


def reshape(ctx: ArrayContext, array: Any, shape: Sequence[Any], result_type: types.Type) -> ir.Var:
    """A view with other sizes; what the sizes must fulfil is checked by Numba's own reshape."""
    array = materialize(ctx, array)
    b, shapes = ctx.b, ctx.shapes
    assert isinstance(result_type, types.Array)
    if array.type.layout != "C":
        ctx.refuse("reshape of an array that is not in C order.", "Reshape a copy: a.copy().")
    sizes = [shapes.intp(size) for size in shape]
    unknown = [i for i, size in enumerate(sizes) if isinstance(size, ir.Lit) and size.value < 0]
    if len(unknown) == 1:
        known: ir.Operand = b.intp(1)
        for i, size in enumerate(sizes):
            if i not in unknown:
                known = _product(ctx, known, size)
        sizes[unknown[0]] = _quotient(ctx, size_of(ctx, array), known)
    out = ctx.view(array, "reshape", tuple(sizes), result_type)
    # A size that is a variable may turn out to be -1, which stands for another number.
    keys = [("dim", out.name, axis) for axis in range(len(sizes))]
    for axis, size in enumerate(sizes):
        key = shapes.key(size)
        if isinstance(size, ir.Lit) or (isinstance(key, tuple) and key[0] != "var"):
            keys[axis] = key  # type: ignore[call-overload]
    shapes.define(out, keys)
    return out


def _product(ctx: ArrayContext, a: ir.Operand, b: ir.Operand) -> ir.Operand:
    if isinstance(a, ir.Lit) and isinstance(b, ir.Lit):
        return ctx.b.intp(a.value * b.value)
    if isinstance(a, ir.Lit) and a.value == 1:
        return b
    return ctx.b.prim(operator.mul, a, b, type=types.intp, name="size")


def _quotient(ctx: ArrayContext, total: ir.Operand, known: ir.Operand) -> ir.Operand:
    """total // known, or 0 where known is 0; reshape itself raises where it does not come out even."""
    b = ctx.b
    if isinstance(known, ir.Lit) and known.value == 1:
        return total
    if isinstance(total, ir.Lit) and isinstance(known, ir.Lit):
        return b.intp(total.value // known.value if known.value else 0)
    return b.prim(np.floor_divide, total, known, type=types.intp, name="n")  # 0 for known == 0


def flat(ctx: ArrayContext, array: Any, copies: bool, result_type: types.Type) -> ir.Var:
    """All elements in C order: ravel shares memory where it can, flatten does not."""
    assert isinstance(result_type, types.Array)
    fresh = isinstance(array, LazyMap) and array.type.layout == "C"
    array = materialize(ctx, array)
    if array.type.layout != "C" or (copies and not fresh):
        array = copy(ctx, array, array.type.copy(layout="C", readonly=False))
    if array.type.ndim == 1:
        return array
    return ctx.view(array, "reshape", (size_of(ctx, array),), result_type)


def _item(ctx: ArrayContext, array: Any, args: Sequence[Any]) -> ir.Operand:
    if args:
        ctx.refuse("item with an argument.", "Index the array.")
    array = materialize(ctx, array)
    size = size_of(ctx, array)
    if not isinstance(size, ir.Lit):
        wrong = ctx.b.prim(operator.ne, size, ctx.b.intp(1), type=types.boolean)
        message = "item(): can only convert an array of size 1 to a Python scalar"
        ctx.raise_if(wrong, ValueError, message)
    return ctx.b.load(array, *(ctx.b.intp(0),) * array.type.ndim, wraps=False)


def _reinterpreted(ctx: ArrayContext, array: Any, result_type: types.Type) -> ir.Var:
    array = materialize(ctx, array)
    if isinstance(result_type, types.Array) and result_type.dtype == array.type.dtype:
        return array
    ctx.refuse(
        "A view of an array with another dtype.",
        "Convert the elements with astype, or use .real and .imag.",
    )


# ---- functions ------------------------------------------------------------------------------------------


def handles(ctx: ArrayContext, fn: Fn, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether `call` knows what to do; if not, the function's own source may be used."""
    known = isinstance(fn, np.ufunc) or fn in MAKERS or fn in _SIMPLE or fn in JOINS
    known = known or fn is abs or fn is ctx.ops.stop_gradient
    if known or is_random(fn) or ctx.rules.array_rule(fn) is not None:
        return True
    if fn in REDUCTIONS:
        return len(args) == 1 and not kwargs and is_array_like(args[0])
    if fn is np.select:
        return len(args) >= 2 and not kwargs and all(map(_is_listed, args[:2]))
    if fn is np.where and len(args) == 1:
        return True
    return fn in (np.where, np.clip) and len(args) == 3 and not kwargs


def only_reads(ctx: ArrayContext, fn: Fn, count: int, keywords: Sequence[Any]) -> bool:
    """Whether ``fn(...)``, with that many arguments by position, writes to no array that was there before."""
    if isinstance(fn, np.ufunc):
        return count <= fn.nin and not keywords
    if any(fn in table for table in (MAKERS, REDUCTIONS, JOINS, _SIMPLE)):
        return True
    rule = ctx.rules.array_rule(fn)
    if rule is None:
        return fn in (np.where, np.clip, np.select)
    return rule.overwrites is None or (count <= rule.overwrites and not keywords)


def _is_listed(value: Any) -> bool:
    return isinstance(value, (TupleVal, ListVal)) and all(map(is_array_like, value.items))


def call(
    ctx: ArrayContext,
    fn: Fn,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result_type: types.Type,
) -> Any:
    """``fn(*args, **kwargs)`` of a NumPy function that takes or makes arrays."""
    if isinstance(fn, np.ufunc):
        return _ufunc(ctx, fn, args, kwargs, result_type)
    if fn in MAKERS:
        return MAKERS[fn](ctx, args, kwargs, result_type)
    if fn in REDUCTIONS and len(args) == 1 and not kwargs and is_array_like(args[0]):
        return REDUCTIONS[fn](ctx, args[0], result_type)
    if fn is np.sum and args and isinstance(args[0], LazyMap):
        return _sum_of_expression(ctx, args, kwargs, result_type)
    if fn in JOINS:
        return JOINS[fn](ctx, args, kwargs, result_type)  # type: ignore[arg-type]
    if is_random(fn):
        return draw(ctx, fn, args, kwargs, result_type)
    if fn in _SIMPLE:
        return _SIMPLE[fn](ctx, args, kwargs, result_type)
    if fn is ctx.ops.stop_gradient:
        return elementwise.cut_off(ctx, args[0], result_type)  # type: ignore[arg-type]
    if fn is abs:
        return elementwise.combine(ctx, np.absolute, args, result_type)
    if fn is np.where:
        if len(args) == 1:
            return _nonzero(ctx, args, {}, result_type)
        return elementwise.where(ctx, args, result_type)  # type: ignore[arg-type]
    if fn is np.select:
        return elementwise.select(ctx, args, result_type)  # type: ignore[arg-type]
    if fn is np.clip and len(args) == 3 and not kwargs:
        return elementwise.clip(ctx, args, result_type)  # type: ignore[arg-type]
    return _rule_call(ctx, fn, args, kwargs, result_type)


def _sum_of_expression(
    ctx: ArrayContext, args: Sequence[Any], kwargs: Mapping[str, Any], result_type: types.Type
) -> Any:
    """np.sum(expression, axis), without storing the expression's values"""
    axis, ndim = argument(ctx, args, kwargs, 1, "axis", NONE), args[0].type.ndim
    plain = len(args) <= 2 and not set(kwargs) - {"axis"} and isinstance(axis, ir.Lit)
    if not plain or is_none(axis) or not -ndim <= axis.value < ndim:
        return _rule_call(ctx, np.sum, args, kwargs, result_type)
    if ndim == 1:
        return REDUCTIONS[np.sum](ctx, args[0], result_type)
    assert isinstance(result_type, types.Array)
    return sum_along(ctx, args[0], axis.value % ndim, result_type)


def _ufunc(
    ctx: ArrayContext,
    fn: np.ufunc,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result_type: types.Type,
) -> Any:
    if fn is np.matmul:
        return _rule_call(ctx, operator.matmul, args, kwargs, result_type)
    if fn is np.divmod and len(args) == 2 and not kwargs:
        assert isinstance(result_type, types.BaseTuple)
        pair = [materialize(ctx, arg) for arg in args]
        halves = zip((np.floor_divide, np.remainder), result_type, strict=True)
        items = [materialize(ctx, elementwise.combine(ctx, f, pair, kind)) for f, kind in halves]
        return TupleVal(tuple(items), result_type)
    out = args[fn.nin] if len(args) > fn.nin else kwargs.get("out")
    if fn.nout != 1 or set(kwargs) - {"out"}:
        raise NoRuleError(f"This form of np.{fn.__name__} has no rule.", ctx.b.loc)
    if out is None or is_none(out):
        return elementwise.combine(ctx, fn, args[: fn.nin], result_type)
    into(ctx, fn, args[: fn.nin], out)
    return out


def _shape(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    return attribute(ctx, args[0], "shape", type)


def _size(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    return size_of(ctx, args[0])


def _ndim(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    return ctx.b.intp(args[0].type.ndim)


def _transpose(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    axes = argument(ctx, args, kwargs, 1, "axes", NONE)
    if is_none(axes):
        return transposed(ctx, args[0], type)
    return permuted(ctx, args[0], _axes(ctx, axes, args[0].type.ndim), type)


def _axes(ctx: ArrayContext, axes: Any, ndim: int) -> list[int]:
    """One axis or several, as numbers from 0 on."""
    items = axes.items if isinstance(axes, (TupleVal, ListVal)) else axes
    items = items if isinstance(items, (tuple, list)) else (items,)
    known = [item.value for item in items if isinstance(item, ir.Lit)]
    if len(known) < len(items) or not all(-ndim <= axis < ndim for axis in known):
        ctx.refuse("The axes must be constants in range.")
    return [axis % ndim for axis in known]


def permuted(ctx: ArrayContext, array: Any, order: list[int], type: types.Type) -> ir.Var:
    """The view whose axis k is axis order[k] of the array."""
    array = materialize(ctx, array)
    if sorted(order) != list(range(array.type.ndim)):
        ctx.refuse("The axes of a transposition must each occur once.")
    if order == sorted(order):
        return array
    assert isinstance(type, types.Array)
    if order == sorted(order)[::-1]:
        return transposed(ctx, array, array.type.copy(layout=_turned(array.type.layout)))
    return ctx.view(array, "T", tuple(map(ctx.b.intp, order)), type)


def _turned(layout: str) -> str:
    return {"C": "F", "F": "C"}.get(layout, layout)


def _swapaxes(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    ndim = args[0].type.ndim
    names = (("axis1", 1), ("axis2", 2))
    first, second = (_axes(ctx, argument(ctx, args, kwargs, k, n), ndim)[0] for n, k in names)
    order = list(range(ndim))
    order[first], order[second] = second, first
    return permuted(ctx, args[0], order, type)


def _moveaxis(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    ndim = args[0].type.ndim
    names = (("source", 1), ("destination", 2))
    source, target = (_axes(ctx, argument(ctx, args, kwargs, k, n), ndim) for n, k in names)
    order = [axis for axis in range(ndim) if axis not in source]
    for place, axis in sorted(zip(target, source, strict=True)):
        order.insert(place, axis)
    return permuted(ctx, args[0], order, type)


def _nonzero(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    """np.nonzero, np.where(condition): a tuple of index arrays"""
    if not is_array_like(args[0]) or args[0].type.ndim == 0:
        ctx.refuse("The places of something that is not an array with axes.")
    if args[0].type.ndim > 1:
        return _rule_call(ctx, np.nonzero, args, kwargs, type)
    assert isinstance(type, types.BaseTuple)
    return TupleVal((_rule_call(ctx, np.flatnonzero, args, kwargs, type[0]),), type)


def _expand_dims(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    array = materialize(ctx, args[0])
    axis = argument(ctx, args, kwargs, 1, "axis")
    ndim = array.type.ndim + 1
    if not isinstance(axis, ir.Lit) or not -ndim <= axis.value < ndim:
        ctx.refuse("The axis must be a constant in range.")
    entries: list[Any] = [ir.Slice(None, None, None)] * array.type.ndim
    entries.insert(axis.value % ndim, ir.NewAxis())
    return getitem(ctx, array, entries, type)


def _flip(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    array = materialize(ctx, args[0])
    backwards = ir.Slice(None, None, ctx.b.intp(-1))
    return getitem(ctx, array, [backwards] * array.type.ndim, type)


def _at_least(ndim: int) -> Callable[[ArrayContext, Sequence[Any], Any, Any], Any]:
    def convert(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
        array: Any = materialize(ctx, args[0]) if len(args) == 1 else None
        if not is_array(array):
            ctx.refuse(f"This form of np.atleast_{ndim}d is not supported.")
        if array.type.ndim >= ndim:
            return array
        new = (ir.NewAxis(),)
        entries: tuple[Any, ...] = (ir.Slice(None, None, None),) * array.type.ndim
        entries = new * (min(ndim, 2) - array.type.ndim) + entries
        return getitem(ctx, array, entries + new * (ndim - len(entries)), type)

    return convert


def _broadcast_to(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    """np.broadcast_to, with the checks that Numba makes"""
    array = _as_array(ctx, args[0])
    sizes = sizes_of(ctx, argument(ctx, args, kwargs, 1, "shape"))
    b, have = ctx.b, ctx.shapes.dims(array)
    if len(have) > len(sizes):
        ctx.refuse("np.broadcast_to with fewer dimensions than the array has.")
    for size in sizes:
        if not (isinstance(size, ir.Lit) and size.value >= 0):
            below = b.prim(operator.lt, size, b.intp(0), type=types.boolean)
            message = "all elements of broadcast shape must be non-negative"
            ctx.raise_if(below, ValueError, message)
    for mine, size in zip(have, sizes[len(sizes) - len(have) :], strict=True):
        if not ctx.shapes.same(mine, size) and not (isinstance(mine, ir.Lit) and mine.value == 1):
            differ = b.prim(operator.ne, mine, size, type=types.boolean)
            wide = b.prim(operator.ne, mine, b.intp(1), type=types.boolean)
            both = b.prim(operator.and_, differ, wide, type=types.boolean)
            message = "operands could not be broadcast together with remapped shapes"
            ctx.raise_if(both, ValueError, message)
    return _repeated(array, sizes, type)


def _repeated(array: ir.Var, sizes: Sequence[ir.Operand], type: Any) -> Repeated:
    # Numba's type is read-only, which its shadow is not
    kind = types.Array(array.type.dtype, len(sizes), "A")
    return Repeated(Leaf(array), tuple(sizes), kind)


def _as_array(ctx: ArrayContext, value: Any) -> ir.Var:
    if is_scalar(value):
        return filled(ctx, (), types.Array(types.unliteral(value.type), 0, "C"), value)
    if not is_array_like(value):
        ctx.refuse("Something that is neither an array nor a number is broadcast.")
    return materialize(ctx, value)  # type: ignore[no-any-return]


def _broadcast_arrays(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    """A list of views, of which the items are known one by one."""
    given = [_as_array(ctx, arg) for arg in args]
    sizes = broadcast(ctx, [ctx.shapes.dims(array) for array in given])
    sizes = sizes or (ctx.b.intp(1),)
    items = tuple(materialize(ctx, _repeated(array, sizes, type)) for array in given)
    return ListVal(items, None)


def _reshape(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    name = "newshape" if "newshape" in kwargs else "shape"
    shape = argument(ctx, args, kwargs, 1, name)
    return reshape(ctx, args[0], shape.items if isinstance(shape, TupleVal) else (shape,), type)


def _ravel(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    return flat(ctx, args[0], False, type)


def _real(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    return attribute(ctx, args[0], "real", type)


def _imag(ctx: ArrayContext, args: Sequence[Any], kwargs: Any, type: types.Type) -> Any:
    return attribute(ctx, args[0], "imag", type)


_SIMPLE: dict[Fn, Callable[[ArrayContext, Sequence[Any], Any, Any], Any]] = {
    np.shape: _shape,
    np.size: _size,
    np.ndim: _ndim,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.nonzero: _nonzero,
    np.reshape: _reshape,
    np.expand_dims: _expand_dims,
    np.flip: _flip,
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.atleast_3d: _at_least(3),
    np.broadcast_to: _broadcast_to,
    np.broadcast_arrays: _broadcast_arrays,
    np.ravel: _ravel,
    np.real: _real,
    np.imag: _imag,
}


# ---- functions with a rule of their own -------------------------------------------------------------------


def _rule_call(
    ctx: ArrayContext,
    fn: Fn,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result_type: types.Type,
) -> Any:
    """An ArrayCall, whose derivative is an array rule."""
    rule = ctx.rules.array_rule(fn)
    if rule is None:
        name = getattr(fn, "__name__", repr(fn))
        raise NoRuleError(f"The function {name} of arrays has no rule.", ctx.b.loc)
    given: dict[str, Any] = {}
    static: dict[str, Any] = {}
    for name, value in (*zip((*rule.params, *rule.static), args, strict=False), *kwargs.items()):
        (static if name in rule.static else given)[name] = value
    if len(args) > len(rule.params) + len(rule.static) or set(given) - set(rule.params):
        ctx.refuse(f"This form of {rule.name} is not supported.")
    if any(name not in given for name in rule.params[: len(given)]):  # they are passed by position
        ctx.refuse(f"This form of {rule.name} is not supported.", "Pass its arguments by position.")
    operands = [_operand(ctx, given[name]) for name in rule.params if name in given]
    if not all(is_array(arg) or is_scalar(arg) for arg in operands):
        ctx.refuse(f"{rule.name} with an argument that is neither an array nor a number.")
    for name, value in static.items():
        if not isinstance(value, ir.Lit):  # a number, a string or None
            ctx.refuse(f"The argument {name} of {rule.name} must be a constant.")
    kinds = tuple(types.unliteral(arg.type) for arg in operands)
    wrong = rule.accepts(kinds, {name: value.value for name, value in static.items()})
    if wrong is not None:
        ctx.refuse(wrong)
    fixed = tuple(sorted((name, value) for name, value in static.items()))
    if rule.overwrites is not None and len(operands) > rule.overwrites:
        ctx.b.array_call(fn, tuple(operands), (), fixed)
        return operands[rule.overwrites]
    outs = _outs(ctx, rule, kinds, result_type)
    ctx.b.array_call(fn, tuple(operands), outs, fixed)
    for out in outs:
        if is_array(out):
            ctx.origins.fresh(out)
    if isinstance(result_type, types.BaseTuple):
        return TupleVal(outs[: len(result_type)], result_type)
    return outs[0] if outs else NONE


def _operand(ctx: ArrayContext, value: Any) -> Any:
    """An argument of a rule: a tuple or list of numbers becomes an array, as NumPy makes one of it."""
    if isinstance(value, (TupleVal, ListVal)) and value.items and all(map(is_scalar, value.items)):
        kind = unify([item.type for item in value.items])  # type: ignore[union-attr]
        if kind is not None:
            return MAKERS[np.array](ctx, [value], {}, types.Array(kind, 1, "C"))
    return materialize(ctx, value)


def _outs(
    ctx: ArrayContext, rule: Any, kinds: tuple[types.Type, ...], result_type: types.Type
) -> tuple[ir.Var, ...]:
    """The result, then what the rule's own forward returns beside it."""
    if rule.forward is None and isinstance(result_type, types.BaseTuple):
        if len(result_type) == 1:
            ctx.refuse(f"{rule.name} of a one-dimensional array, which returns a tuple of one.")
        items = rule.results or [f"{rule.name}_{k}" for k in range(len(result_type))]
        return tuple(ctx.b.fresh(n, t) for n, t in zip(items, result_type, strict=True))
    if rule.forward is None:
        return (ctx.b.fresh(rule.name, types.unliteral(result_type)),)
    found = signature(ctx.rules.jitted_forward(rule), kinds)
    if found is None or isinstance(found[0], types.BaseTuple) != bool(rule.residual):
        ctx.refuse(f"The rule of {rule.name} has no forward for these types.")
    names = (rule.name, *rule.residual)
    made: Any = found[0] if rule.residual else (found[0],)
    return tuple(ctx.b.fresh(name, kind) for name, kind in zip(names, made, strict=True))
