"""The functions of CUDA threads: what is in the IR for `cuda.grid`, `cuda.syncthreads`, `cuda.atomic.add`.

A kernel is typed and differentiated as any other function, so what it asks of numba.cuda is replaced by
functions that Numba can type without CUDA.  They are never run: generated code says `cuda.` again
(`TEXTS`, and `ArrayOp.text`).

    cuda.threadIdx.x            Prim thread_x()         int32; a number of its own for each thread
    cuda.grid(1)                Prim grid_x()           int64
    cuda.shared.array(n, t)     Alloc "shared"          one array for all threads of a block
    cuda.local.array(n, t)      Alloc "local"           the thread's own
    cuda.syncthreads()          ArrayCall BARRIER       after it, others may have written any array
    cuda.atomic.add(a, i, v)    ArrayCall add(a, i, v)  its result is the old value, if that is used
    cuda.atomic.max(a, i, v)    ArrayCall max(a, i, v)  targets/cuda/extremes.py adds results, and statements
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from splitad.ir import libdevice

Fn = Callable[..., Any]


def _function(name: str) -> Fn:
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name} means something in a CUDA kernel only")

    stand_in.__name__ = stand_in.__qualname__ = name
    return stand_in


# ---- what a thread knows of itself -------------------------------------------------------------------

_AXES = "xyz"
THREAD = tuple(_function(f"thread_{a}") for a in _AXES)
BLOCK = tuple(_function(f"block_{a}") for a in _AXES)
BLOCK_DIM = tuple(_function(f"block_dim_{a}") for a in _AXES)
GRID_DIM = tuple(_function(f"grid_dim_{a}") for a in _AXES)
GRID = tuple(_function(f"grid_{a}") for a in _AXES)
GRIDSIZE = tuple(_function(f"gridsize_{a}") for a in _AXES)
LANE = _function("laneid")

# the attributes of numba.cuda, for each kind of index
ATTRIBUTES = {"threadIdx": THREAD, "blockIdx": BLOCK, "blockDim": BLOCK_DIM, "gridDim": GRID_DIM}

# how each is written in a kernel; the type of it there
TEXTS: dict[Fn, str] = {
    **{f: f"cuda.{name}.{a}" for name, fs in ATTRIBUTES.items() for f, a in zip(fs, _AXES, strict=True)},
    GRID[0]: "cuda.grid(1)",
    GRID[1]: "cuda.grid(2)[1]",
    GRID[2]: "cuda.grid(3)[2]",
    GRIDSIZE[0]: "cuda.gridsize(1)",
    GRIDSIZE[1]: "cuda.gridsize(2)[1]",
    GRIDSIZE[2]: "cuda.gridsize(3)[2]",
    LANE: "cuda.laneid",
}  # fmt: skip
KINDS: dict[Fn, types.Type] = {
    fn: types.int64 if fn in (*GRID, *GRIDSIZE) else types.int32 for fn in TEXTS
}
for _fn in (f for fs in ATTRIBUTES.values() for f in fs):
    overload(_fn)(lambda: lambda: np.int32(0))
overload(LANE)(lambda: lambda: np.int32(0))

# ---- libdevice -----------------------------------------------------------------------------------------

LIBDEVICE: dict[str, Fn] = {}
LIKE: dict[Fn, Fn] = {}  # each with the function that has its derivative


def _like(name: str, plain: Fn, bits: int) -> None:
    fn = LIBDEVICE[name] = _function(f"libdevice_{name}")
    LIKE[fn] = plain
    KINDS[fn] = types.float32 if bits == 32 else types.float64
    convert = np.float32 if bits == 32 else np.float64
    typings: dict[int, Fn] = {
        1: lambda x: lambda x: convert(x),
        2: lambda x, y: lambda x, y: convert(x + y),
        3: lambda x, y, z: lambda x, y, z: convert(x + y + z),
    }
    count = libdevice.count(plain)
    overload(fn)(typings[count])
    TEXTS[fn] = f"libdevice.{name}({', '.join(f'{{{k}}}' for k in range(count))})"


INDICES = tuple(TEXTS)  # all until here
REMAINDER = _function("remainder")  # math's, which the CPU's Numba does not know
LIKE[REMAINDER] = np.fmod  # out = x - n * y, with another n
TEXTS[REMAINDER] = "math.remainder({0}, {1})"
overload(REMAINDER)(lambda x, y: lambda x, y: x + y + 0.0)
for _name, (_plain, _bits) in libdevice.FUNCTIONS.items():
    _like(_name, _plain, _bits)

# ---- what a kernel calls -----------------------------------------------------------------------------

grid = _function("grid")
gridsize = _function("gridsize")
syncthreads = _function("syncthreads")
shared_array = _function("shared_array")
local_array = _function("local_array")
ATOMICS = {op: _function(f"atomic_{op}") for op in ("add", "sub", "max", "min")}


@overload(grid)
@overload(gridsize)
def _type_grid(ndim):  # type: ignore[no-untyped-def]
    count = getattr(ndim, "literal_value", None)
    found = {1: lambda ndim: 0, 2: lambda ndim: (0, 0), 3: lambda ndim: (0, 0, 0)}
    return found.get(count)  # type: ignore[arg-type]


@overload(syncthreads)
def _type_syncthreads():  # type: ignore[no-untyped-def]
    return lambda: None


@overload(shared_array)
@overload(local_array)
def _type_array(shape, dtype):  # type: ignore[no-untyped-def]
    return lambda shape, dtype: np.empty(shape, dtype)


def _type_atomic(ary, idx, val):  # type: ignore[no-untyped-def]
    return lambda ary, idx, val: ary[idx]


for _fn in ATOMICS.values():
    overload(_fn)(_type_atomic)


@dataclass(frozen=True)
class ArrayOp:
    """What an ArrayCall of the IR calls.  kind: "barrier", or the name of an atomic operation.

    A barrier's arguments are the `count` arrays that other threads may write.  An atomic's are the array,
    `count` indices, and the value.

    winner: of a max or min with an adjoint, what says whether its value is what the element holds in the
    end: a boolean; or whether it may be, and the value, to be compared with what the element holds.
    kind "claim" and "confirm": the two steps that decide it (targets/cuda/extremes.py).
    """

    kind: str
    count: int = 0
    winner: tuple[Any, ...] = ()

    @property
    def __name__(self) -> str:
        return "cuda.syncthreads" if self.kind == "barrier" else f"cuda.atomic.{self.kind}"

    @property
    def text(self) -> str:
        """For str.format with the arguments."""
        if self.kind == "barrier":
            return "cuda.syncthreads()"
        index = ", ".join(f"{{{k + 1}}}" for k in range(self.count))
        place = index if self.count == 1 else f"({index})"
        return f"cuda.atomic.{self.kind}({{0}}, {place}, {{{self.count + 1}}})"

    def reads(self) -> tuple[int, ...]:
        return () if self.kind in ("barrier", "claim", "confirm") else (0, self.count + 1)

    def writes(self) -> tuple[int, ...]:
        if self.kind in ("claim", "confirm"):
            return ()
        return tuple(range(self.count)) if self.kind == "barrier" else (0,)

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError(f"{self.__name__} means something in a CUDA kernel only")


BARRIER = ArrayOp("barrier")  # its arguments are not known yet
