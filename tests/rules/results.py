"""A rule's pullback, called by itself, against finite differences of a loss of the function's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitad.rules.registry import array_rule, jitted

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


def check_results(
    primal: Any,
    args: list[Any],
    static: dict[str, Any] | None = None,
    loss: Callable[..., float] | None = None,
    bars: Callable[..., Any] | None = None,
    lower: bool = False,
) -> None:
    """loss: a function of the results, with the cotangents bars; by default a random linear one.

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
