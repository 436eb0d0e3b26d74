"""Every public function of splitad."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from splitad import gradients
from splitad.cache import PairResolver, Request, options_of
from splitad.display import Shown
from splitad.frontend.source import definition, to_differentiate
from splitad.ir.activities import Activity, check_given, stable
from splitad.pipeline import Options
from splitad.rules.ops import stop_gradient
from splitad.rules.user import rule
from splitad.rules.vector_math import MODES
from splitad.runtime.callables import Forward
from splitad.runtime.gradient_calls import Gradient
from splitad.runtime.pairs import Pair, register_pair
from splitad.runtime.zero import device_zeros, make_zero
from splitad.tape.ops import release_memory

__all__ = [
    "Active", "Const", "Duplicated", "grad", "make_zero", "release_memory", "rule", "show", "split",
    "stop_gradient", "value_and_grad", "vjp",
]  # fmt: skip

Active = Activity.Active
Duplicated = Activity.Duplicated
Const = Activity.Const

_numbers = itertools.count()


def _device_zeros(x: Any) -> Any:
    import splitad.cuda  # only now: it imports numba.cuda

    return splitad.cuda.zeros(x)


device_zeros.append(_device_zeros)


def split(
    f: Callable[..., Any],
    *activities: Activity,
    modified_between: bool | Sequence[bool] = True,
    strong_zero: bool = True,
    vector_math: str = "pullback",
    max_tape_bytes: int | None = None,
) -> Forward:
    """The split pair of a function: a forward that records, and the pullbacks that it returns.

        forward = split(f, Duplicated, Active, Const)     # one activity per argument, or none at all
        result, pullback = forward(u, nu, steps)          # runs f once; u is mutated exactly as by f
        (u_bar,) = pullback.make_zero()
        (nu_bar,) = pullback(result_bar, u_bar)           # later, any number of times

    f: a Python function or njit dispatcher, whose options carry over.  Activities follow from the types
    where none are given: scalars are Active, mutable float data Duplicated, the rest Const.
    modified_between=False (or one bool per argument): the caller promises that nobody writes to the
    arguments between forward and pullback; they are then read again instead of being saved.
    strong_zero=False: a zero cotangent times an infinite partial is NaN, as in IEEE arithmetic.
    vector_math: where exp, sin and their like may be vectorised (libmvec, within 4 ulp; Linux on x86-64):
    "none", "pullback", or "all", the forward too, whose result may then differ by as much.
    max_tape_bytes: TapeLimitError instead of a larger tape.  What a pullback takes while it runs is not
        counted: its shadows, and the small tape with which it replays the steps of a loop.

    Raises TypeError for a wrong number of activities.  What f contains is looked at in the first call.
    """
    given = tuple(activities) or None
    return _forward(f, given, None, modified_between, strong_zero, vector_math, max_tape_bytes)


def _forward(
    f: Callable[..., Any],
    activities: tuple[Activity, ...] | None,
    wrt: tuple[int, ...] | None,
    modified_between: bool | Sequence[bool] = True,
    strong_zero: bool = True,
    vector_math: str = "pullback",
    max_tape_bytes: int | None = None,
    any_order: bool = False,
) -> Forward:
    py_func = to_differentiate(f)
    signature = inspect.signature(py_func)
    count = len(signature.parameters)
    check_given(py_func.__name__, count, activities)
    stable_args = stable(count, modified_between)
    if vector_math not in MODES:
        raise ValueError(f'vector_math is "none", "pullback" or "all", not {vector_math!r}')
    options = options_of(
        f,
        Options(
            strong_zero=strong_zero,
            vector_math=vector_math,
            any_order=any_order,
            combined=any_order,
            max_tape_bytes=max_tape_bytes,
            stable=stable_args,
        ),
    )
    pair = _pair(Request(f, activities, wrt, options), signature)
    overlapping = replace(options, args_alias=True)
    pair.make_overlapping = lambda: _pair(Request(f, activities, wrt, overlapping), signature)
    return Forward(pair, nogil=options.nogil)


def _pair(request: Request, signature: inspect.Signature) -> Pair:
    f = request.py_func
    key = f"{f.__module__}.{f.__qualname__}:{next(_numbers)}"
    name = f.__name__ if f.__name__.isidentifier() else "f"
    limit = request.options.max_tape_bytes
    pair = register_pair(key, PairResolver(request), signature, name, limit)
    pair.definition = partial(definition, f)
    return pair


def value_and_grad(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...] = 0,
    *,
    restore: bool = True,
    vector_math: str = "all",
) -> Callable[..., Any]:
    """A function that returns ``(value, gradient)`` of f, which must return a real scalar.

    wrt: position or name of the argument, or a tuple of them; then the gradient is a tuple.  A gradient
    has its argument's type.  The arguments are put back as they were before the call, also after an
    exception; restore=False leaves them as f does.
    vector_math: see `split`.  With "all", what a loop does nothing with but add it up (``s += x[i] * y[i]``)
    may be added in another order too, as vector instructions do: the value is f's to rounding, and what
    f leaves in its arguments with restore=False as well.  With "pullback" or "none" they are f's to the bit.
    Raises NotDifferentiableError where f does not return a float or the argument is not one.
    """
    return _gradient(f, wrt, restore, vector_math, True)


def grad(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...] = 0,
    *,
    restore: bool = True,
    vector_math: str = "all",
) -> Callable[..., Any]:
    """As `value_and_grad`, but the gradient alone."""
    return _gradient(f, wrt, restore, vector_math, False)


# `x -= rate * grad(f)(x)` in a loop must not compile at each turn, and no more may `vjp(f, x)`.
_KEPT = 128


@lru_cache(_KEPT)
def _gradient(
    f: Callable[..., Any], wrt: gradients.Wrt, restore: bool, vector_math: str, value: bool
) -> Gradient:
    # nothing can change the arguments between the two halves
    make_forward = partial(_forward_by_types, f, False, vector_math, vector_math == "all")
    return gradients.Maker(f, wrt, restore, value).gradient(make_forward)


@lru_cache(_KEPT)
def _forward_by_types(
    f: Callable[..., Any],
    modified_between: bool,
    vector_math: str,
    any_order: bool,
    wrt: tuple[int, ...],
) -> Forward:
    return _forward(f, None, wrt, modified_between, vector_math=vector_math, any_order=any_order)


def vjp(
    f: Callable[..., Any],
    *args: Any,
    wrt: int | str | tuple[int | str, ...] | None = None,
    **kwargs: Any,
) -> tuple[Any, Callable[..., Any]]:
    """Run f and return ``(result, pullback)``; f leaves its arguments as it does.

    pullback(result_bar=1.0, exit_bar=None) returns new cotangents for the arguments in wrt (all by
    default; None where an argument has none), fresh at each call.  The default result_bar is for scalar
    or None results.  exit_bar: {name or position: cotangent} of the final state of mutated arguments; where
    arguments share memory, what is given for each adds up.
    """
    return gradients.vjp(
        f, args, kwargs, wrt, partial(_forward_by_types, f, True, "pullback", False)
    )


def show(f: Callable[..., Any], *args: Any, activities: Sequence[Activity] | None = None) -> Shown:
    """Print the generated forward and pullback, the tape, and what was chosen for each line and why.

    f may also be a pair's forward.  The returned object has .forward_source, .pullback_source, .tape and
    .choices: for each value that the pullback reads whether it is taped, computed again or loaded again, for
    each array whether it is copied, for each loop how it is reversed, and the reason.
    """
    forward = f if isinstance(f, Forward) else split(f, *(activities or ()))
    shown = Shown(forward, args)
    print(shown)
    return shown
