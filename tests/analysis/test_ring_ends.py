"""ring_ends: what the inner iterations of a loop know."""

from __future__ import annotations

import dataclasses
import operator

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.analysis.bounds import Bounds
from splitad.analysis.ring_ends import Inner, inner
from splitad.analysis.scopes import scopes
from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from splitad.testing import check_vjp
from tests.fuzz.interpreted import Interpreted
from tests.ir_parse import parse
from tests.transform import meaning
from tests.transform.cases import function


def find(text: str) -> tuple[ir.Function, int, Inner | None]:
    """The function, which of its statements is the loop, and what is known in that."""
    fn = parse(function(text))
    at = next(k for k, s in enumerate(fn.body.stmts) if isinstance(s, ir.For))
    loop = fn.body.stmts[at]
    assert isinstance(loop, ir.For)
    return fn, at, inner(loop, scopes(fn).definition, Bounds(fn))


def with_loop(fn: ir.Function, at: int, loop: ir.For) -> ir.Function:
    stmts = (*fn.body.stmts[:at], loop, *fn.body.stmts[at + 1 :])
    return dataclasses.replace(fn, body=ir.Block(stmts, fn.body.yields))


def shown(fn: ir.Function, known: Inner, at: int) -> list[str]:
    changed = with_loop(fn, at, known.loop(fn.body.stmts[at]))  # type: ignore[arg-type]
    verify(changed)
    return [line.strip() for line in show(changed).splitlines()]


def test_both_ends_of_a_ring() -> None:
    fn, at, known = find("""
        n0 = x.shape[0]
        for i in 0..n0 step 1:
          j = add(i, 1)
          w = ge(j, n0)
          r = select(w, 0, j)
          t = x[r]
          p = sub(i, 3)
          u = x[p]
          v = m[k, p]
          y[i] nowrap = v
    """)
    assert known is not None and (known.head, known.tail) == (3, 1)
    assert {v.name: truth for v, truth in known.truth.items()} == {"w": False}
    text = shown(fn, known, at)
    assert "r = add(i, 1)" in text and "p = add(i, -3)" in text
    assert "t = x[r] nowrap" in text and "u = x[p] nowrap" in text
    assert "v = m[k, p]" in text  # k may be negative
    assert {v.name for v in known.read & set(known.counted)} == {"r", "p"}


def test_sides_that_are_taken() -> None:
    fn, at, known = find("""
        n0 = x.shape[0]
        last = sub(n0, 1)
        for i in 0..n0 step 1:
          first = eq(i, 0)
          end = eq(i, last)
          special = or_(first, end)
          inside = not_(special)
          if inside -> q, t:
            p = sub(i, 1)
            u = x[p]
            yield p, u
          else:
            yield 0, 0.0
          y[q] = t
    """)
    assert known is not None and (known.head, known.tail) == (1, 1)
    text = shown(fn, known, at)
    assert not any(line.startswith("if") for line in text)
    assert "u = x[p] nowrap" in text and "q = add(i, -1)" in text and "t = float64(u)" in text


@pytest.mark.parametrize(
    "loop",
    [
        "for i in 0..n step 1:\n  p = sub(i, 9)\n  u = x[p]",  # too far
        "for i in 0..16 step 1:\n  p = sub(i, 1)\n  u = x[p]",  # few
        "for i in 0..n step 1:\n  p = sub(k, 1)\n  u = x[p]",
        "for i in 0..n step 1:\n  p = sub(i, k)\n  u = x[p]",
        "for i in 0..n step 1:\n  p = sub(2, i)\n  u = x[p]",
        "for i in 0..n step 1:\n  p = sub(i, 1)\n  u = x[p] nowrap",
        "for i in 0..n step 1:\n  w = lt(i, k)\n  u = x[i]",
        "for i in 0..n step 1:\n  w = lt(i, 100)\n  u = x[i]",
        "for i in 0..n step 1:\n  q = add(i, 9223372036854775807)\n  w = lt(q, 1)\n  u = x[i]",
    ],
)
def test_all_alike(loop: str) -> None:
    assert find(loop)[2] is None


COMPARE = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("place", ["0", "1", "3", "n0", "q_1", "q_2", "12"])
@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("by", [0, 1, -2])
def test_every_comparison(compare: str, place: str, exchanged: bool, by: int) -> None:
    """Right, and there are no more iterations at the ends than it takes."""
    sides = [place, "c"] if exchanged else ["c", place]
    _, _, known = find(f"""
        n0 = x.shape[0]
        q_1 = sub(n0, 1)
        q_2 = sub(n0, 3)
        for i in 0..n0 step 1:
          c = add(i, {by})
          w = {compare}({", ".join(sides)})
          j = select(w, 0, i)
          t = x[j]
    """)

    def answer(i: int, size: int) -> bool:
        other = {"n0": size, "q_1": size - 1, "q_2": size - 3}.get(place)
        other = int(place) if other is None else other
        return COMPARE[compare](*([other, i + by] if exchanged else [i + by, other]))

    size = 40
    answers = [answer(i, size) for i in range(size)]
    if place == "12" or len(set(answers)) == 1:
        assert known is None
        return
    assert known is not None
    (truth,) = known.truth.values()
    for size in range(60):
        for i in range(known.head, size - known.tail):
            assert answer(i, size) is truth
    assert set(answers[: known.head]) <= {truth, not truth}
    if known.head:
        assert answers[known.head - 1] is not truth
    if known.tail:
        assert answers[-known.tail] is not truth


def test_the_inner_iterations_do_the_same() -> None:
    fn, at, known = find("""
        n0 = x.shape[0]
        q = sub(n0, 2)
        for i in 0..n0 step 1:
          w = lt(i, 1)
          b_1 = sub(i, 1)
          b_2 = max(b_1, 0)
          e = sub(n0, 1)
          p = select(w, e, b_2)
          t = x[p]
          g = gt(i, q)
          if g -> r:
            u = mul(t, t)
            yield u
          else:
            h_1 = add(t, h)
            yield h_1
          y[i] nowrap = r
    """)
    assert known is not None and (known.head, known.tail) == (1, 1)
    loop = fn.body.stmts[at]
    assert isinstance(loop, ir.For)
    for size in range(9):
        ends = {"start": ir.Lit(1, ir.Lit(1, loop.counter.type).type)}
        stop = ir.Lit(size - 1, loop.counter.type)
        before = with_loop(fn, at, dataclasses.replace(loop, stop=stop, **ends))
        after = with_loop(fn, at, dataclasses.replace(known.loop(loop), stop=stop, **ends))
        args = (np.arange(1.0, size + 1), np.zeros(size), np.zeros((1, 1)), 0, 0, 0.5, False)
        assert meaning.outcome(before, args) == meaning.outcome(after, args)


@njit
def rings(x, y, n):
    """A torus that is told apart in several ways, a ring by negative indices, both ends by hand."""
    m = x.shape[0]
    for i in range(m):
        y[i] = x[i - 2] * x[(i + 1) % m] + (x[i - 1] if i > 0 else 0.5 * x[m - 1])
    z = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            left = j - 1 if j > 0 else m - 1
            right = j + 1 if j + 1 < m else 0
            z[i, j] = y[left] * x[(i + 1) % m] - y[right] * y[i - 1]
    for i in range(m):
        if i == 0 or i == m - 1:
            y[i] = z[i, 0]
        else:
            y[i] = z[i - 1, i] * z[i + 1, i] + z[i, i]
    total = 0.0
    for i in range(m):
        total += y[i] * y[(i + 1) % m] * z[0, i - 1]
    for i in range(n):
        total += y[i] * z[0, i]
    return total


@pytest.mark.parametrize("size", [3, 4, 9])
def test_rings(size: int) -> None:
    check_vjp(rings, np.linspace(0.3, 0.9, size), np.zeros(size), size)


@njit
def stored_again(x, y):
    """The last iteration stores to an element of an inner one."""
    m = x.shape[0]
    for i in range(m):
        y[i] = x[i - 1] * x[i]
        if i == m - 1:
            y[2] = 3.0 * x[i] * x[i]
    return y[2] * y[1]


@njit
def added_again(x, y):
    """It adds to such an element, which another store of the loop has overwritten."""
    m = x.shape[0]
    for i in range(m):
        k = 1 if i == m - 1 else i
        y[k] = x[i - 1] * x[i]
        if i == m - 1:
            y[2] += y[k] * x[i]
    return y[2] * y[1]


@njit
def loaded_again(x, y):
    """It loads what inner ones have stored."""
    m = x.shape[0]
    total = 0.0
    for i in range(m):
        y[i] = x[i - 1] * x[i]
        t = 0.0
        if i == m - 1:
            t = y[1] * y[2]
        total += t
    return total


@pytest.mark.parametrize("function", [stored_again, added_again, loaded_again])
def test_ends_that_need_the_inner_iterations(function) -> None:
    check_vjp(function, np.linspace(0.3, 0.9, 5), np.linspace(0.1, 0.5, 5))


@njit
def sides_that_store(x, y):
    """The same element in every case: the iterations may be reversed in any order."""
    m = x.shape[0]
    for i in range(m):
        if i == 0 or i == m - 1:
            y[i] = 2.0 * x[3]
        else:
            y[i] = x[i - 1] * x[i + 1]


def test_sides_that_store_are_reversed_apart() -> None:
    arrays = (np.linspace(0.3, 0.9, 5), np.zeros(5))
    kinds = (ad.Duplicated, ad.Duplicated)
    assert "edge_i" in Interpreted(sides_that_store, kinds, arrays, {}).text.pullback
    check_vjp(sides_that_store, *arrays)
