"""shadow_table: shadows found by number; who owns them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from splitad.runtime.nrt_stats import live_blocks
from splitad.runtime.shadow_table import shadow_table, table_drop, table_get, table_set


@njit
def fill(given, keys, n, m):
    """Add 2 ** k to the shadow of number keys[k]: the sum at the end, whether numbers kept their arrays."""
    table = shadow_table(np.float64, 2, "A")
    table_set(table, 1, given)
    same = True
    for k in range(keys.size):
        shadow = table_get(table, keys[k], (n, m))
        shadow[n - 1, m - 1] += 2.0**k
        again = table_get(table, keys[k], (n, m))
        same = same and again[n - 1, m - 1] == (shadow[n - 1, m - 1] if keys[k] >= 0 else 0.0)
    table_drop(table, 3)
    table_drop(table, 1000)
    total = 0.0
    for key in range(6):
        total += table_get(table, key, (n, m)).sum()
    kept = table_get(table, 5, (n, m))
    return total, same, kept


def test_shadows_by_number() -> None:
    given = np.zeros((4, 6))[::2, ::3]
    keys = np.array([0, 1, 5, -1, 1, 3, 40, -1])
    total, same, kept = fill(given, keys, 2, 2)
    assert same
    assert given[1, 1] == 2.0 + 16.0  # the one that was set
    assert total == 1.0 + 18.0 + 4.0  # number 3 was forgotten, negative ones are never found again
    assert kept.shape == (2, 2) and kept[1, 1] == 4.0 and kept.sum() == 4.0  # outlives the table


def test_nothing_is_leaked() -> None:
    given, keys = np.zeros((2, 2)), np.array([0, 7, -1, 3])
    fill(given, keys, 2, 2)
    before = live_blocks()
    for _ in range(5):
        fill(given, keys, 2, 2)
    assert live_blocks() == before


@njit
def other_types(n, key):
    vectors = shadow_table(np.complex64, 1, "C")
    scalars = shadow_table(np.float32, 0, "C")
    table_get(scalars, key, ())[()] += 1.5
    table_get(vectors, key, (n,))[:] += 1j
    return table_get(vectors, key, (n,)), table_get(scalars, key, ())


@pytest.mark.parametrize("n", [0, 3])
def test_other_types(n: int) -> None:
    vector, scalar = other_types(n, 2)
    np.testing.assert_array_equal(vector, np.full(n, 1j, np.complex64))
    assert vector.dtype == np.complex64 and scalar == 1.5 and scalar.dtype == np.float32
