"""Is a gradient right?  Tools are compared with each other, and splitad with finite differences.

Bounds are wide, since some kernels are chaotic and amplify rounding a million times; a wrong gradient is off
by a thousandth or more.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numba
import numpy as np

from benchmarks.kernels import Kernel
from splitad.testing import copy_args

BOUND = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 5e-4}
STEPS = [10.0**-k for k in range(2, 13)]


def bound(gradients: list[np.ndarray]) -> float:
    """What a gradient may be off by, relative to its largest entry."""
    return max(BOUND[g.dtype] for g in gradients)


def disagreement(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference of two gradients, relative to the largest entry of each array."""
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        if np.shape(a) != np.shape(b) or not np.all(np.isfinite(a)):
            return math.inf
        if b.size:
            scale = float(np.max(np.abs(b))) or 1.0
            worst = max(worst, float(np.max(np.abs(a - b))) / scale)
    return worst


def from_differences(
    kernel: Kernel, args: tuple[Any, ...], gradients: list[np.ndarray]
) -> tuple[float, float]:
    """How far gradients are from differences of the njit kernel in one direction, and what those are worth.

    Fourth-order differences in double precision, of the two successive steps that agree best: that choice
    knows nothing of the gradient.
    """
    plain = numba.njit(kernel.fn)
    wide = copy_args(args, widen=True)
    rng = np.random.default_rng(2)
    along = {k: _size(wide[k]) * rng.standard_normal(np.shape(wide[k])) for k in kernel.wrt}

    def value(h: float) -> float:
        moved = copy_args(wide)
        return plain(*(a + h * along[k] if k in along else a for k, a in enumerate(moved)))

    def slope(h: float) -> float:
        near, far = value(h) - value(-h), value(2 * h) - value(-2 * h)
        return (8 * near - far) / (12 * h)

    slopes = [s for s in map(slope, STEPS) if math.isfinite(s)]
    apart, best = min(((abs(a - b), b) for a, b in itertools.pairwise(slopes)))
    terms = [np.sum(along[k] * g) for k, g in zip(kernel.wrt, gradients, strict=True)]
    scale = max(abs(best), *map(abs, terms), 1e-300)
    return float(abs(sum(terms) - best) / scale), float(apart / scale)


def _size(a: Any) -> float:
    """A direction is as large as the argument, or 1 where that is zero."""
    return float(np.sqrt(np.mean(np.square(a)))) or 1.0
