"""How time and tape grow with the problem and with the number of steps, over three decades.

Linear is a slope of 1: of the logarithm of seconds, or of bytes, over that of the size, by least squares.
`last` is the slope between the two largest sizes, where the constant cost of a call no longer shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from benchmarks import own
from benchmarks.kernels import KERNELS, Kernel
from benchmarks.measure import Part, interleaved

Row = dict[str, Any]


def walk(x, steps):
    """A scalar that takes many steps."""
    for _ in range(steps):
        x = x + 1e-3 * math.sin(3.0 * x)
    return x


SCALAR_LOOP = Kernel(walk, lambda: (0.5, 1_000_000), lambda: (0.5, 10), (0,), lambda n: (0.5, n))


@dataclass(frozen=True)
class Growth:
    """make(size) gives the arguments of a problem that is proportional to size."""

    kernel: str
    parameter: str
    sizes: Sequence[int]
    make: Callable[[int], tuple[Any, ...]]

    def subject(self) -> Kernel:
        return SCALAR_LOOP if self.kernel == walk.__name__ else KERNELS[self.kernel]


def _made(name: str) -> Callable[..., tuple[Any, ...]]:
    return KERNELS[name].make


def _side(cells: int) -> int:
    return max(3, round(math.sqrt(cells)))


GROWTHS = [
    Growth("walk", "steps", (10**3, 10**4, 10**5, 10**6), SCALAR_LOOP.make),
    Growth("rosenbrock", "size", (10**3, 10**4, 10**5, 10**6), _made("rosenbrock")),
    Growth("burgers", "steps", (10, 100, 1000, 10_000), lambda n: _made("burgers")(128, n)),
    Growth("burgers", "size", (100, 1000, 10_000, 100_000), lambda n: _made("burgers")(n, 20)),
    Growth("gauss_seidel", "sweeps", (1, 10, 100, 1000), lambda n: _made("gauss_seidel")(32, n)),
    Growth(
        "gauss_seidel",
        "cells",
        (256, 2500, 25_600, 250_000),
        lambda n: _made("gauss_seidel")(_side(n), 10),
    ),
    Growth("lorenz96", "steps", (10, 100, 1000, 10_000), lambda n: _made("lorenz96")(40, n)),
    Growth("gmm", "points", (10, 100, 1000, 10_000), lambda n: _made("gmm")(8, 5, n)),
    Growth("nbody", "steps", (1, 10, 100, 1000), lambda n: _made("nbody")(3, n)),
    Growth("sine_gordon", "steps", (1, 10, 100, 1000), lambda n: _made("sine_gordon")(64, n)),
    Growth("lstm_20x30", "steps", (1, 10, 100, 1000), lambda n: _made("lstm_20x30")(8, 10, 16, n)),
]
QUICK = ("walk",)


def rows(quick: bool = False) -> Iterator[Row]:
    for growth in GROWTHS:
        if not quick:
            yield measure(growth, growth.sizes)
        elif growth.kernel in QUICK:
            yield measure(growth, growth.sizes[:2], rounds=3)


def measure(growth: Growth, sizes: Sequence[int], rounds: int = 5) -> Row:
    """The points and the slopes of one growth."""
    kernel, points = growth.subject(), []
    plain = numba.njit(kernel.fn)
    program = own.program(kernel, growth.make(sizes[0]))
    for size in sizes:
        fresh = own.Fresh(growth.make(size))
        parts = {
            "primal": Part(plain, fresh, 100),
            "value_and_grad": Part(program.value_and_grad, fresh, 100),
        }
        for part in parts.values():
            part.seconds()
        seconds = interleaved(parts, rounds)
        program.forward(*fresh(1)[0])  # the first tape of a size has room for more, the second fits
        program.release()  # a tape in a used block counts all of the block
        tape = program.tape_bytes(program.forward(*fresh(1)[0]))
        points.append({"size": size, "tape_bytes": tape, **seconds})
    return {
        "kernel": growth.kernel,
        "parameter": growth.parameter,
        "points": points,
        "time_slope": slope(points, "value_and_grad"),
        "last_time_slope": slope(points[-2:], "value_and_grad"),
        "primal_slope": slope(points, "primal"),
        "tape_slope": slope(points, "tape_bytes"),
        "last_tape_slope": slope(points[-2:], "tape_bytes"),
    }


def slope(points: Sequence[Row], key: str) -> float:
    """Of the logarithm of a figure over that of the size."""
    x = np.log([point["size"] for point in points])
    y = np.log([max(point[key], 1e-12) for point in points])
    return float(np.polyfit(x, y, 1)[0])
