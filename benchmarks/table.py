"""What a run found, as tables for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]

WIDTH = 170  # of a table that goes into a file
STATUS_STYLE = {"wrong": "bold red", "error": "red", "none": "dim", "unchecked": "yellow"}


def console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDTH)


def kernels(found: list[Row]) -> Table:
    """One line for each kernel and tool; milliseconds are medians, ratios are to the primal beside them."""
    table = Table(title="gradients of the kernels, one thread; ms, and multiples of the primal")
    for name in ("kernel", "tool", "program"):
        table.add_column(name, no_wrap=True)
    for name in (
        "value", "primal", "forward", "pullback", "value+grad", "ratio", "fwd+pb", "tape MB", "peak MB",
        "compile s", "cached", "gradient",
    ):  # fmt: skip
        table.add_column(name, justify="right", no_wrap=True)
    last = None
    for row in sorted(found, key=_order(found)):
        if last is not None and row["kernel"] != last:
            table.add_section()
        cells = kernel_cells(row)
        table.add_row("" if row["kernel"] == last else cells[0], *cells[1:])
        last = row["kernel"]
    return table


def _order(found: list[Row]) -> Callable[[Row], tuple[int, int]]:
    """By kernel, and then by tool, both as they first came."""
    names = list(dict.fromkeys(row["kernel"] for row in found))
    tools = list(dict.fromkeys(row["tool"] for row in found))
    return lambda row: (names.index(row["kernel"]), tools.index(row["tool"]))


def kernel_cells(row: Row) -> list[str]:
    if "seconds" not in row:
        return [row["kernel"], row["tool"], "none", *[""] * 11, verdict(row)]
    seconds, ratio = row["seconds"], row["ratio"]
    split = [ratio[part] for part in ("forward", "pullback") if part in ratio]
    return [
        row["kernel"],
        row["tool"],
        "rewritten" if row.get("note") else "as it is",
        f"{row['value']:.6g}",
        *(milliseconds(seconds.get(p)) for p in ("primal", "forward", "pullback")),
        milliseconds(seconds["value_and_grad"]),
        times(ratio["value_and_grad"]),
        times(sum(split)) if split else "",
        megabytes(row.get("tape_bytes")),
        megabytes(row.get("peak_bytes")),
        _seconds(row.get("compile_seconds", {}).get("value_and_grad")),
        _seconds(row.get("cached_seconds", {}).get("value_and_grad")),
        verdict(row),
    ]


def verdict(row: Row) -> str:
    """Whether the gradient is right, with the largest relative difference."""
    error, style = row.get("disagreement"), STATUS_STYLE.get(row["status"])
    text = row["status"] if error is None else f"{row['status']} {error:.0e}"
    return f"[{style}]{text}[/]" if style else text


def programs(found: list[Row]) -> Table:
    """What was rewritten for the tools that cannot take a kernel as it stands."""
    table = Table(title="what was rewritten, and why there is no program")
    for name in ("tool", "kernel", "how"):
        table.add_column(name)
    for row in sorted(found, key=_order(found)):
        if row.get("note"):
            table.add_row(row["tool"], row["kernel"], row["note"])
    return table


def growth(found: list[Row]) -> Table:
    table = Table(title="growth: slope of log time and log bytes over log size (linear: 1)")
    for name in ("kernel", "of"):
        table.add_column(name)
    for name in (
        "sizes", "value+grad ms", "slope", "at the end", "primal", "tape MB", "slope", "at the end",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    for row in (row for row in found if "points" in row):
        points = row["points"]
        table.add_row(
            row["kernel"],
            row["parameter"],
            _from_to([f"{point['size']:,}" for point in points]),
            _from_to([milliseconds(point["value_and_grad"]) for point in points]),
            f"{row['time_slope']:.2f}",
            f"{row['last_time_slope']:.2f}",
            f"{row['primal_slope']:.2f}",
            _from_to([megabytes(point["tape_bytes"]) for point in points]),
            f"{row['tape_slope']:.2f}",
            f"{row['last_tape_slope']:.2f}",
        )
    return table


def calls(found: list[Row]) -> Table:
    table = Table(title="calls with nothing to do; memory of long loops and many calls")
    table.add_column("what")
    table.add_column("", justify="right")
    table.add_column("status")
    for row in found:
        for name, seconds in row.get("seconds", {}).items():
            table.add_row(f"{row['what']}, {name}", f"{seconds * 1e6:.3f} us", row["status"])
        for key in ("peak_bytes", "tape_bytes", "growth_bytes"):
            if row.get(key) is not None:
                name = key.removesuffix("_bytes")
                table.add_row(f"{row['what']}, {name}", f"{row[key] / 1e6:.2f} MB", row["status"])
    return table


def times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g}"


def megabytes(nbytes: float | None) -> str:
    return "" if nbytes is None else f"{nbytes / 1e6:.3g}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def _from_to(texts: list[str]) -> str:
    return f"{texts[0]} .. {texts[-1]}"
