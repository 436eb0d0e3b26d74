"""Names in the order in which they appear: x, x_1, x_2, ... with the user's own where there is one.

Lowering tries loops several times, so its numbers have gaps; and it learns only at an assignment what the
user calls a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.ir.build import Builder


def run(fn: ir.Function, bases: Mapping[str, str], hints: Mapping[str, str]) -> ir.Function:
    """fn with other names.  bases: what each variable was to be called; hints: what users call it."""
    names = Builder(fn.loc)
    for param in fn.params:
        names.fresh(param.name, param.type)
    mapping: dict[ir.Var, ir.Var] = {}
    for var in _defined(fn.body):
        if var not in mapping:
            base = hints.get(var.name) or bases.get(var.name, var.name)
            mapping[var] = names.fresh(base, var.type)
    return walk.map_names(fn, mapping)


def _defined(block: ir.Block) -> Iterator[ir.Var]:
    """Variables in the order in which they are read in printed IR."""
    for stmt in block.stmts:
        yield from walk.inner_defs(stmt)
        for nested in walk.blocks(stmt):
            yield from _defined(nested)
        yield from walk.outs(stmt)
