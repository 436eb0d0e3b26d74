"""Collects the lines of a generated function and the global names that they use."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from splitad.errors import Loc
from splitad.rules import vector_math


class Writer:
    """Lines with indentation; `names` are the objects that the text refers to by name.
    vector: whether functions of real scalars may be those of rules/vector_math.py.
    memories: numbers for the memory that an array lies in, by its name (transform/memories.py)."""

    def __init__(
        self,
        names: dict[str, object],
        vector: bool = False,
        memories: Mapping[str, int] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.names = names  # shared by the functions of one module
        self.vector = vector
        self.memories = dict(memories or {})
        self._indent = 0
        self._last_loc: tuple[str, int] | None = None

    def mark(self) -> int:
        """The place of the next line, for `insert`."""
        return len(self.lines)

    def insert(self, mark: int, texts: list[str]) -> None:
        """Lines at a place that was marked at the present indentation."""
        self.lines[mark:mark] = ["    " * self._indent + text for text in texts]

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def indented(self, header: str) -> Iterator[None]:
        """A block under `header`; `pass` where nothing is written in it."""
        self.line(header)
        self._indent += 1
        before = sum(1 for line in self.lines if not line.lstrip().startswith("#"))
        yield
        if sum(1 for line in self.lines if not line.lstrip().startswith("#")) == before:
            self.line("pass")
        self._indent -= 1

    def at(self, loc: Loc) -> None:
        """A comment with the user's own line, where it differs from the last one."""
        key = (loc.file, loc.line)
        if key != self._last_loc:
            self._last_loc = key
            text = loc.text().strip()
            if text:
                self.line(f"# {loc.line}: {text}")

    def use(self, name: str, value: object) -> str:
        """Make a global available; the name under which it is."""
        have = self.names.get(name, value)
        while have is not value and have != value:
            name += "_"
            have = self.names.get(name, value)
        self.names[name] = value
        return name

    def text(self) -> str:
        text = "\n".join(self.lines) + "\n"
        return vector_math.run(text, self.names) if self.vector else text


def identifier(name: str) -> str:
    """A Python identifier for an IR name."""
    return name + "_" if keyword.iskeyword(name) or name in _RESERVED else name


def is_reserved(name: str) -> bool:
    """Whether generated code may define this name itself: no variable of the IR may be called so."""
    return name in _OWN or name.startswith(_PREFIXES)


def primal_lines(source: str) -> Iterator[int]:
    """The lines, from 1, of generated code that compute values of the primal: they assign variables of the
    IR, which have none of the names below."""
    for number, line in enumerate(source.splitlines(), 1):
        name, assigned, _ = line.strip().partition(" = ")
        if assigned and name.isidentifier() and not is_reserved(name):
            yield number


# what generated code defines: these, and names made of a variable's with one of the prefixes
_OWN = {
    "at",
    "base",
    "cap",
    "code",
    "cur",
    "need",
    "next_id",
    "notes",
    "refs",
    "result_bar",
    "roots",
    "shadows",
    "tape",
}
_PREFIXES = (
    "added_", "again_", "bar_", "bars_", "buffer_", "cleared_", "d_", "given_", "hi_", "iter_", "kept_",
    "listed_", "lo_", "more_", "next_", "piece_", "rec_", "saved_", "shadows_", "tape_", "trip_", "trips_",
    "undo_",
)  # fmt: skip

# names that generated code uses itself
_RESERVED = {
    "np", "math", "tape", "refs", "base", "cur", "cap", "column", "result", "result_bar", "len", "range",
    "abs", "min", "max", "int", "float", "complex", "bool", "print", "round", "pow", "shadows", "trip",
    "trip_count", "at_most", "fdiv", "select", "add_at", "load_at", "store_at", "snapshot", "snapshot_view",
}  # fmt: skip
