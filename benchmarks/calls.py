"""What a call costs when there is nothing to do; and what memory long loops and many calls take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

import splitad as ad
from benchmarks.growth import walk
from benchmarks.measure import Part, interleaved, peak_beyond, resident

Row = dict[str, Any]

INNER = 1000  # calls in njit code per timing
MILLION = 1_000_000
MANY = 20_000
# Bounds that a run is held to.
MOST_BYTES_OF_A_MILLION_STEPS = 100e6
MOST_GROWTH_OF_MANY_CALLS = 1e6


def first(x):
    """Next to nothing."""
    return x[0]


def wander(x, steps):
    """As walk, but the number of steps is known only at the end."""
    k = 0
    while k < steps and abs(x) < 1e6:
        x = x + 1e-3 * x * x
        x = x / (1.0 + 1e-3 * abs(x))
        k += 1
    return x


def rows(quick: bool = False) -> Iterator[Row]:
    yield call_costs(rounds=3 if quick else 9)
    for f in (walk, wander):
        yield long_loop(f, MILLION)
    yield many_calls(MANY)


# ---- seconds -----------------------------------------------------------------------------------------


def call_costs(rounds: int = 9) -> Row:
    """Seconds per call of a function of an array that returns its first element."""
    plain = njit(first)
    forward, both = ad.split(first, ad.Duplicated), ad.value_and_grad(first)
    x = np.array([1.0, 2.0, 3.0])
    shadow = np.zeros(3)

    @njit
    def primal_calls(f, x, n):
        s = 0.0
        for _ in range(n):
            s += f(x)
        return s

    @njit
    def pair_calls(forward, x, shadow, n):
        s = 0.0
        for _ in range(n):
            value, pullback = forward(x)
            pullback(1.0, shadow)
            s += value
        return s

    @njit
    def gradient_calls(both, x, n):
        s = 0.0
        for _ in range(n):
            value, gradient = both(x)
            s += value + gradient[0]
        return s

    def always(*args: Any) -> Callable[[int], list[tuple[Any, ...]]]:
        return lambda count: [args] * count

    _, pullback = forward(x)
    inside = {
        "njit: primal": Part(primal_calls, always(plain, x, INNER)),
        "njit: forward and pullback": Part(pair_calls, always(forward, x, shadow, INNER)),
        "njit: value_and_grad": Part(gradient_calls, always(both, x, INNER)),
    }
    outside = {
        "Python: primal": Part(plain, always(x)),
        "Python: forward": Part(forward, always(x)),
        "Python: pullback": Part(pullback, always(1.0, shadow)),
        "Python: value_and_grad": Part(both, always(x)),
    }
    for part in (*outside.values(), *inside.values()):
        part.seconds()
    seconds = interleaved({**outside, **inside}, rounds)
    for name in inside:
        seconds[name] /= INNER
    return {"what": "a call with nothing to do", "status": "ok", "seconds": seconds}


# ---- memory ------------------------------------------------------------------------------------------


def long_loop(f: Callable[..., float], steps: int) -> Row:
    """What the gradient of a scalar loop takes."""
    both = ad.value_and_grad(f, wrt=0, restore=False)
    both(0.5, 10)
    peak = peak_beyond(lambda: both(0.5, steps), ad.release_memory)
    _, pullback = ad.split(f, ad.Active, ad.Const)(0.5, steps)
    tape = int(pullback.tape_nbytes)
    most = max(tape, peak or 0)
    return {
        "what": f"{f.__name__}: {steps:,} steps of a scalar loop",
        "status": "ok" if most < MOST_BYTES_OF_A_MILLION_STEPS else "too much",
        "peak_bytes": peak,
        "tape_bytes": tape,
    }


def many_calls(count: int) -> Row:
    """How much more memory is held after many calls of a pair in njit code, with arrays and views."""
    forward = ad.split(_smoothed, ad.Duplicated, ad.Active)

    @njit
    def calls(forward, x, shadow, n):
        s = 0.0
        for _ in range(n):
            _, pullback = forward(x, 0.5)
            s += pullback(1.0, shadow)[0]
        return s

    x, shadow = np.linspace(0.0, 1.0, 100), np.zeros(100)
    calls(forward, x, shadow, 1000)
    before = resident()
    calls(forward, x, shadow, count)
    after = resident()
    grown = None if before is None or after is None else after - before
    return {
        "what": f"{count:,} calls of a pair in njit code",
        "status": "ok" if grown is None or grown < MOST_GROWTH_OF_MANY_CALLS else "too much",
        "growth_bytes": grown,
    }


def _smoothed(x, c):
    """Overwrites its argument, by way of a new array."""
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        x[i] = y[i] + c * (y[i - 1] - 2.0 * y[i] + y[i + 1])
    return np.sum(x * x)
