"""Extrema by atomics: ties, NaN, and what is refused; run by test_simulated.py with numba's simulator."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
import pytest
from numba import cuda, float64

import splitad as ad
from tests.targets.cuda.refusals import refused

D = cuda.to_device
ones = np.ones


@pytest.fixture(params=["simulator", "gpu"])
def how(request: Any, monkeypatch: Any) -> str:
    """The simulator's atomic.max and min, and what a GPU does: a value is read; then, for as long as the
    element is smaller, it is exchanged; what is returned is the value that was read at first."""
    if request.param == "simulator":
        return "simulator"
    from numba.cuda.simulator import kernelapi

    lock = threading.Lock()

    def by_cas(larger: Any) -> Any:
        def atomic(self: Any, array: Any, index: Any, val: Any) -> Any:
            first = array[index]
            if math.isnan(first):
                return first
            time.sleep(0.002)  # the others come, and read the same
            with lock:
                if larger(val, array[index]):
                    array[index] = val
            return first

        return atomic

    monkeypatch.setattr(kernelapi.FakeCUDAAtomic, "max", by_cas(lambda a, b: a > b))
    monkeypatch.setattr(kernelapi.FakeCUDAAtomic, "min", by_cas(lambda a, b: a < b))
    return "gpu"


@cuda.jit
def offers(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.max(y, i % y.shape[0], a * x[i])


@cuda.jit
def in_block(x, y, a):
    s = cuda.shared.array(1, float64)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = y[0]
    cuda.syncthreads()
    cuda.atomic.max(s, 0, a * x[t])
    cuda.syncthreads()
    if t == 0:
        y[0] = s[0]


KERNELS = [offers, in_block]


def gradient(kernel: Any, x: Any, y: Any, times: int = 2) -> Any:
    """What y is then, and its cotangents, of which those of further pullbacks are the same."""
    given = [D(np.array(v, float)) for v in (x, y)]
    pullback = ad.cuda.split(kernel)[1, len(x)](*given, 1.0)
    after = given[1].copy_to_host()
    for v in given:
        v.copy_to_device(np.full(v.shape, np.nan))
    found = []
    for _ in range(times):
        x_bar, y_bar = pullback.make_zero()
        y_bar.copy_to_device(np.arange(2.0, 2.0 + len(y)))
        (a_bar,) = pullback(x_bar, y_bar)
        found.append((x_bar.copy_to_host(), y_bar.copy_to_host(), a_bar))
    for one in found[1:]:
        for mine, other in zip(found[0], one, strict=True):
            np.testing.assert_array_equal(mine, other)
    return after, *found[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_wins(kernel: Any, how: str) -> None:
    y, x_bar, y_bar, a_bar = gradient(kernel, [1.0, 3.0, 2.0, 0.5], [0.0])
    assert y == [3.0] and y_bar == [0.0] and a_bar == 6.0
    assert x_bar.tolist() == [0.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_of_equal_offers_wins(kernel: Any, how: str) -> None:
    for _ in range(3):
        y, x_bar, y_bar, a_bar = gradient(kernel, [3.0, 1.0, 3.0, 3.0, 3.0, 3.0], [0.0], times=3)
        assert y == [3.0] and y_bar == [0.0] and a_bar == 6.0
        assert sorted(x_bar) == [0.0] * 5 + [2.0] and x_bar[1] == 0.0


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_was_there_wins_a_tie(kernel: Any, how: str) -> None:
    y, x_bar, y_bar, a_bar = gradient(kernel, [3.0, 1.0, 3.0], [3.0])
    assert y == [3.0] and y_bar == [2.0] and a_bar == 0.0 and not x_bar.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_nan(kernel: Any, how: str) -> None:
    """One that is offered is left out; one that was there stays."""
    y, x_bar, y_bar, _ = gradient(kernel, [1.0, math.nan, 2.0], [0.0])
    assert y == [2.0] and y_bar == [0.0] and x_bar.tolist() == [0.0, 0.0, 2.0]
    y, x_bar, y_bar, _ = gradient(kernel, [1.0, 2.0, 3.0], [math.nan])
    assert np.isnan(y[0]) and y_bar == [2.0] and not x_bar.any()


def test_infinity_and_zeros(how: str) -> None:
    y, x_bar, y_bar, _ = gradient(offers, [-1.0, -2.0, -3.0, -1.5], [-math.inf, -math.inf])
    assert y.tolist() == [-1.0, -1.5] and x_bar.tolist() == [2.0, 0.0, 0.0, 3.0]
    assert not y_bar.any()
    y, x_bar, y_bar, _ = gradient(offers, [0.0, -0.0], [-0.0])  # no zero is larger than another one
    assert y_bar == [2.0] and not x_bar.any()


def test_with_numba_max() -> None:
    """As a loop on the CPU does it, which takes the first of equal values."""

    def loop(x, y, a):
        for i in range(x.shape[0]):
            k = i % y.shape[0]
            y[k] = max(y[k], a * x[i])

    g = np.random.default_rng(2)
    x, y = g.random(12), g.random(5) * 0.5
    after, x_bar, y_bar, a_bar = gradient(offers, x, y)
    bars = [np.zeros(12), np.arange(2.0, 7.0)]
    _, pullback = ad.split(loop)(x, y, 1.0)
    (expected,) = pullback(None, *bars)
    np.testing.assert_array_equal(after, y)
    np.testing.assert_array_equal(x_bar, bars[0])
    np.testing.assert_array_equal(y_bar, bars[1])
    assert a_bar == pytest.approx(expected, rel=1e-14)


@cuda.jit
def stages(x, y):
    """One place of a shared array, three times; the last time it is written again behind the barrier."""
    s = cuda.shared.array(1, float64)
    t = cuda.threadIdx.x
    for k in range(3):
        if t == k:
            s[0] = 0.0
        cuda.syncthreads()
        if k != 1:
            cuda.atomic.max(s, 0, x[t] * (k + 1))
        else:
            cuda.atomic.max(s, 0, x[(t + 1) % 4] * x[t])
        cuda.syncthreads()
        y[t, k] = s[0] * (t + 1)
        cuda.syncthreads()


def test_the_place_is_used_again(how: str) -> None:
    x = np.array([0.3, 0.9, 0.2, 0.8])
    given = D(x), D(np.zeros((4, 3)))
    pullback = ad.cuda.split(stages)[1, 4](*given)
    np.testing.assert_allclose(given[1].copy_to_host()[3], 4 * np.array([0.9, 0.27, 2.7]))
    for _ in range(2):
        bars = D(np.zeros(4)), D(ones((4, 3)))
        pullback(*bars)
        np.testing.assert_allclose(bars[0].copy_to_host(), [10 * 0.9, 10 * (1 + 0.3 + 3), 0.0, 0.0])


@cuda.jit
def mixed_values(x, y, places):
    """The value is used, but not its derivative."""
    i = cuda.grid(1)
    old = cuda.atomic.max(y, 0, x[i] * x[i])
    if old < 0.25:
        cuda.atomic.add(places, 0, 1)


def test_the_old_value_may_be_compared() -> None:
    x, y, places = D(np.array([0.1, 0.2, 0.9])), D(np.zeros(1)), D(np.zeros(1, np.int64))
    pullback = ad.cuda.split(mixed_values)[1, 3](x, y, places)
    x_bar, y_bar = D(np.zeros(3)), D(ones(1))
    pullback(x_bar, y_bar)
    assert x_bar.copy_to_host().tolist() == [0.0, 0.0, 1.8] and places.copy_to_host()[0] >= 1


def test_const_and_fortran_order() -> None:
    """Of what the launch keeps, in any layout."""

    @cuda.jit
    def kernel(x, m):
        i, j = cuda.grid(2)
        cuda.atomic.min(m, (i, 0), x[i, j] * 2.0)

    x = np.asfortranarray(np.array([[3.0, 1.0], [0.5, 4.0]]))
    m = np.full((2, 3), 9.0, order="F")
    x_bar, m_bar = D(np.zeros((2, 2), order="F")), D(np.asfortranarray(ones((2, 3))))
    forward = ad.cuda.split(kernel)
    forward[1, (2, 2)](D(x), D(m))(x_bar, m_bar)
    assert x_bar.copy_to_host().tolist() == [[0.0, 2.0], [2.0, 0.0]]
    assert m_bar.copy_to_host().tolist() == [[0.0, 1.0, 1.0]] * 2
    strided = D(np.full((2, 6), 9.0))[:, ::2]
    x_bar = D(np.zeros((2, 2)))
    forward[1, (2, 2)](D(x.copy()), strided)(x_bar, D(ones((2, 3))))
    assert x_bar.copy_to_host().tolist() == [[0.0, 2.0], [2.0, 0.0]]


def test_what_it_keeps_counts() -> None:
    x, y = D(ones(4)), D(np.zeros(2))
    pullback = ad.cuda.split(offers)[1, 4](x, y, 0.5)
    ad.cuda.split(offers, max_tape_bytes=pullback.tape_nbytes)[1, 4](x, D(np.zeros(2)), 0.5)
    with pytest.raises(ad.TapeLimitError):
        ad.cuda.split(offers, max_tape_bytes=pullback.tape_nbytes - 1)[1, 4](x, y, 0.5)


# ---- what is refused -----------------------------------------------------------------------------------


@cuda.jit
def of_a_view(x, y):
    row = y[2:]
    cuda.atomic.max(row, 0, x[cuda.grid(1)])


@cuda.jit
def of_a_local_array(x, y):
    a = cuda.local.array(2, float64)
    a[0] = 0.0
    cuda.atomic.max(a, 0, x[cuda.grid(1)])
    y[cuda.grid(1)] = a[0]


@cuda.jit
def of_dynamic_memory(x, y):
    s = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    cuda.atomic.max(s, 0, x[t])
    cuda.syncthreads()
    y[t] = s[0]


@cuda.jit
def of_what_is_written(x, y):
    i = cuda.grid(1)
    y[i] = 0.0
    cuda.atomic.max(y, i, x[i])


@cuda.jit
def of_what_was_read(x, y):
    i = cuda.grid(1)
    for _ in range(2):
        cuda.atomic.max(y, i, x[i])
        x[i] = y[i] * 2.0


@cuda.jit
def with_an_addition(x, y):
    i = cuda.grid(1)
    cuda.atomic.max(y, i, x[i])
    cuda.atomic.add(y, 0, x[i])


@cuda.jit
def written_again(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    cuda.atomic.max(s, t, x[t])
    s[t] = 2.0 * x[t]
    cuda.syncthreads()
    y[t] = s[t]


@cuda.jit
def read_at_once(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.atomic.max(s, t, x[t])
    y[t] = s[t]
    cuda.syncthreads()


@cuda.jit
def no_barrier(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    if t > 3:
        cuda.atomic.max(s, t, x[t])
    y[t] = s[0]


@cuda.jit
def in_a_loop(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    for k in range(4):
        cuda.atomic.max(s, k, x[t])
    cuda.syncthreads()
    y[t] = s[0]


@cuda.jit
def barrier_in_a_branch(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    cuda.atomic.max(s, 0, x[t])
    if x.shape[0] > 4:
        cuda.syncthreads()
    y[t] = s[0]


@cuda.jit
def one_of_two(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    if t > 2:
        cuda.atomic.max(s, 0, x[t])
    else:
        cuda.atomic.min(s, 0, x[t])
    cuda.syncthreads()
    y[t] = s[0]


@cuda.jit
def two_before_a_barrier(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    cuda.atomic.add(s, 0, x[t])
    cuda.atomic.max(s, 0, x[t])
    cuda.syncthreads()
    y[t] = s[0]


@cuda.jit
def too_large(x, y):
    s = cuda.shared.array(4096, float64)
    t = cuda.threadIdx.x
    s[t] = 0.0
    cuda.syncthreads()
    cuda.atomic.max(s, 0, x[t])
    cuda.syncthreads()
    y[t] = s[0]


@cuda.jit
def old_value(x, y):
    i = cuda.grid(1)
    x[i] = cuda.atomic.max(y, 0, x[i]) * 2.0


@cuda.jit
def old_value_of_a_subtraction(x, y):
    i = cuda.grid(1)
    x[i] = cuda.atomic.sub(y, 0, x[i]) * 2.0


@pytest.mark.parametrize(
    "kernel, words",
    [
        (of_a_view, "cuda.atomic.max of a view"),
        (of_a_local_array, "cuda.atomic.max of a local array"),
        (of_dynamic_memory, "dynamic shared memory"),
        (of_what_is_written, "y, which the kernel writes too (line "),
        (of_what_was_read, "y, which is read before it (line "),
        (with_an_addition, "cuda.atomic.max and cuda.atomic.add are of one array: "),
        (written_again, "s, which is written again before the next"),
        (read_at_once, "s, which is read again before the next"),
        (no_barrier, "has no cuda.syncthreads() behind it"),
        (in_a_loop, "is in a loop with no cuda.syncthreads() behind it (line "),
        (barrier_in_a_branch, "passed whatever happens (line "),
        (one_of_two, "are of one array, with no cuda.syncthreads() between them"),
        (two_before_a_barrier, "cuda.atomic.max and cuda.atomic.add are of one array, with no"),
        (too_large, "8 bytes more for each element"),
        (old_value, "cuda.atomic.max returns is used"),
        (old_value_of_a_subtraction, "cuda.atomic.sub returns is used"),
    ],
)
def test_refused_with_its_line(kernel: Any, words: str) -> None:
    text = refused(kernel, ones(8), ones(8))
    assert words in text, text
    assert "extrema.py" in text and "^" in text
