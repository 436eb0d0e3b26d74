"""value_numbering: equal values once; loads are known until the memory may have changed."""

from __future__ import annotations

import pytest

from splitad.transform import value_numbering
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def test_what_its_header_says() -> None:
    check(
        value_numbering.run,
        """
        a = x[k]
        c = mul(a, a)
        y[k] = c
        d = x[k]
        e = mul(a, a)
        f = y[k]
        g = add(e, f)
        z = add(g, d)
        return z
        """,
        """
        a = x[k]
        c = mul(a, a)
        y[k] = c
        d = x[k]
        g = add(c, c)
        z = add(g, d)
        return z
        """,
    )


def test_arguments_that_do_not_overlap() -> None:
    check(
        lambda fn: value_numbering.run(fn, args_alias=False),
        """
        a = x[k]
        y[k] = a
        c = x[k]
        x[n] = h
        d = x[k]
        s = add(c, d)
        return s
        """,
        """
        a = x[k]
        y[k] = a
        x[n] = h
        d = x[k]
        s = add(a, d)
        return s
        """,
    )


def test_enclosing_blocks_and_loops() -> None:
    """A loop's own stores count from its first statement; a branch's only after it."""
    check(
        value_numbering.run,
        """
        w = empty((4), float64)
        a = x[0]
        c = w[0]
        for i in 0..n step 1 [s = 0.0] -> s_1:
          d = x[0]
          e = w[0]
          w[i] = d
          t = add(d, e)
          yield t
        f = x[0]
        if b:
          g = x[0]
          x[1] = g
        z = x[0]
        u = add(f, z)
        return u
        """,
        """
        w = empty((4), float64)
        a = x[0]
        c = w[0]
        for i in 0..n step 1 [s = 0.0] -> s_1:
          e = w[0]
          w[i] = a
          t = add(a, e)
          yield t
        if b:
          x[1] = a
        z = x[0]
        u = add(a, z)
        return u
        """,
    )


def test_views_share_memory_with_their_base() -> None:
    unchanged(
        value_numbering.run,
        """
        v = view x[1:]
        a = v[0]
        x[1] = h
        c = v[0]
        d = add(a, c)
        return d
        """,
    )


def test_a_call_without_a_rule_may_write() -> None:
    unchanged(
        value_numbering.run,
        """
        a = x[0]
        call print(x)
        c = x[0]
        d = add(a, c)
        return d
        """,
    )


def test_nothing_is_reassociated() -> None:
    unchanged(
        value_numbering.run,
        """
        a = add(h, 1.0)
        c = add(1.0, h)
        d = add(h, 1)
        e = impure abs(h)
        f = impure abs(h)
        """,
    )


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(value_numbering.run, seed)
