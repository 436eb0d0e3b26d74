"""A user's rule is tried at its sample points when it is registered.

    rule(softplus, dx="1.0 / (1.0 - math.exp(-x))", samples=[(0.3,)])

    RuleError: rule softplus: dx is -2.858 at (0.3,), but softplus changes by 0.574 there

Each partial against fourth-order central differences of the function itself, in Python.  Where it cannot be
called from Python, or is not smooth, nothing is said.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from splitad.rules.namespace import NAMES
from splitad.rules.texts import RuleError

_STEPS = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
_AGREE = 1e-5  # the differences are good to 1e-8 or so


def check(
    name: str,
    fn: Callable[..., Any],
    params: tuple[str, ...],
    texts: Mapping[str, Any],
    helpers: Mapping[str, Any],
    samples: Iterable[tuple[Any, ...]],
) -> None:
    """texts: dx and so on, by name; those that are text are tried.  Raises RuleError."""
    known = {key: value for key, value in NAMES.items() if value is not None}
    for sample in samples:
        if len(sample) != len(params) or any(isinstance(x, complex) for x in sample):
            continue
        try:
            out = fn(*sample)
        except Exception:  # an overload's stub, for one
            return
        scope = known | dict(helpers) | dict(zip(params, sample, strict=True)) | {"out": out}
        for k, parameter in enumerate(params):
            text = texts.get("d" + parameter)
            if not isinstance(text, str) or not isinstance(sample[k], float):
                continue
            slope = _slope(fn, sample, k, out)
            if slope is None:
                continue
            try:
                got = eval(text, dict(scope))
            except Exception:  # malformed: the registry says why
                continue
            if not abs(got - slope) <= _AGREE * (1.0 + abs(slope)):
                raise RuleError(
                    f"rule {name}: d{parameter} is {got:.6g} at {sample}, but by finite differences "
                    f"{name} has the derivative {slope:.6g} there"
                )


def _slope(fn: Callable[..., Any], sample: tuple[Any, ...], k: int, out: Any) -> Any:
    """The derivative in argument k; None where two steps disagree."""
    found = []
    for step in (1e-3, 5e-4):
        h = step * max(1.0, abs(sample[k]))
        values: dict[int, Any] = {}
        for shift, _ in _STEPS:
            moved = (*sample[:k], sample[k] + shift * h, *sample[k + 1 :])
            try:
                values[shift] = fn(*moved)
            except Exception:  # outside of its domain
                return None
        found.append(sum(weight * values[shift] for shift, weight in _STEPS) / h)
        if abs(values[1] + values[-1] - 2.0 * out) > 0.1 * h * (1.0 + abs(found[-1])):
            return None  # a kink
    first, second = found
    if not cmath.isfinite(second) or abs(first - second) > 0.01 * _AGREE * (1.0 + abs(second)):
        return None
    return second
