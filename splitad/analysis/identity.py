"""Which array is which: what transform/identity.py adds to the IR, for those who read it."""

from __future__ import annotations

from dataclasses import dataclass

from splitad.ir import nodes as ir


@dataclass(frozen=True, eq=False)
class Identity:
    """id: the identity of each array that needs one.  dims: the shape of each that a choice produced.
    leaf_ids: the identities of the arrays among the arguments."""

    id: dict[ir.Var, ir.Operand]
    dims: dict[ir.Var, tuple[ir.Operand, ...]]
    leaf_ids: dict[ir.Var, int]
