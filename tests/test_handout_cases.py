"""Faults that users of other tools met, through ``split`` and through the checker."""

from __future__ import annotations

import pytest

from tests.cases import handout_cases
from tests.cases.adapter import run_case
from tests.pairs import check

CASES = handout_cases.CASES
_ORDINARY = [case for case in CASES if case.kind not in ("script", "error", "subgrad")]


def ids(case):
    return case.id


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_case_is_right(case) -> None:
    assert handout_cases.check(case) is None


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_case(case) -> None:
    run_case(case)


@pytest.mark.parametrize("case", _ORDINARY, ids=ids)
def test_checked(case) -> None:
    check(handout_cases.compile_case(case), *case.args())
