"""forward_views: elements of a view become elements of its base."""

from __future__ import annotations

import pytest

from splitad.transform import forward_views
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def test_chains_of_views() -> None:
    check(
        forward_views.run,
        """
        v = view m[:, None, 2:n]
        w = view v.T
        t = w[0, 0, -1]
        u = w[1, 0, 3]
        d = w.shape[2]
        e = w.shape[0]
        """,
        """
        v = view m[:, None, 2:n]
        w = view v.T
        k_1 = add(0, 2)
        t = m[-1, k_1]
        k_2 = add(1, 2)
        u = m[3, k_2]
        d = m.shape[0]
        e = v.shape[2]
        """,
    )


def test_an_integer_in_the_view_wraps() -> None:
    check(
        forward_views.run,
        """
        row = view m[k, :]
        for i in 0..n step 1:
          row[i] nowrap = h
        """,
        """
        row = view m[k, :]
        for i in 0..n step 1:
          m[k, i] = h
        """,
    )


def test_steps() -> None:
    check(
        forward_views.run,
        """
        v = view x[::2]
        for i in 0..n step 1:
          t = v[i]
        """,
        """
        v = view x[::2]
        for i in 0..n step 1:
          i_1 = mul(i, 2)
          t = x[i_1]
        """,
    )


def test_where_an_index_or_a_start_may_be_negative() -> None:
    unchanged(
        forward_views.run,
        """
        v = view x[1:]
        t = v[k]
        w = view x[k:]
        u = w[0]
        z = view x[::-1]
        s = z[0]
        r = view x[:n]
        q = r[-1]
        """,
    )


def test_the_shape_of_an_allocation() -> None:
    check(
        forward_views.run,
        """
        w = empty((n, k), float64)
        v = view w.T
        d = v.shape[0]
        """,
        """
        w = empty((n, k), float64)
        v = view w.T
        d = int64(k)
        """,
    )


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(forward_views.run, seed)
