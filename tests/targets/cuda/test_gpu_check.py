"""The program for machines with a GPU, tried in numba's simulator: that it does not fail there of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "gpu_check.py"


@pytest.mark.parametrize("part", ["times", "peers", "interop"])
def test_part(part: str, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--only", part, "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "0 failed" in done.stdout
    found = json.loads(output.read_text())[part]
    assert found and all(outcome["ok"] is not False for outcome in found.values())
    if part != "interop":
        assert found["axpy"]["ok"] and found["histogram"]["ok"]
