"""Runs IR in plain Python, to say what it means: ``run(fn, *args)`` returns what fn would.

Arrays are NumPy's and are changed in place, structs are any objects with attributes.  An element that an
index does not wrap to raises, so does the use of a value that was never assigned, an access outside of an
array, and a `nowrap` access with a negative index.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba import types
from numba.experimental.structref import StructRefProxy
from numba.np.numpy_support import as_dtype

from splitad.ir import nodes as ir


class Undefined(Exception):
    """A value was read that no path assigned."""


def run(fn: ir.Function, *args: Any) -> Any:
    frame = _Frame(dict(zip(fn.params, args, strict=True)))
    with np.errstate(all="ignore"):
        frame.block(fn.body)
    return _result(fn.result, frame)


def _result(tree: ir.Tree, frame: _Frame) -> Any:
    if isinstance(tree, ir.TupleTree):
        items = [_result(item, frame) for item in tree.items]
        if isinstance(tree.type, types.BaseNamedTuple):
            return tree.type.instance_class(*items)
        return tuple(items)
    return None if tree is None else frame.get(tree)


def convert(value: Any, type: types.Type) -> Any:
    """value as a scalar of a Numba type: int, bool, float, complex, or NumPy's where it is narrower."""
    type = types.unliteral(type)
    if type == types.boolean:
        return bool(value)
    if isinstance(type, types.Integer) and not isinstance(value, (int, np.integer, np.bool_)):
        value = int(value)
    if isinstance(type, types.Integer):
        wrapped = int(value) & (2**type.bitwidth - 1)
        return wrapped - 2**type.bitwidth if wrapped > type.maxval else wrapped
    if type == types.float64:
        return float(value)
    if type == types.complex128:
        return complex(value)
    return as_dtype(type).type(value)


class _Frame:
    def __init__(self, values: dict[ir.Var, Any]) -> None:
        self.values = values

    def get(self, operand: ir.Operand) -> Any:
        value = operand.value if isinstance(operand, ir.Lit) else self.values[operand]
        if value is ir.UNDEF:
            raise Undefined(operand)
        return value

    def bind(self, var: ir.Var, value: Any) -> None:
        if value is not ir.UNDEF and isinstance(
            types.unliteral(var.type), (types.Number, types.Boolean)
        ):
            value = convert(value, var.type)
        self.values[var] = value

    def copy(self, targets: tuple[ir.Var, ...], sources: tuple[ir.Operand, ...]) -> None:
        """All at once; UNDEF may be handed on, as long as nobody reads it."""
        values = [s.value if isinstance(s, ir.Lit) else self.values[s] for s in sources]
        for target, value in zip(targets, values, strict=True):
            self.bind(target, value)

    def block(self, block: ir.Block) -> None:
        for stmt in block.stmts:
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Prim() | ir.Impure():
                self.bind(stmt.out, stmt.fn(*(self.get(a) for a in stmt.args)))
            case ir.Cast():
                self.bind(stmt.out, self.get(stmt.arg))
            case ir.Dim():
                self.bind(stmt.out, self.get(stmt.array).shape[stmt.axis])
            case ir.Stride():
                self.bind(stmt.out, self.get(stmt.array).strides[stmt.axis])
            case ir.Load():
                self.bind(stmt.out, self.get(stmt.array)[self.index(stmt)])
            case ir.Store():
                self.get(stmt.array)[self.index(stmt)] = self.get(stmt.value)
            case ir.View():
                self.bind(stmt.out, self.view(stmt))
            case ir.Alloc():
                shape = tuple(self.get(size) for size in stmt.shape)
                dtype = as_dtype(stmt.out.type.dtype)
                self.bind(stmt.out, np.zeros(shape, dtype))
            case ir.ArrayCall():
                static = {name: self.get(value) for name, value in stmt.static}
                result = stmt.fn(*(self.get(a) for a in stmt.args), **static)
                results = result if len(stmt.outs) > 1 else (result,)
                for out, value in zip(stmt.outs, results, strict=False):
                    self.bind(out, value)
            case ir.GetField():
                self.bind(stmt.out, getattr(self.get(stmt.obj), stmt.field))
            case ir.TupleGet():
                self.bind(stmt.out, self.get(stmt.obj)[stmt.index])
            case ir.SetField():
                obj = self.get(stmt.obj)
                if isinstance(obj, StructRefProxy):  # written by compiled code only
                    _setter(stmt.field)(obj, self.get(stmt.value))
                else:
                    setattr(obj, stmt.field, self.get(stmt.value))
            case ir.For():
                self.copy(stmt.params, stmt.inits)
                for k in range(self.get(stmt.start), self.get(stmt.stop), self.get(stmt.step)):
                    self.bind(stmt.counter, k)
                    self.block(stmt.body)
                    self.copy(stmt.params, stmt.body.yields)
                self.copy(stmt.outs, stmt.params)
            case ir.While():
                self.copy(stmt.params, stmt.inits)
                while self.get(stmt.params[0]):
                    self.block(stmt.body)
                    self.copy(stmt.params, stmt.body.yields)
                self.copy(stmt.outs, stmt.params)
            case ir.If():
                chosen = stmt.then if self.get(stmt.cond) else stmt.orelse
                self.block(chosen)
                self.copy(stmt.outs, chosen.yields)
            case ir.Raise():
                raise stmt.exc(*(self.get(a) for a in stmt.args))
            case ir.Print():
                print(*(self.get(a) for a in stmt.args))

    def index(self, stmt: ir.Load | ir.Store) -> tuple[int, ...]:
        index = tuple(int(self.get(k)) for k in stmt.index)
        assert stmt.wraps or all(k >= 0 for k in index), f"{stmt} has a negative index: {index}"
        return index

    def view(self, stmt: ir.View) -> Any:
        base = self.get(stmt.base)
        if stmt.kind == "index":
            return base[tuple(self.entry(entry) for entry in stmt.index)]
        if stmt.kind == "field":
            return base[self.get(stmt.index[0])]  # type: ignore[arg-type]
        if stmt.kind == "reshape":
            return base.reshape(tuple(self.get(size) for size in stmt.index))  # type: ignore
        if stmt.kind == "contiguous":
            return np.require(base, requirements=stmt.out.type.layout)
        if stmt.kind == "broadcast":
            return np.broadcast_to(base, tuple(self.get(size) for size in stmt.index))  # type: ignore
        if stmt.kind == "T" and stmt.index:
            return np.transpose(base, [self.get(axis) for axis in stmt.index])
        return getattr(base, stmt.kind)

    def entry(self, entry: ir.Index) -> Any:
        if isinstance(entry, ir.NewAxis):
            return None
        if isinstance(entry, ir.Slice):
            parts = (entry.start, entry.stop, entry.step)
            return slice(*(None if p is None else self.get(p) for p in parts))
        return self.get(entry)


@functools.cache
def _setter(field: str) -> Any:
    scope: dict[str, Any] = {}
    exec(f"def set(obj, value):\n    obj.{field} = value", scope)
    return numba.njit(scope["set"])
