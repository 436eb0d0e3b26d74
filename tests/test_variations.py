"""Variations of the handout cases: checked whole, and against gradients known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import splitad as ad
from tests.cases.adapter import activity
from tests.cases.variations import VARIATIONS
from tests.pairs import check, pair, plain


def _activities(case, args):
    return [ad.Const if k in case.const else activity(a) for k, a in enumerate(args)]


def _given(case, args):
    """What follows from the types is left to be found."""
    return tuple(_activities(case, args)) if case.const else ()


@pytest.mark.parametrize("case", VARIATIONS, ids=lambda case: case.name)
def test_checked(case) -> None:
    args = case.args()
    check(plain(case.fn, **case.jit), *args, activities=_given(case, args))


@pytest.mark.parametrize("case", [c for c in VARIATIONS if c.gradient], ids=lambda case: case.name)
def test_known_gradient(case) -> None:
    args = case.args()
    kinds = _activities(case, args)
    _, pullback = pair(plain(case.fn, **case.jit), *_given(case, args))(*args)
    shadows = pullback.make_zero()
    returned = pullback(1.0, *shadows)
    found = {}
    for kind, cotangents in ((ad.Duplicated, shadows), (ad.Active, returned)):
        places = [k for k, have in enumerate(kinds) if have is kind]
        found.update(zip(places, cotangents, strict=True))
    for position, want in case.gradient.items():
        np.testing.assert_allclose(found[position], want, rtol=1e-12, atol=1e-14)
