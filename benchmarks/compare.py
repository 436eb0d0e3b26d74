"""Two runs of the benchmark beside each other, before and after a change.

    python benchmarks/compare.py OLD.json NEW.json
    python benchmarks/compare.py OLD.json NEW.json --limit 1.1    exit 1 if a ratio grew by more than a tenth

Compares ratios to the primal, each of its own run, so that another machine's speed mostly cancels out; and
tapes, peaks and compile seconds as they are.  A change of more than a tenth is coloured.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
NOTABLE = 1.1

# title -> where the figure is in a row
FIGURES = {
    "value+grad ratio": ("ratio", "value_and_grad"),
    "forward ratio": ("ratio", "forward"),
    "pullback ratio": ("ratio", "pullback"),
    "tape MB": ("tape_bytes",),
    "peak MB": ("peak_bytes",),
    "compile s": ("compile_seconds", "value_and_grad"),
}


def figure(row: Row, keys: tuple[str, ...]) -> float | None:
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return None if value is None else float(value) / (1e6 if keys[-1].endswith("bytes") else 1.0)


def pairs(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[Row, Row]]:
    """What both runs measured."""
    before = {(row["tool"], row["kernel"]): row for row in old["results"]}
    found = [(before.get((row["tool"], row["kernel"])), row) for row in new["results"]]
    return [(a, b) for a, b in found if a is not None]


def change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    text = f"{before:.3g} -> {after:.3g}"
    if before > 0 and after > NOTABLE * before:
        return f"[red]{text}[/]"
    if after > 0 and before > NOTABLE * after:
        return f"[green]{text}[/]"
    return text


def table(old: dict[str, Any], new: dict[str, Any]) -> Table:
    found = Table(title=f"{old['time']} -> {new['time']}")
    for name in ("kernel", "tool", "gradient"):
        found.add_column(name)
    for name in FIGURES:
        found.add_column(name, justify="right")
    for a, b in pairs(old, new):
        status = b["status"] if a["status"] == b["status"] else f"{a['status']} -> {b['status']}"
        cells = [change(figure(a, keys), figure(b, keys)) for keys in FIGURES.values()]
        found.add_row(b["kernel"], b["tool"], status, *cells)
    return found


def slower(old: dict[str, Any], new: dict[str, Any], limit: float) -> list[str]:
    """What takes more than limit times as much as before, in primals, or is no longer right."""
    bad = []
    for a, b in pairs(old, new):
        name = f"{b['tool']} {b['kernel']}"
        before, after = (figure(row, ("ratio", "value_and_grad")) for row in (a, b))
        if a["status"] == "ok" != b["status"]:
            bad.append(f"{name}: {b['status']}")
        elif before is not None and after is not None and after > limit * before:
            bad.append(f"{name}: {before:.3g} -> {after:.3g}")
    return bad


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--limit", type=float, help="how much a ratio may grow")
    options = parser.parse_args(arguments)
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.old, options.new))
    if old.get("quick") != new.get("quick"):
        parser.error("one run is quick, and has other sizes")
    Console(width=None if sys.stdout.isatty() else 150).print(table(old, new))
    bad = [] if options.limit is None else slower(old, new, options.limit)
    for line in bad:
        print(f"worse: {line}", file=sys.stderr)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
