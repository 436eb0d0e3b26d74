"""Simplification before differentiation: fewer values, hence a smaller tape and a shorter reverse.

    fold              copies, integer constants, decided branches
    forward_views     elements of views become elements of arrays
    periodic          remainders that close a ring become comparisons
    index_signs       indices that cannot be negative
    value_numbering   equal values once, stored values not loaded again
    invariant         what is the same in every iteration leaves the loop
    guards            checks that raise leave the loop where that cannot be noticed
    induction         integers that grow steadily are computed from the counter
    dce               what is left without a use

Every pass gives the same results, bit for bit, the same exceptions and the same side effects.
"""

from __future__ import annotations

from collections.abc import Callable

from splitad.ir import nodes as ir
from splitad.transform import (
    dce,
    fold,
    forward_views,
    guards,
    index_signs,
    induction,
    invariant,
    periodic,
    value_numbering,
)

_ROUNDS = 8  # each round of induction reaches one loop further out

Pass = Callable[[ir.Function], ir.Function]


def run(
    fn: ir.Function,
    error_model: str,
    boundscheck: bool = False,
    strong_zero: bool = True,
    args_alias: bool = True,
    without: tuple[str, ...] = (),
) -> ir.Function:
    """fn with all of the above done until nothing changes.

    error_model, boundscheck: the user's njit options, which say what may raise.
    strong_zero: whether a zero cotangent times an infinite partial is zero.
    args_alias: whether the arguments may overlap each other.
    without: passes to leave out.
    """
    if boundscheck:  # the index of a view is checked against the view
        without = (*without, "forward_views")
    steps = _passes(error_model, boundscheck, strong_zero, args_alias)
    for _ in range(_ROUNDS):
        before = fn
        for name, step in steps.items():
            if name not in without:
                fn = step(fn)
        if fn == before:
            break
    return fn


def _passes(
    error_model: str, boundscheck: bool, strong_zero: bool, args_alias: bool
) -> dict[str, Pass]:
    """In their order."""
    return {
        "fold": fold.run,
        "forward_views": forward_views.run,
        "periodic": periodic.run,
        "index_signs": index_signs.run,
        "value_numbering": lambda fn: value_numbering.run(fn, args_alias),
        "invariant": lambda fn: invariant.run(
            fn, error_model, boundscheck, strong_zero, args_alias
        ),
        "guards": lambda fn: guards.run(fn, error_model, boundscheck),
        "induction": induction.run,
        "dce": lambda fn: dce.run(fn, error_model, boundscheck),
    }


PASSES = tuple(_passes("python", False, True, True))
