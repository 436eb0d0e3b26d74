"""The rules of scipy.special: formulas against differences; in njit code where numba-scipy is there."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import pytest
from numba import njit
from scipy import special

from splitad.rules import registry
from splitad.rules.special import RULES, rules_of
from splitad.testing import check_vjp

NAMES = [name for name in RULES if hasattr(special, name)]
FOUND = {rule[0]: rule for rule in rules_of(special)}
STEPS, WEIGHTS = (-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12)


def test_scipy_has_them() -> None:
    assert set(RULES) - set(NAMES) == set()
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_formulas(name: str) -> None:
    """Each partial, as a Python expression, against fourth-order central differences."""
    _, fn, params, partials, samples, helpers = FOUND[name]
    names = params.split()
    for sample in samples:
        scope = dict(zip(names, sample, strict=True)) | helpers | {"math": math, "out": fn(*sample)}
        for k, parameter in enumerate(names):
            h = 1e-3 * max(1.0, abs(sample[k])) * (sample[k] != 0.0 or 0.1)

            def moved(steps: int, k: int = k, h: float = h) -> Any:
                return fn(*(x + steps * h * (j == k) for j, x in enumerate(sample)))

            slope = sum(w * moved(s) for s, w in zip(STEPS, WEIGHTS, strict=True)) / h
            got = eval(partials["d" + parameter], scope)
            assert got == pytest.approx(slope, rel=1e-7, abs=1e-9), (sample, parameter)


def test_they_are_registered_when_scipy_is_there() -> None:
    rule = registry.scalar_rule(special.erf)
    assert rule is not None and rule.name == "erf" and rule.params == ("x",)
    assert registry.scalar_rule(special.struve) is None


@pytest.mark.skipif(
    importlib.util.find_spec("numba_scipy") is None, reason="numba-scipy is not installed"
)
@pytest.mark.parametrize("name", NAMES)
def test_in_compiled_code(name: str) -> None:
    fn, samples = FOUND[name][1], FOUND[name][4]
    if len(samples[0]) == 1:

        @njit
        def f(x):
            return fn(x) * x

    else:

        @njit
        def f(x, y):
            return fn(x, y) * x

    try:
        f(*samples[0])
    except Exception:
        pytest.skip("numba-scipy does not have it")
    check_vjp(f, *samples[0])
