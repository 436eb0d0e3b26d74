"""Names for the values that a pass adds to a function."""

from __future__ import annotations

import re

from numba import types

from splitad.ir import nodes as ir
from splitad.ir import walk


class Fresh:
    """Makes variables whose names are not in use: x, x_1, x_2, ..."""

    def __init__(self, fn: ir.Function) -> None:
        self._used = walk.names(fn)
        self._next: dict[str, int] = {}

    def __call__(self, name: str, type: types.Type) -> ir.Var:
        base = re.sub(r"(_\d+)+$", "", name) or "t"
        candidate, count = base, self._next.get(base, 0)
        while candidate in self._used:
            count += 1
            candidate = f"{base}_{count}"
        self._next[base] = count
        self._used.add(candidate)
        return ir.Var(candidate, type)
