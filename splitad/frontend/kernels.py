"""Lowers what a CUDA kernel asks of its thread, block and grid; ir/threads.py has the functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.core import types

from splitad.errors import UnsupportedError
from splitad.frontend.builtin_calls import handles
from splitad.frontend.state import Context
from splitad.frontend.values import NONE, PyVal, TupleVal, is_scalar
from splitad.ir import nodes as ir
from splitad.ir import threads
from splitad.ir.types import dtype_of
from splitad.ir.walk import map_blocks


def _inside(c: Context, what: str) -> None:
    if not c.frame.flags.kernel:
        c.refuse(f"cuda.{what} is used in a function for the CPU.", "Use ad.cuda.split.")


def _index(fn: Any) -> None:
    @handles(fn)
    def read(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
        _inside(c, fn.__name__)
        return c.b.prim(fn, type=threads.KINDS[fn], name=name)


for _fn in threads.INDICES:
    _index(_fn)


def _libdevice(fn: Any) -> None:
    @handles(fn)
    def call(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
        _inside(c, fn.__name__.replace("_", ".", 1))
        kind = threads.KINDS[fn]
        return c.b.prim(fn, *(c.cast(arg, kind) for arg in args), type=kind, name=name)


for _fn in threads.LIBDEVICE.values():
    _libdevice(_fn)


@handles(threads.REMAINDER)
def _remainder(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    _inside(c, "remainder")
    return c.b.prim(threads.REMAINDER, *(c.cast(arg, type) for arg in args), type=type, name=name)


def _grid_of(which: Any, fns: tuple[Any, ...]) -> None:
    @handles(which)
    def grid(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
        _inside(c, which.__name__)
        (count,) = args
        items = tuple(c.b.prim(fn, type=types.int64, name=name) for fn in fns[: count.value])
        return (
            items[0]
            if count.value == 1
            else TupleVal(items, types.UniTuple(types.int64, len(items)))
        )


_grid_of(threads.grid, threads.GRID)
_grid_of(threads.gridsize, threads.GRIDSIZE)


@handles(threads.syncthreads)
def _syncthreads(c: Context, args: list[Any], kwargs: Any, type: Any, name: str) -> Any:
    _inside(c, "syncthreads")
    c.b.array_call(threads.BARRIER, (), ())  # `finish` gives it its arguments
    return NONE


# ---- arrays --------------------------------------------------------------------------------------------


def _array(which: Any, kind: str) -> None:
    @handles(which)
    def make(c: Context, args: list[Any], kwargs: dict[str, Any], type: Any, name: str) -> Any:
        what = f"{kind}.array"
        _inside(c, what)
        given = dict(zip(("shape", "dtype"), args, strict=False)) | kwargs
        if set(given) != {"shape", "dtype"}:
            c.refuse(f"cuda.{what} takes a shape and a dtype here.")
        shape, dtype = given["shape"], given["dtype"]
        items = shape.items if isinstance(shape, TupleVal) else (shape,)
        sizes = [n.value for n in items if isinstance(n, ir.Lit) and isinstance(n.value, int)]
        if len(sizes) < len(items):
            c.refuse(f"The shape of cuda.{what} is not a constant.")
        scalar = dtype_of(dtype.value) if isinstance(dtype, PyVal) else None
        if scalar is None:
            c.refuse(f"The dtype of cuda.{what} is not one of numbers.", "Use one array per field.")
        dims = tuple(map(c.b.intp, sizes))
        dynamic = kind == "shared" and sizes == [0]
        out = c.b.alloc(dims, scalar, "dynamic" if dynamic else kind, name)
        c.arrays.origins.fresh(out)
        if not dynamic:
            c.arrays.shapes.define_by_sizes(out, dims)
        return out


_array(threads.shared_array, "shared")
_array(threads.local_array, "local")


def _atomic(op: str) -> None:
    @handles(threads.ATOMICS[op])
    def atomic(c: Context, args: list[Any], kwargs: dict[str, Any], type: Any, name: str) -> Any:
        what = f"atomic.{op}"
        _inside(c, what)
        given = dict(zip(("ary", "idx", "val"), args, strict=False)) | kwargs
        array, index, value = (given.get(k) for k in ("ary", "idx", "val"))
        if not isinstance(array, ir.Var) or not isinstance(array.type, types.Array):
            c.refuse(f"cuda.{what} is of an array here.")
        entries = index.items if isinstance(index, TupleVal) else (index,)
        if not all(is_scalar(n) for n in (*entries, value)) or len(entries) != array.type.ndim:
            c.refuse(f"The arguments of cuda.{what} do not fit its array.")
        value = c.cast(value, array.type.dtype)  # type: ignore[arg-type]
        # without a type, nobody looks at the result
        outs = () if type is None else (c.b.fresh(name, array.type.dtype),)
        c.b.array_call(threads.ArrayOp(op, len(entries)), (array, *entries, value), outs)
        return outs[0] if outs else NONE


for _op in threads.ATOMICS:
    _atomic(_op)


# ---- barriers ------------------------------------------------------------------------------------------


def finish(fn: ir.Function) -> ir.Function:
    """Gives every barrier its arguments: the arrays that other threads may have written when it is passed."""
    arrays = [leaf.var for leaf in fn.leaves if isinstance(leaf.var.type, types.Array)]

    dynamic: set[ir.Var] = set()

    def block(body: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in body.stmts:
            if isinstance(stmt, ir.Alloc) and stmt.kind in ("shared", "dynamic"):
                if body is not fn.body:
                    raise UnsupportedError(
                        "cuda.shared.array is called in a branch or a loop here.",
                        stmt.loc,
                        "Call it at the start of the kernel, before anything else.",
                    )
                if stmt.kind == "dynamic" and any(a in dynamic for a in arrays):
                    raise UnsupportedError(
                        "A second cuda.shared.array(0, ...) is the same memory as the first one.",
                        stmt.loc,
                        "Take two views of one: s[:n] and s[n:].",
                    )
                arrays.append(stmt.out)
                if stmt.kind == "dynamic":
                    dynamic.add(stmt.out)
            if isinstance(stmt, ir.ArrayCall) and stmt.fn == threads.BARRIER:
                stmt = replace(stmt, fn=threads.ArrayOp("barrier", len(arrays)), args=tuple(arrays))
            stmts.append(map_blocks(stmt, block))
        return ir.Block(tuple(stmts), body.yields)

    return replace(fn, body=block(fn.body))
