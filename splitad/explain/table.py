"""Choices as text: each source line once, below it what was chosen and why.

129: xc[j] = x[i, j] - means[k, j]
       xc's old value  taped, 8 bytes per iteration of i, k, j (undo log of xc: loaded deeper than it is
                         stored)
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from splitad.explain.choices import Choice

WIDTH = 110
_INDENT = 7
_VALUES = 28  # the widest column of values; longer lists have a line of their own


def table(choices: Sequence[Choice]) -> str:
    """All of them, which are sorted by line."""
    rows = ["choices:"]
    by_line = groupby(choices, key=lambda c: (c.function, c.line, c.text))
    for (function, line, text), of_line in by_line:
        place = f"   in {function}" if function != choices[0].function else ""
        shown = textwrap.shorten(text, WIDTH - len(place) - 7, placeholder=" ...")
        rows.append(f" {line:4d}: {shown}{place}".rstrip())
        rows += _of_line(
            sorted(of_line, key=lambda c: not c.bytes)
        )  # what makes the tape big first
    if not choices:
        rows.append("  nothing: the pullback reads no value, keeps no array and has no loop")
    return "\n".join([*rows, *_largest(choices)])


def _of_line(of_line: list[Choice]) -> Iterator[str]:
    """One row for each distinct choice and reason, the values joined."""
    joined: dict[tuple[str, int, str, str], Counter[str]] = {}
    for c in of_line:
        joined.setdefault((c.choice, c.bytes, c.often, c.reason), Counter())[c.value] += 1
    rows = []
    for (choice, nbytes, often, reason), values in joined.items():
        each_value = [f"{v} ({n} times)" if n > 1 and nbytes else v for v, n in values.items()]
        each = " each" if nbytes and values.total() > 1 else ""
        size = f", {nbytes} byte{'s' * (nbytes != 1)}{each} {often}" if nbytes else ""
        rows.append((", ".join(each_value), f"{choice}{size} ({reason})"))
    column = max((len(names) for names, _ in rows if len(names) <= _VALUES), default=_VALUES)
    hanging = " " * (_INDENT + column + 2)
    for names, text in rows:
        before = " " * _INDENT + names.ljust(column) + "  "
        if len(names) > column:
            yield from textwrap.wrap(
                names, WIDTH, initial_indent=" " * _INDENT, subsequent_indent=" " * _INDENT
            )
            before = hanging
        yield from textwrap.wrap(
            text, WIDTH, initial_indent=before, subsequent_indent=hanging + "  "
        )


def _largest(choices: Sequence[Choice]) -> Iterator[str]:
    """What takes most of the tape, where anything grows."""
    deepest = max((c.depth for c in choices if c.bytes), default=0)
    if deepest:
        found = [f"{c.value} in line {c.line}" for c in choices if c.bytes and c.depth == deepest]
        yield from textwrap.wrap(
            f"most of the tape, if all loops are equally long: {', '.join(dict.fromkeys(found))}",
            WIDTH,
            subsequent_indent="  ",
        )
