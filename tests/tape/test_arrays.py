"""arrays: whole arrays on the tape."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numba import njit

from splitad.tape.arrays import (
    copy_array,
    empty_array,
    last_array,
    put_array,
    snapshot_nbytes,
    zero_array,
)
from splitad.tape.ops import tape_grow, tape_new


@cache
def there_and_back(ndim: int) -> Any:
    @njit
    def f(a, dtype):
        tape = tape_new(0, 1 << 30)
        size = snapshot_nbytes(a)
        tape_grow(tape, 0, 16 + 2 * size)
        put_array(tape[0], 16, a)
        put_array(tape[0], 16 + size, a)  # two of them, found from their end
        second = last_array(tape[0], 16 + 2 * size, dtype, ndim).copy()
        first = last_array(tape[0], 16 + size, dtype, ndim).copy()
        return first, second, size

    return f


RECORD = np.dtype([("a", "f8"), ("n", "i4"), ("b", "f8", (2,))])
ARRAYS = {
    "vector": np.linspace(0, 1, 5),
    "strided": np.linspace(0, 1, 10)[::-2],
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "transposed": np.arange(24.0).reshape(2, 3, 4).T,
    "bools": np.arange(11) % 3 == 0,
    "float32": np.arange(5, dtype=np.float32),
    "complex64": np.arange(3).astype(np.complex64),
    "empty": np.zeros((0, 3)),
    "scalar": np.array(1.5),
    "records": np.arange(3).astype(RECORD),
    "record": np.array(2).astype(RECORD),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_there_and_back(name: str) -> None:
    a = ARRAYS[name]
    first, second, size = there_and_back(a.ndim)(a, a.dtype)
    for copy in (first, second):
        assert copy.shape == a.shape and copy.dtype == a.dtype and copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, a)
    assert size % 8 == 0 and size >= a.nbytes + 8 * a.ndim


@njit
def new(shape, dtype):
    return zero_array(shape, dtype), empty_array(shape, dtype)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("?"), RECORD])
def test_new_arrays(shape: tuple[int, ...], dtype: np.dtype) -> None:
    zeros, empty = new(shape, dtype)
    for made in (zeros, empty):
        assert made.shape == shape and made.dtype == dtype and made.flags.c_contiguous
    np.testing.assert_array_equal(zeros, np.zeros(shape, dtype))


def test_a_new_array_has_no_negative_size() -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        new((2, -1), np.dtype("f4"))


def test_a_new_array_that_is_too_big() -> None:
    with pytest.raises(ValueError, match="array is too big"):
        new((1 << 40, 1 << 40), np.dtype("f4"))
    with pytest.raises(MemoryError):
        new((1 << 58,), np.dtype("?"))


@njit
def copied(a):
    made = copy_array(a)
    made[0] = 7
    return made


def test_copy_array() -> None:
    a = np.arange(6.0).reshape(2, 3)
    a.flags.writeable = False
    made = copied(a)
    np.testing.assert_array_equal(made, [[7, 7, 7], [3, 4, 5]])
    assert a[0, 0] == 0.0 and made.flags.writeable
