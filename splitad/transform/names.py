"""Rename the user's variables that are called like something that the generated code defines itself.

x = d_x[i]              x = _d_x[i]         d_x is to be the shadow of x
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from splitad.codegen.writer import is_reserved
from splitad.ir import nodes as ir
from splitad.ir import walk


def run(fn: ir.Function, taken: frozenset[str] = frozenset()) -> ir.Function:
    """taken: further names to be avoided, with all that differ from them by a number only."""
    bases = {_base(name) for name in taken}
    mapping = {
        var: ir.Var("_" + var.name, var.type)  # no other name starts with an underscore
        for var in variables(fn)
        if is_reserved(var.name) or _base(var.name) in bases
    }
    if not mapping:
        return fn
    return walk.map_names(fn, mapping)


def variables(fn: ir.Function) -> Iterator[ir.Var]:
    """Every variable once."""
    yield from fn.params
    yield from walk.defs(fn)


def _base(name: str) -> str:
    return re.sub(r"(_\d+)+$", "", name)
