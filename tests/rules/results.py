"""A rule's pullback, called by itself, against finite differences of a loss of the function's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitad.rules.registry import array_rule, jitted
from tests.rules.single import check_close

COEFFICIENTS = (-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12)


def numbers(seed: int, shape: Any, dtype: Any) -> Any:
    rng = np.random.default_rng(seed)
    x = np.asarray(rng.normal(size=shape))
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def inner(a: Any, b: Any) -> float:
    """Re(sum(conj(a) * b))"""
    return float(np.sum(np.conj(np.asarray(a)) * np.asarray(b)).real)


def pull(primal: Any, args: list[Any], static: dict[str, Any], bars: Any) -> tuple[list[Any], Any]:
    """The shadows of the arguments, from zero, and what the pullback returns."""
    rule = array_rule(primal)
    given = primal(*args, **static)
    results = list(given) if rule.results else [given]
    wanted = bars(*results)
    shadows = [
        np.zeros_like(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else None
        for a in args
    ]
    values = []
    for need in rule.call:
        if need.kind == "contents":
            values.append(args[need.index])
        elif need.kind == "out":
            values.append(np.asarray(results[need.index])[()])
        elif need.kind == "d_out":
            values.append(wanted[need.index])
        elif need.kind == "static":
            values.append(static.get(need.name))
        else:
            values.append(shadows[need.index])
    return shadows, jitted(rule)(*values)


SINGLE = {"f": np.float32, "c": np.complex64}
DOUBLE = {"f": np.float64, "c": np.complex128}


def cast(value: Any, kinds: dict[str, Any]) -> Any:
    """An array of floats or complex numbers in that precision; integers as they are."""
    array = np.asarray(value)
    return array.astype(kinds[array.dtype.kind])[()] if array.dtype.kind in kinds else value


def check_narrow(primal: Any, args: list[Any], static: dict[str, Any], bars: Any) -> None:
    """The cotangents in single precision are those in double precision, but for rounding."""
    is_active = [isinstance(arg, np.ndarray) and arg.dtype.kind in SINGLE for arg in args]
    small = [cast(arg, SINGLE) if on else arg for arg, on in zip(args, is_active, strict=True)]
    wide = [cast(arg, DOUBLE) if on else arg for arg, on in zip(small, is_active, strict=True)]
    active = {k: arg for k, arg in enumerate(wide) if is_active[k]}
    results = primal(*wide, **static)
    weights = bars(*(results if array_rule(primal).results else (results,)))

    def cotangents(args: list[Any], given: Any) -> dict[Any, Any]:
        shadows, _ = pull(primal, args, static, given)
        return {k: shadows[k] for k in active}

    def at(steps: dict[Any, Any]) -> Any:
        moved = [arg + steps[k] if k in steps else arg for k, arg in enumerate(wide)]

        def pulled(chosen: dict[Any, Any]) -> dict[Any, Any]:
            given = [None if w is None else chosen[k][()] for k, w in enumerate(weights)]
            return cotangents(moved, lambda *_: given)

        return pulled

    def rounded(*results: Any) -> list[Any]:
        made = zip(bars(*(cast(r, DOUBLE) for r in results)), results, strict=True)
        return [w if np.asarray(r).dtype in DOUBLE.values() else cast(w, SINGLE) for w, r in made]

    got = cotangents(small, rounded)
    assert all(got[k].dtype == small[k].dtype for k in active)
    check_close(got, at, active, {k: np.asarray(w) for k, w in enumerate(weights) if w is not None})


def check_results(
    primal: Any,
    args: list[Any],
    static: dict[str, Any] | None = None,
    loss: Callable[..., float] | None = None,
    bars: Callable[..., Any] | None = None,
    lower: bool = False,
) -> None:
    """Against finite differences, and in single precision against that.

    loss: a function of the results, with the cotangents bars; by default a random linear one.

    lower: the function reads the lower triangle of its argument, a Hermitian matrix.
    """
    static = static or {}

    def weights(*results: Any) -> tuple[Any, ...]:
        return tuple(
            None if np.asarray(r).dtype.kind in "iub"
            else numbers(k, np.shape(r), np.asarray(r).dtype)[()]
            for k, r in enumerate(results)
        )  # fmt: skip

    def linear(*results: Any) -> float:
        fixed = zip(weights(*results), results, strict=True)
        return sum(inner(w, r) for w, r in fixed if w is not None)

    if loss is None or bars is None:
        loss, bars = linear, weights
    check_narrow(primal, args, static, bars)
    many = bool(array_rule(primal).results)
    shadows, _ = pull(primal, args, static, bars)
    for position, shadow in enumerate(shadows):
        if shadow is None:
            continue
        v = numbers(7, shadow.shape, shadow.dtype)
        v = v + np.conj(v).T if lower else v
        slope, h = 0.0, 1e-4
        for step, c in zip(*COEFFICIENTS, strict=True):
            moved = list(args)
            moved[position] = args[position] + step * h * v
            results = primal(*moved, **static)
            slope += c * loss(*(results if many else (results,))) / h
        got = inner(shadow, np.tril(v) if lower else v)
        assert abs(got - slope) < 1e-7 * (1 + abs(slope)), (primal, position, got, slope)
