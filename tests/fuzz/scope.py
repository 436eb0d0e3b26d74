"""What a random program has in sight while it is being written: its variables, and the dice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Shape = tuple[int, ...]


@dataclass
class Name:
    """A variable.

    kind: "f" float, "i" integer, "c" complex, "a" array, "d" array of a size that the run decides (at least
    one), "x" array of integers, "b" array of bools, "s" struct, "t" tuple of two floats, "p" the same with
    names, "q" named tuple of an array and a float, "l" list of floats, "la" list of arrays, "g" function of
    one float.
    """

    text: str
    kind: str
    shape: Shape = ()
    bound: int = 0  # integers known to lie in range(bound), items of a list; 0: unknown
    dtype: str = "f8"  # of an array: f8, f4 or c16
    contiguous: bool = True
    frozen: bool = False  # must not be rebound: loop counters, fields
    constant: bool = False  # assigned once: an inner function may use it


@dataclass
class Scope:
    rng: random.Random
    frames: list[list[Name]] = field(default_factory=lambda: [[]])
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    budget: int = 30  # statements left
    work: int = 1  # product of the trip counts of the loops around
    loops: int = 0
    result: str = "f"
    rebind: bool = True  # whether array parameters may be assigned
    exchanges: bool = False  # whether it is mostly about structs whose arrays change hands
    _count: int = 0

    # ---- dice -----------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, items):
        return items[self.rng.randrange(len(items))]

    def number(self) -> str:
        """A float constant of moderate size, never 0 or 1."""
        value = round(self.rng.uniform(0.2, 1.4), 2)
        return f"{value}" if self.chance(0.7) else f"(-{value})"

    # ---- variables ------------------------------------------------------------------------------

    def names(self, kind: str, shape: Shape | None = None) -> list[Name]:
        found = {v.text: v for frame in self.frames for v in frame}
        return [v for v in found.values() if v.kind == kind and shape in (None, v.shape)]

    def new(self, prefix: str, kind: str, **facts) -> Name:
        self._count += 1
        name = Name(f"{prefix}{self._count}", kind, **facts)
        return name

    def define(self, name: Name) -> None:
        self.frames[-1].append(name)

    # ---- lines ----------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, header: str, trips: int = 0) -> Iterator[None]:
        """An indented block with variables of its own; trips > 0 for a loop."""
        self.emit(header)
        self.frames.append([])
        self.indent += 1
        work, self.work = self.work, self.work * max(trips, 1)
        self.loops += trips > 0
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.loops -= trips > 0
        self.work = work
        self.indent -= 1
        self.frames.pop()
