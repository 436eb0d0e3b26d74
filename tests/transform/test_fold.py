"""fold: copies, integer constants, decided branches."""

from __future__ import annotations

import pytest

from splitad.transform import fold
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def test_what_its_header_says() -> None:
    check(
        fold.run,
        """
        c = int64(4)
        d = add(c, 1)
        if True -> r:
          yield d
        else:
          yield c
        for i in 0..r step 1 [s = 0.0, p = x] -> s_1, p_1:
          t = p[i]
          u = add(s, t)
          yield u, p
        return s_1
        """,
        """
        for i in 0..5 step 1 [s = 0.0, p = x] -> s_1, p_1:
          t = x[i]
          u = add(s, t)
          yield u, x
        return s_1
        """,
    )


def test_floats_are_left_alone() -> None:
    unchanged(
        fold.run,
        """
        t = mul(h, 1.0)
        u = add(t, 0.0)
        v = add(1.0, 2.0)
        return u
        """,
    )


def test_integers_are_regrouped() -> None:
    check(
        fold.run,
        """
        a = add(k, 3)
        c = sub(a, 1)
        d = add(1, c)
        e = sub(c, 2)
        t = x[d]
        u = x[e]
        """,
        """
        a = add(k, 3)
        c = add(k, 2)
        d = add(k, 3)
        t = x[d]
        u = x[k]
        """,
    )


def test_a_branch_that_raises_decides_nothing_but_the_value_after_it() -> None:
    check(
        fold.run,
        """
        if b -> r:
          raise ValueError()
          yield undef
        else:
          yield h
        t = add(r, 1.0)
        if True:
          raise ValueError()
        return t
        """,
        """
        if b -> r:
          raise ValueError()
          yield undef
        else:
          yield h
        t = add(h, 1.0)
        if True:
          raise ValueError()
        return t
        """,
    )


def test_a_condition_is_known_in_its_branches() -> None:
    check(
        fold.run,
        """
        if b:
          if b -> r:
            yield 1.0
          else:
            yield h
          x[0] = r
        else:
          if b:
            x[1] = h
        """,
        """
        if b:
          x[0] = 1.0
        """,
    )


def test_a_check_that_was_passed_is_not_made_again() -> None:
    check(
        fold.run,
        """
        if b:
          raise ValueError()
        c = int64(4)
        for i in 0..n step 1:
          if b:
            raise ValueError()
          x[i] = h
        """,
        """
        if b:
          raise ValueError()
        for i in 0..n step 1:
          x[i] = h
        """,
    )


def test_a_loop_that_never_runs_and_an_unassigned_variable() -> None:
    check(
        fold.run,
        """
        for i in 3..3 step 1 [s = h] -> s_1:
          yield 0.5
        for i_1 in 0..n step 1 [p = undef] -> p_1:
          x[i_1] = h
          yield h
        x[0] = p_1
        return s_1
        """,
        """
        for i_1 in 0..n step 1 [p = undef] -> p_1:
          x[i_1] = h
          yield h
        x[0] = h
        return h
        """,
    )


@pytest.mark.parametrize("seed", range(60))
def test_meaning(seed: int) -> None:
    meaning.check(fold.run, seed)
