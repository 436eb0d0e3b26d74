"""Arrays on the device, and in numba's simulator: their types, where they lie, zeros, copies.

Anything with `__cuda_array_interface__` will do (numba, CuPy, PyTorch); in the simulator, what
`cuda.to_device` returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, cuda, from_dtype, types

from splitad.codegen.load import load_source

SIMULATED = bool(config.ENABLE_CUDASIM)


def is_array(x: Any) -> bool:
    """Whether x is an array on the device."""
    if SIMULATED:
        return hasattr(x, "__cuda_ndarray__")
    return hasattr(x, "__cuda_array_interface__")


def as_array(x: Any, wait: bool = True) -> Any:
    """x as numba's kind of array, over the same memory.  wait: for what x's own stream still does."""
    return x if hasattr(x, "__cuda_ndarray__") else cuda.as_cuda_array(x, sync=wait)


def address(x: Any) -> int:
    return int(x._ary.ctypes.data if SIMULATED else x.device_ctypes_pointer.value or 0)


def type_of(x: Any) -> types.Array:
    """The type of an array in a kernel."""
    layout = "A"
    if _is_contiguous(x.shape[::-1], x.strides[::-1], x.dtype.itemsize):
        layout = "C"
    elif _is_contiguous(x.shape, x.strides, x.dtype.itemsize):
        layout = "F"
    return types.Array(from_dtype(np.dtype(x.dtype)), len(x.shape), layout)


def _is_contiguous(shape: Any, strides: Any, size: int) -> bool:
    """Of axes from the fastest to the slowest."""
    for n, stride in zip(shape, strides, strict=True):
        if n == 0:
            return True
        if n > 1 and stride != size:
            return False
        size *= n
    return True


class _Placed:
    """Memory that NumPy may reason about, and must not look at."""

    def __init__(self, x: Any) -> None:
        self.__array_interface__ = {
            "shape": tuple(x.shape),
            "strides": tuple(x.strides),
            "typestr": np.dtype(x.dtype).str,
            "data": (address(x), False),
            "version": 3,
        }


def _placed(x: Any) -> np.ndarray:
    return np.asarray(_Placed(x))


def overlap(x: Any, y: Any) -> bool:
    """Whether two arrays have an element in common."""
    if 0 in (*x.shape, *y.shape):
        return False
    try:
        return np.shares_memory(_placed(x), _placed(y), max_work=100_000)  # type: ignore[arg-type]
    except Exception:  # too hard to tell
        return True


def overlaps_itself(x: Any) -> bool:
    """Whether two elements of an array may share memory."""
    span = x.dtype.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if stride < span:
            return True
        span += stride * (n - 1)
    return False


def size(x: Any) -> int:
    return int(np.prod(x.shape, dtype=np.int64))


def to_device(x: np.ndarray, stream: Any = 0) -> Any:
    return cuda.to_device(x, stream=stream)


# ---- new arrays ----------------------------------------------------------------------------------------


def empty(shape: Any, dtype: Any, order: str = "C") -> Any:
    return cuda.device_array(shape, dtype, order=order)


def zeros_like(x: Any, stream: Any = 0) -> Any:
    """A contiguous array of zeros, in the order of x; integers in records as they are there."""
    if x.dtype.names is not None:
        host = read(as_array(x), stream)
        for name in host.dtype.names or ():
            if host.dtype[name].kind == "f":
                host[name] = 0
        return to_device(host, stream)
    made = empty(tuple(x.shape), x.dtype, "F" if type_of(x).layout == "F" else "C")
    clear(made, stream)
    return made


def zeros(shape: Any, dtype: Any, stream: Any = 0) -> Any:
    made = empty(shape, dtype)
    clear(made, stream)
    return made


def clear(x: Any, stream: Any = 0) -> None:
    """Zeros in a contiguous array."""
    if SIMULATED:
        x._ary[...] = 0
    elif x.size:
        from numba.cuda.cudadrv import driver

        driver.device_memset(x, 0, x.dtype.itemsize * x.size, stream)


def copy(x: Any, stream: Any = 0) -> Any:
    """A contiguous copy, in the order of x."""
    layout = type_of(x).layout
    made = empty(tuple(x.shape), x.dtype, "F" if layout == "F" else "C")
    assign(made, x, stream)
    return made


def assign(to: Any, x: Any, stream: Any = 0) -> None:
    """to[...] = x, of the same shape and dtype."""
    size = int(np.prod(x.shape))
    if size == 0:
        return
    if SIMULATED:
        to._ary[...] = x._ary
    elif type_of(to).layout == type_of(x).layout != "A":
        to.copy_to_device(x, stream=stream)
    else:
        _copier(len(x.shape))[min(-(-size // 256), 1024), 256, stream](to, x)


_kernels: dict[str, Any] = {}


def _kernel(name: str, lines: list[str]) -> Any:
    if name not in _kernels:
        module = load_source(name, "\n".join(lines) + "\n", {"cuda": cuda})
        _kernels[name] = cuda.jit(getattr(module, name))
    return _kernels[name]


def _copier(ndim: int) -> Any:
    """A kernel that copies arrays of any layout."""
    lines = [
        f"def copy_elements_{ndim}(to, x):",
        "    size = 1",
        *(f"    size *= x.shape[{k}]" for k in range(ndim)),
        "    for at in range(cuda.grid(1), size, cuda.gridsize(1)):",
    ]
    for k in reversed(range(ndim)):
        lines += [f"        i{k} = at % x.shape[{k}]", f"        at //= x.shape[{k}]"]
    index = ", ".join(f"i{k}" for k in range(ndim))
    lines.append(f"        to[{index}] = x[{index}]")
    return _kernel(f"copy_elements_{ndim}", lines)


def add_sum(to: Any, x: Any, stream: Any = 0) -> None:
    """to[0] += sum(x), of one dimension."""
    lines = [
        "def add_sum(to, x):",
        "    total = 0.0",
        "    for at in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):",
        "        total += x[at]",
        "    cuda.atomic.add(to, 0, total)",
    ]
    _kernel("add_sum", lines)[1, 1 if SIMULATED else 256, stream](to, x)


def as_type(memory: Any, type: types.Array, columns: int) -> Any:
    """Memory, an array of bytes, as rows of that many values; of three dimensions, as rows of that many cells
    of 8 bytes, each of one or several values."""
    dtype = np.dtype(np.bool_ if isinstance(type.dtype, types.Boolean) else str(type.dtype))
    shape: tuple[int, ...] = (memory.size // dtype.itemsize // columns, columns)
    if type.ndim == 3:
        shape = (memory.size // 8 // columns, columns, 8 // dtype.itemsize)
    return memory.view(dtype).reshape(shape)


def read(x: Any, stream: Any = 0) -> np.ndarray:
    """The contents, once what the stream does is done."""
    stream = stream or getattr(x, "stream", 0)  # that of another library's array
    made: np.ndarray = x.copy_to_host(stream=stream)
    if stream:  # then the copy was only asked for
        (stream.synchronize if hasattr(stream, "synchronize") else stream.sync)()
    return made
