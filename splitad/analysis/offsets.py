"""Indices as sums of a loop's counter and what does not change in the loop.

for b in range(a + 1, n):
    d = b - a                  counters 1, constant 0, not alone
    c[k + d] = x[b - 1]        the same;   counters 1, constant -1, alone
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from splitad.ir import nodes as ir


def unit_loop(loop: ir.For) -> bool:
    """Whether the counter goes up by one from zero or another start: then it indexes columns itself."""
    return isinstance(loop.step, ir.Lit) and loop.step.value == 1


@dataclass(frozen=True)
class Offset:
    """What an index is: ``counters * counter + constant``, plus something that the loop does not change if
    it is not `alone`.  made_by: the statements of the loop that compute it, in order."""

    counters: int = 0
    constant: int = 0
    alone: bool = True
    made_by: tuple[ir.Stmt, ...] = ()


def offset(entry: object, loop: ir.For, definition: Mapping[ir.Var, ir.Stmt]) -> Offset | None:
    """None where the index is no such sum."""
    if entry == loop.counter:
        return Offset(counters=1)
    if isinstance(entry, ir.Lit):
        return Offset(constant=int(entry.value))
    if not isinstance(entry, ir.Var) or entry in loop.params:
        return None
    by = definition.get(entry)
    if by is None:
        return Offset(alone=False)
    if not isinstance(by, ir.Prim) or by.fn not in (operator.add, operator.sub):
        return None
    left, right = (offset(arg, loop, definition) for arg in by.args)
    if left is None or right is None:
        return None
    sign = 1 if by.fn is operator.add else -1
    return Offset(
        left.counters + sign * right.counters,
        left.constant + sign * right.constant,
        left.alone and right.alone,
        tuple(dict.fromkeys((*left.made_by, *right.made_by, by))),
    )
