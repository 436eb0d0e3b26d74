"""handing on: a recurrence's cotangent stays in a register from one iteration to the next."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from tests.pairs import check
from tests.transform.pair_text import pair_text


@njit
def filtered(x, y, a):
    for j in range(1, x.shape[0]):
        y[j] = a * y[j - 1] + np.sin(y[j - 1]) * x[j]


@njit
def two_taps(x, y, a):
    for j in range(2, x.shape[0]):
        y[j] = x[j] * y[j - 2] + a * y[j - 1] * y[j - 1] - 0.25 * y[j] * x[j - 1]


@njit
def from_a_number_on(x, y, a):
    lo = x.shape[0] // 3
    for j in range(lo, x.shape[0] - 2):
        y[j + 2] = a * y[j + 1] * x[j] + y[j]


@njit
def through_a_view(x, y, a):
    behind = y[1:]
    for j in range(2, x.shape[0]):
        y[j] = a * y[j - 1] * behind[j - 2] + x[j]


@njit
def read_again(x, y, a):
    for j in range(1, x.shape[0]):
        y[j] = a * y[j - 1] * x[j]
        x[j] = y[j] * y[j - 1]


@njit
def stored_twice(x, y, a):
    for j in range(1, x.shape[0]):
        y[j] = a * y[j - 1] * x[j]
        y[j - 1] = y[j - 1] * x[j - 1] + y[j]


@njit
def a_step_of_two(x, y, a):
    for j in range(1, x.shape[0], 2):
        y[j] = a * y[j - 1] * x[j]


@njit
def the_other_way(x, y, a):
    for j in range(1, x.shape[0]):
        y[j - 1] = a * y[j] * x[j]


@njit
def round_the_end(x, y, a):
    for j in range(x.shape[0]):
        y[j] = a * y[j - 1] * x[j]


@njit
def summed_up(x, y, a):
    for j in range(1, x.shape[0]):
        y[j] = y[j] + a * y[j - 1] * x[j]


@njit
def columns(x, y, a):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            r = y[i - 1, j] + y[i, j - 1] * x[i, j]
            y[i, j] = r / (1.0 + a * r * r)


@njit
def rows_of_rows(x, y, a):
    for j in range(x.shape[1]):
        for i in range(1, x.shape[0]):
            y[i, j] = y[i - 1, j] * x[i, j] + a * y[0, j] * y[i - 1, 0]


@njit
def a_copy_too(x, y, a):
    """Another array is stored to, and one that may be either is read."""
    z = np.zeros_like(y)
    for j in range(1, x.shape[0]):
        y[j] = a * y[j - 1] * x[j]
        z[j] = y[j] * a
    either = z if x[0] > 0.0 else y
    for j in range(1, x.shape[0]):
        y[j] = y[j - 1] * either[j]
    return z.sum()


@njit
def a_row_by_branch(x, y, a):
    rows = y.reshape((2, y.shape[0] // 2))
    for j in range(1, rows.shape[1]):
        if j % 3 == 1:
            k = 0
        else:
            k = 1
        rows[k, j] = a * rows[k, j - 1] * x[j]


@njit
def a_chosen_row(x, y, a):
    """Which row is not the same in each iteration, although the choice has no derivative."""
    rows = np.stack((y, y * x))
    for i in range(2):
        for j in range(1, x.shape[0]):
            k = 1 if j % 3 == i else 0
            rows[k, j] = a * rows[k, j - 1] * x[j]
    return rows.sum()


@njit
def a_chosen_array(x, y, a):
    for j in range(1, x.shape[0]):
        one = y if j % 3 == 0 else x
        one[j] = a * one[j - 1] * 1.5


HANDS_ON = [filtered, two_taps, from_a_number_on]
DOES_NOT = [
    read_again,
    stored_twice,
    a_step_of_two,
    the_other_way,
    round_the_end,
    a_chosen_row,
    a_chosen_array,
]
MAY = [through_a_view, summed_up, a_copy_too]


def args(n: int, dtype: type = np.float64):
    x, y = np.sin(np.arange(1.0, n + 1)) + 1.25, np.cos(np.arange(1.0, n + 1)) + 0.5
    if dtype is np.complex128:
        x, y = x + 0.25j * y, y - 0.5j
    return x.astype(dtype), y.astype(dtype), 0.75


@pytest.mark.parametrize("f", HANDS_ON + DOES_NOT + MAY)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 11])
def test_recurrences(f, n: int) -> None:
    if n == 0 and f is a_copy_too:
        n = 5
    check(f, *args(n))


@pytest.mark.parametrize("f", HANDS_ON)
def test_what_hands_on(f) -> None:
    assert "next_" in pair_text(f, *args(4)).pullback


@pytest.mark.parametrize("f", DOES_NOT)
def test_what_does_not(f) -> None:
    assert "next_" not in pair_text(f, *args(4)).pullback


@pytest.mark.parametrize("f", [columns, rows_of_rows])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5), (5, 3)])
def test_two_dimensions(f, shape: tuple[int, int]) -> None:
    x, y, a = args(shape[0] * shape[1])
    assert "next_" in pair_text(f, x.reshape(shape), y.reshape(shape), a).pullback
    check(f, x.reshape(shape), y.reshape(shape), a)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_types(dtype) -> None:
    check(filtered, *args(6, dtype))


def test_overlapping_arguments() -> None:
    _, y, a = args(9)
    check(filtered, y, y, a)
    check(two_taps, y[1:], y[:-1], a)


@pytest.mark.parametrize("n", [2, 4, 6, 14])
def test_a_row_that_a_branch_chooses_in_the_loop(n: int) -> None:
    assert "next_" not in pair_text(a_row_by_branch, *args(4)).pullback
    check(a_row_by_branch, *args(n))
