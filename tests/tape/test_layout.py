"""layout: where each saved value lies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.tape.layout import Layout, Record
from tests.transform.pair_text import pair_text
from tests.transform.programs import ramp


def records(text) -> dict[str, Record]:
    """By the name of the loop's counter; the function's own is "f"."""
    layout: Layout = text.facts.layout
    return {
        scope.owner.counter.name if hasattr(scope.owner, "counter") else "while" if scope.owner else "f": r
        for scope, r in layout.record.items()
    }  # fmt: skip


@njit
def squared(v):
    return v * v


def widths(x, y, b, z):
    """Values of 1, 4, 8 and 16 bytes in one record."""
    s = np.float32(0.5)
    w = 1.0 + 0.5j
    for i in range(x.size):
        c = x[i] * y[i] > 0.4
        if c:
            s = s * x[i]
        if not b[i]:
            w = w * z[i]
        y[i] = squared(y[i]) * w.real
        x[i] = s
        z[i] = w
        b[i] = c
    return s


def nested(x, n):
    s = 1.0
    for i in range(n):
        s = s * x[i]
        for j in range(i):
            s = s * x[j]
        x[i] = s
    return s


def nested_flat(x, n):
    s = 1.0
    for i in range(n):
        for j in range(3):
            s += x[j]
        s = s * x[i]
    return s


def until(x, limit):
    s = 1.0
    k = 0
    while s < limit:
        s = s * x[k]
        k += 1
    return s


def arguments():
    return (
        ramp(5).astype(np.float32), ramp(5), np.arange(5) % 2 == 0, ramp(5) * (1 + 1j),
    )  # fmt: skip


def test_columns_are_aligned_and_apart() -> None:
    record = records(pair_text(widths, *arguments()))["i"]
    assert {c.size for c in record.columns} == {1, 4, 8, 16}
    for n in (1, 3, 7):  # whatever the trip count, from an offset that is a multiple of 8
        spans = [(c.offset * n, (c.offset + c.size) * n) for c in record.columns]
        assert all(
            start % min(c.size, 8) == 0 for c, (start, _) in zip(record.columns, spans, strict=True)
        )
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        assert spans[-1][1] == record.size * n


def test_a_loop_in_which_others_record_notes_where_it_began() -> None:
    found = records(pair_text(nested, ramp(), 3))
    assert found["i"].pushes and not found["j"].pushes
    assert not records(pair_text(nested_flat, ramp(), 3))["i"].pushes


def test_a_while_rounds_its_record_up() -> None:
    text = pair_text(until, 1.0 + ramp(9), 3.0)
    record = records(text)["while"]
    assert record.size % 8 == 0 and not record.pushes
    assert records(text)["f"].pushes


def test_notes_follow_the_values_of_the_function() -> None:
    layout = pair_text(nested, ramp(), 3).facts.layout
    assert list(layout.notes.values()) == [layout.record[next(iter(layout.record))].size] or (
        layout.notes and min(layout.notes.values()) % 8 == 0
    )
    assert layout.header == max(layout.notes.values()) + 8 * 5


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_many_iterations_of_a_while(count: int) -> None:
    """Reserved in chunks of 1024."""
    x = np.full(count, 1.0 + 1.0 / count)
    limit = float(np.prod(x) * 0.9999999)
    value, gradient = _until(x, limit)
    assert value == pytest.approx(until(x, limit))
    np.testing.assert_allclose(gradient, value / x, rtol=1e-9)


_until = ad.value_and_grad(njit(until))
