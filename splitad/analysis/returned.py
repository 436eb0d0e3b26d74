"""What a recursive function returns: arrays have to be new ones, each a part of nothing else.

Its caller takes them for that; which array of its own a returned one is could be known only while it runs.
"""

from __future__ import annotations

from splitad.analysis.memory import Memory, Root, is_array, tree_leaves
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir


def check_returned(fn: ir.Function, memory: Memory) -> None:
    """UnsupportedError where a returned array may not be new."""
    seen: set[Root] = set()
    for leaf in fn.leaves:
        if leaf.exit != leaf.var and isinstance(leaf.exit, ir.Var) and is_array(leaf.exit):
            seen |= memory.base_roots(leaf.exit)
    for operand in tree_leaves(fn.result):
        if not is_array(operand) or (isinstance(operand, ir.Lit) and operand.value is ir.UNDEF):
            continue
        roots = memory.base_roots(operand)
        if seen & roots or any(kind != "new" for kind, _ in roots):
            raise UnsupportedError(
                f"the recursive function {fn.name} returns an array that may be one of its arguments, "
                "or share its memory with another result",
                fn.loc,
                "Return a copy of it: return x.copy().",
            )
        seen |= roots
