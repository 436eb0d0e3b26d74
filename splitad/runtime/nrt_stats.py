"""How many blocks Numba's runtime holds: what a leak check counts."""

from __future__ import annotations

import gc

from numba.core.runtime import _nrt_python, rtsys


def live_blocks() -> tuple[int, int]:
    """Blocks of memory, and arrays and other objects, that are held now (counted since the first call)."""
    _nrt_python.memsys_enable_stats()
    gc.collect()
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free, stats.mi_alloc - stats.mi_free
