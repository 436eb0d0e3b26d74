"""Which arrays lie in memory that never overlaps, as long as the function runs.

    def step(x, y, n):                        x: 0
        a = np.empty(n)                       y: 1
        b = a[1:]                             a: 2, b: 2
        c = a if n > 3 else y                 so a and y are together: y, a, b, c: 1

Arrays whose roots (analysis/memory.py) may be the same are together, whenever that may be: a root that one
iteration of a loop writes and the next one reads under another name counts as both names' at all times.
"""

from __future__ import annotations

from collections.abc import Iterable

from splitad.analysis.memory import Memory, Root, list_root
from splitad.ir import nodes as ir


class Apart:
    """together: roots that are to count as one, beside those that the arrays join."""

    def __init__(
        self, fn: ir.Function, memory: Memory, args_alias: bool, together: Iterable[Root] = ()
    ) -> None:
        self._memory = memory
        self._one: dict[Root, Root] = {}
        for array in memory.roots:
            self._join(memory.base_roots(array))
        self._join(together)
        if any(each.kind is not None for each in fn.lists):  # their arrays are told apart by nobody
            roots = (root for array in memory.roots for root in memory.base_roots(array))
            lists = (list_root(each.param, args_alias) for each in fn.lists)
            self._join([*(root for root in roots if root[0] == "arg"), *lists])

    def _first(self, root: Root) -> Root:
        while (of := self._one.get(root, root)) != root:
            root = of
        return root

    def _join(self, roots: Iterable[Root]) -> None:
        first: Root | None = None
        for root in roots:
            if first is None:
                first = self._first(root)
            else:
                self._one[self._first(root)] = first

    def memory_of(self, array: ir.Operand) -> Root | None:
        """The same for all arrays that may overlap; None where nothing is known."""
        if isinstance(array, ir.Lit):
            return None
        roots = self._memory.base_roots(array)
        return self._first(next(iter(roots))) if roots else None
