"""Tests of passes as text: what goes in, and exactly what comes out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from tests.ir_parse import parse


def check(transform: Callable[[ir.Function], ir.Function], before: str, after: str) -> None:
    """transform makes of the body `before`, in a function with the parameters below, `after`."""
    fn = parse(function(before))
    verify(fn)
    changed = transform(fn)
    verify(changed)
    got, wanted = body(changed), textwrap.dedent(after).strip("\n")
    assert got == wanted, f"\n{got}\n---- wanted\n{wanted}"


def unchanged(transform: Callable[[ir.Function], ir.Function], before: str) -> None:
    check(transform, before, before)


def function(text: str) -> str:
    header = (
        "f(x: float64[::1], y: float64[::1], m: float64[:,::1], n: int64, k: int64, h: float64,"
        " b: bool):\n"
    )
    lines = textwrap.dedent(text).strip("\n")
    if not any(line.startswith("return") for line in lines.splitlines()):
        lines += "\nreturn"
    return header + textwrap.indent(lines, "  ")


def body(fn: ir.Function) -> str:
    lines = show(fn).splitlines()[2:]
    text = textwrap.dedent("\n".join(lines))
    return text.removesuffix("\nreturn None").removesuffix("return None")
