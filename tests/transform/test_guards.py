"""guards: checks that raise leave the loop where that cannot be noticed."""

from __future__ import annotations

import pytest

from splitad.ir import nodes as ir
from splitad.transform import guards
from tests.transform import meaning
from tests.transform.cases import check, unchanged


def run(fn: ir.Function) -> ir.Function:
    return guards.run(fn, "python")


def test_what_its_header_says() -> None:
    check(
        run,
        """
        for i in 0..n step 1:
          t = x[i]
          if b:
            raise ZeroDivisionError()
          x[i] = t
        """,
        """
        some = lt(0, n)
        fails = and_(b, some)
        if fails:
          raise ZeroDivisionError()
        for i in 0..n step 1:
          t = x[i]
          x[i] = t
        """,
    )


def test_through_two_loops_and_backwards() -> None:
    check(
        run,
        """
        for i in 0..3 step 1:
          for j in n..0 step -1:
            for l in 0..j step 1:
              t = x[l]
            if b:
              raise ValueError()
        """,
        """
        for i in 0..3 step 1:
          some = gt(n, 0)
          fails = and_(b, some)
          if fails:
            raise ValueError()
          for j in n..0 step -1:
            for l in 0..j step 1:
              t = x[l]
        """,
    )


def test_not_past_what_can_be_seen() -> None:
    unchanged(
        run,
        """
        for i in 0..n step 1:
          x[i] = h
          if b:
            raise ValueError()
        for j in 0..n step 1:
          c = lt(j, k)
          if c:
            raise ValueError()
          if b:
            raise TypeError()
        for l in 0..n step k:
          if b:
            raise ValueError()
        for r in 0..n step 1:
          while [go = b] -> go_1:
            yield go
          if b:
            raise ValueError()
        """,
    )


@pytest.mark.parametrize("seed", range(100))
def test_meaning(seed: int) -> None:
    meaning.check(run, seed)
