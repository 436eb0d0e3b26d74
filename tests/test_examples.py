"""Every example runs as it is, in a process of its own, and says what its docstring promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(line: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", line)]


def test_every_example_has_a_test() -> None:
    here = Path(__file__)
    for path in EXAMPLES.glob("*.py"):
        tested = f"def test_{path.stem}(" in here.read_text(encoding="utf-8")
        assert tested or (here.parent / f"test_{path.name}").exists(), f"{path.name} has no test"


def test_recover_initial_state(tmp_path: Path) -> None:
    picture = tmp_path / "result.png"
    viscosity, state, _ = run("recover_initial_state.py", "--output", str(picture)).splitlines()
    truth, start, result = numbers(viscosity)
    assert abs(result - truth) < 0.1 * abs(start - truth)
    at_start, at_end = numbers(state)
    assert at_end < 0.2 * at_start
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_train_lstm(tmp_path: Path) -> None:
    picture = tmp_path / "result.png"
    text = run("train_lstm.py", "--iterations", "40", "--output", str(picture))
    misfit, error, _ = text.splitlines()
    at_first, trained = numbers(misfit)
    assert trained < 0.04 * at_first
    assert numbers(error)[0] < 0.3  # of a sine of amplitude 1, 60 steps ahead
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_mutable_struct() -> None:
    *lines, first, second = run("mutable_struct.py").splitlines()
    derivatives = [numbers(line)[-1] for line in lines]
    assert derivatives == pytest.approx([4.0] * 6 + [8.0], rel=1e-14)
    assert first == second
    assert "value = 2.0, dx = 4.0, p2 = 1.0, p1 = [2. 3.]" in first


def test_split_from_njit() -> None:
    _, *checks = run("split_from_njit.py").splitlines()
    assert len(checks) == 2
    for line in checks:
        by_pullback, by_differences = numbers(line)
        assert by_pullback == pytest.approx(by_differences, rel=1e-6)


def test_errors() -> None:
    text = run("errors.py")
    blocks = re.split(r"^--- .* ---\n", text, flags=re.M)[1:]
    assert len(blocks) == text.count("\n--- ") + 1 >= 10
    for block in blocks:
        assert re.match(
            r"(UnsupportedError|NotDifferentiableError|AliasingError|ShadowError"
            r"|TapeLimitError|TypeError): ",
            block,
        ), block
    assert "def protected" not in blocks[0] and "try:" in blocks[0]


def test_cuda_wave() -> None:
    text = run("cuda_wave.py")
    pairs = [numbers(line)[0] for line in text.splitlines() if ":  " in line]
    assert len(pairs) == 4
    assert pairs[0] == pytest.approx(pairs[1], rel=1e-3, abs=1e-5)
    assert pairs[2] == pytest.approx(pairs[3], rel=1e-3, abs=1e-5)
