"""Overlap of arrays, notes in the tape, and whether shadows fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from splitad.errors import AliasingError, ShadowError
from splitad.runtime import boundary
from splitad.runtime.boundary import (
    ON_PRIMAL,
    SEPARATE,
    TOUCHING,
    WRONG_SHAPE,
    fault,
    first_overlap,
    note_array,
    note_words,
    overlap,
    overlap_noted,
    overlaps_itself,
    pair_fault,
    shadow_fault,
)
from splitad.tape.ops import tape_new
from tests.leaks import no_leak

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
    return overlap_noted(tape[0], offset, a)


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


def test_overlaps_itself() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(10), 3)
    for a in (
        windows,
        np.broadcast_to(np.ones(3), (2, 3)),
        np.broadcast_to(np.ones((3, 1)), (3, 2)),
    ):
        assert overlaps_itself(a)
    assert overlaps_itself(np.lib.stride_tricks.as_strided(np.zeros(20), (3, 4), (8, 8)))
    for a in (BASE, GRID, GRID.T, GRID[::2, ::-3], BASE[::-1], windows[:1], windows[::3], GRID[:, :1],
              np.zeros((3, 1, 4, 1)), np.zeros(()), np.zeros((3, 0)), np.broadcast_to(np.ones(3), (0, 3)),
              np.diagonal(GRID), np.zeros((3, 4, 5)).transpose(1, 0, 2)):  # fmt: skip
        assert not overlaps_itself(a), (a.shape, a.strides)


def test_first_overlap() -> None:
    @njit
    def find(arrays, written):
        return first_overlap(arrays, written)

    x, y = np.zeros(4), np.zeros((2, 2))
    arrays = (x, y, x[1:], y[0])
    for f in (find, first_overlap):
        assert f(arrays, (False, False, False, False)) == -1
        assert f(arrays, (True, False, False, False)) == 2 * 4 + 0
        assert f(arrays, (False, False, True, False)) == 2 * 4 + 0
        assert f(arrays, (False, True, False, False)) == 3 * 4 + 1
        assert f((x,), (True,)) == -1 and f((), ()) == -1


@njit
def check_one(tape, x, shadow, alive):
    note_array(tape[0], 0, x)
    return shadow_fault(tape[0], 0, shadow, alive)


def test_shadow_fault() -> None:
    tape = tape_new(512, 1 << 40)
    x = np.zeros((3, 4))
    assert check_one(tape, x, np.zeros((3, 4)), True) == 0
    assert check_one(tape, x, np.zeros((4, 3)), True) == WRONG_SHAPE
    assert check_one(tape, x, np.zeros((4, 3)).T, True) == 0
    assert check_one(tape, x, x, True) == ON_PRIMAL
    assert check_one(tape, x, x, False) == 0


@njit
def check_two(tape, x, y, x_bar, y_bar, written):
    note_array(tape[0], 0, x)
    note_array(tape[0], 128, y)
    return pair_fault(tape[0], 0, x_bar, 128, y_bar, written)


def test_pair_fault() -> None:
    tape = tape_new(512, 1 << 40)
    x, other = np.zeros(10), np.zeros(10)

    def check(views: Any, shadows: Any, written: bool) -> int:
        return check_two(tape, *views, *shadows, written)

    for written in (False, True):
        apart = SEPARATE if written else 0
        askew = SEPARATE if written else TOUCHING
        views = (x, x[2:6])
        assert check(views, (other, other[2:6]), written) == 0
        assert check(views, (other, np.zeros(4)), written) == apart
        assert check(views, (other, other[3:7]), written) == askew
        assert check(views, (other, other[2:10:2]), written) == askew
        assert check((x, x), (other, other), written) == 0
        assert check((x, x), (other, other[::-1]), written) == askew
        assert check((x, np.zeros(10)), (other, np.zeros(10)), written) == 0
        assert check((x, np.zeros(10)), (other, other), written) == TOUCHING
        assert check((x[::2], x[1::2]), (other[::2], other[1::2]), written) == 0
        assert check((x[::2], x[1::2]), (np.zeros(5), np.zeros(5)), written) == 0
        assert check((x[::2], x[1::2]), (other[:5], other[4:9]), written) == TOUCHING


def test_raising_from_compiled_code_does_not_leak() -> None:
    (shape_error, shape_text), (alias_error, alias_text) = (
        fault(WRONG_SHAPE, "u"),
        fault(SEPARATE, "u", "v"),
    )

    @njit
    def pullback(tape, x, shadow):
        note_array(tape[0], 0, x)
        temporary = np.zeros(5)
        if shadow_fault(tape[0], 0, shadow, True) == WRONG_SHAPE:
            raise shape_error(shape_text)
        if shadow[0] > 0.0:
            raise alias_error(alias_text)
        return temporary[0]

    tape, x = tape_new(512, 1 << 40), np.zeros(3)
    assert pullback(tape, x, np.zeros(3)) == 0.0
    with no_leak():
        for _ in range(3):
            with pytest.raises(
                ShadowError, match="the shadow of 'u' has another shape than 'u' had"
            ):
                pullback(tape, x, np.zeros(4))
            with pytest.raises(AliasingError, match="'u' and 'v' overlapped"):
                pullback(tape, x, np.ones(3))


def test_messages_name_the_arguments() -> None:
    for code in (WRONG_SHAPE, ON_PRIMAL, TOUCHING, SEPARATE):
        kind, text = fault(code, "left", "right")
        assert issubclass(kind, (ShadowError, AliasingError)) and "left" in text


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
