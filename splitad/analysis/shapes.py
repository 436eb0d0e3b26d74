"""Arrays whose shape is known in terms of other values.

    um = zeros(n, m); u = zeros(n, m)
    For t in range(steps) [a = um, b = u] {yield b, a} -> (c, d)       a, b, c, d: (n, m), as um and u

The sizes are values that the function computes outside of all loops and branches: they can be used wherever
the array can.
"""

from __future__ import annotations

from collections.abc import Iterator

from splitad.analysis.memory import is_array
from splitad.errors import Loc
from splitad.ir import nodes as ir
from splitad.ir.walk import outs, walk

Shape = tuple[ir.Operand, ...]


def array_choices(
    fn: ir.Function,
) -> Iterator[tuple[tuple[ir.Var, ...], tuple[ir.Operand, ...], Loc]]:
    """(results, what they can be) for each array that a loop carries or that a branch yields."""
    for stmt in walk(fn.body):
        if isinstance(stmt, (ir.For, ir.While)):
            for init, param, y, out in zip(
                stmt.inits, stmt.params, stmt.body.yields, stmt.outs, strict=True
            ):
                if is_array(param):
                    yield (param, out), (init, y), stmt.loc
        elif isinstance(stmt, ir.If):
            sides = (stmt.then.yields, stmt.orelse.yields)
            for k, out in enumerate(stmt.outs):
                if is_array(out):
                    yield (out,), tuple(side[k] for side in sides if k < len(side)), stmt.loc


def known_shapes(fn: ir.Function) -> dict[ir.Var, Shape]:
    """Of arrays that an allocation makes, and of those that are one of several of the same shape."""
    outer = {var for stmt in fn.body.stmts for var in outs(stmt)} | set(fn.params)
    choices = [(results, options) for results, options, _ in array_choices(fn)]
    # None: not known.  What a choice gives has no entry as long as it may turn out to have any shape.
    found: dict[ir.Operand, Shape | None] = {
        option: None for _, options in choices for option in options
    }
    for results, _ in choices:
        for result in results:
            found.pop(result, None)
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.Alloc):
            known = all(isinstance(n, ir.Lit) or n in outer for n in stmt.shape)
            found[stmt.out] = stmt.shape if known else None
    changed = True
    while changed:
        changed = False
        for results, options in choices:
            shapes = {found[option] for option in options if option in found}
            if not shapes:
                continue
            shape = shapes.pop() if len(shapes) == 1 else None
            for result in results:
                if result not in found or found[result] != shape:
                    found[result] = shape
                    changed = True
    return {var: shape for var, shape in found.items() if shape is not None}  # type: ignore[misc]
