"""Give every array that control flow chooses an integer that says which array it is.

    If c {yield a} else {yield b} -> (v)       If c {yield a, 0} else {yield b, 1} -> (v, id_v)

The reverse pass keeps its shadows in a table by this integer: 0, 1, ... are the arrays among the
arguments, an allocation that flows into a choice draws a new one each time (`fresh_id`).  Binding shadows
by the order of what loops yield alone is wrong: it cannot tell which carried array is the caller's.

A list of arrays is a choice too: beside each array that it holds it has the array's integers.

Where views flow into choices, the integer is that of the view's root, and beside it runs how many bytes
the view's first element lies behind the root's:

    v = view x[2:]                             v = view x[2:]; at_v = distance v from x
    For k [a = v] {yield a[1:]} -> (b)         For k [a = v, at_a = at_v] {yield ...} -> (b, at_b)

The number of the root, and how many bytes it has, are carried too where they are not known to be one
argument's.  Shape and strides are read off the chosen array itself.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace

from numba import types

from splitad.analysis.activity import Activity
from splitad.analysis.identity import Identity, Place
from splitad.analysis.memory import changed_lists, is_array, kind_of
from splitad.analysis.reverse import scratch_of
from splitad.analysis.shapes import array_choices, known_shapes
from splitad.errors import Loc, UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.build import Builder
from splitad.ir.types import numpy_dtype
from splitad.ir.walk import inner_defs, walk
from splitad.ir.walk import outs as walk_outs
from splitad.transform.called import view_in_words

Marks = tuple[ir.Operand, ...]  # an array's identity; with views also its place and its root's size
_MARKS = ("id_", "at_", "size_")


def fresh_id() -> int:
    """Stands for drawing the next identity; printed as a counter in the tape's handle."""
    raise NotImplementedError


class _Pass:
    def __init__(self, fn: ir.Function, active: Activity, wanted: frozenset[ir.Var]) -> None:
        self.fn, self.active, self.wanted = fn, active, wanted
        self.b = Builder(fn.loc)
        for var in _all_vars(fn):
            self.b._used.setdefault(var.name, 1)
        self.marks: dict[ir.Var, Marks] = {}
        self.dims: dict[ir.Var, tuple[ir.Operand, ...]] = {}
        self.strides: dict[ir.Var, tuple[ir.Operand, ...]] = {}
        self.leaf_ids = {leaf.var: k for k, leaf in enumerate(fn.leaves) if is_array(leaf.var)}
        self.scratch = {
            v for s in walk(fn.body) if isinstance(s, ir.ArrayCall) for v in scratch_of(s, active)
        }
        self.shapes = known_shapes(fn)
        self.views = {s.out: s for s in walk(fn.body) if isinstance(s, ir.View)}
        # lists that the caller has a shadow of, and that hold other arrays in the end
        self.listed = {each.kind for each in changed_lists(fn) if each.param in wanted}
        self.needed, self.by_place = self._sources()
        self.listed |= {
            kind_of(s) for s in walk(fn.body) if isinstance(s, ir.Deref) and self._chosen(s.outs[0])
        }
        self.count = 3 if self.by_place else 1

    def _sources(self) -> tuple[set[ir.Operand], bool]:
        """Active arrays that are chosen by control flow, and those, active or not, that flow into them;
        and whether views are among these."""
        found: set[ir.Operand] = set()
        fields = [
            leaf
            for leaf in self.fn.leaves
            if is_array(leaf.var)
            and self.active(leaf.var)
            and any(isinstance(step, str) for step in leaf.path)
        ]
        rebound = [leaf for leaf in fields if leaf.exit != leaf.var]
        if rebound:
            # one field was rebound: which array each field held at entry is then found by identity
            for leaf in fields:
                found |= {leaf.exit, leaf.var}
        for stmt in walk(self.fn.body):
            if isinstance(stmt, ir.Refer) and kind_of(stmt) in self.listed:
                found.add(stmt.array)
        choices = list(_choices(self.fn))
        by_place, size = False, -1
        while size != len(found):
            size = len(found)
            for results, options, loc in choices:
                if any(self._active_array(r) or r in found for r in results):
                    found.update(results, options)
                    for option in options:
                        if rebound and option in self.views:
                            raise _refusal(self.fn, option, loc)
            for out, view in self.views.items():
                if out in found:
                    by_place = True
                    found.add(view.base)
        for leaf in rebound:
            self._refuse_field(leaf)
        return found, by_place

    def _refuse_field(self, leaf: ir.Leaf) -> None:
        """A field that is assigned a view, or an array in Fortran order."""
        assigned = (s for s in walk(self.fn.body) if isinstance(s, ir.SetField))
        if leaf.exit in self.views:
            loc = next((s.loc for s in assigned if s.value == leaf.exit), self.fn.loc)
            raise UnsupportedError(
                f"{view_in_words(self.fn, leaf.exit, loc)}, and the field '{leaf.path[-1]}' is assigned it",
                loc,
                "Copy it first (x = x[1:].copy()).",
            )
        if leaf.var.type.layout == "F":
            loc = next((s.loc for s in assigned if s.field == leaf.path[-1]), self.fn.loc)
            raise UnsupportedError(
                f"the field '{leaf.path[-1]}', whose type is in Fortran order, is assigned another array",
                loc,
                f"Write into its array (s.{leaf.path[-1]}[:] = ...), or declare the field in C order.",
            )

    def _active_array(self, var: ir.Operand) -> bool:
        return is_array(var) and self.active(var)

    def _chosen(self, var: ir.Operand) -> bool:
        return is_array(var) and var in self.needed

    def of(self, array: ir.Operand, loc: Loc) -> Marks:
        """The identity of an array that flows into a choice."""
        zero = Builder.intp(0)
        if isinstance(array, ir.Lit):
            # undefined here, or a frozen global: never looked up
            return self._some(Builder.intp(-1), zero, zero)
        if array in self.leaf_ids:
            return self._some(Builder.intp(self.leaf_ids[array]), zero, zero)
        if array in self.marks:
            return self.marks[array]
        raise _refusal(self.fn, array, loc)

    def _some(self, *marks: ir.Operand) -> Marks:
        return marks[: self.count]

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
            if isinstance(stmt, ir.Deref) and self._chosen(stmt.outs[0]):
                self.deref(stmt)
                return
            if isinstance(stmt, ir.ListArrays) and stmt.kind in self.listed:
                stmt = self.list_argument(stmt)
            if isinstance(stmt, ir.Refer) and kind_of(stmt) in self.listed:
                stmt = replace(stmt, marks=self.of(stmt.array, stmt.loc))
            self.b.emit(stmt)
            outs: tuple[ir.Var, ...] = ()
            if isinstance(stmt, (ir.ArrayCall, ir.ListItems)):
                outs = walk_outs(stmt)
            for out in outs:
                if self._active_array(out):
                    self.dims[out] = self._dims(out)
            if isinstance(stmt, (ir.GetField, ir.TupleGet)):
                self.leaf(stmt.out)
            if isinstance(stmt, ir.View) and self._chosen(stmt.out):
                self.view(stmt)
            for out in (stmt.out,) if isinstance(stmt, ir.Alloc) else outs:
                if self._chosen(out):
                    self.new(out)
        self.size_up(walk_outs(stmt))

    def list_argument(self, stmt: ir.ListArrays) -> ir.ListArrays:
        if self.by_place:
            raise UnsupportedError(
                f"'{stmt.obj.name}' is a list of arrays, and control flow or a list chooses views here",
                next((self.views[v].loc for v in self.needed if v in self.views), stmt.loc),
                "Copy the view first (x = x[1:].copy()).",
            )
        first = self.b.fresh("id_" + stmt.obj.name, types.intp)
        return replace(stmt, outs=(*stmt.outs, first))

    def deref(self, stmt: ir.Deref) -> None:
        """An array from a list: its marks are kept in the list too."""
        out = stmt.outs[0]
        marks = tuple(self.b.fresh(_MARKS[k] + out.name, types.intp) for k in range(self.count))
        self.b.emit(replace(stmt, outs=(out, *marks)))
        self.marks[out] = marks
        self._measure(out)

    def leaf(self, var: ir.Var) -> None:
        """The shape of an argument's array whose shadow the pullback may have to make itself."""
        if var not in self.leaf_ids:
            return
        placed = self.by_place and var in self.needed
        if placed or (self._active_array(var) and (var not in self.wanted or var in self.needed)):
            self._measure(var)

    def new(self, out: ir.Var) -> None:
        """An array that the statement before makes."""
        var = self.b.fresh("id_" + out.name, types.intp)
        self.b.emit(ir.Impure(var, fresh_id, (), loc=self.b.loc))
        self.dims.setdefault(out, self._dims(out))
        size: ir.Operand = Builder.intp(0)
        if self.by_place:
            if out.type.layout == "A" and out.type.ndim > 0:
                raise UnsupportedError(
                    f"views of '{out.name}', whose layout is not known, are chosen by control flow",
                    self.b.loc,
                    "Copy it first (x = x.copy()).",
                )
            size = Builder.intp(numpy_dtype(out.type.dtype).itemsize)
            for n in self.dims[out]:
                size = self.b.prim(operator.mul, size, n, type=types.intp, name=f"size_{out.name}")
            self._strides(out)
        self.marks[out] = self._some(var, Builder.intp(0), size)

    def view(self, stmt: ir.View) -> None:
        """A view that is chosen, or that a chosen one is a view of."""
        base = self.of(stmt.base, stmt.loc)
        if isinstance(stmt.base, ir.Lit):
            self.marks[stmt.out] = base
            return
        at = self.b.fresh("at_" + stmt.out.name, types.intp)
        self.b.emit(ir.Distance(at, stmt.out, stmt.base, loc=stmt.loc))
        if base[1] != Builder.intp(0):
            at = self.b.prim(operator.add, base[1], at, type=types.intp, name=at.name)
        self.marks[stmt.out] = self._some(base[0], at, base[2])

    def _dims(self, array: ir.Var) -> tuple[ir.Operand, ...]:
        shape = self.shapes.get(array, ())
        if shape and all(types.unliteral(n.type) == types.intp for n in shape):
            return shape
        return tuple(self.b.dim(array, axis) for axis in range(array.type.ndim))

    def _measure(self, array: ir.Var) -> None:
        """Note the shape of an array, and its strides where they matter."""
        self.dims[array] = self._dims(array)
        self._strides(array)

    def _strides(self, array: ir.Var) -> None:
        if not self.by_place or array not in self.needed:
            return
        known = array.type.layout != "A" and array.type.aligned
        axes = range(0 if known else array.type.ndim)
        self.strides[array] = tuple(self.b.stride(array, axis) for axis in axes)

    # ---- choices ----------------------------------------------------------------------------------

    def _start(self, var: ir.Var) -> list[ir.Var]:
        """The marks of a chosen array: variables, which are returned, but for those that are known."""
        known = self._only_root(var)
        marks: list[ir.Operand] = []
        for k in range(self.count):
            fixed = known is not None and k != 1
            value = Builder.intp(known if k == 0 else 0) if fixed else None  # type: ignore[arg-type]
            marks.append(value or self.b.fresh(_MARKS[k] + var.name, types.intp))
        self.marks[var] = tuple(marks)
        return [mark for mark in marks if isinstance(mark, ir.Var)]

    def _only_root(self, var: ir.Var) -> int | None:
        """The identity of the argument that a chosen array is a view of for certain."""
        if not self.by_place:
            return None
        roots = [root for kind, root in self.active.memory.base_roots(var) if kind == "arg"]
        others = len(self.active.memory.base_roots(var)) - len(roots)
        return self.leaf_ids.get(roots[0]) if len(roots) == 1 and not others else None  # type: ignore[call-overload]

    def _carried(self, var: ir.Var, marks: Marks) -> tuple[ir.Operand, ...]:
        """Of marks those that are variables for var."""
        own = self.marks[var]
        return tuple(m for m, mine in zip(marks, own, strict=True) if isinstance(mine, ir.Var))

    def size_up(self, arrays: tuple[ir.Var, ...]) -> None:
        """Note the shapes of arrays that carry no derivative but are given to recursive functions."""
        for array in arrays:
            if array in self.scratch and array not in self.dims:
                self.dims[array] = self._dims(array)

    def loop(self, loop: ir.For | ir.While) -> None:
        chosen = [k for k, p in enumerate(loop.params) if self._chosen(p)]
        params = [var for k in chosen for var in self._start(loop.params[k])]
        inits = self._flow(loop.params, loop.inits, chosen, loop.loc)
        with self.b.block() as stmts:
            for k in chosen:
                self._measure(loop.params[k])
            self.size_up(loop.params)
            for stmt in loop.body.stmts:
                self.stmt(stmt)
        yields = self._flow(loop.params, loop.body.yields, chosen, loop.loc)
        results = [var for k in chosen for var in self._start(loop.outs[k])]
        self.b.loc = loop.loc
        self.b.emit(
            replace(
                loop,
                params=loop.params + tuple(params),
                inits=loop.inits + inits,
                body=ir.Block(tuple(stmts), loop.body.yields + yields),
                outs=loop.outs + tuple(results),
            )
        )
        for k in chosen:
            self._measure(loop.outs[k])

    def branch(self, stmt: ir.If) -> None:
        chosen = [k for k, out in enumerate(stmt.outs) if self._chosen(out)]
        results = [var for k in chosen for var in self._start(stmt.outs[k])]
        sides = []
        for side in (stmt.then, stmt.orelse):
            done = self.block(side)
            if len(side.yields) == len(stmt.outs):
                extra = self._flow(stmt.outs, side.yields, chosen, stmt.loc)
                if side.stmts and isinstance(side.stmts[-1], ir.Raise):
                    extra = tuple(ir.Lit(ir.UNDEF, types.intp) for _ in extra)
                done = ir.Block(done.stmts, done.yields + extra)
            sides.append(done)
        self.b.loc = stmt.loc
        self.b.emit(replace(stmt, then=sides[0], orelse=sides[1], outs=stmt.outs + tuple(results)))
        for k in chosen:
            self._measure(stmt.outs[k])

    def _flow(
        self,
        targets: tuple[ir.Var, ...],
        sources: tuple[ir.Operand, ...],
        chosen: list[int],
        loc: Loc,
    ) -> tuple[ir.Operand, ...]:
        """The marks that go from the sources to the chosen ones of the targets."""
        found: list[ir.Operand] = []
        for k in chosen:
            found += self._carried(targets[k], self.of(sources[k], loc))
        return tuple(found)

    def facts(self) -> Identity:
        ids = {var: marks[0] for var, marks in self.marks.items() if var not in self.views}
        place = {}
        if self.by_place:
            for var, strides in self.strides.items():
                zero = Builder.intp(0)
                _, at, size = self.marks.get(var, (zero, zero, zero))
                place[var] = Place(at, size, strides)
        return Identity(ids, self.dims, self.leaf_ids, place)


def _refusal(fn: ir.Function, array: ir.Operand, loc: Loc) -> UnsupportedError:
    return UnsupportedError(
        f"{view_in_words(fn, array, loc)}, and control flow decides which array the result is",
        loc,
        "Copy it first (x = x[1:].copy()), or take the view after the loop or branch.",
    )


def _choices(
    fn: ir.Function,
) -> Iterator[tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...], Loc]]:
    """(results, what they can be) for each array that a loop carries, a branch yields, or a list holds."""
    found: dict[object, list[ir.Operand]] = {}
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.Deref):
            found.setdefault(kind_of(stmt), []).append(stmt.outs[0])
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.ListArrays) and stmt.kind in found:
            yield tuple(found[stmt.kind]), (), stmt.loc
        if isinstance(stmt, ir.Refer) and kind_of(stmt) in found:
            yield tuple(found[kind_of(stmt)]), (stmt.array,), stmt.loc
    yield from array_choices(fn)


def _all_vars(fn: ir.Function) -> Iterator[ir.Var]:
    yield from fn.params
    for stmt in walk(fn.body):
        yield from walk_outs(stmt)
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
        work.size_up(fn.params)
        for stmt in fn.body.stmts:
            work.stmt(stmt)
    body = ir.Block(tuple(stmts), fn.body.yields)
    for leaf in fn.leaves:
        if leaf.exit in work.needed and isinstance(leaf.exit, ir.Var) and is_array(leaf.exit):
            work.of(leaf.exit, fn.loc)  # refuses a field rebound to a view
    return replace(fn, body=body), work.facts()
