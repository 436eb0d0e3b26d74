"""The derivatives of scipy.special, where numba-scipy makes it callable in njit code.

Importing SciPy takes long, so the rules are registered when a function without a rule is met and SciPy is
there already: see `registry.scalar_rule`.  Formulas: NIST Digital Library of Mathematical Functions
(dlmf.nist.gov), chapters 5 (gamma), 6 (exponential integrals), 7 (error functions), 10 (Bessel), 19
(elliptic integrals) and 25.12 (Spence's function, which SciPy defines as Li2(1 - x)).
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numba

_HALF_ROOT_PI, _ROOT_2_PI = math.sqrt(math.pi) / 2, math.sqrt(2 * math.pi)

# name: (parameters, partials, samples); the texts may name other functions of scipy.special
RULES: dict[str, tuple[str, dict[str, str], list[tuple[float, ...]]]] = {
    "erf": ("x", {"dx": f"math.exp(-x * x) / {_HALF_ROOT_PI}"}, [(0.3,), (-1.2,)]),
    "erfc": ("x", {"dx": f"-math.exp(-x * x) / {_HALF_ROOT_PI}"}, [(0.3,), (-1.2,)]),
    "erfcx": ("x", {"dx": f"2.0 * x * out - {1 / _HALF_ROOT_PI}"}, [(0.3,), (-1.2,)]),
    "dawsn": ("x", {"dx": "1.0 - 2.0 * x * out"}, [(0.3,), (-1.2,)]),
    "erfinv": ("x", {"dx": f"{_HALF_ROOT_PI} * math.exp(out * out)"}, [(0.3,), (-0.8,)]),
    "erfcinv": ("x", {"dx": f"-{_HALF_ROOT_PI} * math.exp(out * out)"}, [(0.3,), (1.8,)]),
    "ndtr": ("x", {"dx": f"math.exp(-0.5 * x * x) / {_ROOT_2_PI}"}, [(0.3,), (-1.2,)]),
    "ndtri": ("x", {"dx": f"{_ROOT_2_PI} * math.exp(0.5 * out * out)"}, [(0.3,), (0.9,)]),
    "log_ndtr": ("x", {"dx": f"math.exp(-0.5 * x * x - out) / {_ROOT_2_PI}"}, [(0.3,), (-1.2,)]),
    "gamma": ("x", {"dx": "out * psi(x)"}, [(2.3,), (-1.4,)]),
    "gammaln": ("x", {"dx": "psi(x)"}, [(2.3,), (0.4,)]),
    "psi": ("x", {"dx": "trigamma(x)"}, [(2.3,), (0.4,), (-1.4,)]),
    "beta": (
        "a b",
        {"da": "out * (psi(a) - psi(a + b))", "db": "out * (psi(b) - psi(a + b))"},
        [(0.7, 2.3), (3.0, 1.2)],
    ),
    "betaln": (
        "a b",
        {"da": "psi(a) - psi(a + b)", "db": "psi(b) - psi(a + b)"},
        [(0.7, 2.3), (3.0, 1.2)],
    ),
    "expit": ("x", {"dx": "out * (1.0 - out)"}, [(0.3,), (-2.0,)]),
    "logit": ("x", {"dx": "1.0 / (x * (1.0 - x))"}, [(0.3,), (0.9,)]),
    "j0": ("x", {"dx": "-j1(x)"}, [(0.3,), (-4.0,)]),
    "j1": ("x", {"dx": "j0(x) - out / x if x != 0.0 else 0.5"}, [(0.3,), (-4.0,), (0.0,)]),
    "y0": ("x", {"dx": "-y1(x)"}, [(0.3,), (4.0,)]),
    "y1": ("x", {"dx": "y0(x) - out / x"}, [(0.3,), (4.0,)]),
    "i0": ("x", {"dx": "i1(x)"}, [(0.3,), (-2.0,)]),
    "i1": ("x", {"dx": "i0(x) - out / x if x != 0.0 else 0.5"}, [(0.3,), (-2.0,), (0.0,)]),
    "k0": ("x", {"dx": "-k1(x)"}, [(0.3,), (2.0,)]),
    "k1": ("x", {"dx": "-k0(x) - out / x"}, [(0.3,), (2.0,)]),
    "exp1": ("x", {"dx": "-math.exp(-x) / x"}, [(0.3,), (2.0,)]),
    "expi": ("x", {"dx": "math.exp(x) / x"}, [(0.3,), (-2.0,)]),
    "spence": (
        "x",
        {"dx": "math.log(x) / (1.0 - x) if x != 1.0 else -1.0"},
        [(0.3,), (2.0,), (1.0,)],
    ),
    "ellipk": (
        "m",
        {"dm": f"(ellipe(m) / (1.0 - m) - out) / (2.0 * m) if m != 0.0 else {math.pi / 8}"},
        [(0.3,), (-2.0,), (0.0,)],
    ),
    "ellipe": (
        "m",
        {"dm": f"(out - ellipk(m)) / (2.0 * m) if m != 0.0 else {-math.pi / 8}"},
        [(0.3,), (-2.0,), (0.0,)],
    ),
    "xlogy": ("x y", {"dx": "math.log(y)", "dy": "x / y"}, [(0.7, 2.3), (0.0, 1.2)]),
    "xlog1py": ("x y", {"dx": "math.log1p(y)", "dy": "x / (1.0 + y)"}, [(0.7, 2.3), (0.0, 1.2)]),
    "entr": ("x", {"dx": "-math.log(x) - 1.0"}, [(0.3,), (2.0,)]),
    "rel_entr": (
        "x y",
        {"dx": "math.log(x / y) + 1.0", "dy": "-x / y"},
        [(0.7, 2.3), (3.0, 1.2)],
    ),
    "kl_div": ("x y", {"dx": "math.log(x / y)", "dy": "1.0 - x / y"}, [(0.7, 2.3), (3.0, 1.2)]),
    "exp10": ("x", {"dx": f"out * {math.log(10.0)}"}, [(0.3,), (-1.0,)]),
    "exp2": ("x", {"dx": f"out * {math.log(2.0)}"}, [(0.3,), (-1.0,)]),
    "expm1": ("x", {"dx": "out + 1.0"}, [(0.3,), (-1.0,)]),
    "log1p": ("x", {"dx": "1.0 / (1.0 + x)"}, [(0.3,), (-0.4,)]),
    "cbrt": ("x", {"dx": "1.0 / (3.0 * out * out)"}, [(0.3,), (-1.0,)]),
}


def trigamma(x: float) -> float:
    """The derivative of psi: reflection, recurrence up to 15, then the asymptotic series (DLMF 5.15)."""
    if x <= 0.0:
        return (math.pi / math.sin(math.pi * x)) ** 2 - _trigamma_right(1.0 - x)
    return _trigamma_right(x)


@numba.njit(error_model="numpy")
def _trigamma_right(x: float) -> float:
    total = 0.0
    while x < 15.0:
        total += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * 691 / 2730))))
    return total + 1.0 / x + r * (0.5 + series / x)


def rules_of(
    special: ModuleType,
) -> list[tuple[str, Any, str, dict[str, str], Any, dict[str, Any]]]:
    """(name, function, parameters, partials, samples, helpers) of each that this SciPy has."""
    found = []
    for name, (params, partials, samples) in RULES.items():
        if hasattr(special, name):
            helpers = {
                other: getattr(special, other)
                for other in RULES
                if any(f"{other}(" in text for text in partials.values()) and other != name
            }
            if name == "psi":
                helpers["trigamma"] = numba.njit(error_model="numpy")(trigamma)
            found.append((name, getattr(special, name), params, partials, samples, helpers))
    return found
