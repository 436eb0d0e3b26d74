"""Timing, with functions that take turns so that a busy machine slows all of them alike; peaks of memory.

A `Part` is one thing to be timed: the call, and how to make so many sets of arguments for it, outside the
timing.  Fast calls are timed in batches.  What a call returns, tapes too, is given up before the next one, so
memory is warm, as it is in a training loop.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Given = list[tuple[Any, ...]]

BATCH_SECONDS = 5e-3  # one timing covers at least so much
BATCH_CALLS = 2000
LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Part:
    call: Callable[..., Any]
    given: Callable[[int], Given]
    most: int = BATCH_CALLS  # sets of arguments that fit into memory at a time

    def seconds(self, count: int = 1) -> float:
        """Per call, over count calls."""
        return timed(self.call, self.given(count))


def timed(call: Callable[..., Any], given: Given) -> float:
    start = time.perf_counter()
    for args in given:
        call(*args)
    return (time.perf_counter() - start) / len(given)


def first_call(part: Part) -> float:
    """Seconds that the first call takes more than the second: compiling, or loading what was compiled."""
    first = part.seconds()
    return max(0.0, first - part.seconds())


def interleaved(parts: dict[str, Part], rounds: int, budget: float = 60.0) -> dict[str, float]:
    """The median seconds per call of each part, over rounds in which they take turns.

    After budget seconds no further round begins, but there are three.
    """
    counts = {}
    for name, part in parts.items():
        once = min(part.seconds() for _ in range(2))
        counts[name] = int(max(1, min(BATCH_SECONDS / max(once, 1e-9), part.most, BATCH_CALLS)))
    times: dict[str, list[float]] = {name: [] for name in parts}
    begin = time.perf_counter()
    for done in range(rounds):
        if done >= LEAST_ROUNDS and time.perf_counter() - begin > budget:
            break
        for name, part in parts.items():
            times[name].append(part.seconds(counts[name]))
    return {name: statistics.median(found) for name, found in times.items()}


# ---- memory ------------------------------------------------------------------------------------------


def resident() -> int | None:
    """Bytes of this process in memory now; None where the system does not tell."""
    return _status("VmRSS")


def peak_beyond(call: Callable[[], Any], release: Callable[[], Any] = lambda: None) -> int | None:
    """How many bytes the process grows at most during a call.

    Memory that is kept for later use would not show: release gives it back first.
    """
    release()
    _trim()
    before = resident()
    if before is None or not _reset_peak():
        return None
    call()
    peak = _status("VmHWM")
    return None if peak is None else max(0, peak - before)


def _status(key: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return None


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return False
    return True


def _trim() -> None:
    """What is free goes back to the system, as far as the C library does that."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
