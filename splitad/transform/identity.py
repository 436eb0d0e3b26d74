"""Give every array that control flow chooses an integer that says which array it is.

    If c {yield a} else {yield b} -> (v)       If c {yield a, 0} else {yield b, 1} -> (v, id_v)

The reverse pass keeps its shadows in a table by this integer: 0, 1, ... are the arrays among the
arguments, an allocation that flows into a choice draws a new one each time (`fresh_id`).  Binding shadows
by the order of what loops yield alone is wrong: it cannot tell which carried array is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from numba import types

from splitad.analysis.activity import Activity
from splitad.analysis.identity import Identity
from splitad.analysis.memory import is_array
from splitad.errors import Loc, UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.build import Builder
from splitad.ir.walk import inner_defs, outs, walk


def fresh_id() -> int:
    """Stands for drawing the next identity; printed as a counter in the tape's handle."""
    raise NotImplementedError


class _Pass:
    def __init__(self, fn: ir.Function, active: Activity, wanted: frozenset[ir.Var]) -> None:
        self.fn, self.active, self.wanted = fn, active, wanted
        self.b = Builder(fn.loc)
        for var in _all_vars(fn):
            self.b._used.setdefault(var.name, 1)
        self.id: dict[ir.Var, ir.Operand] = {}
        self.dims: dict[ir.Var, tuple[ir.Operand, ...]] = {}
        self.leaf_ids = {leaf.var: k for k, leaf in enumerate(fn.leaves) if is_array(leaf.var)}
        self.needed = self._sources()

    def _sources(self) -> set[ir.Operand]:
        """Active arrays that are chosen by control flow, and those, active or not, that flow into them."""
        found: set[ir.Operand] = set()
        fields = [
            leaf
            for leaf in self.fn.leaves
            if is_array(leaf.var)
            and self.active(leaf.var)
            and any(isinstance(step, str) for step in leaf.path)
        ]
        if any(leaf.exit != leaf.var for leaf in fields):
            # one field was rebound: which array each field held at entry is then found by identity
            for leaf in fields:
                found |= {leaf.exit, leaf.var}
        choices = list(_choices(self.fn))
        size = -1
        while size != len(found):
            size = len(found)
            for results, options in choices:
                if any(self._active_array(r) or r in found for r in results):
                    found.update(results, options)
        return found

    def _active_array(self, var: ir.Operand) -> bool:
        return is_array(var) and self.active(var)

    def _chosen(self, var: ir.Operand) -> bool:
        return is_array(var) and var in self.needed

    def of(self, array: ir.Operand, loc: Loc) -> ir.Operand:
        """The identity of an array that flows into a choice."""
        if isinstance(array, ir.Lit):
            return Builder.intp(-1)  # undefined here, or a frozen global: never looked up
        if array in self.leaf_ids:
            return Builder.intp(self.leaf_ids[array])
        if array in self.id:
            return self.id[array]
        raise UnsupportedError(
            f"the variable '{array.name}' is a view here, and control flow decides which array the "
            "result is",
            loc,
            "Copy it first (x = x[1:].copy()), or take the view after the loop or branch.",
        )

    def block(self, block: ir.Block) -> ir.Block:
        with self.b.block() as stmts:
            for stmt in block.stmts:
                self.stmt(stmt)
        return ir.Block(tuple(stmts), block.yields)

    def stmt(self, stmt: ir.Stmt) -> None:
        self.b.loc = stmt.loc
        if isinstance(stmt, (ir.For, ir.While)):
            self.loop(stmt)
        elif isinstance(stmt, ir.If):
            self.branch(stmt)
        else:
            self.b.emit(stmt)
            outs = stmt.outs if isinstance(stmt, ir.ArrayCall) else ()
            for out in outs:
                if self._active_array(out):
                    self.dims[out] = self._dims(out)
            if isinstance(stmt, (ir.GetField, ir.TupleGet)):
                self.leaf(stmt.out)
            for out in (stmt.out,) if isinstance(stmt, ir.Alloc) else outs:
                if self._chosen(out):
                    var = self.b.fresh("id_" + out.name, types.intp)
                    self.b.emit(ir.Impure(var, fresh_id, (), loc=stmt.loc))
                    self.id[out] = var
                    self.dims.setdefault(out, self._dims(out))

    def leaf(self, var: ir.Var) -> None:
        """The shape of an argument's array whose shadow the pullback may have to make itself."""
        if var in self.leaf_ids and self._active_array(var):
            if var not in self.wanted or var in self.needed:
                self.dims[var] = self._dims(var)

    def _dims(self, array: ir.Var) -> tuple[ir.Operand, ...]:
        return tuple(self.b.dim(array, axis) for axis in range(array.type.ndim))

    def loop(self, loop: ir.For | ir.While) -> None:
        chosen = [k for k, p in enumerate(loop.params) if self._chosen(p)]
        ids = [self.b.fresh("id_" + loop.params[k].name, types.intp) for k in chosen]
        inits = tuple(self.of(loop.inits[k], loop.loc) for k in chosen)
        with self.b.block() as stmts:
            for k, var in zip(chosen, ids, strict=True):
                self.id[loop.params[k]] = var
                self.dims[loop.params[k]] = self._dims(loop.params[k])
            for stmt in loop.body.stmts:
                self.stmt(stmt)
        yields = tuple(self.of(loop.body.yields[k], loop.loc) for k in chosen)
        outs = tuple(self.b.fresh("id_" + loop.outs[k].name, types.intp) for k in chosen)
        self.b.loc = loop.loc
        self.b.emit(
            replace(
                loop,
                params=loop.params + tuple(ids),
                inits=loop.inits + inits,
                body=ir.Block(tuple(stmts), loop.body.yields + yields),
                outs=loop.outs + outs,
            )
        )
        for k, out in zip(chosen, outs, strict=True):
            self.id[loop.outs[k]] = out
            self.dims[loop.outs[k]] = self._dims(loop.outs[k])

    def branch(self, stmt: ir.If) -> None:
        chosen = [k for k, out in enumerate(stmt.outs) if self._chosen(out)]
        sides = []
        for side in (stmt.then, stmt.orelse):
            done = self.block(side)
            if len(side.yields) == len(stmt.outs):
                extra = tuple(self.of(side.yields[k], stmt.loc) for k in chosen)
                done = ir.Block(done.stmts, done.yields + extra)
            sides.append(done)
        outs = tuple(self.b.fresh("id_" + stmt.outs[k].name, types.intp) for k in chosen)
        self.b.loc = stmt.loc
        self.b.emit(replace(stmt, then=sides[0], orelse=sides[1], outs=stmt.outs + outs))
        for k, out in zip(chosen, outs, strict=True):
            self.id[stmt.outs[k]] = out
            self.dims[stmt.outs[k]] = self._dims(stmt.outs[k])


def _choices(
    fn: ir.Function,
) -> Iterator[tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...]]]:
    """(results, what they can be) for each array that a loop carries or a branch yields."""
    for stmt in walk(fn.body):
        if isinstance(stmt, (ir.For, ir.While)):
            for init, param, y, out in zip(
                stmt.inits, stmt.params, stmt.body.yields, stmt.outs, strict=True
            ):
                if is_array(param):
                    yield (param, out), (init, y)
        elif isinstance(stmt, ir.If):
            sides = (stmt.then.yields, stmt.orelse.yields)
            for k, out in enumerate(stmt.outs):
                if is_array(out):
                    yield (out,), tuple(side[k] for side in sides if k < len(side))


def _all_vars(fn: ir.Function) -> Iterator[ir.Var]:
    yield from fn.params
    for stmt in walk(fn.body):
        yield from outs(stmt)
        yield from inner_defs(stmt)


def run(
    fn: ir.Function, active: Activity, wanted: frozenset[ir.Var]
) -> tuple[ir.Function, Identity]:
    """active: whether an array is (from the activity analysis).  wanted: the leaves of arguments that
    are not Const; the pullback makes the shadows of the others."""
    work = _Pass(fn, active, wanted)
    with work.b.block() as stmts:
        for var in fn.params:
            work.leaf(var)
        for stmt in fn.body.stmts:
            work.stmt(stmt)
    body = ir.Block(tuple(stmts), fn.body.yields)
    for leaf in fn.leaves:
        if leaf.exit in work.needed and isinstance(leaf.exit, ir.Var) and is_array(leaf.exit):
            work.of(leaf.exit, fn.loc)  # refuses a field rebound to a view
    return replace(fn, body=body), Identity(work.id, work.dims, work.leaf_ids)
