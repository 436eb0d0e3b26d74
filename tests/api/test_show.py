"""`show`: the generated code with the user's lines, the tape, what was chosen for each line and why."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import splitad as ad
from splitad.explain.table import table
from splitad.tape.ops import live_tapes
from tests.api import programs as p


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    u, tapes = p.U.copy(), live_tapes()
    shown = ad.show(p.advance, u, p.NU)
    assert np.array_equal(u, p.U) and live_tapes() == tapes  # nothing is run
    printed = capsys.readouterr().out
    for part in (shown.forward_source, shown.pullback_source, shown.tape):
        assert part.strip() in printed
    for source in (shown.forward_source, shown.pullback_source):
        ast.parse(source)
        assert "# " in source and "u[i] = u[i] + nu * u[i - 1] * u[i]" in source
    assert "def advance__forward(" in shown.forward_source
    assert "def advance__pullback(" in shown.pullback_source
    assert "8 bytes per iteration" in shown.tape and "u[i - 1]" in shown.tape
    assert "recomputed in the pullback:" in shown.tape
    assert table(shown.choices) in printed
    assert {c.function for c in shown.choices} == {"advance"}
    assert any(c.choice == "taped" and c.text in printed for c in shown.choices)


def test_show_of_a_pair_and_of_activities() -> None:
    assert ad.show(p.dot_pair, np.ones(2), np.ones(2)).forward_source
    shown = ad.show(p.dot, np.ones(2), np.ones(2), activities=(ad.Duplicated, ad.Const))
    assert "(d_y, i" not in shown.pullback_source and "(d_x, i" in shown.pullback_source


def test_show_is_reproducible() -> None:
    first, second = (ad.show(p.dot, np.ones(2), np.ones(2)) for _ in range(2))
    assert str(first) == str(second)
