"""Additions to shadows, at once or put off as analysis/adjoint_loops.py plans it.

    d_u[i] += d_v                  at once
    added_v += d_v                 gathered: d_u[0] += added_v behind the loop
    store_at(buffer_float64, at, d_v)
    store_at(buffer_float64, at + 512, d_w)
                                   deferred: a loop of its own adds what lies in each row of the buffer

`at` is the number of the iteration within the piece of the loop that a buffer serves.
"""

from __future__ import annotations

from numba import types

from splitad.analysis.adjoint_loops import LoopPlan
from splitad.codegen.python import new_array, statement, zero
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.tape.ops import load_at, store_at
from splitad.transform.shadows import add_element

CHUNK = 512  # iterations kept in a buffer at a time: some rows of it fit into the L1 cache


class Buffers:
    """The buffers of one function. rows: by name, the dtype and how many rows the loops need."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[types.Type, int]] = {}

    def place(self, load: ir.Load, row: int) -> tuple[str, str]:
        """The buffer of a deferred addition, and the index in it for this iteration."""
        name = f"buffer_{load.array.type.dtype}"
        dtype, rows = self.rows.get(name, (load.array.type.dtype, 0))
        self.rows[name] = (dtype, max(rows, row + 1))
        return name, f"at + {row * CHUNK}" if row else "at"

    def write(self, w: Writer, mark: int) -> None:
        """Make them, in a place before all loops."""
        for name, (dtype, rows) in self.rows.items():
            w.insert(mark, [f"{name} = {new_array(w, 'empty', f'({rows * CHUNK},)', dtype)}"])


class Additions:
    """What one loop adds to shadows. met: the loads whose additions were put off, so far."""

    def __init__(self, w: Writer, buffers: Buffers, plan: LoopPlan) -> None:
        self.w, self.buffers, self.plan = w, buffers, plan
        self.met: list[ir.Load] = []

    def add(self, load: ir.Load, value: str) -> None:
        """The adjoint of a load; value: the cotangent of what it loaded."""
        if id(load) in self.plan.gathered:
            self.met.append(load)
            self.w.line(f"{_sum_name(load)} += {value}")
        elif id(load) in self.plan.deferred:
            self.met.append(load)
            name, offset = self.buffers.place(load, self.plan.deferred[id(load)])
            self.w.use("store_at", store_at)
            self.w.line(f"store_at({name}, {offset}, {value})")
        else:
            add_element(self.w, load, value)

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
                    add_element(self.w, load, _sum_name(load))

    def add_deferred(self, counter: str) -> None:
        """Behind a piece of the loop, whose counter runs from lo to hi."""
        w = self.w
        for load in self.met:
            if id(load) not in self.plan.deferred:
                continue
            with w.indented(f"for {counter} in range(lo_{counter}, hi_{counter}):"):
                w.line(f"at = {counter} - lo_{counter}")
                for stmt in self.plan.index[id(load)]:
                    statement(w, stmt, unchecked=True)
                w.use("load_at", load_at)
                name, offset = self.buffers.place(load, self.plan.deferred[id(load)])
                add_element(w, load, f"load_at({name}, {offset})")


def _sum_name(load: ir.Load) -> str:
    return f"added_{load.out.name}"
