"""The kernels that gpu_check.py times, each with the same work as a loop for the CPU, and its arguments."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import cuda, float32

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
THREADS = 4 if SIMULATED else 256


@dataclass(frozen=True)
class Work:
    """kernel: what is launched, so, with these arguments.  loop: the same for the CPU.
    written: the positions of the arrays that it writes.  nbytes: what it must at least read and write."""

    kernel: Any
    loop: Callable[..., None]
    launch: tuple[Any, ...]
    args: list[Any]
    written: tuple[int, ...]
    nbytes: float

    @property
    def arrays(self) -> list[int]:
        """The positions of the arrays."""
        return [k for k, x in enumerate(self.args) if isinstance(x, np.ndarray)]

    @cached_property
    def bars(self) -> list[np.ndarray]:
        """A cotangent for each array's final state: random for those that are written, else zeros."""
        g = np.random.default_rng(3)
        return [
            g.random(self.args[k].shape, np.float32) - np.float32(0.5)
            if k in self.written
            else np.zeros_like(self.args[k])
            for k in self.arrays
        ]


@cuda.jit
def axpy(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i] * x[i] + y[i]


def axpy_loop(x, y, a):
    for i in range(x.shape[0]):
        y[i] = a * x[i] * x[i] + y[i]


@cuda.jit
def heat2(u, v, c):
    j, i = cuda.grid(2)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        t = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - float32(4.0) * u[i, j]
        v[i, j] = u[i, j] + c * t * u[i, j]


def heat2_loop(u, v, c):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            t = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - float32(4.0) * u[i, j]
            v[i, j] = u[i, j] + c * t * u[i, j]


@cuda.jit
def heat3(u, v, c):
    k, j, i = cuda.grid(3)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1 and 0 < k < u.shape[2] - 1:
        t = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
        t += u[i, j, k - 1] + u[i, j, k + 1] - float32(6.0) * u[i, j, k]
        v[i, j, k] = u[i, j, k] + c * t


def heat3_loop(u, v, c):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                t = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                t += u[i, j, k - 1] + u[i, j, k + 1] - float32(6.0) * u[i, j, k]
                v[i, j, k] = u[i, j, k] + c * t


@cuda.jit
def bodies(x, f, n):
    i = cuda.grid(1)
    if i < n:
        a = float32(0.0)
        b = float32(0.0)
        for j in range(n):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            d = dx * dx + dy * dy + float32(0.01)
            w = float32(1.0) / (d * math.sqrt(d))
            a += w * dx
            b += w * dy
        f[i, 0] = a
        f[i, 1] = b


def bodies_loop(x, f, n):
    for i in range(n):
        a = float32(0.0)
        b = float32(0.0)
        for j in range(n):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            d = dx * dx + dy * dy + float32(0.01)
            w = float32(1.0) / (d * math.sqrt(d))
            a += w * dx
            b += w * dy
        f[i, 0] = a
        f[i, 1] = b


@cuda.jit
def total(x, y):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    v = float32(0.0)
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        v += x[i] * x[i]
    s[t] = v
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(y, 0, s[0])


def total_loop(x, y):
    s = float32(0.0)
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    y[0] += s


@cuda.jit
def histogram(x, weight, bins):
    i = cuda.grid(1)
    if i < x.shape[0]:
        k = min(int(x[i] * bins.shape[0]), bins.shape[0] - 1)
        cuda.atomic.add(bins, k, weight[i] * x[i])


def histogram_loop(x, weight, bins):
    for i in range(x.shape[0]):
        k = min(int(x[i] * bins.shape[0]), bins.shape[0] - 1)
        bins[k] += weight[i] * x[i]


@cuda.jit
def lstm_cell(gates, cell, hidden):
    i = cuda.grid(1)
    n = cell.shape[0]
    if i < n:
        one = float32(1.0)
        a = one / (one + math.exp(-gates[i]))
        b = one / (one + math.exp(-gates[n + i]))
        o = one / (one + math.exp(-gates[2 * n + i]))
        g = math.tanh(gates[3 * n + i])
        cell[i] = b * cell[i] + a * g
        hidden[i] = o * math.tanh(cell[i])


def lstm_loop(gates, cell, hidden):
    n = cell.shape[0]
    for i in range(n):
        one = float32(1.0)
        a = one / (one + math.exp(-gates[i]))
        b = one / (one + math.exp(-gates[n + i]))
        o = one / (one + math.exp(-gates[2 * n + i]))
        g = math.tanh(gates[3 * n + i])
        cell[i] = b * cell[i] + a * g
        hidden[i] = o * math.tanh(cell[i])


@cuda.jit
def row_maxima(x, y, most):
    """A block takes the largest of its row, in shared memory, and offers it to all."""
    s = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    if t == 0:
        s[0] = float32(-1.0)
    cuda.syncthreads()
    best = float32(-1.0)
    for i in range(t, x.shape[1], cuda.blockDim.x):
        best = max(best, x[row, i])
    cuda.atomic.max(s, 0, best)
    cuda.syncthreads()
    if t == 0:
        y[row] = s[0] * s[0]
        cuda.atomic.max(most, row % most.shape[0], s[0])


def row_maxima_loop(x, y, most):
    for row in range(x.shape[0]):
        best = float32(-1.0)
        for i in range(x.shape[1]):
            best = max(best, x[row, i])
        y[row] = best * best
        most[row % most.shape[0]] = max(most[row % most.shape[0]], best)


def works(scale: float) -> dict[str, Callable[[], Work]]:
    """What makes each of them.  scale: 1 for some hundred megabytes an array."""
    g = np.random.default_rng(0)
    n = 16 if SIMULATED else max(int(scale * (1 << 26)), 1 << 12)
    m = 4 if SIMULATED else max(int(math.sqrt(scale) * 8192), 64)
    k = 4 if SIMULATED else max(int(scale ** (1 / 3) * 512), 16)
    b = 4 if SIMULATED else max(int(math.sqrt(scale) * 32768), 256)
    cells, rows = n // 4, max(n // 4096, 3)

    def single(*shape: int) -> np.ndarray:
        return g.random(shape, dtype=np.float32)

    def blocks(count: int, threads: int = THREADS) -> int:
        return -(-count // threads)

    two, three = ((2, 2), (2, 2, 1)) if SIMULATED else ((32, 8), (64, 2, 2))
    grid2 = tuple(blocks(m, t) for t in two)
    grid3 = tuple(blocks(k, t) for t in three)
    many, few = (blocks(n), THREADS), (2 if SIMULATED else 1024, THREADS)
    f = np.float32
    return {
        "axpy": lambda: Work(
            axpy, axpy_loop, many, [single(n), single(n), f(0.5)], (1,), 12.0 * n
        ),
        "heat 2-D": lambda: Work(
            heat2, heat2_loop, (grid2, two), [single(m, m), single(m, m), f(0.1)], (1,), 8.0 * m * m
        ),
        "heat 3-D": lambda: Work(
            heat3, heat3_loop, (grid3, three), [single(k, k, k), single(k, k, k), f(0.1)], (1,),
            8.0 * k**3,
        ),
        "n-body": lambda: Work(
            bodies, bodies_loop, (blocks(b), THREADS), [single(b, 2), single(b, 2), b], (1,), 16.0 * b
        ),
        "sum": lambda: Work(total, total_loop, few, [single(n), np.zeros(1, f)], (1,), 4.0 * n),
        "histogram": lambda: Work(
            histogram, histogram_loop, many, [single(n), single(n), np.zeros(256, f)], (2,), 8.0 * n
        ),
        "lstm cell": lambda: Work(
            lstm_cell, lstm_loop, (blocks(cells), THREADS),
            [single(4 * cells), single(cells), single(cells)], (1, 2), 28.0 * cells,
        ),
        "row maxima": lambda: Work(
            row_maxima, row_maxima_loop, (rows, THREADS),
            [single(rows, n // rows), single(rows), np.zeros(3, f)], (1, 2), 4.0 * n,
        ),
    }  # fmt: skip
