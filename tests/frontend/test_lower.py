"""What is lowered does what njit does: every program of lower_programs.py, executed as IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from splitad.ir import nodes as ir
from splitad.ir import walk
from tests.frontend.lower_programs import PROGRAMS
from tests.frontend.lowering import check


@pytest.mark.parametrize("fn, cases", PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_it_does_what_njit_does(fn: Callable[..., Any], cases: list[tuple[Any, ...]]) -> None:
    check(fn, *cases)


def statements(fn: ir.Function, kind: type) -> list[Any]:
    return [stmt for stmt in walk.statements(fn.body) if isinstance(stmt, kind)]
