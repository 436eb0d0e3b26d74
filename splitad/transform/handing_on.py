"""An element of a shadow that stays in a register between the iterations of a reversed loop.

    for j in range(n - 1, 0, -1):                next_t = 0.0
        d_r = load_at(d_y, j)                    if trips_j > 0:
        store_at(d_y, j, 0.0)                        next_t = load_at(d_y, 1 + trips_j - 1)
        ...                                      for j in range(n - 1, 0, -1):
        add_at(d_y, j - 1, d_t)                      d_r = next_t
        add_at(d_y, j + 1, d_t)                      store_at(d_y, j, 0.0)
                                                     ...
                                                     more_t = d_t
                                                     add_at(d_y, j + 1, d_t)
                                                     next_t = load_at(d_y, j - 1) + more_t
                                                 if trips_j > 0:
                                                     store_at(d_y, 1 - 1, next_t)

Which element may, and why it is then right: analysis/handed_on.py.
"""

from __future__ import annotations

from splitad.analysis.handed_on import HandedOn
from splitad.codegen.python import access, at_call, index_text, operand, zero
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.tape.ops import load_at, store_at
from splitad.transform.loops import LoopText
from splitad.transform.operands import plus
from splitad.transform.shadows import shadow_name


class HandingOn:
    """What one loop hands on."""

    def __init__(self, w: Writer, text: LoopText, element: HandedOn) -> None:
        self.w, self.text, self.element = w, text, element
        self.next = f"next_{identifier(element.load.out.name)}"
        self.more: str | None = None

    def takes(self, stmt: ir.Store) -> bool:
        return stmt is self.element.store

    def adds(self, stmt: ir.Load) -> bool:
        return stmt is self.element.load

    def start(self) -> None:
        """Before the loop: the element that its first iteration takes."""
        w, dtype = self.w, self.element.load.array.type.dtype
        w.line(f"{self.next} = {zero(w, dtype)}")
        with w.indented(f"if {self.text.trips} > 0:"):
            end = f"{operand(w, self.text.loop.start)} + {self.text.trips}"
            w.line(f"{self.next} = {self._place(plus(end, self.element.taken - 1))}")

    def keep(self, text: str) -> None:
        """What is to be added, when it is known."""
        self.more = f"more_{identifier(self.element.load.out.name)}"
        self.w.line(f"{self.more} = {text}")

    def finish_iteration(self) -> None:
        """Behind all other adjoints of the iteration: some may add to the element too."""
        load = self.element.load
        index = access(index_text(self.w, load.index), len(load.index))
        held = at_call(self.w, load_at, shadow_name(load.array), index)
        self.w.line(f"{self.next} = {held}" + (f" + {self.more}" if self.more else ""))

    def finish(self) -> None:
        """Behind the loop."""
        w = self.w
        with w.indented(f"if {self.text.trips} > 0:"):
            first = plus(operand(w, self.text.loop.start), self.element.added)
            w.line(self._place(first, self.next))

    def _place(self, along: str, *value: str) -> str:
        """A load of an element at a place along the axis, or a store of a value."""
        load, axis = self.element.load, self.element.axis
        parts = [along if k == axis else index_text(self.w, (e,)) for k, e in enumerate(load.index)]
        index = access(", ".join(parts), len(parts))
        return at_call(
            self.w, store_at if value else load_at, shadow_name(load.array), index, *value
        )
