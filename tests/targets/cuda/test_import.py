"""`ad.cuda` is there when it is asked for, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(code: str, folder: Path, **env: str) -> str:
    path = folder / "program.py"
    path.write_text(code)
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_numba_cuda_is_not_imported(tmp_path: Path) -> None:
    code = "import sys, splitad; print('numba.cuda' in sys.modules)"
    assert run(code, tmp_path) == "False"


def test_without_numba_cuda(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["numba.cuda"] = None
import splitad as ad
try:
    ad.cuda
except ImportError as error:
    print(error)
"""
    assert "splitad[cuda13]" in run(code, tmp_path)


def test_without_a_gpu(tmp_path: Path) -> None:
    code = """
import numpy as np, splitad as ad
from numba import cuda

@cuda.jit
def double(x):
    x[cuda.grid(1)] *= 2.0

forward = ad.cuda.split(double)
if cuda.is_available():
    print("a GPU")
else:
    try:
        forward[1, 8](np.ones(8))
    except ad.SplitadError as error:
        print(error)
"""
    said = run(code, tmp_path, NUMBA_ENABLE_CUDASIM="0")
    if said == "a GPU":
        pytest.skip("there is a GPU")
    assert "NUMBA_ENABLE_CUDASIM=1" in said and "splitad[cuda13]" in said
