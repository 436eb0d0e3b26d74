"""The tape of a kernel, as text: one column per thread.

    tape_float64[cur + 2, tape_thread]     a float64; cur is an integer of the thread's own

The layout is the CPU's (tape/layout.py), in bytes of one thread, and the memory is cut up in one of two ways:

- What lies at a fixed offset is of the same type in every thread.  A value of `size` bytes at offset `o` is
  element ``[o // size, thread]`` of the memory seen as an array of its type.
- What loops put behind that may differ: where threads take different ways, one may have a flag where another
  one has a float.  There each thread has cells of 8 bytes, ``[o // 8, thread]``, and a smaller value is the
  part ``(o % 8) // size`` of one (`tape_cells_bool`).

Either way neighbouring threads write neighbouring addresses.  A thread that runs over its part writes to a
row behind it, which nobody reads, and goes on counting; in the end it tells how much it needed
(`tape_need`).  So a launch with no tape at all counts what is needed.
"""

from __future__ import annotations

from numba import types

from splitad.codegen.writer import Writer
from splitad.ir import threads
from splitad.tape.layout import WORD, Column
from splitad.transform.facts import Facts

SPARE = WORD  # bytes of the row behind each thread's part


class Slots:
    """What the forward and the pullback of one kernel call places on the tape.

    dynamic: whether how much is needed is only known at run time.  used: the arrays over the tape's memory
    that occur, by name."""

    def __init__(self, facts: Facts) -> None:
        record = facts.layout.record[facts.where.root]
        self.dynamic = record.pushes
        self.header = facts.layout.header
        self.used: dict[str, types.Array] = {}

    @property
    def start(self) -> int:
        """Where what loops put on the tape begins, behind the word that says where it ends."""
        return self.header + (WORD if self.dynamic else 0)

    @property
    def size(self) -> int:
        """The bytes of a thread, where they are known."""
        return -(-self.start // WORD) * WORD

    def place(self, type: types.Type, offset: str, index: str = "", writing: bool = False) -> str:
        """An element; offset: of the first, in bytes.  index: which one."""
        type = types.unliteral(type)
        size = 1 if isinstance(type, types.Boolean) else int(type.bitwidth) // 8
        if offset.isdigit() or size == WORD:
            at = str(int(offset) // size) if offset.isdigit() else f"(({offset}) >> 3)"
            at = f"{at} + {index}" if index else at
            return f"{self._array(type, 2)}[{self._row(at, size, writing)}, tape_thread]"
        byte = (
            offset
            if not index
            else f"{offset} + {index}"
            if size == 1
            else (f"{offset} + {size} * {index}")
        )
        shift = size.bit_length() - 1
        within = f"(({byte}) >> {shift}) & {WORD // size - 1}" if shift else f"({byte}) & 7"
        row = self._row(f"({byte}) >> 3", WORD, writing)
        return f"{self._array(type, 3)}[{row}, tape_thread, {within}]"

    def _row(self, at: str, size: int, writing: bool) -> str:
        return f"min({at}, {last(size)})" if writing and self.dynamic else at

    def _array(self, type: types.Type, ndim: int) -> str:
        name = f"tape_{'cells_' if ndim == 3 else ''}{'bool' if isinstance(type, types.Boolean) else type}"
        self.used[name] = types.Array(type, ndim, "C")
        return name

    def of(self, c: Column, offset: str, index: str = "", writing: bool = False) -> str:
        return self.place(c.var.type, offset, index, writing)


def last(size: int) -> str:
    """The variable with the number of the row that nobody reads."""
    return f"tape_last{size}"


def write_thread(w: Writer, dims: int) -> None:
    """The number of the thread in the launch, in the order in which threads lie in memory."""
    axes = [threads.TEXTS[fn] for fn in threads.GRID[:dims]]
    sizes = [threads.TEXTS[fn] for fn in threads.GRIDSIZE[:dims]]
    w.line(f"tape_thread = {thread_number(axes, sizes)}")


def thread_number(axes: list[str], sizes: list[str]) -> str:
    """axes: the thread's number along each axis of the launch.  sizes: how many there are along it."""
    text = axes[-1]
    for axis, size in zip(reversed(axes[:-1]), reversed(sizes[:-1]), strict=True):
        text = f"{axis} + {size} * ({text})"
    return text
