"""Overlap of arrays, and their notes in the tape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from splitad.runtime import boundary
from splitad.runtime.boundary import (
    note_array,
    note_words,
    notes_overlap,
    overlap,
    stack_note,
)
from splitad.tape.ops import tape_new

BASE = np.zeros(60)
GRID = BASE.reshape(6, 10)


@njit
def overlap_compiled(a, b):
    return overlap(a, b)


@njit
def note(tape, offset, a):
    note_array(tape[0], offset, a)


@njit
def overlap_with_note(tape, offset, a):
    return notes_overlap(tape[0] + offset, stack_note(a))


CASES = [
    (BASE, BASE, True),
    (BASE, BASE.copy(), False),
    (BASE[:30], BASE[30:], False),
    (BASE[:31], BASE[30:], True),
    (BASE[::2], BASE[1::2], False),
    (BASE[::2], BASE[::-2], False),  # 60 elements: one takes the even ones, one the odd ones
    (BASE[::2], BASE[1::3], True),
    (BASE[::4], BASE[2::4], False),
    (BASE[::4], BASE[2::6], True),  # 8
    (BASE[::6], BASE[2::4], True),  # 6
    (BASE[::4], BASE[1::6], False),  # odd ones only
    (GRID[:, :3], GRID[:, 3:], False),
    (GRID[:, :4], GRID[:, 3:], True),
    (GRID[0], GRID[:, 0], True),
    (GRID[0, 1:], GRID[:, 0], False),
    (GRID[::2], GRID[1::2], False),
    (GRID.T[2], GRID[:, 3], False),
    (GRID[:, 2], GRID.T[2], True),
    (BASE.view(np.complex128).real, BASE.view(np.complex128).imag, False),
    (BASE.view(np.complex128), BASE[3:4], True),
    (BASE[:0], BASE, False),
    (GRID[3:3, :], GRID, False),
    (BASE[5:6].reshape(()), BASE, True),
    (BASE[5:6].reshape(()), BASE[6:], False),
]


@pytest.mark.parametrize("a, b, expected", CASES)
def test_overlap(a: Any, b: Any, expected: bool) -> None:
    assert overlap(a, b) is expected and overlap(b, a) is expected
    assert overlap_compiled(a, b) is expected and overlap_compiled(b, a) is expected
    tape = tape_new(512, 1 << 40)
    note(tape, 24, a)
    assert overlap_with_note(tape, 24, b) is expected


ends, steps = st.integers(-6, 6), st.sampled_from([-3, -2, -1, 1, 2, 3])
slices = st.builds(slice, ends, st.one_of(st.none(), ends), steps)


@given(slices, slices, slices, slices)
def test_overlap_is_exact(i: slice, j: slice, k: slice, l: slice) -> None:
    grid = np.arange(42).reshape(6, 7)
    a, b = grid[i, j], grid[k, l]
    assert overlap_compiled(a, b) == bool(set(a.ravel()) & set(b.ravel()))


def test_record_fields_do_not_overlap() -> None:
    r = np.zeros(5, [("x", "f8"), ("y", "f8"), ("k", "i1")])
    assert not overlap_compiled(r["x"], r["y"]) and overlap_compiled(r["x"], r)


def test_note_layout() -> None:
    tape = tape_new(512, 1 << 40)
    a = np.zeros((4, 6), np.float32)[::2, ::-1]
    note(tape, 8, a)
    words = boundary.ctypes.cast(int(tape[0]) + 8, boundary.ctypes.POINTER(boundary.ctypes.c_int64))
    assert words[: note_words(2)] == [a.__array_interface__["data"][0], 4, 2, 2, 6, 48, -4]


def test_from_a_thread_without_the_lock() -> None:
    import threading

    @njit(nogil=True)
    def many(a, b, n):
        count = 0
        for _ in range(n):
            count += overlap(a, b)
        return count

    many(BASE[::2], BASE[1::2], 1)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda k=k: found.append(many(BASE[::2], BASE[k::2], 200)))
        for k in (0, 1, 0)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 200, 200]
