"""Freed memory stays with the process, until it is given back."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
import splitad as ad

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def rounds(count):
    before = faults()
    for _ in range(count):
        arrays = [np.ones(100_000) for _ in range(8)]
        del arrays
    return faults() - before

rounds(3)
kept = rounds(5)
ad.release_memory()
print(kept, rounds(1))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_used_again(monkeypatch) -> None:
    """Eight arrays of 196 pages each: no faults in rounds, but again behind release_memory."""
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"):
        monkeypatch.delenv(name, raising=False)
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    kept, anew = map(int, run.stdout.split())
    assert kept < 500
    assert anew > 8 * 100
