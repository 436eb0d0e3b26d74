"""The reducer keeps what makes a program fail, and hardly anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.outcome import Outcome
from tests.fuzz.reduce import category, reduce

PROGRAM = """
def f(x, a):
    s = 0.0
    for i in range(3):
        if a > 0.5:
            s += 2.0 * a
            x[i] = math.sin(s * x[i]) + a
        else:
            s -= a
    while s > 2.0:
        s *= 0.5
    return s
"""


def fails_with_sine(path: Path) -> Outcome:
    text = path.read_text(encoding="utf-8")
    if "return" not in text:
        return Outcome("failed", "something else")
    return Outcome("failed", "f: 17 disagrees") if "math.sin" in text else Outcome("passed")


def test_what_is_left(tmp_path: Path) -> None:
    source, target = tmp_path / "program.py", tmp_path / "small.py"
    source.write_text(PROGRAM, encoding="utf-8")
    assert reduce(source, target, fails_with_sine).kind == "failed"
    assert target.read_text(encoding="utf-8").split() == (
        "# ruff: noqa def f(x, a): x[i] = math.sin(s) return s".split()
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["program.py", "small.py"]


def test_a_program_that_passes_is_not_reduced(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text("def f(x):\n    return x\n", encoding="utf-8")
    with pytest.raises(ValueError, match="does not fail"):
        reduce(source, tmp_path / "small.py", fails_with_sine)


def test_failures_are_told_apart_without_numbers() -> None:
    first = Outcome("failed", "f: argument 3 is 1.5e-7")
    assert category(first) == category(Outcome("failed", "f: argument 12 is -2"))
    assert category(first) != category(Outcome("failed", "KeyError: 3"))
