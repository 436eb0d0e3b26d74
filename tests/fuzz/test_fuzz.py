"""Random programs: a few new ones, and every one that has failed before.

The long search is `python -m tests.fuzz.run --minutes 60`.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.outcome import check_file
from tests.fuzz.program import program

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.py"))
MOST_SECONDS = 45.0  # compiling is slow: what has not run by then is left to the long search
_started: list[float] = []


def test_a_seed_means_one_program() -> None:
    assert program(11) == program(11)
    assert program(11) != program(12)


def test_programs_are_python() -> None:
    for seed in range(150):
        compile(program(seed), f"program {seed}", "exec")


def test_some_programs_are_about_arrays_that_change_hands() -> None:
    texts = [program(seed) for seed in range(150)]
    about = [text for text in texts if "r = State(" in text and "w = rng.uniform" in text]
    assert 10 < len(about) < 40
    assert any("h_hand_over(" in text for text in about)
    assert any(re.search(r"^    +[sr]\.[hg] = [xy]$", text, re.MULTILINE) for text in about)
    assert any(re.search(r"^    r = State\(.*\bs\.[hg]", text, re.MULTILINE) for text in about)


# Each example compiles for seconds; hypothesis' own shrinking would take hours, tests.fuzz.run --reduce
# shrinks the program's text instead.
@settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 10**6))
def test_random_program(tmp_path_factory, seed: int) -> None:
    _started.append(time.monotonic())
    long = settings().max_examples > 100
    if not long and time.monotonic() - _started[0] > MOST_SECONDS:
        return
    path = tmp_path_factory.mktemp("fuzz") / f"program_{seed}.py"
    path.write_text(program(seed), encoding="utf-8")
    outcome = check_file(path)
    assert outcome.kind != "failed", (
        f"python -m tests.fuzz.run --seed {seed} --count 1\n{outcome.why}"
    )


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    outcome = check_file(path)
    assert outcome.kind in ("passed", "refused"), outcome.why
