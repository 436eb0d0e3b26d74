"""Freed memory stays with the process for the next array.

A gradient is a new array at every call, and a fresh one costs a page fault for every 4 KB: for arrays of
100 KB to 32 MB, faults can take longer than all the work.  glibc gives freed memory back to the system where
more than twice the largest block that was ever mapped and freed lies unused, and maps what is larger than
that block anew.  It learns from what it is asked for, up to 32 MB; `keep` is one such block, that nobody
touches.  Where the user set these thresholds, or with another C library, it changes nothing.
"""

from __future__ import annotations

import ctypes
import sys

LARGEST = (32 << 20) - (64 << 10)  # glibc learns from blocks of up to 32 MB, with their header


def keep() -> None:
    """From now on, up to 64 MB of freed memory are kept, and arrays of up to 32 MB are made of it."""
    if sys.platform != "linux":
        return
    c = ctypes.CDLL(None)
    c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    c.free.restype, c.free.argtypes = None, [ctypes.c_void_p]
    c.free(c.malloc(LARGEST))


def give_back() -> None:
    """Give what is free to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(ctypes.c_size_t(0))
