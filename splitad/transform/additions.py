"""Additions to shadows, at once or put off as analysis/adjoint_loops.py plans it.

    d_u[i] += d_v                  at once
    added_v += d_v                 gathered: d_u[0] += added_v behind the loop
    store_at(buffer_float64, at, d_v)
    store_at(buffer_float64, at + 528, d_w)
                                   deferred: what lies in the rows of the buffer is added by loops behind

    for i in range(lo_i - 1, hi_i + 1):
        at = i - lo_i + 8
        add_at(d_u, i, load_at(buffer_float64, at + 1) + load_at(buffer_float64, at + 527))

adds row 0 to d_u[i - 1] and row 1 to d_u[i + 1].  `at` is the number of the iteration within the piece of the
loop that a buffer serves, plus the margin: a row has one at both ends, which holds zeros.  A value that is
added to several elements has one row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from numba import types

from splitad.analysis.adjoint_loops import FARTHEST, LoopPlan
from splitad.analysis.threads import Kernel
from splitad.codegen.python import at_call, new_array, statement, zero
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.tape.ops import clear_rows, load_at, store_at
from splitad.transform.clearing import Clearing
from splitad.transform.handing_on import HandingOn
from splitad.transform.operands import plus
from splitad.transform.shadows import add_element, read_element

CHUNK = 512  # iterations kept in a buffer at a time: some rows of it fit into the L1 cache
MARGIN = FARTHEST
ROW = CHUNK + 2 * MARGIN


def buffer_name(dtype: types.Type) -> str:
    return f"buffer_{dtype}"


class Buffers:
    """The buffers of one function. rows: by name, the dtype and how many rows the loops need."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[types.Type, int]] = {}

    def row(self, dtype: types.Type, row: int) -> str:
        """The buffer that has the row."""
        name = buffer_name(dtype)
        self.rows[name] = (dtype, max(self.rows.get(name, (dtype, 0))[1], row + 1))
        return name

    def write(self, w: Writer, mark: int) -> None:
        """Make them, in a place before all loops."""
        for name, (dtype, rows) in self.rows.items():
            w.insert(mark, [f"{name} = {new_array(w, 'zeros', f'({rows * ROW},)', dtype)}"])


class Additions:
    """What one loop adds to shadows. met: the loads whose additions were put off, so far.
    cleared: the arguments whose shadows it clears."""

    def __init__(
        self,
        w: Writer,
        buffers: Buffers,
        plan: LoopPlan,
        kernel: Kernel | None,
        cleared: tuple[ir.Var, ...] = (),
    ) -> None:
        self.clearing = Clearing(w, cleared)
        self.w, self.buffers, self.plan = w, buffers, plan
        self.atomic = kernel.atomic if kernel is not None else frozenset()
        self.handing: HandingOn | None = None  # an element that iterations hand on
        self.met: list[ir.Load] = []
        self.places: dict[tuple[types.Type, str], tuple[str, int]] = {}  # buffer and row, by value
        self.stored: dict[int, tuple[str, int]] = {}  # the same, by load

    def add(self, load: ir.Load, value: str) -> None:
        """The adjoint of a load; value: the cotangent of what it loaded."""
        if self.handing is not None and self.handing.adds(load):
            self.handing.keep(value)
        elif id(load) in self.plan.gathered:
            self.met.append(load)
            self.w.line(f"{_sum_name(load)} += {value}")
        elif id(load) in self.plan.deferred:
            self.met.append(load)
            self.stored[id(load)] = self._keep(load.array.type.dtype, value)
        else:
            self.now(load, value)

    def taken(self, store: ir.Store) -> str:
        """The cotangent that the adjoint of a store takes."""
        if self.handing is not None and self.handing.takes(store):
            return self.handing.next
        return read_element(self.w, store)

    def now(self, load: ir.Load, value: str) -> None:
        add_element(self.w, load, value, atomic=id(load) in self.atomic)

    def start_gathered(self) -> None:
        for load in self.plan.loads:
            if id(load) in self.plan.gathered:
                self.w.line(f"{_sum_name(load)} = {zero(self.w, load.array.type.dtype)}")

    def add_gathered(self, trips: str) -> None:
        """Behind the loop; without an iteration, there need not be such an element."""
        gathered = [load for load in self.met if id(load) in self.plan.gathered]
        if gathered:
            with self.w.indented(f"if {trips} > 0:"):
                for load in gathered:
                    self.now(load, _sum_name(load))

    def _keep(self, dtype: types.Type, value: str) -> tuple[str, int]:
        """Store a cotangent, which does not change any more, into a row of a buffer."""
        place = self.places.get((dtype, value))
        if place is None:
            row = sum(of == dtype for of, _ in self.places)
            place = self.places[dtype, value] = (self.buffers.row(dtype, row), row)
            self.w.line(at_call(self.w, store_at, place[0], _offset(row), value))
        return place

    def add_deferred(self, counter: str) -> None:
        """Behind a piece of the loop, whose counter runs from lo to hi."""
        groups: dict[Hashable, list[ir.Load]] = {}
        for load in self.met:
            if id(load) in self.plan.deferred:
                shift = self.plan.shifts.get(id(load))
                near = shift is not None and abs(shift.by) <= FARTHEST // 2
                key = shift.place if shift is not None and near else id(load)
                groups.setdefault(key, []).append(load)
        self.clearing.piece(counter, self.plan)
        self._clear_margins(counter, groups.values())
        rows: dict[Hashable, list[ir.Load]] = {}
        for loads in groups.values():
            if len(loads) > 1:
                self._gather(counter, loads)
            else:
                rows.setdefault(self._moving(counter, loads[0]), []).append(loads[0])
        for loads in rows.values():
            self._add_rows(counter, loads)

    def _shifts(self, loads: list[ir.Load]) -> list[int]:
        return [self.plan.shifts[id(load)].by for load in loads]

    def _clear_margins(self, counter: str, groups: Iterable[list[ir.Load]]) -> None:
        """Zeros behind the last iteration; before the first there are some from the start."""
        cleared: dict[str, tuple[int, int]] = {}  # of a buffer, how many rows and how wide
        for loads in groups:
            if len(loads) > 1:
                shifts = self._shifts(loads)
                for load in loads:
                    name, row = self.stored[id(load)]
                    rows, width = cleared.get(name, (0, 0))
                    width = max(width, max(shifts) - min(shifts))
                    cleared[name] = max(rows, row + 1), width
        for name, (rows, width) in cleared.items():
            if width:
                self.w.use("clear_rows", clear_rows)
                end = f"hi_{counter} - lo_{counter} + {MARGIN}"
                self.w.line(f"clear_rows({name}, {end}, {ROW}, {rows}, {width})")

    def _gather(self, counter: str, loads: list[ir.Load]) -> None:
        """Add, to each element that any iteration of the piece adds to, what all of them have for it."""
        w, shifts = self.w, self._shifts(loads)
        start, stop = plus(f"lo_{counter}", min(shifts)), plus(f"hi_{counter}", max(shifts))
        with w.indented(f"for {counter} in range({start}, {stop}):"):
            w.line(f"at = {counter} - lo_{counter} + {MARGIN}")
            terms = []
            for load, by in zip(loads, shifts, strict=True):
                name, row = self.stored[id(load)]
                terms.append(at_call(w, load_at, name, _offset(row, -by)))
            _, index = self.plan.shifts[id(loads[0])].place
            self.now(replace(loads[0], index=index), " + ".join(terms))

    def _moving(self, counter: str, load: ir.Load) -> Hashable:
        """What says in which order a loop goes through the array: two loads that agree in it add to different
        elements in different iterations, and one loop can add both."""
        outs = [getattr(stmt, "out", None) for stmt in self.plan.deferred[id(load)]]
        moves = [getattr(v, "name", "") == counter or v in outs for v in load.index]
        return load.array, tuple(v if m else None for v, m in zip(load.index, moves, strict=True))

    def _add_rows(self, counter: str, loads: list[ir.Load]) -> None:
        w = self.w
        with w.indented(f"for {counter} in range(lo_{counter}, hi_{counter}):"):
            w.line(f"at = {counter} - lo_{counter} + {MARGIN}")
            stmts = (stmt for load in loads for stmt in self.plan.deferred[id(load)])
            for stmt in dict.fromkeys(stmts):
                statement(w, stmt, unchecked=True)
            for load in loads:
                name, row = self.stored[id(load)]
                self.now(load, at_call(w, load_at, name, _offset(row)))


def _offset(row: int, by: int = 0) -> str:
    return plus("at", row * ROW + by)


def _sum_name(load: ir.Load) -> str:
    return f"added_{load.out.name}"
