"""Which array is which: what transform/identity.py adds to the IR, for those who read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from splitad.ir import nodes as ir


@dataclass(frozen=True)
class Place:
    """Where in its root an array lies: bytes from the root's first element to the array's, how many bytes
    the root has (not of an argument), and the array's strides, where its layout does not say them."""

    at: ir.Operand
    size: ir.Operand
    strides: tuple[ir.Operand, ...]


@dataclass(frozen=True, eq=False)
class Identity:
    """id: the identity of each array that needs one.  dims: the shape of each that a choice produced.
    leaf_ids: the identities of the arrays among the arguments.  place: of each array that needs an
    identity, where control flow chooses views: then identities are those of roots; else empty."""

    id: dict[ir.Var, ir.Operand]
    dims: dict[ir.Var, tuple[ir.Operand, ...]]
    leaf_ids: dict[ir.Var, int]
    place: dict[ir.Var, Place] = field(default_factory=dict)

    def values(self, array: ir.Var) -> Iterator[ir.Operand]:
        """What the reverse pass needs to find an array's shadow, its shape apart."""
        if array in self.id:
            yield self.id[array]
        if array in self.place:
            place = self.place[array]
            yield from (place.at, place.size, *place.strides)
