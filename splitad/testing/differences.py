"""Directional derivatives by central differences of fourth order, the step chosen by a study.

The error of a difference falls with the step until rounding takes over. So many steps are tried, and the
estimate is taken where two neighbours agree best; by how much they disagree is the error claimed for it.
A step at which the function fails, or leaves its branch, only makes its own estimate a bad one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

STEPS = tuple(10.0 ** (-k / 2) for k in range(2, 13))  # 1e-1 to 1e-6

# A run at distance h along the direction: everything that counts, in one vector; None where it failed.
Along = Callable[[float], "np.ndarray | None"]


@dataclass(frozen=True)
class Estimate:
    value: float
    error: float  # inf where no two steps gave numbers
    step: float


def directional(along: Along, weights: np.ndarray, steps: tuple[float, ...] = STEPS) -> Estimate:
    """d/dh of Re<weights, along(h)> at 0.

    Entries are subtracted before they are summed, so that large values that do not change cost no digits.
    """
    estimates = [(_fourth_order(along, weights, h), h) for h in steps]
    best = Estimate(float("nan"), float("inf"), 0.0)
    for (left, _), (right, h) in zip(estimates, estimates[1:], strict=False):
        gap = abs(left - right)
        if gap < best.error:
            best = Estimate(right, gap, h)
        if gap == 0.0:  # a linear function, or nothing depends on the direction
            break
    return best


def _fourth_order(along: Along, weights: np.ndarray, h: float) -> float:
    one, two = _difference(along, weights, h), _difference(along, weights, 2 * h)
    return (8.0 * one - two) / (12.0 * h)


def _difference(along: Along, weights: np.ndarray, h: float) -> float:
    plus, minus = along(h), along(-h)
    if plus is None or minus is None or not plus.shape == minus.shape == weights.shape:
        return float("nan")
    used = weights != 0
    return float(np.sum((np.conj(weights[used]) * (plus[used] - minus[used])).real))
