"""What the pullback reads from the tape, which it runs through from its end to its start.

    saved_a = last_array(base, cur, np.float64, 1)       a copied array: it lies at the end, before `cur`
    cur -= snapshot_nbytes(saved_a)
    cur -= 8 * trips_i; rec_i = cur                      the record of a loop's taped values
    tape_t = column(base, rec_i, float64)
    for i in range(trips_i - 1, -1, -1):
        t = tape_t[i]                                    a taped value
        x_i = saved_a[i]; s = t * t                      what is computed again

Mirrors what transform/augment.py writes.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import types

from splitad.analysis.ring_ends import Inner
from splitad.analysis.save_plan import Copy
from splitad.analysis.scopes import Scope
from splitad.codegen.python import dtype_name, load_text, statement, type_name
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.tape.arrays import copy_array, last_array, snapshot_nbytes
from splitad.tape.layout import Column, Record
from splitad.tape.ops import column
from splitad.transform.facts import Facts
from splitad.transform.loops import LoopText
from splitad.transform.shadows import write_element


class Restored:
    """The tape as one pullback reads it. slot: how a taped value of each open record is read."""

    def __init__(self, facts: Facts, w: Writer) -> None:
        self.facts, self.w = facts, w
        self.plan, self.record = facts.plan, facts.layout.record
        self.slot: dict[Scope, Callable[[Column], str]] = {}
        self.inner: Inner | None = None  # known in the loop being reversed; analysis/ring_ends.py

    def values(self, scope: Scope) -> None:
        """The values that adjoints in this block and inside it read."""
        for var in self.plan.taped.get(scope, ()):
            if self.is_known(var):
                continue
            place = self.record[scope.record].column(var)
            self.w.line(f"{identifier(var.name)} = {self.slot[scope.record](place)}")
        for stmt in self.plan.recomputed.get(scope, ()):
            if isinstance(stmt, ir.Load) and self.inner is not None:
                stmt = self.inner.instead(stmt)
            elif self.is_known(stmt.out):  # type: ignore[union-attr]
                continue
            self.again(stmt)

    def again(self, stmt: ir.Stmt) -> None:
        """What is computed again."""
        if isinstance(stmt, ir.Load) and isinstance(stmt.array, ir.Var):
            copy = self.plan.source[stmt.out]
            array = undo_name(copy.array) if copy.undo else copy_name(copy)
            text = load_text(self.w, stmt, array, unchecked=True)
            self.w.line(f"{identifier(stmt.out.name)} = {text}")
        else:
            statement(self.w, stmt, unchecked=True)

    def is_known(self, var: ir.Var) -> bool:
        """Whether the inner iterations of a loop know a value, which is then written if anything reads it."""
        inner = self.inner
        if inner is None or (var not in inner.counted and var not in inner.truth):
            return False
        if var in inner.read and var in inner.counted:
            statement(self.w, inner.counted[var], unchecked=True)
        elif var in inner.read:
            self.w.line(f"{identifier(var.name)} = {inner.truth[var]}")
        return True

    # ---- arrays -----------------------------------------------------------------------------------

    def references(self) -> None:
        """Name the arrays that were kept, not copied."""
        for k, copy in enumerate(c for c in self.plan.copies if c.by_reference):
            self.w.line(f"{copy_name(copy)} = refs[0][{k}]")

    def pop(self, stmt: ir.Stmt | None) -> None:
        """Find the arrays that were copied behind a statement, at the end of the tape."""
        for copy in reversed(self.plan.behind(stmt)):
            if not copy.by_reference:
                self.last(copy.array, copy_name(copy))

    def last(self, array: ir.Var, name: str) -> None:
        """Name the copy of an array that is at the end of the tape."""
        w, type = self.w, array.type
        w.use("last_array", last_array)
        w.use("snapshot_nbytes", snapshot_nbytes)
        w.line(f"{name} = last_array(base, cur, {dtype_name(w, type.dtype)}, {type.ndim})")
        w.line(f"cur -= snapshot_nbytes({name})")

    def contents(self, call: ir.ArrayCall | ir.For, array: ir.Var) -> str:
        """What an array held when the call read it."""
        return copy_name(self.plan.source[(id(call), array)])

    def start_undo(self) -> None:
        """Private copies of arrays that are taken back store by store; the tape itself is never written."""
        for copy in self.plan.behind(None):
            if copy.undo:
                made = f"{copy_name(copy)}.copy()"
                if not copy.by_reference or copy.array.type.layout == "C":
                    made = f"{self.w.use('copy_array', copy_array)}({copy_name(copy)})"
                self.w.line(f"{undo_name(copy.array)} = {made}")

    def is_undone(self, stmt: ir.Stmt) -> bool:
        """Whether the store is taken back in such a copy."""
        return id(stmt) in self.facts.old and any(
            copy.undo and isinstance(stmt, ir.Store) and copy.array == stmt.array
            for copy in self.plan.copies
        )

    def undo(self, stmt: ir.Store) -> None:
        if self.is_undone(stmt):
            old = identifier(self.facts.old[id(stmt)].name)
            write_element(self.w, stmt, undo_name(stmt.array), old)

    # ---- records ----------------------------------------------------------------------------------

    def enter_function(self, root: Scope) -> None:
        start = "rec_root + " if self.facts.inner else ""
        self.slot[root] = lambda c: f"{self._column(f'{start}{c.offset}', c)}[0]"

    def find_record(self) -> None:
        """Where a recursive function's record starts, which the tape says last."""
        self.pop_word("rec_root")

    def find_iterations(self, text: LoopText, record: Record) -> None:
        """Where the record of all iterations starts."""
        if record.pushes:
            self.pop_word(text.record)
        else:
            self.w.line(f"cur -= {text.nbytes(record)}")
            self.w.line(f"{text.record} = cur")

    def enter_for(self, text: LoopText, body: Scope) -> None:
        """The record of all iterations, one column for each value."""
        w, record = self.w, self.record[body]
        if not record.size:
            return
        self.find_iterations(text, record)
        if record.pushes:
            self.slot[body] = lambda c: f"{text.column(w, c)}[{text.index}]"
            return
        for c in record.columns:
            w.line(f"tape_{identifier(c.var.name)} = {text.column(w, c)}")
        self.slot[body] = lambda c: f"tape_{identifier(c.var.name)}[{text.index}]"

    def enter_iteration(self, name: str, body: Scope) -> None:
        """The record of one iteration of a `while`; name: the variable with its offset."""
        record = self.record[body]
        self.slot[body] = lambda c: (
            f"{self._column(name + (f' + {c.offset}' if c.offset else ''), c)}[0]"
        )
        if record.size and record.pushes:
            self.pop_word(name)
        elif record.size:
            self.w.line(f"cur -= {record.size}")
            self.w.line(f"{name} = cur")

    def leave(self, name: str, body: Scope) -> None:
        """Where its statements put something behind the record, the record is at the end only now."""
        if self.record[body].size and self.record[body].pushes:
            self.w.line(f"cur = {name}")

    def pop_word(self, name: str) -> None:
        self.w.line("cur -= 8")
        self.w.use("int64", types.int64)
        self.w.line(f"{name} = column(base, cur, int64)[0]")

    def _column(self, offset: str, c: Column) -> str:
        self.w.use("column", column)
        return f"column(base, {offset}, {type_name(self.w, c.var.type)})"


def copy_name(copy: Copy) -> str:
    """Kept and copied arrays may have different layouts, hence different names."""
    return ("kept_" if copy.by_reference else "saved_") + copy.array.name


def undo_name(array: ir.Var) -> str:
    return "undo_" + array.name
