"""No search for garbage while code is compiled.

    without_collection(function) -> function()

What a compilation makes is in use until its end, and Python's collector goes over all of it again and again,
and over all else that the process holds; one search after the end finds the same.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_running = 0  # compilations, of all threads and within each other
_was_on = False  # before the first of them


def without_collection(function: Callable[[], T]) -> T:
    global _running, _was_on
    with _lock:
        if not _running:
            _was_on = gc.isenabled()
            gc.disable()
        _running += 1
    try:
        return function()
    finally:
        with _lock:
            _running -= 1
            if not _running and _was_on:
                gc.enable()
