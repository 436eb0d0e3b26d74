"""The pair of a program, called in other ways: from compiled code, and through ad.value_and_grad."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

import splitad as ad
from splitad.testing import copy_args
from splitad.testing.arguments import bar_like, single_precision
from splitad.testing.leaves import active_leaves, contents, path_text, snapshot


def check_driver(forward: Any, args: tuple[Any, ...], kinds: tuple[Any, ...]) -> None:
    """Compiled code that calls forward, make_zero and the pullback gets what Python gets, bit for bit."""
    names = ", ".join(f"a{k}" for k in range(len(args)))
    shadows = kinds.count(ad.Duplicated)
    passed = "".join(f", shadows[{k}]" for k in range(shadows))
    scope = {"forward": forward}
    exec(
        f"def driver(result_bar, {names}):\n"
        f"    result, pullback = forward({names})\n"
        f"    shadows = pullback.make_zero()\n"
        f"    bars = pullback(result_bar{passed})\n"
        f"    return result, bars, shadows\n",
        scope,
    )
    driver = numba.njit(scope["driver"])
    here, there = copy_args(args), copy_args(args)
    result, pullback = forward(*here)
    (kept,) = copy_args((result,))
    bar = bar_like(kept, np.random.default_rng(0))
    zero = pullback.make_zero()
    bars = pullback(bar, *zero)
    other, other_bars, other_zero = driver(bar, *there)
    for what, left, right in (
        ("the result", kept, other),
        ("the arguments", here, there),
        ("what the pullback returns", bars, other_bars),
        ("the shadows", zero, other_zero),
    ):
        if contents(left) != contents(right):
            raise AssertionError(f"{what}: {left!r} from Python, {right!r} from compiled code")


def check_gradient(plain: Any, forward: Any, args: tuple[Any, ...], kinds: tuple[Any, ...]) -> None:
    """ad.value_and_grad gives the pullback's cotangents, and leaves the arguments as they were."""
    wrt = tuple(k for k, kind in enumerate(kinds) if kind is not ad.Const)
    if not wrt:
        return
    value, gradient = ad.value_and_grad(plain, wrt=wrt)(*(mine := copy_args(args)))
    if contents(mine) != contents(args):
        raise AssertionError("value_and_grad changed the arguments")
    result, pullback = forward(*copy_args(args))
    # it adds up in another order; values are below outcome.LARGEST, and so are most terms
    close = 1e-3 if single_precision((args,)) else 1e-9
    if not np.allclose(result, value, rtol=close, atol=close, equal_nan=True):
        raise AssertionError(f"value_and_grad gives {value!r}, forward {result!r}")
    shadows = pullback.make_zero()
    bars = iter(pullback(1.0, *shadows))
    zeros = iter(shadows)
    for k, mine in zip(wrt, gradient, strict=True):
        wanted = next(zeros) if kinds[k] is ad.Duplicated else next(bars)
        if kinds[k] is ad.Duplicated and isinstance(args[k], tuple):
            scalars = next(bars)
            wanted = type(args[k])(
                *(v if bar is None else bar for v, bar in zip(wanted, scalars, strict=True))
            )
        _same(snapshot(mine, (k,)), snapshot(wanted, (k,)), len(active_leaves(args[k])), close)


def _same(mine: dict[Any, Any], wanted: dict[Any, Any], count: int, close: float) -> None:
    for path, value in wanted.items():
        if path not in mine or not np.allclose(
            mine[path], value, close, close / 100, equal_nan=True
        ):
            raise AssertionError(
                f"value_and_grad disagrees with the pullback in {path_text(path)}: "
                f"{mine.get(path)!r}, not {value!r}"
            )
    if len(wanted) < count:
        raise AssertionError(f"{len(wanted)} cotangents of {count}")
