"""Derivatives by central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def central(f: Callable[[Any], float], x: Any, step: float = 1e-5) -> Any:
    """The derivative of a scalar function of a float or an array, of fourth order."""
    if isinstance(x, float):
        near = f(x + step) - f(x - step)
        far = f(x + 2 * step) - f(x - 2 * step)
        return (8 * near - far) / (12 * step)
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):

        def along(value: float, index: Any = index) -> float:
            moved = x.copy()
            moved[index] = value
            return f(moved)

        found[index] = central(along, float(x[index]), step)
    return found
