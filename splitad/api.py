"""Every public function of splitad."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from splitad.cache import PairResolver, Request, options_of
from splitad.ir.activities import Activity
from splitad.pipeline import Options
from splitad.runtime.callables import Forward
from splitad.runtime.pairs import register_pair

Active = Activity.Active
Duplicated = Activity.Duplicated
Const = Activity.Const

_numbers = itertools.count()


def split(
    f: Callable[..., Any],
    *activities: Activity,
    modified_between: bool | Sequence[bool] = True,
    strong_zero: bool = True,
    max_tape_bytes: int | None = None,
) -> Forward:
    """The split pair of a function.

    ``forward = split(f, Duplicated, Active)``; ``result, pullback = forward(u, nu)`` runs f once, u is
    mutated exactly as by f; ``(nu_bar,) = pullback(result_bar, u_bar)`` later, any number of times.
    """
    py_func = getattr(f, "py_func", f)
    signature = inspect.signature(py_func)
    count = len(signature.parameters)
    if activities and len(activities) != count:
        raise TypeError(
            f"{py_func.__name__} takes {count} arguments, but {len(activities)} activities were given"
        )
    between = (modified_between,) * count if isinstance(modified_between, bool) else modified_between
    options = options_of(
        f,
        Options(
            strong_zero=strong_zero,
            max_tape_bytes=max_tape_bytes,
            stable=tuple(not b for b in between),
        ),
    )
    request = Request(f, tuple(activities) or None, options)
    key = f"{py_func.__module__}.{py_func.__qualname__}:{next(_numbers)}"
    pair = register_pair(
        key, PairResolver(request), signature, py_func.__name__.strip("<>"), max_tape_bytes
    )
    return Forward(pair, nogil=options.nogil)
