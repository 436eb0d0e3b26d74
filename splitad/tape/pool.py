"""Where tapes get their memory: a bounded pool of blocks that are used again.

A fresh block of some megabytes costs a page fault every 4 KB, which can be as much as the forward
itself; a used one costs nothing.  So freed blocks of 64 KB and more go to a list of at most 16 (256 MB in
all, the oldest go first), and a request takes the smallest one that fits and is not over four times too
large.  Smaller blocks come from malloc, which keeps its own lists.

The code is a small LLVM module, compiled when this file is imported.  Generated code calls it by symbol
name (`SYMBOLS`), so that machine code from a disk cache finds it in a new process.

    splitad_tape_init(handle, capacity, limit)  a new handle, with a block where capacity > 0
    splitad_tape_grow(handle, used, total)      1: capacity >= total; 0: over the limit; -1: no memory
    splitad_tape_trim(handle)                   swaps a block that is mostly empty for a smaller one
    splitad_tape_release(handle)                gives the block back, capacity 0
    splitad_tape_dtor(handle, size, info)       the same, and the handle is dead (for Numba's runtime)

All arguments are 64-bit integers; a handle is the address of six: block address, capacity, bytes used,
limit, what else the tape keeps alive (a MemInfo of Numba's runtime, or 0), and the bytes of that.  Every
block is 64-byte aligned and has its capacity just before its data.

Threads: the list has a lock that nobody waits for long.  Who does not get it after some tries goes to malloc
and free directly; the pool is an optimisation, and a lock held by a thread that is not running (or that a
fork left behind) must not stop anyone.

From Python: live_tapes(), live_bytes(), pooled_bytes(), release_memory().
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from llvmlite import ir
from numba.core.runtime import _nrt_python

from splitad.tape import freed
from splitad.tape import pool_code as code
from splitad.tape.machine_code import compiled
from splitad.tape.pool_code import MAX_BLOCKS, MAX_POOLED

__all__ = [
    "MAX_BLOCKS", "MAX_POOLED", "SYMBOLS", "live_bytes", "live_tapes", "pooled_bytes", "release_memory",
]  # fmt: skip

SYMBOLS = (
    "splitad_tape_init",
    "splitad_tape_grow",
    "splitad_tape_trim",
    "splitad_tape_release",
    "splitad_tape_dtor",
)

# Python reads it, the compiled code writes it.
_state = (ctypes.c_int64 * code.STATE_WORDS)()


def live_tapes() -> int:
    """How many tapes are alive."""
    return int(_state[code.LIVE_TAPES])


def live_bytes() -> int:
    """The bytes of the blocks that live tapes hold."""
    return int(_state[code.LIVE_BYTES])


def pooled_bytes() -> int:
    """The bytes of the blocks that wait to be used again."""
    return int(_state[code.POOLED_BYTES])


def release_memory() -> None:
    """Give the memory of freed tapes and arrays back to the operating system."""
    _drain()
    freed.give_back()


def _build() -> tuple[Callable[[], None], object]:
    module = ir.Module(name="splitad_tape_pool")
    code.emit(module, ctypes.addressof(_state), _nrt_python.c_helpers["MemInfo_release"])
    engine = compiled(module, SYMBOLS)
    drain = ctypes.CFUNCTYPE(None)(engine.get_function_address("splitad_pool_drain"))
    return drain, engine


freed.keep()
_drain, _engine = _build()  # the engine owns the machine code
