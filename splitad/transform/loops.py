"""How a `for` is written in both passes: its trip count and the columns of its record."""

from __future__ import annotations

from dataclasses import dataclass

from splitad.analysis.offsets import unit_loop
from splitad.codegen.python import operand, type_name
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.rules.ops import trip_count
from splitad.tape.layout import Column, Record
from splitad.tape.ops import column
from splitad.transform.facts import zero_based


@dataclass(frozen=True)
class LoopText:
    """The names that one loop uses.

    trips: the variable with the trip count.  record: the one with the offset of its record.
    index: what numbers iterations in a column: the counter itself where it rises by one.
    """

    loop: ir.For
    counter: str
    trips: str
    record: str
    index: str

    @staticmethod
    def of(loop: ir.For) -> LoopText:
        counter = identifier(loop.counter.name)
        index = counter if unit_loop(loop) else f"iter_{counter}"
        return LoopText(loop, counter, f"trips_{counter}", f"rec_{counter}", index)

    def write_trips(self, w: Writer) -> None:
        """The trip count; never negative."""
        stop = operand(w, self.loop.stop)
        start, step = operand(w, self.loop.start), operand(w, self.loop.step)
        if unit_loop(self.loop):
            w.use("trip_count", trip_count)
            difference = stop if zero_based(self.loop) else f"{stop} - {start}"
            w.line(f"{self.trips} = trip_count({difference})")
        else:
            w.line(f"{self.trips} = len(range({start}, {stop}, {step}))")

    def range(self, w: Writer) -> str:
        """The header's range in forward order, over `index`."""
        if not unit_loop(self.loop):
            return f"range({self.trips})"
        start, stop = operand(w, self.loop.start), operand(w, self.loop.stop)
        return f"range({stop})" if zero_based(self.loop) else f"range({start}, {stop})"

    def reversed_range(self, w: Writer) -> str:
        if not unit_loop(self.loop) or zero_based(self.loop):
            return f"range({self.trips} - 1, -1, -1)"
        start = operand(w, self.loop.start)
        return f"range({start} + {self.trips} - 1, {start} - 1, -1)"

    def write_counter(self, w: Writer) -> None:
        """The counter from the iteration's number, where they differ."""
        if not unit_loop(self.loop):
            start, step = operand(w, self.loop.start), operand(w, self.loop.step)
            w.line(f"{self.counter} = {start} + {self.index} * {step}")

    def nbytes(self, record: Record) -> str:
        """The bytes of all iterations, a multiple of 8."""
        if record.size % 8 == 0:
            return f"{record.size} * {self.trips}"
        return f"(({record.size} * {self.trips} + 7) & -8)"

    def column(self, w: Writer, c: Column) -> str:
        """An expression for a column, to be indexed by `index`."""
        w.use("column", column)
        return f"column(base, {self.offset(w, c)}, {type_name(w, c.var.type)})"

    def offset(self, w: Writer, c: Column) -> str:
        """Where a column starts on the tape."""
        offset = self.record
        if c.offset:
            offset += f" + {c.offset} * {self.trips}"
        if unit_loop(self.loop) and not zero_based(self.loop):
            offset += f" - {c.size} * {operand(w, self.loop.start)}"
        return offset
