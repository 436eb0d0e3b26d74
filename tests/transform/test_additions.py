"""Stencils: what the adjoint of an iteration adds to several elements of one array."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from splitad.transform.additions import CHUNK
from tests.pairs import check, pair


@njit
def stencil(u, out):
    for i in range(2, u.shape[0] - 2):
        out[i] = 0.1 * u[i - 2] + u[i - 1] * u[i] + 3.0 * u[i + 1] - u[i + 2] * u[i + 2]


@njit
def far(u, out):
    for i in range(6, u.shape[0] - 6):
        out[i] = u[i - 6] * u[i + 6] + u[i - 4] * u[i + 4] + u[i - 5] * u[i]


@njit
def from_a_number_on(u, out, k):
    for i in range(k, u.shape[0] - k):
        out[i] = u[i + k] * u[i] - u[i + 1] * u[i - 1]


@njit
def round_the_end(u, out):
    for i in range(u.shape[0]):
        out[i] = u[i - 1] * u[i] + u[i - 2]


@njit
def two_dimensional(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            out[i, j] += 0.5 * around + u[i, j] * u[i, 0] * u[0, j]


@njit
def in_both(u, out):
    for j in range(1, u.shape[0] - 1):
        out[j] = u[j, j] * u[j, j + 1] + u[j - 1, j]


def waves(n: int, dtype: type = np.float64) -> np.ndarray:
    x = np.sin(np.arange(1.0, n + 1.0)) + 1.5
    return (x * (1 + 0.5j) if dtype is np.complex128 else x).astype(dtype)


SIZES = [4, 5, 6, 14, CHUNK + 4, CHUNK + 5, 2 * CHUNK + 7]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("f", [stencil, far, round_the_end])
def test_sizes(f, n: int) -> None:
    check(f, waves(n), waves(n))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtypes(dtype: type) -> None:
    check(stencil, waves(20, dtype), waves(20, dtype))


def test_strided() -> None:
    check(stencil, waves(40)[::2], waves(20)[::-1])


@pytest.mark.parametrize("k", [1, 3])
def test_a_shift_that_is_a_variable(k: int) -> None:
    check(from_a_number_on, waves(CHUNK + 9), waves(CHUNK + 9), k)


@pytest.mark.parametrize("shape", [(3, 3), (4, 7), (3, CHUNK + 30)])
def test_two_dimensions(shape: tuple[int, int]) -> None:
    n = shape[0] * shape[1]
    check(two_dimensional, waves(n).reshape(shape), waves(n).reshape(shape))


def test_a_counter_in_two_indices() -> None:
    check(in_both, waves(49).reshape(7, 7), waves(7))


@pytest.mark.parametrize("n", [5, 30, CHUNK + 6])
def test_each_element(n: int) -> None:
    """Against the derivatives as written by hand: nothing is added twice, nor to a neighbour."""
    u, bar = waves(n), np.cos(np.arange(n) * 1.0)
    result, pullback = pair(stencil)(u, waves(n))
    d_u, d_out = np.zeros(n), bar.copy()
    pullback(result, d_u, d_out)
    expected, inner = np.zeros(n), np.arange(2, n - 2)
    for by, partial in [
        (-2, 0.1 + 0.0 * u[inner]), (-1, u[inner]), (0, u[inner - 1]),
        (1, 3.0 + 0.0 * u[inner]), (2, -2.0 * u[inner + 2]),
    ]:  # fmt: skip
        np.add.at(expected, inner + by, partial * bar[inner])
    np.testing.assert_allclose(d_u, expected, rtol=1e-13)
    assert np.all(d_out[inner] == 0.0)
