"""Where the memory of an array comes from, as far as the front end can tell.

Only used to leave out a temporary: where nothing is known, two arrays may overlap.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from splitad.ir import nodes as ir

Root = Hashable


class Origins:
    """The roots of the arrays of one function: what was allocated, what came in from outside."""

    def __init__(self, args_alias: bool = True) -> None:
        self.args_alias = args_alias
        self._roots: dict[str, frozenset[Root]] = {}
        self._paths: dict[str, Hashable] = {}

    # ---- telling ---------------------------------------------------------------------------

    def fresh(self, array: ir.Var) -> None:
        """Memory that was allocated just now."""
        self._roots[array.name] = frozenset({("fresh", array.name)})

    def outside(self, array: ir.Var) -> None:
        """Memory that was there when the function was entered: an argument's, a field's."""
        root = ("outside",) if self.args_alias else ("outside", array.name)
        self._roots[array.name] = frozenset({root})

    def frozen(self, array: ir.Var) -> None:
        """A global array, which nothing ever writes."""
        self._roots[array.name] = frozenset({("frozen", array.name)})

    def view(self, out: ir.Var, base: ir.Var, path: Hashable = None) -> None:
        """out is a view of base; path says which, so that the same view taken twice is known."""
        self._roots[out.name] = self.roots(base)
        if path is not None:
            self._paths[out.name] = (self.path(base), path)

    def merged(self, out: ir.Var, arrays: Iterable[ir.Var]) -> None:
        """out is one of these."""
        self._roots[out.name] = frozenset().union(*(self.roots(array) for array in arrays))

    # ---- asking ----------------------------------------------------------------------------

    def roots(self, array: ir.Var) -> frozenset[Root]:
        """All the memory that the array may be a part of; ("any",) is whatever came from outside."""
        return self._roots.get(array.name, frozenset({("any",)}))

    def path(self, array: ir.Var) -> Hashable:
        """Arrays with the same path are the same elements at the same indices."""
        return self._paths.get(array.name, array.name)

    def is_fresh(self, array: ir.Var) -> bool:
        return all(isinstance(root, tuple) and root[0] == "fresh" for root in self.roots(array))

    def same(self, a: ir.Var, b: ir.Var) -> bool:
        """Whether both are the same elements at the same indices for certain."""
        return self.path(a) == self.path(b)

    def may_overlap(self, a: ir.Var, b: ir.Var) -> bool:
        roots_a, roots_b = self.roots(a), self.roots(b)
        return any(_may_alias(x, y) for x in roots_a for y in roots_b)


def _may_alias(a: Root, b: Root) -> bool:
    if a == b:
        return True
    # What is not known was passed in from outside or went through a loop, an `if` or a container,
    # so it may be anything but a frozen array, even what was allocated here.
    kinds = {a[0], b[0]}  # type: ignore[index]
    return "any" in kinds and "frozen" not in kinds
