"""The names that the text of a derivative rule may use, besides its own parameters.

Helpers are plain scalar code over `math`, operators and `abs`, so that the same text compiles for the
CPU and for CUDA; for CUDA take their `py_func`.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numba

from splitad.rules.ops import fdiv


def _helper(fn: Callable[..., Any]) -> Any:
    return numba.njit(error_model="numpy")(fn)


@_helper
def over_norm2(a: float, b: float) -> float:
    """a / (a*a + b*b) without overflow or underflow on the way; NaN at the origin."""
    if abs(a) >= abs(b):
        r = b / a
        return 1.0 / (a * (1.0 + r * r))
    r = a / b
    return r / (b * (1.0 + r * r))


@_helper
def digamma(x: float) -> float:
    """The derivative of lgamma: recurrence up to 10, then the asymptotic series; NaN at the poles."""
    y = 1.0 * x
    result = 0.0
    if y <= 0.0:
        if y == math.floor(y):
            return math.nan
        # reflection; the fraction keeps the argument of tan small
        result = -math.pi / math.tan(math.pi * (y - math.floor(y)))
        y = 1.0 - y
    while y < 10.0:
        result -= 1.0 / y
        y += 1.0
    r = 1.0 / (y * y)
    tail = r * (
        1 / 12
        - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12)))))
    )
    return result + math.log(y) - 0.5 / y - tail


@_helper
def sinc_dx(x: float) -> float:
    """The derivative of sin(pi x) / (pi x); a series near 0, where the formula cancels."""
    y = math.pi * x
    if abs(y) < 0.5:
        r = y * y
        series = 1 / 3 - r * (
            1 / 30 - r * (1 / 840 - r * (1 / 45360 - r * (1 / 3991680 - r / 518918400)))
        )
        return -math.pi * y * series
    return math.pi * (math.cos(y) - math.sin(y) / y) / y


# None: a builtin, which needs no injection
NAMES: dict[str, Any] = {
    "math": math,
    "cmath": cmath,
    "abs": None,
    "min": None,
    "max": None,
    "complex": None,
    "float": None,
    "fdiv": fdiv,
    "over_norm2": over_norm2,
    "digamma": digamma,
    "sinc_dx": sinc_dx,
}
