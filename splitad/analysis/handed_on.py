"""Shadow elements that one iteration of a reversed loop hands on to the next.

    for j in range(1, n):                           d_y[j - 1], which the adjoint of iteration j adds to
        y[j] = f(y[j - 1], ...)                     last, is what that of iteration j - 1 takes first

A recurrence waits for its own result.  In the reverse that is a store to memory and a load from it, unless
the element stays in a register from one iteration to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitad.analysis.activity import Activity
from splitad.analysis.adjoint_loops import SIMPLE
from splitad.analysis.memory import Memory
from splitad.analysis.offsets import Offset, offset, unit_loop
from splitad.analysis.reverse import has_reverse
from splitad.ir import nodes as ir
from splitad.ir.walk import outs


@dataclass(frozen=True, eq=False)
class HandedOn:
    """store: whose adjoint takes the element.  load: whose adjoint adds to it, an iteration earlier.
    axis: of the array, the one that the loop goes along.  taken, added: the index along it, as how much it
    is beyond the counter."""

    store: ir.Store
    load: ir.Load
    axis: int
    taken: int
    added: int


def handed_on(
    loop: ir.For, memory: Memory, active: Activity, accumulated: frozenset[int]
) -> HandedOn | None:
    """None where no element is handed on, or where another adjoint may come between.

    accumulated: loads and stores (by identity) of ``a[i] = a[i] + e``, whose elements are not taken.
    """
    if not unit_loop(loop):
        return None
    reversed_ = [s for s in loop.body.stmts if has_reverse(s, active)]
    if not all(isinstance(s, SIMPLE) for s in reversed_):
        return None
    stores = [s for s in reversed_ if isinstance(s, ir.Store)]
    loads = [s for s in reversed_ if isinstance(s, ir.Load)]
    # those of branches and loops too: what these choose is another one in each iteration
    definition = {out: s for s in loop.body.stmts for out in outs(s)}

    def along(access: ir.Load | ir.Store) -> tuple[int, Offset] | None:
        """The axis along which the counter moves it, and how far beyond the counter it is."""
        if access.wraps or access.array in definition or access.array in loop.params:
            return None
        offsets = [offset(entry, loop, definition) for entry in access.index]
        moving = [k for k, o in enumerate(offsets) if o is None or o.counters or o.made_by]
        if len(moving) != 1:
            return None
        found = offsets[moving[0]]
        if found is None or found.counters != 1 or not found.alone:
            return None
        return moving[0], found

    for store in stores:
        at, position = along(store), reversed_.index(store)
        if at is None or id(store) in accumulated:
            continue
        others = [s.array for s in stores if s is not store]
        others += [s.array for s in loads if reversed_.index(s) > position]
        if any(memory.may_alias(store.array, array) for array in others):
            continue
        for load in loads:
            to = along(load) if load.array == store.array else None
            fixed = load.index[: at[0]] + load.index[at[0] + 1 :]
            if to is None or to[0] != at[0] or to[1].constant != at[1].constant - 1:
                continue
            if fixed == store.index[: at[0]] + store.index[at[0] + 1 :]:
                return HandedOn(store, load, at[0], at[1].constant, to[1].constant)
    return None
