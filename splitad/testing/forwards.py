"""The primal half of the check: forward does what njit does, and two forwards do not disturb each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from splitad.testing.arguments import add, direction, single_precision
from splitad.testing.case import Case, Tape
from splitad.testing.copying import aliasing, copy_args
from splitad.testing.leaves import contents, leaves, path_text


def check_primal(case: Case) -> Any:
    """forward's result, side effects and aliasing are njit's; returns the result."""
    there, here = copy_args(case.args), copy_args(case.args)
    case.prepare()
    result = case.plain(*there)
    case.prepare()
    mine, _ = case.forward(*here)
    _same(case, "result", mine, result)
    for k, (left, right) in enumerate(zip(here, there, strict=True)):
        _same(case, k, left, right)
    if aliasing((here, mine)) != aliasing((there, result)):
        raise case.fail(
            "after forward, arguments and result share memory otherwise than after njit"
        )
    return result


def _same(case: Case, head: Any, mine: Any, plain: Any) -> None:
    left, right = contents(mine, (head,)), contents(plain, (head,))
    if left.keys() != right.keys() or type(mine) is not type(plain):
        raise case.fail(f"forward gives {mine!r} as {path_text((head,))}, njit {plain!r}")
    tolerance = 1e-4 if single_precision(plain) else 1e-11  # reordered sums, where that is allowed
    values = dict(leaves(mine, (head,)))
    for path, leaf in leaves(plain, (head,)):
        alike = left[path] == right[path]
        if not alike and not case.exact and left[path][:2] == right[path][:2]:
            alike = np.allclose(values[path], leaf, tolerance, tolerance, equal_nan=True)
        if not alike:
            raise case.fail(f"forward leaves {values[path]!r} in {path_text(path)}, njit {leaf!r}")


def two_forwards(case: Case, rng: np.random.Generator) -> tuple[Tape, Tape]:
    """Forwards at the arguments and at a point near by."""
    near = copy_args(case.args)
    step = direction(near, case.wanted, rng)
    near = tuple(add(arg, step, (k,), 1e-3) for k, arg in enumerate(near))
    first = case.forward_at(case.args)
    try:
        return first, case.forward_at(near)
    except AssertionError:
        raise
    except Exception:  # f refuses that point; the same one will do
        return first, case.forward_at(case.args)
