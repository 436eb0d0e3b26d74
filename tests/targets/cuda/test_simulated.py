"""The tests of kernels' gradients, run by numba's simulator in a process of its own.

The simulator is chosen when numba is imported, for the whole process.  The tests are in the files listed
here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent


FILES = [
    "simulated.py", "gathered.py", "refusals.py", "extrema.py", "random_kernels.py", "random_stencils.py",
]  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_in_the_simulator(file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, str(HERE / file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTEST_ADDOPTS": ""},
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
