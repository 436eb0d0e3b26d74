"""The pair of small functions: against finite differences, and as text."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import splitad as ad
from splitad.ir import activities
from splitad.testing import check_vjp
from tests.conftest import Golden
from tests.transform import golden_programs, programs
from tests.transform.pair_text import pair_text, stable


@pytest.mark.parametrize("case", programs.CASES, ids=lambda case: case.fn.__name__)
def test_checked(case: programs.Case) -> None:
    args = case.args()
    kinds = None
    if case.const:
        given = [activities.default(numba.typeof(a)) for a in args]
        kinds = tuple(ad.Const if k in case.const else a for k, a in enumerate(given))
    check_vjp(numba.njit(case.fn), *args, activities=kinds, directions=1)


@pytest.mark.parametrize("case", golden_programs.CASES, ids=lambda case: case.fn.__name__)
def test_text(case: programs.Case, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks at the boundary, which are the same in all."""
    monkeypatch.setattr("splitad.transform.augment.write_argument_checks", lambda *args: None)
    monkeypatch.setattr("splitad.transform.pullback.write_shadow_checks", lambda *args: None)
    golden(f"pairs/{case.fn.__name__}.txt", stable(pair_text(case.fn, *case.args())))


def test_what_a_condition_was_is_read_from_the_tape() -> None:
    """Computed again under fastmath, ``x * x - y`` may round to the other side."""
    text = pair_text(golden_programs.rounding, np.ones(3), np.ones(3))
    assert "above = tape_above[i]" in text.pullback and " > " not in text.pullback.split("for i")[1]
