"""Numbers for the memory that element accesses are to, so that LLVM need not guess what overlaps.

    store_at(xc, j, load_at(x, j) - load_at(means, j))
    store_at(xc, j, load_at(x, j, 0) - load_at(means, j, 1), 2)

In the forward an array's number is that of its memory (analysis/apart.py).  In the pullback a shadow lies
where its array did, and beside the shadows there are copies that nothing writes, arrays with an undo log and
the buffers of additions, each by itself.  Shadows of arguments that f does not write may overlap in any way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from splitad.analysis.apart import Apart
from splitad.analysis.memory import Root, is_array
from splitad.codegen.writer import identifier
from splitad.ir import nodes as ir
from splitad.ir.walk import walk
from splitad.tape.columns import MEMORIES
from splitad.transform.additions import buffer_name
from splitad.transform.checks import is_written
from splitad.transform.facts import Facts
from splitad.transform.restore import copy_name, undo_name
from splitad.transform.shadows import shadow_name

Named = Iterable[tuple[str, Hashable | None]]


def in_forward(facts: Facts) -> dict[str, int]:
    """By the name of an array."""
    if not _wanted(facts):
        return {}
    apart = Apart(facts.fn, facts.active.memory, facts.args_alias)
    return _numbers((identifier(a.name), apart.memory_of(a)) for a in _accessed(facts))


def in_pullback(facts: Facts) -> dict[str, int]:
    """By the name of a shadow or a copy."""
    if not _wanted(facts):
        return {}
    unwritten: list[Root] = [
        root
        for leaf in facts.fn.leaves
        if is_array(leaf.var) and not is_written(facts, leaf)
        for root in facts.active.memory.base_roots(leaf.var)
    ]
    apart = Apart(facts.fn, facts.active.memory, facts.args_alias, unwritten)
    named: list[tuple[str, Hashable | None]] = [
        (shadow_name(a), apart.memory_of(a)) for a in _accessed(facts) if facts.active(a)
    ]
    for copy in facts.plan.copies:
        named.append((copy_name(copy), "copies"))
        if copy.undo:
            named.append((undo_name(copy.array), undo_name(copy.array)))
    dtypes = dict.fromkeys(a.type.dtype for a in _accessed(facts) if facts.active(a))
    named += [(buffer_name(dtype), "buffers") for dtype in dtypes]
    return _numbers(named)


def _wanted(facts: Facts) -> bool:
    return facts.apart and facts.kernel is None


def _accessed(facts: Facts) -> list[ir.Var]:
    """The arrays of which elements are loaded or stored, in order."""
    found = (s.array for s in walk(facts.fn.body) if isinstance(s, (ir.Load, ir.Store)))
    return list(dict.fromkeys(array for array in found if isinstance(array, ir.Var)))


def _numbers(named: Named) -> dict[str, int]:
    """None for what there is no number left; one memory needs none."""
    numbers: dict[Hashable, int] = {}
    found: dict[str, int] = {}
    for name, memory in named:
        if memory is None or (memory not in numbers and len(numbers) == MEMORIES):
            continue
        found[name] = numbers.setdefault(memory, len(numbers))
    return found if len(numbers.keys() - {"buffers"}) > 1 else {}
