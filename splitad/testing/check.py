"""check_vjp: does the pair of a function keep its promises, and is the derivative right?"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numba
import numpy as np

from splitad.testing.arguments import activity_names, single_precision
from splitad.testing.case import Case
from splitad.testing.compare import Problem, Report, compare
from splitad.testing.forwards import check_primal, two_forwards
from splitad.testing.pulling import check_leaks, draw, pull


def check_vjp(
    f: Callable[..., Any],
    *args: Any,
    activities: tuple[Any, ...] | None = None,
    rtol: float | None = None,
    directions: int = 2,
    seed: int = 0,
    forward: Callable[..., Any] | None = None,
    prepare: Callable[[], None] | None = None,
    exact: bool | None = None,
    leaks: bool = True,
    modified_between: bool | tuple[bool, ...] = True,
    **options: Any,
) -> Report:
    """Check the pair that ``split(f, *activities, **options)`` makes; AssertionError says what is wrong.

    1. f's result, its side effects and who shares memory with whom afterwards are bit for bit those of
       ``njit(f)``.
    2. Two forwards are run, at two points, before either pullback; arguments and results are then
       overwritten with NaN, and the fields of structs rebound.
    3. ``make_zero`` gives zeros of the exit state's shapes, dtypes and aliasing.  Shadows start with
       random numbers in them, and result_bar is random; they end with the entry state's shapes, dtypes
       and aliasing.
    4. A pullback's second call equals the first bit for bit, and so does the pullback of a forward that
       was run alone; arguments and result_bar stay as they are; dtypes are kept.
    5. Neither tapes nor arrays leak.
    6. The cotangents agree with fourth-order central differences of the result and of every mutated
       argument, in random directions.

    The arguments themselves are copied, not touched.

    rtol: how far a directional derivative may be off, relative to its size; the default is 1e-7, and more
    for single precision (see the module compare).  directions: how many random seeds to try; for the
    first, each leaf of the arguments is checked by itself as well.  forward: a pair to check instead of
    making one.  prepare: called before every run of f, to seed random numbers, say.  exact: whether the
    primal must agree bit for bit; by default where f has neither fastmath nor parallel.
    modified_between: as split takes it; arguments so marked are not overwritten, and f must not write to
    them through another argument.

    What it cannot see: differences say nothing at a kink, and what takes part in no direction, or has an
    effect below rounding, could be wrong unnoticed.
    """
    if modified_between is not True:
        options["modified_between"] = modified_between
    if forward is None:
        from splitad import api

        forward = api.split(f, *(activities or ()), **options)
    plain = f if hasattr(f, "py_func") else numba.njit(f)
    at = _position_of_rest(f)
    if at is not None:  # *rest is one argument, a tuple
        args = (*args[:at], args[at:])
        plain, forward = _spread(plain), _spread(forward)
    case = Case(
        name=getattr(f, "__name__", str(f)),
        plain=plain,
        forward=forward,
        args=args,
        kinds=activity_names(args, activities),
        prepare=prepare or (lambda: None),
        exact=_is_exact(f) if exact is None else exact,
        modified=_per_argument(modified_between, len(args)),
    )
    rng = np.random.default_rng(seed)
    result = check_primal(case)
    tape, other = two_forwards(case, rng)
    _check_apart(case, tape, other, seed)
    # where f writes to nothing that arguments share, each of them gets its own part
    case = replace(case, apart=not getattr(tape.pullback, "args_overlap", True))
    single = single_precision((args, result))
    report = Report()
    for number in range(directions):
        weights = draw(case, tape, rng)
        cotangents = pull(case, tape, weights)
        problem = Problem(case, weights.result_bar, weights.seeds, single, seed)
        report = report.merge(compare(problem, cotangents, rng, rtol, each_leaf=number == 0))
    if leaks:
        check_leaks(case)
    return report


def _position_of_rest(f: Callable[..., Any]) -> int | None:
    """Where f has a parameter ``*rest``."""
    parameters = inspect.signature(getattr(f, "py_func", f)).parameters.values()
    found = [k for k, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_POSITIONAL]
    return found[0] if found else None


def _spread(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: f(*args[:-1], *args[-1])


def _check_apart(case: Case, tape: Any, other: Any, seed: int) -> None:
    """Pullbacks in the other order, twice, and against forwards that were run alone."""
    rng = np.random.default_rng(seed + 1)
    for each in (other, tape):
        weights = draw(case, each, rng)
        first, second = pull(case, each, weights), pull(case, each, weights)
        if not _equal(first, second):
            raise case.fail("the second call of a pullback differs from the first")
        alone = pull(case, case.forward_at(each.entry), weights)
        if not _equal(first, alone):
            raise case.fail("with two forwards alive, the pullback differs from that of one alone")


def _equal(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    same = left.keys() == right.keys()
    return same and all(np.array_equal(left[k], right[k], equal_nan=True) for k in left)


def _is_exact(f: Any) -> bool:
    options = getattr(f, "targetoptions", {})
    return not options.get("fastmath") and not options.get("parallel")


def _per_argument(modified: bool | tuple[bool, ...], count: int) -> tuple[bool, ...]:
    return (modified,) * count if isinstance(modified, bool) else tuple(modified)
