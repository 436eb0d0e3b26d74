"""Whole arrays on the tape: their elements in C order, then their shape."""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.extending import overload

from splitad.tape.ops import column, snapshot, snapshot_view


@njit(inline="always")
def snapshot_nbytes(a: Any) -> int:
    """The bytes that `a` takes: a multiple of 8."""
    return ((a.size * a.itemsize + 7) & -8) + 8 * a.ndim


@njit
def put_array(base: int, cur: int, a: Any) -> None:
    """Write `a` at offset cur."""
    snapshot(base, cur, a)
    end = cur + snapshot_nbytes(a)
    shape = column(base, end - 8 * a.ndim, types.int64)
    for axis in range(a.ndim):
        shape[axis] = a.shape[axis]


def last_array(base: int, cur: int, dtype: Any, dims: tuple[int, ...]) -> Any:
    """The array that ends at offset cur, as a C-contiguous array over the tape's memory.

    dims: a tuple of as many integers as the array has dimensions; their values do not matter.
    """
    raise NotImplementedError


@overload(last_array)
def _last_array(base, cur, dtype, dims):  # type: ignore[no-untyped-def]
    ndim = len(dims)

    if ndim == 0:

        def scalar(base, cur, dtype, dims):  # type: ignore[no-untyped-def]
            return snapshot_view(base, cur - ((_itemsize(dtype) + 7) & -8), (), dtype)

        return scalar

    def impl(base, cur, dtype, dims):  # type: ignore[no-untyped-def]
        shape = _read_shape(base, cur - 8 * ndim, dims)
        size = 1
        for n in shape:
            size *= n
        start = cur - 8 * ndim - ((size * _itemsize(dtype) + 7) & -8)
        return snapshot_view(base, start, shape, dtype)

    return impl


def _itemsize(dtype: Any) -> int:
    raise NotImplementedError


@overload(_itemsize)
def _itemsize_impl(dtype):  # type: ignore[no-untyped-def]
    from splitad.tape.columns import scalar_type

    inner = scalar_type(dtype)
    if isinstance(inner, types.Boolean):
        size = 1
    elif isinstance(inner, types.Complex):
        size = inner.bitwidth // 8
    elif isinstance(inner, types.Record):
        size = inner.size
    else:
        size = inner.bitwidth // 8
    return lambda dtype: size


def _read_shape(base: int, offset: int, dims: Any) -> Any:
    raise NotImplementedError


@overload(_read_shape)
def _read_shape_impl(base, offset, dims):  # type: ignore[no-untyped-def]
    ndim = len(dims)
    items = ", ".join(f"c[{k}]" for k in range(ndim)) + ","
    text = f"def impl(base, offset, dims):\n    c = column(base, offset, int64)\n    return ({items})\n"
    scope: dict[str, Any] = {"column": column, "int64": types.int64}
    exec(text, scope)  # the number of dimensions is only known by type
    return scope["impl"]
