"""Gradients of whole-array expressions beside their njit primals: forward, pullback, value and gradient.

    python benchmarks/arrays.py [SIZE]      prints each as a multiple of the primal's time

The functions take turns, and the least time of each counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

import splitad as ad

SECONDS = 1.0  # for each kernel


@njit
def sine_product(x, y):
    return np.sum(np.sin(x) * y)


@njit
def squared_rows(x, y):
    d = x.reshape((-1, 100)) - y[:100]
    return np.sum((d * d).sum(axis=1) ** 2)


@njit
def logistic(x, y):
    return np.mean(np.log(1.0 + np.exp(-x * y)))


@njit
def clipped(x, y):
    return np.sum(np.where(x > 0.0, x * y, 0.1 * x) + np.clip(y, -1.0, 1.0))


@njit
def normalised(x, y):
    z = (x - np.mean(x)) / (1e-3 + np.std(x))
    return np.sum(z * z * y)


@njit
def stencil(x, y):
    x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[2:] + x[:-2]) + 0.1 * y[1:-1]
    return np.sum(x * x)


@njit
def in_place(x, y):
    x *= y
    x += 0.5
    np.tanh(x, x)
    return np.sum(x)


@njit
def spread(x, y):
    return np.max(x * y) - np.min(x + y) + np.var(x * y)


KERNELS = sine_product, squared_rows, logistic, clipped, normalised, stencil, in_place, spread


def once(call: Callable[..., Any], *args: Any) -> float:
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def ratios(kernel: Any, size: int) -> tuple[float, ...]:
    """(seconds of the primal, then the others as multiples of it)"""
    x, y = (np.random.default_rng(k).normal(size=size) for k in (0, 1))
    forward, gradient = ad.split(kernel), ad.value_and_grad(kernel, wrt=(0, 1), restore=False)
    least = [np.inf] * 4
    end = np.inf  # SECONDS after the first round, which compiles
    while time.perf_counter() < end:
        found = [once(kernel, x.copy(), y)]
        u = x.copy()
        start = time.perf_counter()
        _, pullback = forward(u, y)
        found.append(time.perf_counter() - start)
        shadows = pullback.make_zero()
        found.append(once(pullback, 1.0, *shadows))
        found.append(once(gradient, x.copy(), y))
        least = [min(pair) for pair in zip(least, found, strict=True)]
        end = min(end, time.perf_counter() + SECONDS)
    return least[0], *(each / least[0] for each in least[1:])


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{size} elements; multiples of the njit primal")
    print(f"{'':16s} {'primal':>10s} {'forward':>8s} {'pullback':>8s} {'both':>8s}")
    for kernel in KERNELS:
        primal, *others = ratios(kernel, size)
        columns = " ".join(f"{each:8.2f}" for each in others)
        print(f"{kernel.__name__:16s} {primal * 1e6:7.1f} us {columns}")


if __name__ == "__main__":
    main()
