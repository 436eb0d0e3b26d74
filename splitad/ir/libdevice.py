"""CUDA's libdevice: each function with one for the CPU that has its derivative.

`FUNCTIONS` says which are known.  What is defined here is not in math or NumPy; it is what their rules
(rules/libdevice.py) are tested with, and no kernel calls it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Fn = Callable[..., Any]


def rsqrt(x):  # type: ignore[no-untyped-def]
    return 1.0 / math.sqrt(x)


def rcbrt(x):  # type: ignore[no-untyped-def]
    return 1.0 / np.cbrt(x)


def exp10(x):  # type: ignore[no-untyped-def]
    return math.pow(10.0, x)


def sinpi(x):  # type: ignore[no-untyped-def]
    return math.sin(math.pi * (x % 2.0))


def cospi(x):  # type: ignore[no-untyped-def]
    return math.cos(math.pi * (x % 2.0))


def erfcx(x):  # type: ignore[no-untyped-def]
    return math.exp(x * x) * math.erfc(x)


def erfinv(y):  # type: ignore[no-untyped-def]
    x = 0.0
    for _ in range(60):  # Newton's
        x -= (math.erf(x) - y) / (2.0 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def erfcinv(y):  # type: ignore[no-untyped-def]
    x = 0.0
    for _ in range(60):
        x += (math.erfc(x) - y) / (2.0 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def normcdf(x):  # type: ignore[no-untyped-def]
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normcdfinv(y):  # type: ignore[no-untyped-def]
    x = 0.0
    for _ in range(60):
        below = 0.5 * math.erfc(-x / math.sqrt(2.0))
        x -= (below - y) * math.sqrt(2.0 * math.pi) * math.exp(0.5 * x * x)
    return x


def saturate(x):  # type: ignore[no-untyped-def]
    return min(max(x, 0.0), 1.0)


def fdim(x, y):  # type: ignore[no-untyped-def]
    return x - y if x > y else 0.0


def fma(x, y, z):  # type: ignore[no-untyped-def]
    return x * y + z


# of doubles, and with an f at the end of floats
_BOTH: dict[str, Fn] = {
    **{
        name: getattr(math, name)
        for name in (
            "acos acosh asin asinh atan atan2 atanh copysign cos cosh erf erfc exp expm1 fabs hypot lgamma "
            "log log10 log1p log2 pow sin sinh sqrt tan tanh"
        ).split()
    },
    "fmod": np.fmod, "remainder": np.fmod,  # x - n * y, with another n
    "tgamma": math.gamma, "cbrt": np.cbrt, "exp2": np.exp2, "fmax": np.fmax, "fmin": np.fmin,
    "nextafter": np.nextafter, "rsqrt": rsqrt, "rcbrt": rcbrt, "exp10": exp10, "sinpi": sinpi,
    "cospi": cospi, "erfcx": erfcx, "erfinv": erfinv, "erfcinv": erfcinv, "normcdf": normcdf,
    "normcdfinv": normcdfinv, "fdim": fdim, "fma": fma,
    **dict.fromkeys(("floor", "ceil", "trunc", "rint", "round", "nearbyint"), np.floor),
}  # fmt: skip
_FAST: dict[str, Fn] = {
    "cos": math.cos, "exp": math.exp, "exp10": exp10, "log": math.log, "log10": math.log10,
    "log2": math.log2, "pow": math.pow, "sin": math.sin, "tan": math.tan,
}  # fmt: skip
_ROUNDED: dict[str, Fn] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "rcp": np.reciprocal, "sqrt": math.sqrt,
}  # fmt: skip
_TWO = {
    math.atan2, math.copysign, math.hypot, math.pow, np.fmod, np.fmax, np.fmin, np.nextafter, fdim,
    operator.add, operator.sub, operator.mul, operator.truediv,
}  # fmt: skip


def _functions() -> dict[str, tuple[Fn, int]]:
    found = {f"{name}f": (fn, 32) for name, fn in _BOTH.items()}
    found |= {name: (fn, 64) for name, fn in _BOTH.items()}
    found |= {f"fast_{name}f": (fn, 32) for name, fn in _FAST.items()}
    found |= {"fast_fdividef": (operator.truediv, 32), "saturatef": (saturate, 32)}
    for mode in ("rd", "rn", "ru", "rz"):
        for name, fn in _ROUNDED.items():
            found[f"f{name}_{mode}"] = (fn, 32)
            if name != "sub":
                found[f"d{name}_{mode}"] = (fn, 64)
        found |= {f"fma_{mode}": (fma, 64), f"fmaf_{mode}": (fma, 32)}
    return {**found, "frsqrt_rn": (rsqrt, 32)}


FUNCTIONS = (
    _functions()
)  # by name, what has its derivative, and the bits of its arguments and result


def count(fn: Fn) -> int:
    """How many arguments it takes."""
    return 3 if fn is fma else 2 if fn in _TWO else 1
