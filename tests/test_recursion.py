"""Recursive functions keep a pair of their own."""

from __future__ import annotations

import numpy as np
import pytest

import splitad as ad
from splitad.testing import check_vjp
from tests.cases.recursive_programs import PROGRAMS, alias, deep, either, twice


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_differences(name: str) -> None:
    function, args = PROGRAMS[name]
    check_vjp(function, *args(np.random.default_rng(3)))


def test_depth() -> None:
    """d/da of the recursion a(n) = 0.7 a(n-1, a + 0.3 n) + 0.2 a, written out."""
    depth = 40
    terms = [0.7**k * 0.2 for k in range(depth)]
    inner = 0.7 + 0.3 * depth * (depth + 1) / 2
    want = sum(terms) - 0.7**depth * np.sin(inner)
    assert ad.grad(deep)(0.7, depth) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("function", [alias, twice, either])
def test_arrays_that_are_not_new(function) -> None:
    """Which of the caller's arrays a returned one is, or that two of them are one, is not tracked."""
    args = (np.ones(3), 2) if function is not either else (np.ones(3), np.ones(3), 2)
    with pytest.raises(ad.UnsupportedError, match="returns an array that may be") as error:
        ad.split(function)(*args)
    assert "copy" in str(error.value)
