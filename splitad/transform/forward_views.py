"""Elements of a view become elements of what it is a view of.

    v = view x[i, None, 2:n]                     n0 = x.shape[1]
    w = view v.T                                 k2 = add(k, 2)
    t = w[k, 0] nowrap                   ->      t = x[i, k2]
    d = w.shape[0]                               d = w.shape[0]
    u = view x.T                                 e = x.shape[1]
    e = u.shape[0]

A negative index counts from the view's end, hence where it may be negative the slice has to be a full one;
so has a start that may be negative.  Where a view reaches is not needed: an index outside of it would
be outside of what the program may do.
"""

from __future__ import annotations

import dataclasses
import operator

from numba import types

from splitad.analysis.bounds import Bounds
from splitad.analysis.shapes import known_shapes
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.transform.fresh import Fresh

_INT = types.int64


def run(fn: ir.Function) -> ir.Function:
    return dataclasses.replace(fn, body=_Forward(fn).block(fn.body))


class _Forward:
    def __init__(self, fn: ir.Function) -> None:
        self.defs, self.bounds, self.fresh = walk.defs(fn), Bounds(fn), Fresh(fn)
        self.shapes = known_shapes(fn)

    def view_of(self, array: ir.Operand) -> ir.View | None:
        stmt = self.defs[array][0] if isinstance(array, ir.Var) and array in self.defs else None
        return stmt if isinstance(stmt, ir.View) else None

    def block(self, block: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in block.stmts:
            match stmt:
                case ir.Load() | ir.Store():
                    stmts += self.element(stmt)
                case ir.Dim():
                    stmts.append(self.dim(stmt))
                case _:
                    stmts.append(walk.map_blocks(stmt, self.block))
        return ir.Block(tuple(stmts), block.yields)

    # ---- shapes -----------------------------------------------------------------------------

    def dim(self, stmt: ir.Dim) -> ir.Stmt:
        """The size of an axis, from the array or the allocation that it comes from."""
        while (view := self.view_of(stmt.array)) is not None:
            axis = _base_axis(view, stmt.axis)
            if axis is None:
                return stmt
            stmt = dataclasses.replace(stmt, array=view.base, axis=axis)
        origin = self.defs[stmt.array][0] if stmt.array in self.defs else None
        if isinstance(origin, ir.Alloc) and origin.kind == "dynamic":
            return stmt  # its size is the launch's to say
        shape = origin.shape if isinstance(origin, ir.Alloc) else self.shapes.get(stmt.array)
        return stmt if shape is None else ir.Cast(stmt.out, shape[stmt.axis], loc=stmt.loc)

    # ---- elements ---------------------------------------------------------------------------

    def element(self, stmt: ir.Load | ir.Store) -> list[ir.Stmt]:
        """The access on the innermost base that it can be said of, after what its index needs."""
        before: list[ir.Stmt] = []
        while (view := self.view_of(stmt.array)) is not None:
            index = self.index(view, stmt, before)
            if index is None:
                break
            wraps = stmt.wraps or not all(map(self.bounds.nonnegative, _scalars(view)))
            stmt = dataclasses.replace(stmt, array=view.base, index=index, wraps=wraps)
        return [*before, stmt]

    def index(
        self, view: ir.View, stmt: ir.Load | ir.Store, before: list[ir.Stmt]
    ) -> tuple[ir.Operand, ...] | None:
        """The index into view.base for an index into the view; None where it cannot be said."""
        if view.kind == "T" and view.index:
            axes = [entry.value for entry in view.index]  # type: ignore[union-attr]
            return tuple(stmt.index[axes.index(axis)] for axis in range(len(axes)))
        if view.kind == "T":
            return stmt.index[::-1]
        if view.kind != "index":
            return None
        entries = list(view.index)
        own = iter(stmt.index)
        pairs = [(e, next(own) if isinstance(e, (ir.Slice, ir.NewAxis)) else None) for e in entries]
        pairs = [(e, k) for e, k in pairs if not isinstance(e, ir.NewAxis)]
        if not all(
            self.reaches(e, k) for e, k in pairs if isinstance(e, ir.Slice) and k is not None
        ):
            return None
        found: list[ir.Operand] = []
        for entry, k in pairs:
            if isinstance(entry, ir.Slice) and k is not None:
                found.append(self.shifted(entry, k, stmt, before))
            elif isinstance(entry, (ir.Var, ir.Lit)):
                found.append(entry)
        return tuple(found)

    def reaches(self, entry: ir.Slice, k: ir.Operand) -> bool:
        """Whether element k of the slice is element start + k * step of the base."""
        if entry.step is not None and not _is_positive(entry.step):
            return False
        if _is_full(entry):
            return True
        start = entry.start is None or self.bounds.nonnegative(entry.start)
        return start and self.bounds.nonnegative(k)

    def shifted(
        self, entry: ir.Slice, k: ir.Operand, stmt: ir.Stmt, before: list[ir.Stmt]
    ) -> ir.Operand:
        """start + k * step"""
        if entry.step is not None and entry.step.value != 1:  # type: ignore[union-attr]
            k = self.prim(operator.mul, self.int64(k, stmt, before), entry.step, stmt, before)
        if entry.start is not None and not _is_zero(entry.start):
            k = self.int64(k, stmt, before)
            start = self.int64(entry.start, stmt, before)
            k = self.prim(operator.add, k, start, stmt, before)
        return k

    def prim(
        self, fn: object, x: ir.Operand, y: ir.Operand, stmt: ir.Stmt, before: list[ir.Stmt]
    ) -> ir.Var:
        out = self.fresh(x.name if isinstance(x, ir.Var) else "k", _INT)
        y = ir.Lit(y.value, _INT) if isinstance(y, ir.Lit) else y
        before.append(ir.Prim(out, fn, (x, y), loc=stmt.loc))  # type: ignore[arg-type]
        return out

    def int64(self, x: ir.Operand, stmt: ir.Stmt, before: list[ir.Stmt]) -> ir.Operand:
        if isinstance(x, ir.Lit):
            return ir.Lit(x.value, _INT)
        if x.type == _INT:
            return x
        out = self.fresh(x.name, _INT)
        before.append(ir.Cast(out, x, loc=stmt.loc))
        return out


def _scalars(view: ir.View) -> list[ir.Operand]:
    return (
        [e for e in view.index if isinstance(e, (ir.Var, ir.Lit))] if view.kind == "index" else []
    )


def _base_axis(view: ir.View, axis: int) -> int | None:
    """The axis of the base that axis of the view is all of; None where there is none."""
    if view.kind == "T" and view.index:
        return int(view.index[axis].value)  # type: ignore[union-attr]
    if view.kind == "T":
        return view.out.type.ndim - 1 - axis
    if view.kind in ("real", "imag"):
        return axis
    if view.kind != "index":
        return None
    kept = [k for k, e in enumerate(view.index) if isinstance(e, (ir.Slice, ir.NewAxis))]
    entry = view.index[kept[axis]]
    if not isinstance(entry, ir.Slice) or not _is_full(entry):
        return None
    return sum(not isinstance(e, ir.NewAxis) for e in view.index[: kept[axis]])


def _is_full(entry: ir.Slice) -> bool:
    start = entry.start is None or _is_zero(entry.start)
    step = entry.step is None or (isinstance(entry.step, ir.Lit) and entry.step.value == 1)
    return start and entry.stop is None and step


def _is_zero(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Lit) and operand.value == 0


def _is_positive(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Lit) and type(operand.value) is int and operand.value > 0
