"""Where on the tape each saved value goes.

Every loop that the reverse pass runs backwards has a record: the values taped in its body and in the
branches there.  In a `for`, whose trip count n is known on entry, the record is reserved for all
iterations at once, one column after the other, so that value c of iteration k lies at
`record + c.offset * n + k * c.size`.  In a `while` one record follows the other.  The function's own
record, with the values of its outermost block, stands at the start of the tape.

Columns are sorted by falling size, so that each is aligned by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from splitad.analysis.activity import Activity
from splitad.analysis.reverse import Replay, has_reverse
from splitad.analysis.save_plan import Plan, size_of
from splitad.analysis.scopes import Scope, Scopes
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction
from splitad.ir.walk import blocks

WORD = 8


@dataclass(frozen=True)
class Column:
    """A taped value: its bytes, and the bytes of an iteration's record before it."""

    var: ir.Var
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class Record:
    """The taped values of one loop body, or of the function.

    size: bytes of one iteration.  pushes: whether its statements put anything else on the tape.
    """

    columns: tuple[Column, ...]
    size: int
    pushes: bool

    def column(self, var: ir.Var) -> Column:
        return next(c for c in self.columns if c.var == var)


@dataclass(frozen=True, eq=False)
class Layout:
    """record: by the scope that owns it.  notes: offset of what is noted of each argument's array.
    lists: offset of the two words that are noted of each list argument.  entry: offset of a second note of an
    array, as it is at entry."""

    record: dict[Scope, Record]
    header: int  # bytes at the start of the tape: the function's record, then the notes
    notes: dict[ir.Var, int]
    lists: tuple[int, ...] = ()
    entry: dict[ir.Var, int] = field(default_factory=dict)

    def of(self, var: ir.Var, where: Scopes) -> tuple[Record, Column] | None:
        """The place of a value, if it is taped."""
        record = self.record[where.of[var].record]
        found = [c for c in record.columns if c.var == var]
        return (record, found[0]) if found else None


def layout(
    where: Scopes,
    plan: Plan,
    active: Activity,
    noted: tuple[ir.Var, ...],
    lists: int = 0,
    entered: tuple[ir.Var, ...] = (),
    replays: tuple[Replay, ...] = (),
) -> Layout:
    """noted: arrays whose address, shape and strides are kept for the checks of shadows.
    lists: how many list arguments there are.  entered: those of the noted with a note of the entry too.
    replays: loops of whose iterations only the start is on the tape."""
    again = {each.body: bool(each.state) for each in replays}
    values: dict[Scope, list[ir.Var]] = {s: [] for s in where.all if s.record is s}
    for scope, taped in plan.taped.items():
        values[scope.record].extend(taped)
    records: dict[Scope, Record] = {}
    for scope in reversed(where.all):  # inner records first
        if scope.record is not scope:
            continue
        columns, offset = [], 0
        for var in sorted(values[scope], key=lambda v: -size_of(v.type)):
            size = size_of(var.type)
            columns.append(Column(var, offset, size))
            offset += size
        if not isinstance(scope.owner, ir.For):
            offset = -(-offset // WORD) * WORD
        pushes = again.get(scope)
        if pushes is None:
            pushes = _pushes(scope.block, where, plan, active, records)
        records[scope] = Record(tuple(columns), offset, pushes)
    end = records[where.root].size
    notes: dict[ir.Var, int] = {}
    entry: dict[ir.Var, int] = {}
    for found, arrays in ((notes, noted), (entry, entered)):
        for var in arrays:
            found[var] = end
            end += (3 + 2 * var.type.ndim) * WORD
    places = tuple(end + 2 * WORD * k for k in range(lists))
    return Layout(records, end + 2 * WORD * lists, notes, places, entry)


def _pushes(
    block: ir.Block, where: Scopes, plan: Plan, active: Activity, done: dict[Scope, Record]
) -> bool:
    for stmt in block.stmts:
        if any(not copy.by_reference for copy in plan.behind(stmt)):
            return True
        if not has_reverse(stmt, active):
            continue
        if isinstance(stmt, ir.While):
            return True
        if isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, RecursiveFunction):
            return True
        if isinstance(stmt, ir.For):
            record = done[where.at(stmt.body)]
            if record.size or record.pushes:
                return True
        elif any(_pushes(b, where, plan, active, done) for b in blocks(stmt)):
            return True
    return False
