"""Prints operands and statements without control flow as Python; the only place that does."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from splitad.codegen.writer import Writer, identifier
from splitad.errors import InternalError
from splitad.ir import nodes as ir
from splitad.ir.types import numpy_dtype
from splitad.rules.spelling import spell, unique_number
from splitad.rules.vector_math import of_math
from splitad.tape.arrays import empty_array, zero_array
from splitad.tape.broadcasting import as_strided, step_of
from splitad.tape.ops import address_of, load_at, store_at


def operand(w: Writer, value: ir.Operand) -> str:
    """A variable's name or a literal's text."""
    if isinstance(value, ir.Var):
        return identifier(value.name)
    return literal(w, value)


def literal(w: Writer, lit: ir.Lit) -> str:
    """A constant that Numba types as lit.type."""
    value, type = lit.value, types.unliteral(lit.type)
    if value is ir.UNDEF:
        return zero(w, type)
    if isinstance(type, types.Boolean):
        return repr(bool(value))
    if isinstance(type, types.Integer):
        text = repr(int(value))
        return text if type in (types.intp, types.int64) else f"{type_name(w, type)}({text})"
    if isinstance(type, types.Float):
        text = float_text(w, float(value))
        return text if type == types.float64 else f"{type_name(w, type)}({text})"
    if isinstance(type, types.Complex):
        text = f"complex({float_text(w, value.real)}, {float_text(w, value.imag)})"
        return text if type == types.complex128 else f"{type_name(w, type)}({text})"
    if isinstance(type, types.NoneType):
        return "None"
    if isinstance(type, (types.UnicodeType, types.StringLiteral)):
        return repr(value)
    # a number of its own: modules with equal texts are shared, and this is injected into them
    return w.use(f"const_{unique_number(value)}", value)


def float_text(w: Writer, value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    w.use("math", math)
    if math.isnan(value):
        return "math.nan"
    return "math.inf" if value > 0 else "(-math.inf)"


def zero(w: Writer, type: types.Type) -> str:
    """A zero of a scalar type; an empty array of an array type."""
    type = types.unliteral(type)
    if isinstance(type, types.Array):
        text = new_array(w, "empty", str((0,) * type.ndim), type.dtype)
        return f"{text}.T" if type.layout == "F" else text
    if isinstance(type, types.Boolean):
        return "False"
    if type == types.float64:
        return "0.0"
    if isinstance(type, types.Complex):
        return f"{type_name(w, type)}(0.0)"
    if isinstance(type, types.Number):
        return "0" if type in (types.intp, types.int64) else f"{type_name(w, type)}(0)"
    raise InternalError(f"no zero of type {type}")


def type_name(w: Writer, type: types.Type) -> str:
    """The name of a scalar type, callable as a conversion."""
    type = types.unliteral(type)
    name = "bool_" if isinstance(type, types.Boolean) else str(type)
    return w.use(name, getattr(types, name))


def dtype_name(w: Writer, type: types.Type) -> str:
    """A NumPy dtype constant."""
    if isinstance(type, types.Record):
        return w.use("record_dtype", numpy_dtype(type))
    w.use("np", np)
    return f"np.{numpy_dtype(type).name}" if not isinstance(type, types.Boolean) else "np.bool_"


def new_array(w: Writer, kind: str, shape: str, dtype: types.Type) -> str:
    """A new array, C-contiguous. kind: empty or zeros; shape: the text of a tuple."""
    maker = {"empty": empty_array, "zeros": zero_array}[kind]
    return f"{w.use(maker.__name__, maker)}({shape}, {dtype_name(w, dtype)})"


def index_text(w: Writer, index: tuple[ir.Index, ...]) -> str:
    """What stands between the brackets."""
    if not index:
        return "()"
    parts = []
    for entry in index:
        if isinstance(entry, ir.Slice):
            bounds = [operand(w, p) if p is not None else "" for p in (entry.start, entry.stop)]
            step = "" if entry.step is None else f":{operand(w, entry.step)}"
            parts.append(":".join(bounds) + step)
        elif isinstance(entry, ir.NewAxis):
            parts.append("None")
        else:
            parts.append(operand(w, entry))
    return ", ".join(parts)


def access(index: str, count: int) -> str:
    """The index argument of load_at and its like."""
    return index if count == 1 else f"({index})" if count else "()"


def at_call(w: Writer, fn: Any, array: str, index: str, *value: str) -> str:
    """A call of load_at, store_at or add_at.  index: as `access` gives it."""
    memory = w.memories.get(array)
    parts = [array, index, *value, *([] if memory is None else [str(memory)])]
    return f"{w.use(fn.__name__, fn)}({', '.join(parts)})"


def load_text(w: Writer, stmt: ir.Load, array: str, unchecked: bool) -> str:
    index = index_text(w, stmt.index)
    if unchecked and not stmt.wraps:
        return at_call(w, load_at, array, access(index, len(stmt.index)))
    return f"{array}[{index}]"


def store_text(w: Writer, stmt: ir.Store, array: str, value: str, unchecked: bool) -> str:
    index = index_text(w, stmt.index)
    if unchecked and not stmt.wraps:
        return at_call(w, store_at, array, access(index, len(stmt.index)), value)
    return f"{array}[{index}] = {value}"


def _shortest(index: tuple[ir.Index, ...]) -> tuple[ir.Index, ...]:
    """Without full slices at the end: with them, Numba does not see that x[t] is contiguous."""
    count = len(index)
    while count > 1 and index[count - 1] == ir.Slice(None, None, None):
        count -= 1
    return index[:count]


def view_text(w: Writer, stmt: ir.View, base: str) -> str:
    """The same view of another base, for its shadow too."""
    if stmt.kind == "index":
        return f"{base}[{index_text(w, _shortest(stmt.index))}]"
    if stmt.kind == "T" and stmt.index:
        w.use("np", np)
        return f"np.transpose({base}, ({index_text(w, stmt.index)},))"
    if stmt.kind == "T":
        return f"{base}.T"
    if stmt.kind in ("real", "imag"):
        return f"{base}.{stmt.kind}"
    if stmt.kind == "field":
        (name,) = stmt.index
        return f"{base}[{name.value!r}]"  # type: ignore[union-attr]
    if stmt.kind == "contiguous":
        w.use("np", np)
        order = "contiguous" if stmt.out.type.layout == "C" else "fortran"
        return f"np.as{order}array({base})"
    if stmt.kind == "reshape":
        return (
            f"{base}.reshape(({index_text(w, stmt.index)},))"
            if stmt.index
            else f"{base}.reshape(())"
        )
    if stmt.kind == "broadcast":
        return _broadcast_text(w, stmt, base)
    raise InternalError(f"no such view: {stmt.kind}", stmt.loc)


def _broadcast_text(w: Writer, stmt: ir.View, base: str) -> str:
    apart = len(stmt.index) - stmt.base.type.ndim
    w.use("as_strided", as_strided)
    w.use("step_of", step_of)
    steps = ["0"] * apart + [f"step_of({base}, {k})" for k in range(stmt.base.type.ndim)]
    return f"as_strided({base}, ({index_text(w, stmt.index)},), ({', '.join(steps)},))"


def call_text(w: Writer, fn: Callable[..., Any], args: tuple[ir.Operand, ...]) -> str:
    if w.vector:
        fn = of_math(fn, tuple(types.unliteral(a.type) for a in args))
    text, names = spell(fn, [operand(w, a) for a in args])
    for name, value in names.items():
        w.use(name, value)
    return text


def statement(w: Writer, stmt: ir.Stmt, unchecked: bool) -> None:
    """Print a statement that has no blocks. unchecked: elements with known indices skip wrap-around."""
    if isinstance(stmt, (ir.Prim, ir.Impure)):
        w.line(f"{identifier(stmt.out.name)} = {call_text(w, stmt.fn, stmt.args)}")
    elif isinstance(stmt, ir.Cast):
        w.line(
            f"{identifier(stmt.out.name)} = {type_name(w, stmt.out.type)}({operand(w, stmt.arg)})"
        )
    elif isinstance(stmt, ir.Dim):
        w.line(f"{identifier(stmt.out.name)} = {operand(w, stmt.array)}.shape[{stmt.axis}]")
    elif isinstance(stmt, ir.Stride):
        w.line(f"{identifier(stmt.out.name)} = {operand(w, stmt.array)}.strides[{stmt.axis}]")
    elif isinstance(stmt, ir.Distance):
        w.use("address_of", address_of)
        ends = (f"address_of({operand(w, a)})" for a in (stmt.array, stmt.base))
        w.line(f"{identifier(stmt.out.name)} = {' - '.join(ends)}")
    elif isinstance(stmt, ir.Load):
        w.line(
            f"{identifier(stmt.out.name)} = {load_text(w, stmt, operand(w, stmt.array), unchecked)}"
        )
    elif isinstance(stmt, ir.Store):
        array, value = operand(w, stmt.array), operand(w, stmt.value)
        w.line(store_text(w, stmt, array, value, unchecked))
    elif isinstance(stmt, ir.View):
        w.line(f"{identifier(stmt.out.name)} = {view_text(w, stmt, operand(w, stmt.base))}")
    elif isinstance(stmt, ir.Alloc):
        shape = "".join(operand(w, n) + ", " for n in stmt.shape)
        made = new_array(w, stmt.kind, f"({shape})", stmt.out.type.dtype)
        w.line(f"{identifier(stmt.out.name)} = {made}")
    elif isinstance(stmt, ir.ArrayCall):
        text, names = spell(stmt.fn, [operand(w, a) for a in stmt.args])
        for name, value in names.items():
            w.use(name, value)
        if stmt.static:
            extra = ", ".join(f"{name}={operand(w, value)}" for name, value in stmt.static)
            text = f"{text[:-1]}, {extra})" if stmt.args else f"{text[:-1]}{extra})"
        outs = ", ".join(identifier(out.name) for out in stmt.outs)
        w.line(f"{outs} = {text}" if outs else text)
    elif isinstance(stmt, ir.GetField):
        w.line(f"{identifier(stmt.out.name)} = {operand(w, stmt.obj)}.{stmt.field}")
    elif isinstance(stmt, ir.TupleGet):
        w.line(f"{identifier(stmt.out.name)} = {operand(w, stmt.obj)}[{stmt.index}]")
    elif isinstance(stmt, ir.SetField):
        w.line(f"{operand(w, stmt.obj)}.{stmt.field} = {operand(w, stmt.value)}")
    elif isinstance(stmt, ir.Print):
        w.line(f"print({', '.join(operand(w, a) for a in stmt.args)})")
    elif isinstance(stmt, ir.Raise):
        args = ", ".join(operand(w, a) for a in stmt.args)
        name = stmt.exc.__name__
        if getattr(builtins, name, None) is not stmt.exc:
            w.use(name, stmt.exc)
        w.line(f"raise {name}({args})")
    else:
        raise InternalError(f"cannot print {type(stmt).__name__}", stmt.loc)
