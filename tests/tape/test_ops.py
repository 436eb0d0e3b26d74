"""The tape's operations in njit code: columns, snapshots, growth, ownership."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from splitad.tape import ops
from splitad.tape.columns import MEMORIES
from splitad.tape.ops import (
    add_at,
    clear_rows,
    column,
    copy_elements,
    load_at,
    nbytes_of,
    restore,
    scratch_tape,
    snapshot,
    snapshot_view,
    store_at,
    tape_grow,
    tape_new,
    tape_release,
    tape_trim,
    without_owner,
)
from splitad.tape.reserve import reserve_for
from tests.leaks import no_leak

LIMIT = 1 << 40
DTYPES = [
    np.bool_,
    np.int8,
    np.uint16,
    np.int32,
    np.int64,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    with no_leak():
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_column_keeps_values(dtype: Any) -> None:
    @njit
    def run(x, tape):
        n = x.shape[0]
        c = column(tape[0], 64, dtype)
        for k in range(n):
            c[k] = x[k]
        out = np.empty_like(x)
        for k in range(n):
            out[k] = c[k]
        return out

    x = (np.arange(40) % 3).astype(dtype)
    assert np.array_equal(run(x, tape_new(2000, LIMIT)), x)


def test_column_of_a_numpy_dtype_object_and_of_bool() -> None:
    half = np.dtype("f4")

    @njit
    def run(tape):
        c, b = column(tape[0], 0, half), column(tape[0], 8, bool)
        c[1] = 0.1
        b[0], b[1] = True, False
        return c[1], b[0], b[1]

    value, yes, no = run(tape_new(64, LIMIT))
    assert value == np.float32(0.1) and yes is True and no is False


def test_column_loops_vectorise_beside_arrays() -> None:
    @njit
    def run(x, address):
        n = x.shape[0]
        a, b, c = (
            column(address, 0, np.float64),
            column(address, 8 * n, np.float64),
            column(address, 16 * n, np.float64),
        )
        for k in range(n):
            v = load_at(x, k) * 2.0
            a[k] = v
            b[k] = v * v
            c[k] = v + 1.0
            store_at(x, k, v)

    x = np.ones(100)
    tape = tape_new(2400, LIMIT)
    run(x, tape[0])
    assert np.all(x == 2.0)
    text = run.inspect_llvm(run.signatures[0])
    assert "x double>" in text


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_snapshot_and_restore(shape: tuple[int, ...], layout: str) -> None:
    @njit
    def run(a, back):
        tape = tape_new(0, LIMIT)
        if not tape_grow(tape, 0, nbytes_of(a) + 64):
            raise ValueError
        snapshot(tape[0], 8, a)
        view = snapshot_view(tape[0], 8, a.shape, np.float64)
        kept = view.copy()
        restore(tape[0], 8, back)
        return kept

    full = np.asarray(np.random.default_rng(1).random(tuple(2 * n for n in shape)))
    if layout == "C" or not shape:
        a = np.array(full[tuple(slice(n) for n in shape)])
    elif layout == "F":
        a = np.asfortranarray(full[tuple(slice(n) for n in shape)])
    elif layout == "strided":
        a = full[tuple(slice(None, None, 2) for n in shape)]
    else:
        a = full[tuple(slice(n - 1, None, -1) if n else slice(0) for n in shape)]
    back = np.zeros_like(a)
    assert np.array_equal(run(a, back), a)
    assert np.array_equal(back, a)


def test_snapshot_of_record_fields_and_of_records() -> None:
    record = np.dtype([("k", "i1"), ("x", "f8")])  # x is not aligned

    @njit
    def run(r, out):
        tape = tape_new(1024, LIMIT)
        snapshot(tape[0], 0, r)
        snapshot(tape[0], 512, r.x)
        restore(tape[0], 0, out)
        total = snapshot_view(tape[0], 512, r.shape, np.float64).sum()
        tape[2] = 1024  # alive until here
        return total

    r = np.zeros(7, record)
    r["x"], r["k"] = np.arange(7), 3
    for source in (r, np.zeros(14, record)[::2]):
        out = np.zeros(7, record)
        assert run(source, out) == source["x"].sum()
        assert np.array_equal(out, source)


def test_copy_elements() -> None:
    @njit
    def run(to, source):
        copy_elements(to, source)

    source = np.random.rand(4, 3)
    for to in (np.zeros((4, 3)), np.zeros((4, 3), order="F"), np.zeros((8, 3))[::2]):
        run(to, source)
        assert np.array_equal(to, source)
    target = np.zeros((3, 4))
    run(target, source.T)
    assert np.array_equal(target, source.T)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.complex64, np.complex128])
def test_elements(dtype: Any) -> None:
    @njit
    def run(a, i, j, v):
        old = load_at(a, (i, j))
        store_at(a, (i, j), v)
        add_at(a, (i, np.uint8(j)), v)
        return old

    for a in (
        np.ones((3, 4), dtype),
        np.ones((3, 4), dtype, order="F"),
        np.ones((6, 8), dtype)[::2, ::-2],
    ):
        assert run(a, 1, 2, dtype(5)) == 1
        assert a[1, 2] == 10 and a.sum() == 21


def test_elements_of_1d_and_0d() -> None:
    @njit
    def run(a, z):
        add_at(a, 3, 1.0)
        add_at(a, (3,), 1)
        store_at(z, (), load_at(a, 3))
        add_at(z, (), 0.5)

    a, z = np.zeros(5), np.zeros(())
    run(a, z)
    assert a[3] == 2.0 and z[()] == 2.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_clear_rows(dtype: Any) -> None:
    @njit
    def run(a, k):
        clear_rows(a, k, 10, 3, 2)

    a = np.ones(40, dtype)
    run(a, 4)
    expected = np.ones(40, dtype)
    expected[[4, 5, 14, 15, 24, 25]] = 0
    np.testing.assert_array_equal(a, expected)


def test_elements_of_an_unaligned_record_field() -> None:
    record = np.dtype([("k", "i1"), ("x", "f8")])

    @njit
    def run(r):
        x = r.x
        for k in range(x.shape[0]):
            add_at(x, k, 1.5)
        return load_at(x, 2)

    r = np.zeros(5, record)
    assert run(r) == 1.5 and np.all(r["x"] == 1.5) and np.all(r["k"] == 0)


def test_growing_keeps_the_contents() -> None:
    @njit
    def run(n):
        tape = tape_new(0, LIMIT)
        for k in range(n):
            if tape[1] < 8 * (k + 1) and not tape_grow(tape, 8 * k, 8 * (k + 1)):
                raise ValueError("limit")
            column(tape[0], 0, np.int64)[k] = k
        c, total = column(tape[0], 0, np.int64), 0
        for k in range(n):
            total += c[k] == k
        tape[2] = 8 * n
        tape_trim(tape)
        aligned = tape[0] % 64 == 0
        return total, tape[1], aligned

    for n in (1, 10, 1000, 100_000):
        total, capacity, aligned = run(n)
        assert total == n and aligned
        assert 8 * n <= capacity <= 16 * n + 2048


def test_limit() -> None:
    @njit
    def grow(tape, total):
        return tape_grow(tape, 0, total)

    tape = tape_new(10_000, 1000)
    assert tape[1] == 1000 and tape[3] == 1000
    assert grow(tape, 1000)
    assert not grow(tape, 1001)
    del tape


def test_no_memory() -> None:
    @njit
    def grow(tape, total):
        return tape_grow(tape, 0, total)

    tape = tape_new(100, 1 << 62)
    with pytest.raises(MemoryError, match="no memory for the tape"):
        grow(tape, 1 << 61)
    assert tape[1] >= 100


def test_no_memory_where_it_is_reserved() -> None:
    reserve = reserve_for("over the limit")

    @njit
    def run(tape, nbytes):
        return reserve(tape, 0, nbytes)

    before = ops.live_bytes()
    tape = tape_new(100, 1 << 62)
    with pytest.raises(MemoryError, match="no memory for the tape"):
        run(tape, 1 << 61)
    assert ops.live_bytes() == before
    assert run(tape, 200) != 0
    del tape


def test_a_scratch_tape_is_lost_with_its_frame() -> None:
    reserve = reserve_for("over the limit")

    @njit
    def inner(tape, nbytes):
        return reserve(tape, 0, nbytes)

    @njit
    def run(nbytes, rounds):
        fresh = 0
        for _ in range(rounds):
            tape = scratch_tape(1 << 62)
            fresh += tape[0] == 0 and tape[1] == 0 and tape[2] == 0 and tape[3] == 1 << 62
            base = inner(tape, nbytes)
            column(base, 0, np.float64)[nbytes // 8 - 1] = 1.0
            tape_release(tape)
        return fresh

    assert run(1000, 3) == 3
    with no_leak():
        assert run(1000, 3) == 3
        with pytest.raises(MemoryError, match="no memory for the tape"):
            run(1 << 61, 1)


def test_release_and_use_again() -> None:
    @njit
    def run(tape):
        tape_release(tape)
        empty = tape[0] == 0 and tape[1] == 0
        return empty and tape_grow(tape, 0, 100)

    before = ops.live_bytes()
    tape = tape_new(1000, LIMIT)
    assert run(tape)
    assert ops.live_bytes() == before + 128


def test_trim_of_an_empty_tape_gives_the_block_back() -> None:
    @njit
    def run(tape):
        tape_trim(tape)

    before = ops.live_bytes()
    tape = tape_new(1000, LIMIT)
    run(tape)
    assert tape[0] == 0 and ops.live_bytes() == before


def test_a_handle_without_owner_does_not_leak_with_an_exception() -> None:
    @njit
    def inner(tape, x):
        tape[2] = 8
        return 1.0 / x

    @njit
    def outer(x):
        tape = tape_new(100, LIMIT)
        return inner(without_owner(tape), x) + tape[2]

    assert outer(1.0) == 9.0
    tape = tape_new(100, LIMIT)

    @njit
    def borrowed(tape, x):
        return inner(without_owner(tape), x)

    # the argument itself is borrowed from Python; njit would leak its own reference to it, not ours
    assert borrowed(tape, 2.0) == 0.5


def _attributes(text: str, definition: str) -> str:
    """What the group of attributes that a function refers to says."""
    found = re.search(r"#\d+", definition)
    return re.search(rf"attributes {found[0]} = .*", text)[0] if found else ""


def test_numbers_of_memory() -> None:
    @njit
    def run(x, y):
        store_at(y, 0, load_at(x, 1, 0), 1)
        add_at(y, 0, 2.0, 1)

    x, y = np.arange(3.0), np.zeros(1)
    run(x, y)
    assert y[0] == 3.0
    text = run.inspect_llvm(run.signatures[0])
    assert "!alias.scope" in text and "!noalias" in text
    # a caller's loop could give it the same memory under another number
    own = next(line for line in text.splitlines() if line.startswith("define") and "run" in line)
    assert "noinline" in own or " noinline" in _attributes(text, own)


def test_numbers_that_are_none() -> None:
    @njit
    def too_large(x):
        return load_at(x, 0, MEMORIES)

    @njit
    def not_known(x, number):
        return load_at(x, 0, number)

    for run, args in ((too_large, ()), (not_known, (0,))):
        with pytest.raises(TypingError, match="not the number of a memory"):
            run(np.ones(1), *args)
