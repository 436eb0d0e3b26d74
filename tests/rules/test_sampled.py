"""Rules that are wrong at one of their sample points are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

import splitad as ad
from splitad.rules.registry import RuleError


def fresh(source: str = "math.log1p(math.exp(x))") -> Any:
    scope: dict[str, Any] = {"math": math}
    exec(f"def softplus(x, n=1): return {source}", scope)
    return scope["softplus"]


RIGHT = "1.0 / (1.0 + math.exp(-x))"


def test_a_wrong_derivative_is_refused() -> None:
    softplus = fresh()
    with pytest.raises(RuleError) as error:
        ad.rule(softplus, dx="1.0 / (1.0 - math.exp(-x))", dn=None, samples=[(0.3, 1)])
    assert "rule softplus: dx is 3.8583 at (0.3, 1)" in str(error.value)
    assert "the derivative 0.574443 there" in str(error.value)
    ad.rule(softplus, dx=RIGHT, dn=None, samples=[(0.3, 1), (-2.0, 2)])  # it was not registered
    with pytest.raises(RuleError, match="has a rule already"):
        ad.rule(softplus, zero=True)


def test_what_cannot_be_tried_is_taken() -> None:
    ad.rule(fresh("abs(x)"), dx="1.0", dn=None, samples=[(0.0, 1)])  # a kink
    ad.rule(fresh("not_there(x)"), dx="1.0", dn=None, samples=[(0.0, 1)])
    ad.rule(fresh("math.sqrt(x)"), dx="0.5 / out", dn=None, samples=[(0.0, 1), (1e-9, 1)])


def test_at_any_sample() -> None:
    with pytest.raises(RuleError, match="at .-2.0, 1.,"):
        ad.rule(fresh("x * x"), dx="2.0 * abs(x)", dn=None, samples=[(1.0, 1), (-2.0, 1)])
