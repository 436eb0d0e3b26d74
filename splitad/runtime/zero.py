"""make_zero: a shadow of zeros for a value as it is now.

    make_zero(x)        in Python and in njit code
    zeros_as(x)         in njit code; the same, but no element of an array is read (integers become 0)

arrays                     zeros of the same shape and dtype, C or Fortran order as x; x[::2] gives a C array
integers, bools            as they are, alone and in arrays, in record arrays field by field: they have no
                           cotangent, but a shadow must have the same structure
float, complex             0.0 of the same type
tuples, namedtuples        item by item
jitclass, structref        a new instance of the same class, field by field; __init__ is not run
lists, typed lists         a new list, item by item
anything else              x itself (None, strings, functions, dtypes)

What aliases in x aliases in the shadow: a struct met twice gives one shadow, and arrays whose memory overlaps
get views of one block of zeros at the same byte offsets.

Plain containers of arrays are done in Python, everything else by a function generated from the type.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from splitad.runtime.content import user_overloads
from splitad.runtime.extents import groups
from splitad.runtime.stored import Keeper, keeping_jit, key_of
from splitad.runtime.zero_text import zero_function

device_zeros: list[Any] = []  # how arrays on a CUDA device get theirs; put in by api.py

# ---- in Python -----------------------------------------------------------------------------------------


def make_zero(x: Any) -> Any:
    """A zero shadow for x as it is now: arrays, tuples, namedtuples, jitclass and structref instances, typed
    lists, nested; what aliases in x aliases in the shadow; integers are copied.  Works in njit code too.
    """
    if hasattr(x, "__cuda_array_interface__") or hasattr(x, "__cuda_ndarray__"):
        return device_zeros[0](x)
    arrays: list[np.ndarray] = []
    if _is_plain(x, arrays):
        return _plain_zero(x, shadows_of(arrays))
    return _compiled()(x)


def _is_plain(x: Any, arrays: list[np.ndarray]) -> bool:
    """Whether x is made of arrays, tuples and immutable values; collects the arrays."""
    if isinstance(x, np.ndarray):
        arrays.append(x)
        return True
    if isinstance(x, (tuple, list)):
        plain = [_is_plain(item, arrays) for item in x]  # all of them: it collects
        return all(plain)
    return not hasattr(x, "_numba_type_")  # structs, typed lists


def _plain_zero(x: Any, shadows: dict[int, np.ndarray]) -> Any:
    if isinstance(x, np.ndarray):
        return shadows[id(x)]
    if isinstance(x, tuple):
        items = [_plain_zero(item, shadows) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    if isinstance(x, list):
        return [_plain_zero(item, shadows) for item in x]
    if isinstance(x, (float, complex, np.inexact)):
        return type(x)(0)
    return x


def shadows_of(arrays: list[np.ndarray]) -> dict[int, np.ndarray]:
    """The shadow of each array, by id."""
    if len(arrays) == 1:
        return {id(arrays[0]): _zeros(arrays[0])}
    distinct = list({id(a): a for a in arrays}.values())
    shadows = {id(a): _zeros(a) for a in distinct if not a.size}
    for lo, hi, members in groups([_span(a) if a.size else (0, 0) for a in distinct]):
        shadows.update(_group_shadows([distinct[k] for k in members], lo, hi))
    return shadows


def _span(a: np.ndarray) -> tuple[int, int]:
    """The bytes [lo, hi) that an array with elements spans."""
    reach = [(n - 1) * stride for n, stride in zip(a.shape, a.strides, strict=True)]
    start = a.__array_interface__["data"][0]
    return start + sum(r for r in reach if r < 0), start + sum(
        r for r in reach if r > 0
    ) + a.itemsize


def _group_shadows(arrays: list[np.ndarray], lo: int, hi: int) -> dict[int, np.ndarray]:
    if len(arrays) == 1:
        return {id(arrays[0]): _zeros(arrays[0])}
    lo &= -64  # elements are aligned in the shadow as they are in the primal
    block = _aligned_bytes(hi - lo)
    shadows = {}
    for a in arrays:
        shadow = np.ndarray(
            a.shape, a.dtype, block, a.__array_interface__["data"][0] - lo, a.strides
        )
        _copy_discrete(shadow, a)
        shadows[id(a)] = shadow
    return shadows


def _aligned_bytes(size: int) -> np.ndarray:
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.__array_interface__["data"][0] % 64
    return raw[skip : skip + size]


def _zeros(a: np.ndarray) -> np.ndarray:
    order: Any = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    shadow: np.ndarray = np.zeros(a.shape, a.dtype, order=order)
    _copy_discrete(shadow, a)
    return shadow


def _copy_discrete(shadow: np.ndarray, a: np.ndarray) -> None:
    """Copy what has no cotangent."""
    if a.dtype.names:
        for name in a.dtype.names:
            _copy_discrete(shadow[name], a[name])
    elif a.dtype.kind not in "fc":
        shadow[...] = a


@cache
def _compiled() -> Any:
    """make_zero for any value, in compiled code; what is made for a type is kept on disk."""

    def zero(x: Any) -> Any:
        return make_zero(x)

    return keeping_jit(zero, Keeper(lambda args: key_of("make_zero", *user_overloads(), *args)))


@overload(make_zero, strict=False)
def _make_zero(x: Any) -> Any:
    return zero_function(types.unliteral(x))


def zeros_as(x: Any) -> Any:
    """As make_zero, in njit code only, for arrays of which only the layout is known: their memory may be
    gone, so no element is read, and integer elements are zeros too."""
    raise NotImplementedError


@overload(zeros_as, strict=False)
def _zeros_as(x: Any) -> Any:
    return zero_function(types.unliteral(x), reads=False)
