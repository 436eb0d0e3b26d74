"""Shadows of arrays: what they are called, where they come from, and how an element is read and added to.

    v = x[2:]             d_v = d_x[2:]                                     the same view of the shadow
    a = np.empty(n)       d_a = np.zeros((n, ), dtype=np.float64)           of an array that f makes
    a, b = b, a           shadows_float64_1d = [d_x, d_y]                   where control flow chooses:
                          d_a = table_get(shadows_float64_1d, id_a, (n, ))  by the array's identity

`d_a` is the name for an array a, and `d_v` for the cotangent of a scalar v.
"""

from __future__ import annotations

import numpy as np
from numba import types

from splitad.analysis.memory import is_array
from splitad.analysis.scopes import Scope
from splitad.codegen.python import access, dtype_name, index_text, operand, view_text, zero
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.runtime.shadow_table import as_contiguous, table_drop, table_get, table_set
from splitad.tape.ops import add_at, load_at, store_at
from splitad.transform.facts import Facts, activity_of


def shadow_name(value: ir.Operand) -> str:
    """The variable with a scalar's cotangent or an array's shadow; a constant has none."""
    assert isinstance(value, ir.Var)
    return "d_" + value.name


class Shadows:
    """The shadows of one function's arrays. tables: by name, an array type whose layout holds all in it."""

    def __init__(self, facts: Facts, w: Writer) -> None:
        self.facts, self.w = facts, w
        self.fn, self.active, self.shadowed = facts.fn, facts.active, facts.needs.shadowed
        self.tables = _tables(facts)
        # whether some array field of a struct holds another array at exit than at entry
        self.rebound = any(
            is_array(leaf.var) and leaf.exit != leaf.var and self.active(leaf.var)
            for leaf in self.fn.leaves
        )

    # ---- of the arguments -------------------------------------------------------------------------

    def path(self, path: tuple[int | str, ...]) -> str:
        """A part of an argument's shadow."""
        first, *steps = path
        assert isinstance(first, int)
        text = shadow_name(self.fn.params[first])
        for step in steps:
            text += f"[{step}]" if isinstance(step, int) else f".{step}"
        return text

    def is_duplicated(self, leaf: ir.Leaf) -> bool:
        return activity_of(self.facts, leaf) == "duplicated"

    def of_arguments(self) -> None:
        """Name the shadow of each array in the arguments; make the tables."""
        arrays = [leaf for leaf in self.fn.leaves if is_array(leaf.var) and self.active(leaf.var)]
        for leaf in arrays:
            if not self.is_duplicated(leaf):
                if leaf.var in self.shadowed:
                    self._zeros(leaf.var)
            elif not self._in_rebound(leaf) and self.path(leaf.path) != shadow_name(leaf.var):
                self.w.line(f"{shadow_name(leaf.var)} = {self.path(leaf.path)}")
        for table, example in self.tables.items():
            self._make_table(table, example)
        # a shadow struct holds the shadows of what its fields hold at exit
        fields = [leaf for leaf in arrays if self._in_rebound(leaf)]
        for leaf in fields:
            if self.is_duplicated(leaf):
                table, identity = table_name(leaf.var), self._id_of(leaf.exit)
                self.w.line(f"table_set({table}, {identity}, {self.path(leaf.path)})")
        for leaf in fields:
            self._from_table(leaf.var)

    def _in_rebound(self, leaf: ir.Leaf) -> bool:
        """Whether the array is a struct's, and the function rebinds such fields."""
        return self.rebound and any(isinstance(step, str) for step in leaf.path)

    def _make_table(self, table: str, example: types.Array) -> None:
        """A list with an entry for each array in the arguments: the shadow, where it belongs there."""
        self.w.use("table_get", table_get)
        self.w.use("table_set", table_set)
        entries = []
        for leaf in self.fn.leaves:
            belongs = (
                is_array(leaf.var)
                and table == table_name(leaf.var)
                and self.active(leaf.var)
                and not self._in_rebound(leaf)
                and (self.is_duplicated(leaf) or leaf.var in self.shadowed)
            )
            entries.append(shadow_name(leaf.var) if belongs else _placeholder(self.w, example))
        entries = entries or [_placeholder(self.w, example)]
        self.w.line(f"{table} = [{', '.join(entries)}]")

    def at_entry(self, leaf: ir.Leaf) -> str:
        """The shadow of the array that a struct's field holds at entry, as the field can hold it."""
        if not (self.rebound and self.active(leaf.var)):
            return self.path(leaf.path)
        table = self.tables.get(table_name(leaf.var))
        if leaf.var.type.layout == "C" and table is not None and table.layout != "C":
            self.w.use("as_contiguous", as_contiguous)
            return f"as_contiguous({shadow_name(leaf.var)})"
        return shadow_name(leaf.var)

    # ---- of arrays inside the function ------------------------------------------------------------

    def bind(self, scope: Scope) -> None:
        """Shadows of the arrays that this block defines, bases before their views."""
        if isinstance(scope.owner, (ir.For, ir.While)):
            for param in scope.owner.params:
                if param in self.shadowed:
                    self._from_table(param)
        for stmt in scope.block.stmts:
            if isinstance(stmt, ir.View):
                if stmt.out in self.shadowed:
                    text = view_text(self.w, stmt, shadow_name(stmt.base))
                    self.w.line(f"{shadow_name(stmt.out)} = {text}")
            elif isinstance(stmt, (ir.Alloc, ir.ArrayCall, ir.If, ir.For, ir.While)):
                outs = (stmt.out,) if isinstance(stmt, ir.Alloc) else stmt.outs
                for out in outs:
                    if out in self.shadowed and is_array(out):
                        if out in self.facts.identity.id:
                            self._from_table(out)
                        else:
                            self._zeros(out)

    def drop(self, alloc: ir.Alloc) -> None:
        """Before the array was made, the shadow in a table is another one's."""
        if alloc.out in self.facts.identity.id and alloc.out in self.shadowed:
            self.w.use("table_drop", table_drop)
            self.w.line(f"table_drop({table_name(alloc.out)}, {self._id_of(alloc.out)})")

    def _zeros(self, array: ir.Var) -> None:
        self.w.use("np", np)
        dims, dtype = self._dims(array), dtype_name(self.w, array.type.dtype)
        self.w.line(f"{shadow_name(array)} = np.zeros({dims}, dtype={dtype})")

    def _from_table(self, array: ir.Var) -> None:
        table, identity, dims = table_name(array), self._id_of(array), self._dims(array)
        self.w.line(f"{shadow_name(array)} = table_get({table}, {identity}, {dims})")

    def _id_of(self, array: ir.Operand) -> str:
        assert isinstance(array, ir.Var)
        identity = self.facts.identity
        if array in identity.leaf_ids:
            return str(identity.leaf_ids[array])
        return operand(self.w, identity.id[array])

    def _dims(self, array: ir.Var) -> str:
        made = self.facts.where.definition.get(array)
        shape = made.shape if isinstance(made, ir.Alloc) else self.facts.identity.dims[array]
        return f"({''.join(operand(self.w, n) + ', ' for n in shape)})"


# ---- tables --------------------------------------------------------------------------------------------


def table_name(array: ir.Var) -> str:
    """Shadows are kept in one table per dtype and number of dimensions."""
    return f"shadows_{str(array.type.dtype).split('(')[0]}_{array.type.ndim}d"


def _tables(facts: Facts) -> dict[str, types.Array]:
    identity, found = facts.identity, {}
    for array in facts.needs.shadowed:
        if array in identity.id or (array in identity.leaf_ids and array in identity.dims):
            name = table_name(array)
            if array.type.layout != "C" or name not in found:
                found[name] = array.type
    return found


def _placeholder(w: Writer, example: types.Array) -> str:
    """An empty array for a table's list, of the layout that holds all of its arrays."""
    text = zero(w, types.Array(example.dtype, example.ndim, "C"))
    # a slice with a step is of any layout for Numba
    return text if example.layout == "C" or example.ndim == 0 else f"{text}[::1]"


# ---- elements ------------------------------------------------------------------------------------------


def add_element(w: Writer, stmt: ir.Load, text: str) -> None:
    """Add to the shadow's element where the statement loads."""
    shadow, index = shadow_name(stmt.array), index_text(w, stmt.index)
    if stmt.wraps:
        w.line(f"{shadow}[{index}] += {text}")
    else:
        w.use("add_at", add_at)
        w.line(f"add_at({shadow}, {access(index, len(stmt.index))}, {text})")


def read_element(w: Writer, stmt: ir.Store) -> str:
    """The shadow's element where the statement stores."""
    shadow, index = shadow_name(stmt.array), index_text(w, stmt.index)
    if stmt.wraps:
        return f"{shadow}[{index}]"
    w.use("load_at", load_at)
    return f"load_at({shadow}, {access(index, len(stmt.index))})"


def write_element(w: Writer, stmt: ir.Store, array: str, text: str) -> None:
    """Store into another array where the statement stores into its own."""
    index = index_text(w, stmt.index)
    if stmt.wraps:
        w.line(f"{array}[{index}] = {text}")
    else:
        w.use("store_at", store_at)
        w.line(f"store_at({array}, {access(index, len(stmt.index))}, {text})")
