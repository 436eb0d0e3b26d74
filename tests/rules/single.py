"""A gradient in single precision beside the one in double precision, at the same points.

How far apart they may be is not a guess.  A cotangent is a sum of terms, each the cotangent of one entry of
the results times a partial derivative.  An operation in single precision loses up to `EPS` of the term that
it is done in, and a sum of n numbers loses it n times: n * EPS * (the sum of the terms' sizes).  The partial
derivatives are taken at intermediate values that were rounded before, which is as if the arguments had been
rounded once more: by how much the gradient changes when each number in the arguments moves by EPS of its size
is measured, and is large where the function is ill-conditioned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from splitad.testing.arguments import activity_names, add
from splitad.testing.case import Case
from splitad.testing.copying import copy_args
from splitad.testing.leaves import active_leaves, change, path_text, snapshot
from splitad.testing.pulling import Weights, draw, pull

EPS = float(np.finfo(np.float32).eps)
MOVES = 4  # random signs of the moves of the arguments

Values = dict[Any, Any]  # arrays by what they belong to
Pull = Callable[[Values], Values]  # cotangents of results -> those of arguments


def check_close(got: Values, at: Callable[[Values], Pull], args: Values, bars: Values) -> None:
    """got: the cotangents in single precision; at(steps): the pullback in double precision, where the
    arguments are moved by these steps."""
    rng = np.random.default_rng(0)
    here = at({})
    wanted = here(bars)
    terms = dict.fromkeys(wanted, 0.0)
    moved = dict.fromkeys(wanted, 0.0)
    for one in _one_by_one(bars):
        for key, value in here(one).items():
            terms[key] = terms[key] + np.abs(value)
    for _ in range(MOVES):
        steps = {key: _step(np.asarray(value), rng) for key, value in args.items()}
        for key, value in at(steps)(bars).items():
            moved[key] = np.maximum(moved[key], np.abs(value - wanted[key]))
    count = sum(np.size(value) for value in args.values())
    for key, want in wanted.items():
        bound = count * (EPS * terms[key] + moved[key])
        assert np.all(np.abs(got[key] - want) <= bound), (
            f"the cotangent of {_name(key)} in single precision is {got[key]}, in double {want}: "
            f"rounding explains {bound}"
        )


def _name(key: Hashable) -> str:
    return path_text(key) if isinstance(key, tuple) else f"argument {key}"


def _step(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(np.isfinite(value), EPS * value * rng.choice([-1.0, 1.0], value.shape), 0.0)


def _one_by_one(values: Values) -> Iterator[Values]:
    """All of them zero but for one entry, for each."""
    zero = {key: np.zeros_like(value) for key, value in values.items()}
    for key, value in values.items():
        for index in np.ndindex(np.shape(value)):
            only = np.zeros_like(value)
            only[index] = np.asarray(value)[index]
            yield {**zero, key: only}


def check_single(
    fn: Callable[..., Any], args: tuple[Any, ...], kinds: tuple[Any, ...], narrow: Any, wide: Any
) -> None:
    """narrow, wide: the pair for single precision, of which args are, and that for double precision.

    The arguments are overwritten after forward; that the cotangents have their dtype is seen to by pull.
    """
    single, double = (
        Case(fn.__name__, fn, forward, at, activity_names(at, kinds), lambda: None, False,
             (True,) * len(at))
        for forward, at in ((narrow, args), (wide, copy_args(args, widen=True)))
    )  # fmt: skip
    tape = single.forward_at(single.args)
    weights = draw(single, tape, np.random.default_rng(0))
    bar, *seeds = copy_args((weights.result_bar, *weights.seeds.values()), widen=True)
    seeds = dict(zip(weights.seeds, seeds, strict=True))

    def at(steps: Values) -> Pull:
        args = copy_args(double.args)
        there = double.forward_at(tuple(add(arg, steps, (k,)) for k, arg in enumerate(args)))
        return lambda bars: pull(double, there, _weights(bar, seeds, bars))

    active = {path: np.asarray(leaf) for k in double.wanted
              for path, leaf in active_leaves(double.args[k], (k,))}  # fmt: skip
    check_close(pull(single, tape, weights), at, active, {**snapshot(bar, ("result",)), **seeds})


def _weights(bar: Any, seeds: Values, values: Values) -> Weights:
    """Like these, with other values."""

    def how(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return type(leaf)(values[path])
        leaf[...] = values[path]
        return leaf

    (made,) = copy_args((bar,))
    return Weights(change(made, how, ("result",)), {path: values[path] for path in seeds})
