"""The reverse half of the check: one call of a pullback, with all that it must leave alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from splitad.runtime.nrt_stats import live_blocks
from splitad.tape.pool import live_tapes
from splitad.testing.arguments import add, bar_like, has_loose_scalars, random_like
from splitad.testing.case import Case, Tape
from splitad.testing.copying import aliasing, copy_args
from splitad.testing.leaves import Values, active_leaves, contents, path_text, snapshot

_REPEATS = 3


@dataclass(frozen=True)
class Weights:
    """What the loss is: result_bar with the result, seeds with the final Duplicated arguments."""

    result_bar: Any
    seeds: Values


def draw(case: Case, tape: Tape, rng: np.random.Generator) -> Weights:
    seeds = {}
    for k in case.duplicated:
        for path, leaf in active_leaves(tape.exit[k], (k,)):
            seeds[path] = random_like(leaf, rng)
    return Weights(bar_like(tape.result, rng), seeds)


def pull(case: Case, tape: Tape, weights: Weights) -> Values:
    """Call the pullback on shadows that hold the seeds; the cotangents, by path."""
    shadows = _zero_shadows(case, tape)
    pairs = zip(case.duplicated, shadows, strict=True)
    seeded = tuple(add(shadow, weights.seeds, (k,)) for k, shadow in pairs)
    before = contents(tape.args), contents(weights.result_bar)
    returned = tape.pullback(weights.result_bar, *seeded)
    if contents(tape.args) != before[0]:
        raise case.fail("the pullback wrote to the arguments")
    if contents(weights.result_bar) != before[1]:
        raise case.fail("the pullback wrote to result_bar")
    return _collect(case, tape, returned, seeded)


def _zero_shadows(case: Case, tape: Tape) -> tuple[Any, ...]:
    """pullback.make_zero(), with its shapes, dtypes, zeros and aliasing checked."""
    shadows = tape.pullback.make_zero()  # type: ignore[attr-defined]
    count = len(case.duplicated)
    if not isinstance(shadows, tuple) or len(shadows) != count:
        raise case.fail(f"make_zero() gives {shadows!r} for {count} Duplicated arguments")
    exits = tuple(tape.exit[k] for k in case.duplicated)
    for k, shadow, state in zip(case.duplicated, shadows, exits, strict=True):
        have, want = snapshot(shadow, (k,)), snapshot(state, (k,))
        for path in have.keys() | want.keys():
            if path not in have or path not in want or not _alike(have[path], want[path]):
                raise case.fail(
                    f"the zero shadow of {path_text(path)} is {have.get(path)!r}, "
                    f"at exit of f there is {want.get(path)!r}"
                )
            if np.any(have[path]):
                raise case.fail(f"the zero shadow of {path_text(path)} is not zero")
    if aliasing(shadows, active=True) != aliasing(exits, active=True):
        raise case.fail("the zero shadows share memory otherwise than the arguments at exit of f")
    return shadows


def _alike(left: np.ndarray, right: np.ndarray) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype


def _collect(case: Case, tape: Tape, returned: Any, shadows: tuple[Any, ...]) -> Values:
    """The cotangents by path, after checks of structure and dtype."""
    places = [k for k in case.wanted if k not in case.duplicated or has_loose_scalars(case.args[k])]
    if not isinstance(returned, tuple) or len(returned) != len(places):
        raise case.fail(
            f"the pullback returned {returned!r}, one entry for each of {places} is due"
        )
    found: Values = {}
    for k, shadow in zip(case.duplicated, shadows, strict=True):
        found.update(snapshot(shadow, (k,)))
    entries = tuple(tape.entry[k] for k in case.duplicated)
    if aliasing(shadows, active=True) != aliasing(entries, active=True):
        raise case.fail("the shadows share memory otherwise than the arguments at entry of f")
    for k, cotangent in zip(places, returned, strict=True):
        found.update(snapshot(cotangent, (k,)))
    for k in case.wanted:
        for path, leaf in active_leaves(tape.entry[k], (k,)):
            want, have = np.array(leaf), found.get(path)
            # A float32 scalar comes out of compiled code as a Python float, so its kind must do.
            exact = isinstance(leaf, np.ndarray)
            if have is None or have.shape != want.shape or have.dtype.kind != want.dtype.kind:
                raise case.fail(
                    f"the cotangent of {path_text(path)} is {have!r}, it holds {want!r}"
                )
            if exact and have.dtype != want.dtype:
                raise case.fail(
                    f"the cotangent of {path_text(path)} is of {have.dtype}, it of {want.dtype}"
                )
    return found


def check_leaks(case: Case) -> None:
    """Forwards with and without a pullback leave no more behind than njit does, and no tape."""
    weights = draw(case, case.forward_at(case.args), np.random.default_rng(0))

    def plain() -> None:
        case.run(copy_args(case.args))

    def pair() -> None:
        args = copy_args(case.args)
        case.prepare()
        _, pullback = case.forward(*args)
        pairs = zip(case.duplicated, pullback.make_zero(), strict=True)
        pullback(weights.result_bar, *(add(shadow, weights.seeds, (k,)) for k, shadow in pairs))

    def alone() -> None:
        case.prepare()
        case.forward(*copy_args(case.args))

    allowed, _ = _growth(plain)
    for what, run in (("forward and pullback", pair), ("a forward without its pullback", alone)):
        grown, tapes = _growth(run)
        if tapes:
            raise case.fail(f"{what}, {_REPEATS} times, left {tapes} tapes behind")
        if any(mine > njit for mine, njit in zip(grown, allowed, strict=True)):
            raise case.fail(
                f"{what}, {_REPEATS} times, left {grown} (blocks, arrays); njit {allowed}"
            )


def _growth(run: Any) -> tuple[tuple[int, int], int]:
    run()  # what is made once (pools, caches) does not count
    before, tapes = live_blocks(), live_tapes()
    for _ in range(_REPEATS):
        run()
    after = live_blocks()
    return (after[0] - before[0], after[1] - before[1]), live_tapes() - tapes
