"""Shadows of arrays: what they are called, where they come from, and how an element is read and added to.

    v = x[2:]             d_v = d_x[2:]                                     the same view of the shadow
    a = np.empty(n)       d_a = zero_array((n, ), np.float64)               of an array that f makes
    a, b = b, a           table_set(shadows_float64_1d, 0, d_x)             where control flow chooses:
                          d_a = table_get(shadows_float64_1d, id_a, (n, ))  by the array's identity
    row = x[i]            table_set(roots, 0, root_of(base + 16, d_x))      where it chooses views: by the
                          d_row = shadow_c(roots, 0, at_row, 0, (n, ), np.float64)   place in their root

`d_a` is the name for an array a, and `d_v` for the cotangent of a scalar v.
"""

from __future__ import annotations

from numba import types

from splitad.analysis.memory import changed_lists, is_array
from splitad.analysis.scopes import Scope
from splitad.codegen.python import (
    access,
    at_call,
    dtype_name,
    index_text,
    new_array,
    operand,
    store_text,
    view_text,
)
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.rules.spelling import unique_number
from splitad.runtime.boundary import notes_overlap
from splitad.runtime.noted import part_of
from splitad.runtime.shadow_roots import (
    move,
    new_root,
    root_of,
    shadow_a,
    shadow_c,
    shadow_f,
    shadow_packed,
)
from splitad.runtime.shadow_table import (
    as_contiguous,
    shadow_table,
    table_drop,
    table_get,
    table_set,
)
from splitad.tape.ops import add_at, load_at
from splitad.transform import joined
from splitad.transform.facts import Facts, activity_of

_DEFINING = (ir.Alloc, ir.ListItems, ir.ArrayCall, ir.Deref, ir.If, ir.For, ir.While)


def shadow_name(value: ir.Operand) -> str:
    """The variable with a scalar's cotangent or an array's shadow; a constant has none."""
    assert isinstance(value, ir.Var)
    return "d_" + value.name


class Shadows:
    """The shadows of one function's arrays. tables: by name, an array type whose layout holds all in it."""

    def __init__(self, facts: Facts, w: Writer) -> None:
        self.facts, self.w = facts, w
        self.fn, self.active, self.shadowed = facts.fn, facts.active, facts.needs.shadowed
        self.by_place = bool(facts.identity.place)
        # whether some array field of a struct holds another array at exit than at entry
        self.rebound = any(
            is_array(leaf.var) and leaf.exit != leaf.var and self.active(leaf.var)
            for leaf in self.fn.leaves
        )
        self.tables = {} if self.by_place else self._tables()

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
        together = joined.enter(self.facts, self.w, self.path, shadow_name)
        for leaf in arrays:
            if leaf in together:
                continue
            if not self.is_duplicated(leaf):
                if leaf.var in self.shadowed:
                    self._zeros(leaf.var)
            elif not self._in_rebound(leaf) and self.path(leaf.path) != shadow_name(leaf.var):
                self.w.line(f"{shadow_name(leaf.var)} = {self.path(leaf.path)}")
        if self.by_place:
            self._make_roots()
        for table in self.tables:
            self._make_table(table)
        # a shadow struct holds the shadows of what its fields hold at exit
        fields = [leaf for leaf in arrays if self._in_rebound(leaf)]
        for leaf in fields:
            if self.is_duplicated(leaf):
                table, identity = table_name(leaf.var), self._id_of(leaf.exit)
                self.w.line(f"table_set({table}, {identity}, {self.path(leaf.path)})")
        for leaf in sorted(fields, key=lambda leaf: leaf.exit != leaf.var):
            self._part_of_others(leaf, fields)
            self._from_table(leaf.var)
        # what a field holds at exit has the shadow that the caller gave there, also if it is a Const argument
        for leaf in arrays if self.rebound else ():
            const = leaf.var in self.shadowed and not self.is_duplicated(leaf)
            if const and leaf not in fields and table_name(leaf.var) in self.tables:
                self._from_table(leaf.var)

    def _part_of_others(self, leaf: ir.Leaf, fields: list[ir.Leaf]) -> None:
        """The array that a field held at entry is lost at exit, but it was a part of another argument: its
        shadow is that part of the other one's."""
        w, entry, notes = self.w, self.facts.layout.entry, self.facts.layout.notes
        if leaf.var not in entry or not self.is_duplicated(leaf):
            return
        number = self._id_of(leaf.var)
        exits = {self._id_of(field.exit) for field in fields if self.is_duplicated(field)}
        if number in exits:
            return
        # where it is some field's array at exit, that field's shadow is its own
        lost = [f"{text} != {number}" for text in sorted(exits) if not text.isdigit()]
        for other in self.fn.leaves:
            if not (self._has_shadow(other) and self.is_duplicated(other)) or other is leaf:
                continue
            held, shadow = list(lost), shadow_name(other.var)
            if other.var in entry and self.fn.leaves.index(other) > self.fn.leaves.index(leaf):
                # its shadow has no name yet, and is the caller's only where a field holds it at exit
                its = self._id_of(other.var)
                chosen = [f"{text} == {its}" for text in sorted(exits) if not text.isdigit()]
                if its not in exits:
                    if not chosen:
                        continue
                    held.append(f"({' or '.join(chosen)})")
                shadow = f"table_get({table_name(other.var)}, {its}, {self._dims(other.var)})"
            whole, part = (
                f"base + {entry.get(other.var, notes[other.var])}",
                f"base + {entry[leaf.var]}",
            )
            maker = part_of(leaf.var.type)
            name = w.use(f"part_of_{unique_number(maker)}", maker)
            w.use("notes_overlap", notes_overlap)
            with w.indented(f"if {' and '.join([*held, f'notes_overlap({whole}, {part})'])}:"):
                made = f"{name}({shadow}, {whole}, {part})"
                w.line(f"table_set({table_name(leaf.var)}, {number}, {made})")

    def _in_rebound(self, leaf: ir.Leaf) -> bool:
        """Whether the array is a struct's, and the function rebinds such fields."""
        return self.rebound and any(isinstance(step, str) for step in leaf.path)

    def _tables(self) -> dict[str, types.Array]:
        """The tables that are needed, each with the type that holds all that goes into it."""
        identity = self.facts.identity
        found: dict[str, types.Array] = {}
        for array in self.shadowed:
            if array in identity.id or (array in identity.leaf_ids and array in identity.dims):
                _widen(found, array)
        for each in changed_lists(self.fn):
            assert each.kind is not None
            if self.facts.activities[each.position] == "duplicated":
                _widen(found, ir.Var("", each.kind))
        for leaf in self.fn.leaves:
            if self._has_shadow(leaf) and table_name(leaf.var) in found:
                _widen(found, leaf.var)
        return found

    def _has_shadow(self, leaf: ir.Leaf) -> bool:
        if not (is_array(leaf.var) and self.active(leaf.var)):
            return False
        return self.is_duplicated(leaf) or leaf.var in self.shadowed

    def _make_table(self, table: str) -> None:
        """A table, with the shadows of arrays in the arguments that belong there."""
        arrays = self.tables[table]
        layout = arrays.layout if arrays.aligned else "U"
        self._new_table(table, arrays.dtype, arrays.ndim, layout)
        self.w.use("table_get", table_get)
        for k, leaf in enumerate(self.fn.leaves):
            known = self._has_shadow(leaf) and not self._in_rebound(leaf)
            if known and table == table_name(leaf.var):
                self.w.line(f"table_set({table}, {k}, {shadow_name(leaf.var)})")

    def _new_table(self, name: str, dtype: types.Type, ndim: int, layout: str) -> None:
        self.w.use("shadow_table", shadow_table)
        self.w.use("table_set", table_set)
        self.w.line(f'{name} = shadow_table({dtype_name(self.w, dtype)}, {ndim}, "{layout}")')

    def _make_roots(self) -> None:
        """The memory of the shadows of arguments, for those in which control flow chooses views."""
        place, w = self.facts.identity.place, self.w
        start = "base + rec_root" if self.facts.inner else "base"
        self._new_table("roots", types.uint8, 1, "C")
        for k, leaf in enumerate(self.fn.leaves):
            if leaf.var not in place:
                continue
            note = f"{start} + {self.facts.layout.notes[leaf.var]}"
            if self._is_placed(leaf):
                w.use("root_of", root_of)
                w.line(f"{_given(leaf)} = {self.path(leaf.path)}")
                root = f"root_of({note}, {_given(leaf)})"
            else:
                w.use("new_root", new_root)
                root = f"new_root({note})"
            w.line(f"table_set(roots, {k}, {root})")
        for leaf in self.fn.leaves:
            if leaf.var in place and self.active(leaf.var):
                self._from_table(leaf.var)
            if self._is_placed(leaf):
                w.use("move", move)
                w.line(f"move({shadow_name(leaf.var)}, {_given(leaf)})")

    def put_back(self) -> None:
        """Into shadows of the caller's that are laid out otherwise than their arguments."""
        joined.leave(self.facts, self.w, self.path, shadow_name)
        for leaf in self.fn.leaves:
            if self._is_placed(leaf):
                self.w.line(f"move({_given(leaf)}, {shadow_name(leaf.var)})")

    def _is_placed(self, leaf: ir.Leaf) -> bool:
        """Whether the shadow is the caller's and control flow chooses views of it."""
        known = leaf.var in self.facts.identity.place and self.active(leaf.var)
        return known and self.is_duplicated(leaf)

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
            elif isinstance(stmt, _DEFINING):
                outs = (stmt.out,) if isinstance(stmt, (ir.Alloc, ir.ListItems)) else stmt.outs
                for out in outs:
                    if out in self.shadowed and is_array(out):
                        if out in self.facts.identity.id:
                            self._from_table(out)
                        else:
                            self._zeros(out)

    def drop(self, alloc: ir.Alloc) -> None:
        """Before the array was made, the shadow in a table is another one's."""
        if alloc.out in self.facts.identity.id and alloc.out in self.shadowed:
            table = "roots" if self.by_place else table_name(alloc.out)
            self.w.use("table_drop", table_drop)
            self.w.line(f"table_drop({table}, {self._id_of(alloc.out)})")

    def _zeros(self, array: ir.Var) -> None:
        made = new_array(self.w, "zeros", self._dims(array), array.type.dtype)
        self.w.line(f"{shadow_name(array)} = {made}")

    def _from_table(self, array: ir.Var) -> None:
        identity, dims = self._id_of(array), self._dims(array)
        if self.by_place:
            self.w.line(f"{shadow_name(array)} = {self._placed(array, identity, dims)}")
            return
        table = table_name(array)
        self.w.line(f"{shadow_name(array)} = table_get({table}, {identity}, {dims})")

    def _placed(self, array: ir.Var, identity: str, dims: str) -> str:
        w, place = self.w, self.facts.identity.place[array]
        layout = array.type.layout if array.type.ndim else "C"
        maker = _MAKERS[layout] if array.type.aligned else shadow_packed
        name, dtype = w.use(maker.__name__, maker), dtype_name(w, array.type.dtype)
        at, size = operand(w, place.at), operand(w, place.size)
        if maker in (shadow_a, shadow_packed):
            dims += f", ({''.join(operand(w, s) + ', ' for s in place.strides)})"
        return f"{name}(roots, {identity}, {at}, {size}, {dims}, {dtype})"

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


_MAKERS = {"C": shadow_c, "F": shadow_f, "A": shadow_a}


def _given(leaf: ir.Leaf) -> str:
    """The caller's shadow."""
    return "given_" + leaf.var.name


# ---- tables --------------------------------------------------------------------------------------------


def table_name(array: ir.Var) -> str:
    """Shadows are kept in one table per dtype and number of dimensions."""
    return f"shadows_{str(array.type.dtype).split('(')[0]}_{array.type.ndim}d"


def _widen(tables: dict[str, types.Array], array: ir.Var) -> None:
    name, type = table_name(array), array.type
    held = tables.get(name, type)
    layout = held.layout if held.layout == type.layout == "C" or type.ndim == 0 else "A"
    aligned = held.aligned and type.aligned
    tables[name] = types.Array(type.dtype, type.ndim, layout, aligned=aligned)


# ---- elements ------------------------------------------------------------------------------------------


def add_element(w: Writer, stmt: ir.Load, text: str, atomic: bool = False) -> None:
    """Add to the shadow's element where the statement loads.  atomic: other threads may do so too."""
    shadow, index = shadow_name(stmt.array), index_text(w, stmt.index)
    if atomic:
        w.line(f"cuda.atomic.add({shadow}, {access(index, len(stmt.index))}, {text})")
    elif stmt.wraps:
        w.line(f"{shadow}[{index}] += {text}")
    else:
        w.line(at_call(w, add_at, shadow, access(index, len(stmt.index)), text))


def read_element(w: Writer, stmt: ir.Store) -> str:
    """The shadow's element where the statement stores."""
    shadow, index = shadow_name(stmt.array), index_text(w, stmt.index)
    if stmt.wraps:
        return f"{shadow}[{index}]"
    return at_call(w, load_at, shadow, access(index, len(stmt.index)))


def write_element(w: Writer, stmt: ir.Store, array: str, text: str) -> None:
    """Store into another array where the statement stores into its own."""
    w.line(store_text(w, stmt, array, text, unchecked=True))
