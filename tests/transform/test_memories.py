"""memories: LLVM is told what does not overlap, and only that."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba import njit

import splitad as ad
from tests.pairs import check, pair
from tests.transform.pair_text import pair_text


@njit
def rows(c, x, w, y):
    """Short rows: an element that stays, a row that is added to, another that is read."""
    k = 0
    for a in range(x.shape[0]):
        for b in range(a + 1, x.shape[0]):
            y[b] += c[k] * x[a] * w[b]
            k += 1


@njit
def products(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit
def double_into(x, y):
    """y from x; they must not overlap."""
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i] * x[i]


@njit
def new_in_each(x, n):
    """Arrays made in one iteration and read in the next one, when others may lie where others were."""
    last = np.zeros_like(x)
    for _ in range(n):
        a = x * last
        b = np.empty_like(x)
        for i in range(x.shape[0]):
            b[i] = a[i] + x[i] * last[i - 1]
        for i in range(x.shape[0]):
            a[i] = b[i] + 1.0
        last = b if n > 2 else a
    return last.sum()


def numbered(text: str, name: str) -> set[str]:
    """The numbers with which elements of an array are accessed."""
    found = re.findall(rf"_at\({name}, (?:\([^)]*\)|\w+)(?:, [\w.]+)*?, (\d+)\)", text)
    return set(found)


def row_args(n: int) -> tuple[np.ndarray, ...]:
    count = n * (n - 1) // 2
    return (
        np.sin(np.arange(1.0, count + 1)), np.cos(np.arange(n)), np.arange(1.0, n + 1), np.ones(n)
    )  # fmt: skip


def test_numbers() -> None:
    text = pair_text(rows, *row_args(4))
    forward = [numbered(text.forward, name) for name in ("c", "x", "w", "y")]
    assert all(len(found) == 1 for found in forward)
    assert len(set.union(*forward)) == 4
    # what is not written may be given twice: the shadows of c, x and w may overlap
    back = [numbered(text.pullback, name) for name in ("d_c", "d_x", "d_w", "d_y")]
    assert back[0] == back[1] == back[2] != back[3]
    assert len(numbered(text.pullback, "saved_x") | back[0] | back[3]) == 3


def test_overlapping_arguments_have_one_number() -> None:
    text = pair_text(rows, *row_args(4), args_alias=True).forward
    assert not re.search(r"_at\(y, b, t_\w+, \d\)", text)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9, 40])
def test_rows(n: int) -> None:
    check(rows, *row_args(n))


def test_the_forward_checks_nothing_while_it_runs(monkeypatch) -> None:
    monkeypatch.setenv("SPLITAD_CACHE", "0")
    checks = []
    for left_out in ("memories", ""):
        monkeypatch.setenv("SPLITAD_WITHOUT", left_out)
        forward = ad.split(rows)
        forward(*row_args(5))
        (spec,) = forward._pair._by_key.values()
        (signature,) = spec.forward.signatures
        checks.append(spec.forward.inspect_llvm(signature).count("vector.memcheck:"))
    assert checks[0] > 0 and checks[1] == 0


def test_shadows_of_arguments_that_are_only_read_may_be_one() -> None:
    x = np.linspace(1.0, 2.0, 37)
    _, pullback = pair(products)(x, x)
    bar = np.zeros_like(x)
    pullback(1.0, bar, bar)
    np.testing.assert_allclose(bar, 2 * x)
    _, pullback = pair(products)(x[1:], x[:-1])
    bar = np.zeros_like(x)
    pullback(1.0, bar[1:], bar[:-1])
    expected = np.zeros_like(x)
    expected[1:] += x[:-1]
    expected[:-1] += x[1:]
    np.testing.assert_allclose(bar, expected)


def test_a_caller_that_moves_from_call_to_call() -> None:
    """What was the one memory in one iteration is the other in the next."""
    forward = pair(double_into)

    @njit
    def chain(x):
        for i in range(1, x.shape[0]):
            forward(x[i - 1 : i], x[i : i + 1])

    @njit
    def back(x, bar):
        for i in range(x.shape[0] - 1, 0, -1):
            _, pullback = forward(x[i - 1 : i], x[i : i + 1].copy())
            pullback(None, bar[i - 1 : i], bar[i : i + 1])

    x = np.full(9, 0.51)
    chain(x)
    expected = [0.51]
    for _ in range(8):
        expected.append(2.0 * expected[-1] ** 2)
    np.testing.assert_allclose(x, expected, rtol=1e-13)
    bar = np.zeros(9)
    bar[8] = 1.0
    back(x, bar)
    assert bar[1:].tolist() == [0.0] * 8
    np.testing.assert_allclose(bar[0], np.prod(4.0 * x[:-1]), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_arrays_that_come_and_go(n: int) -> None:
    check(new_in_each, np.array([0.5, -1.5, 0.75, 2.0, 1.25]), n)
