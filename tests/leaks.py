"""Counting what Numba's runtime and the tape pool hold."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.runtime import _nrt_python, rtsys

from splitad.tape import ops

_nrt_python.memsys_enable_stats()


def held() -> tuple[int, int, int, int]:
    """Arrays and other allocations alive, MemInfos alive, tapes alive, bytes of tapes."""
    gc.collect()
    stats = rtsys.get_allocation_stats()
    return (
        stats.alloc - stats.free,
        stats.mi_alloc - stats.mi_free,
        ops.live_tapes(),
        ops.live_bytes(),
    )


@contextmanager
def no_leak() -> Iterator[None]:
    """Asserts that as much is alive after the block as before it."""
    before = held()
    yield
    assert held() == before
