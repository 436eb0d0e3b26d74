"""Kernels for the tests, each with small arguments: run in numba's simulator, and compiled for a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import cuda, float32, float64

CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """launch: blocks, threads and what follows.  make: the arguments, from a random generator.
    atomic: the kernel's own results depend on the order of threads, in their last bits.
    registers: how many more than the plain kernel the pair's kernels may take on a GPU.
    adds: the atomic additions in the reverse kernel.
    gathers: whether a kernel comes before it, in which threads gather what their neighbours have."""

    kernel: Any
    launch: tuple[Any, ...]
    make: Callable[[np.random.Generator], tuple[Any, ...]]
    atomic: bool = False
    registers: int = 40
    adds: int | None = None
    gathers: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def case(launch: tuple[Any, ...], make: Callable[..., Any], **more: Any) -> Callable[[Any], Any]:
    def add(kernel: Any) -> Any:
        CASES[kernel.py_func.__name__] = Case(kernel, launch, make, **more)
        return kernel

    return add


N = 13  # not a multiple of the block


# ---- each thread for itself ----------------------------------------------------------------------------


@case((2, 8), lambda g: (g.random(N), g.random(N), 0.7, N), adds=1)
@cuda.jit
def saxpy(x, y, a, n):
    i = cuda.grid(1)
    if i >= n:
        return
    y[i] = a * x[i] + y[i] * y[i]


@case(
    (2, 8),
    lambda g: (g.random(N, np.float32), g.random(N, np.float32), np.float32(0.7)),
    adds=1,
)
@cuda.jit
def single(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        t = x[i] * a
        y[i] = y[i] * t + math.sin(t)


@case((2, 8), lambda g: (g.random(N), 0.3 + g.random(), 4, N), adds=1)
@cuda.jit
def logistic(x, r, steps, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        for _ in range(steps):
            v = r * v * (1.0 - v)
        x[i] = v


@case((2, 8), lambda g: (g.random(N), g.random(N), 5, N), adds=0)
@cuda.jit
def in_place(x, y, steps, n):
    i = cuda.grid(1)
    if i < n:
        for k in range(steps):
            x[i] = x[i] * y[i] + 0.1 * k
            if x[i] > 1.2:
                break
            y[i] += x[i]


@cuda.jit(device=True)
def smooth(a, b):
    if a < b:
        return math.exp(a) * b, a
    return math.sqrt(a * a + b), b * b


@case((2, 8), lambda g: (g.random(N), g.random(N), N), adds=0)
@cuda.jit
def device_function(x, y, n):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        u, v = smooth(x[i], y[i])
        w, _ = smooth(v, u)
        x[i] = w + abs(u)
        y[i] = max(v, 0.5) ** 2 + min(u, v) / (1.0 + w)


@case((2, 8), lambda g: (1.0 + g.random(N), np.zeros(N), N), adds=0)
@cuda.jit
def newton(x, y, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        while abs(v * v - x[i]) > 1e-3:
            v = 0.5 * (v + x[i] / v)
        y[i] = v


@case((2, 4), lambda g: (g.random(N), g.random(N), N), adds=0)
@cuda.jit
def grid_stride(x, y, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        y[i] = x[i] * y[i]
    j = cuda.grid(1)
    while j < n:
        x[j] = math.tanh(x[j])
        j += cuda.gridsize(1)


@case((2, 8), lambda g: (g.random((N, 3)), g.random((3, N)), N), adds=0)
@cuda.jit
def rows(x, y, n):
    i = cuda.grid(1)
    if i < n:
        row = x[i]
        s = 0.0
        for k in range(3):
            s += row[k] * y[k, i]
            row[k] = s
        y[0, i] = math.cos(s)


@case((2, 8), lambda g: (g.random(N), g.random(4), np.zeros(N), N))
@cuda.jit
def local(x, c, y, n):
    i = cuda.grid(1)
    if i < n:
        a = cuda.local.array(4, float64)
        for k in range(4):
            a[k] = x[i] * c[k]
        for k in range(1, 4):
            a[k] = a[k] * a[k - 1] + a[0]
        y[i] = a[3] * a[1]


@case((2, 8), lambda g: ((g.random(N), g.random(N)), np.zeros(N), N), adds=0)
@cuda.jit
def tuples(pair, y, n):
    i = cuda.grid(1)
    if i < n:
        a, b = pair
        y[i] = a[i] * b[i]
        b[i] = math.log(1.0 + b[i])


# ---- threads that read the same ------------------------------------------------------------------------


@case((2, 8), lambda g: (g.random(N), np.zeros(N), 0.1, N), adds=1, gathers=True)
@cuda.jit
def stencil(u, v, c, n):
    i = cuda.grid(1)
    if 0 < i and i < n - 1:
        v[i] = u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1]) * u[i]


@case((2, 8), lambda g: (g.random(5), g.integers(0, 5, N), np.zeros(N), N), adds=1)
@cuda.jit
def gather(x, index, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[index[i]] * x[index[i]]


@case((1, 8), lambda g: (g.random((6, 2)), np.zeros((6, 2)), 6))
@cuda.jit
def nbody(x, f, n):
    i = cuda.grid(1)
    if i < n:
        a = 0.0
        b = 0.0
        for j in range(n):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            w = 1.0 / math.sqrt(dx * dx + dy * dy + 1.0) ** 3
            a += w * dx
            b += w * dy
        f[i, 0] = a
        f[i, 1] = b


@case(
    ((2, 2), (4, 4)),
    lambda g: (g.random((7, 6)), np.zeros((7, 6)), 0.1),
    adds=1,
    gathers=True,
)
@cuda.jit
def heat(u, v, c):
    i, j = cuda.grid(2)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        t = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
        v[i, j] = u[i, j] + c * t * u[i, j]


@case(((1, 2, 2), (4, 2, 1)), lambda g: (g.random((4, 3, 2)), g.random((4, 3, 2)), 0.4), adds=1)
@cuda.jit
def three(u, v, c):
    i, j, k = cuda.grid(3)
    if i < u.shape[0] and j < u.shape[1] and k < u.shape[2]:
        v[i, j, k] = c * u[i, j, k] * v[i, j, k]


@case((2, (4, 2)), lambda g: (g.random(8), np.zeros(16)))
@cuda.jit
def flat_in_two(x, y):
    k = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
    at = k + 8 * cuda.blockIdx.x
    y[at] = x[k] * x[k] * (1.0 + at)


# ---- threads that read around their own place ----------------------------------------------------------


@case((2, 8), lambda g: (g.random(N, np.float32), np.zeros(N, np.float32)), adds=0, gathers=True)
@cuda.jit
def slope(u, v):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if i == 0 or i >= u.shape[0] - 1:
        return
    v[i] = u[i + 1] - u[i - 1]


@case(
    ((2, 2), (4, 4)),
    lambda g: (g.random((7, 6)), g.random((7, 6)), 0.4),
    adds=1,
    gathers=True,
)
@cuda.jit
def wave(old, now, speed):
    i, j = cuda.grid(2)
    if i >= old.shape[0] or j >= old.shape[1]:
        return
    if i == 0 or j == 0 or i == old.shape[0] - 1 or j == old.shape[1] - 1:
        old[i, j] = 0.0
        return
    bend = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
    old[i, j] = 2.0 * now[i, j] - old[i, j] + speed * speed * bend


@case(
    ((1, 2, 2), (4, 2, 2)),
    lambda g: (g.random((4, 4, 3), np.float32), np.zeros((4, 4, 3), np.float32), np.float32(0.3)),
    adds=1,
    gathers=True,
)
@cuda.jit
def seven_points(u, v, c):
    i, j, k = cuda.grid(3)
    if 1 <= i < u.shape[0] - 1 and 1 <= j < u.shape[1] - 1 and 1 <= k < u.shape[2] - 1:
        s = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
        v[i, j, k] = c * (s + u[i, j, k - 1] + u[i, j, k + 1]) * u[i, j, k]


@case(
    ((2, 2, 1), (2, 2, 4)),
    lambda g: (g.random((4, 4, 3)), np.zeros((4, 4, 3))),
    adds=0,
    gathers=True,
)
@cuda.jit
def corners(u, v):
    i, j, k = cuda.grid(3)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1 and 0 < k < u.shape[2] - 1:
        v[i, j, k] = u[i - 1, j - 1, k - 1] * u[i + 1, j + 1, k + 1] - u[i - 1, j + 1, k]


# fewer threads than elements: the last ones are loaded by a neighbour only
@case((1, 8), lambda g: (g.random(N), g.random(N), np.zeros(N), N), adds=0, gathers=True)
@cuda.jit
def short_launch(u, c, v, n):
    i = cuda.grid(1)
    if i < n - 3:
        v[i] = c[i] * u[i + 3] + u[i] * u[i + 1]


# more threads than elements, and a place that no thread is at: what u[-1] gets is added by atomics
@case((3, 8), lambda g: (g.random(N), np.zeros(N), N), adds=1, gathers=True)
@cuda.jit
def ring(u, v, n):
    i = cuda.grid(1)
    if i < n:
        v[i] = u[i] * u[i - 1]


@case((2, 8), lambda g: (g.random((N, 3)), np.zeros((N, 2)), N), adds=0, gathers=True)
@cuda.jit
def channels(u, v, n):
    i = cuda.grid(1)
    if 0 < i < n - 1:
        v[i, 0] = u[i - 1, 2] * u[i + 1, 0]
        v[i, 1] = u[i + 1, -1] - u[i, 0]


@case((2, 8), lambda g: (g.random(N), np.zeros(1), N), atomic=True, adds=0, gathers=True)
@cuda.jit
def roughness(u, loss, n):
    i = cuda.grid(1)
    if i < n - 1:
        step = u[i + 1] - u[i]
        if step > 0.1:
            cuda.atomic.add(loss, 0, step * step)
        else:
            cuda.atomic.add(loss, 0, 0.2 * step)


# what a thread knows of itself, in a factor: the one that gathers asks for another one's
@case(((2, 2), (3, 2)), lambda g: (g.random((6, 4)), np.zeros((6, 4))), adds=0, gathers=True)
@cuda.jit
def by_number(u, v):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    j = cuda.grid(2)[1]
    if i < u.shape[0] - 1 and j > 0:
        a = cuda.threadIdx.x + 2 * cuda.blockIdx.y + 0.5 * cuda.threadIdx.y
        b = cuda.blockIdx.x + cuda.gridDim.x * cuda.gridsize(2)[1] + cuda.blockDim.y
        v[i, j] = u[i + 1, j - 1] * a + u[i, j] * b * (i - 2 * j)


@case(
    ((2, 2), (3, 2)),
    lambda g: ((g.random((2, 4, 6)), g.random((6, 4))), np.zeros((6, 4)), 1),
    adds=0,
    gathers=True,
)
@cuda.jit
def transposed(pair, v, k):
    u, w = pair
    i, j = cuda.grid(2)
    if 0 < i < v.shape[0] - 1 and j < v.shape[1] - 1:
        v[i, j] = u[k, j + 1, i - 1] * w[i + 1, j] + u[k, j, i] * u[0, j, i + 1]


# what another thread adds to along the other diagonal is added by atomics
@case(((2, 2), (3, 3)), lambda g: (g.random((5, 5)), np.zeros((5, 5))), adds=1, gathers=True)
@cuda.jit
def both_ways(u, v):
    i, j = cuda.grid(2)
    if i < u.shape[0] - 1 and j < u.shape[1]:
        v[i, j] = u[i + 1, j] * u[j, i] + u[i, j]


@case((2, 8), lambda g: (g.random(N), g.integers(0, N, N), np.zeros(N), N), adds=1, gathers=True)
@cuda.jit
def near_and_far(u, index, v, n):
    i = cuda.grid(1)
    if i < n - 1:
        v[i] = u[i + 1] * u[i] + math.sin(u[index[i]])


@case((2, 8), lambda g: (g.random(N), np.zeros(N), 3, N))
@cuda.jit
def window(u, v, size, n):
    i = cuda.grid(1)
    if i < n - size:
        for k in range(size):
            v[i] += u[i + k] * u[i + k]


# ---- blocks --------------------------------------------------------------------------------------------


@case((2, 8), lambda g: (g.random(16), np.zeros(2)))
@cuda.jit
def tree_sum(x, y):
    s = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)] ** 2
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            s[t] += s[t + half] * s[t]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


@case(((2, 1), (4, 4)), lambda g: (g.random((8, 8)), g.random((8, 4)), np.zeros((8, 4))))
@cuda.jit
def tiles(a, b, c):
    sa = cuda.shared.array((4, 4), float64)
    sb = cuda.shared.array((4, 4), float64)
    i, j = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for k in range(a.shape[1] // 4):
        sa[tx, ty] = a[i, ty + 4 * k]
        sb[tx, ty] = b[tx + 4 * k, j]
        cuda.syncthreads()
        for m in range(4):
            total += sa[tx, m] * sb[m, ty]
        cuda.syncthreads()
    c[i, j] = total


@case((2, 8), lambda g: (g.random(N), np.zeros(1), np.zeros(3), N), atomic=True)
@cuda.jit
def atomics(x, loss, bins, n):
    i = cuda.grid(1)
    s = cuda.shared.array(1, float64)
    if cuda.threadIdx.x == 0:
        s[0] = 0.0
    cuda.syncthreads()
    if i < n:
        cuda.atomic.add(s, 0, x[i] * x[i])
        cuda.atomic.sub(bins, i % 3, math.sin(x[i]))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(loss, 0, s[0] * s[0])


@case((2, 8), lambda g: (g.random(N), np.zeros(1, np.int64), np.zeros(N), N), atomic=True)
@cuda.jit
def compact(x, count, y, n):
    i = cuda.grid(1)
    if i < n and x[i] > 0.5:
        cuda.atomic.add(count, 0, 1)
        k = i // 2 * 2
        if k != i or x[i] < 0.9:
            y[i] = x[i] * x[i]


@case((2, 8), lambda g: (g.random(N), np.zeros(N), np.zeros(N), N))
@cuda.jit
def workspace(x, work, y, n):
    i = cuda.grid(1)
    if i < n:
        work[i] = x[i] * x[i]
        y[i] = math.sin(work[i]) * work[i]


@case((1, 8), lambda g: (g.random(8), 3))
@cuda.jit
def relax(x, steps):
    t = cuda.threadIdx.x
    for _ in range(steps):
        left = x[t - 1] if t > 0 else x[t]
        cuda.syncthreads()
        x[t] = 0.5 * (left * left + x[t])
        cuda.syncthreads()


@case((2, 8), lambda g: (g.random(N).astype(np.float32), np.zeros(N, np.float32), N))
@cuda.jit
def shared_single(x, y, n):
    s = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] if i < n else float32(0.0)
    cuda.syncthreads()
    if i < n:
        y[i] = s[t] * s[7 - t]


@case((2, 8, 0, 64), lambda g: (g.random(16), np.zeros(16)))
@cuda.jit
def dynamic_shared(x, y):
    s = cuda.shared.array(0, float64)
    half = len(s) // 2
    low = s[:half]
    high = s[half:]
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if t < half:
        low[t] = x[i] * x[i]
    else:
        high[t - half] = x[i]
    cuda.syncthreads()
    k = t % half
    y[i] = low[k] * high[half - 1 - k] + s[0]


@case((2, 8), lambda g: (g.random(N), g.random(3), N))
@cuda.jit
def local_in_loop(x, c, n):
    i = cuda.grid(1)
    if i >= n:
        return
    for k in range(3):
        a = cuda.local.array((2, 2), float64)
        a[0, 0] = x[i]
        a[0, 1] = c[k]
        a[1, 0] = a[0, 0] * a[0, 1]
        x[i] = a[1, 0] + a[0, 0] * a[1, 0]


# ---- control flow and functions ------------------------------------------------------------------------


@case((2, 8), lambda g: (g.random(N), g.integers(0, 4, N), g.random(N), N), adds=0)
@cuda.jit
def branches(x, m, y, n):
    i = cuda.grid(1)
    if i < n:
        if m[i] % 2 == 0:
            for k in range(m[i]):
                if k == 1:
                    continue
                y[i] = y[i] * x[i] + k
        else:
            for k in range(3):
                if x[i] * (k + 1) > 1.4:
                    y[i] += x[i]
                    break
                x[i] = x[i] + 0.1 * y[i]
            else:
                y[i] *= x[i]
        for a in range(m[i], -1, -2):
            for b in range(a):
                x[i] = x[i] * 0.9 + 0.1 * y[i] * b


@cuda.jit(device=True)
def root(a):
    if a < 0.0:
        return 0.0
    v = a + 0.5
    for _ in range(20):
        w = 0.5 * (v + a / v)
        if abs(w - v) < 1e-3:
            return w
        v = w
    return v


@cuda.jit(device=True)
def fill(a, x, i):
    for k in range(a.shape[0]):
        a[k] = root(x[i] + k)


@case((2, 8), lambda g: (g.random(N), g.random(N), N), adds=0)
@cuda.jit
def device_loops(x, y, n):
    i = cuda.grid(1)
    if i >= n:
        return
    a = cuda.local.array(6, float64)
    fill(a, x, i)
    half = a[3:]
    k = (i * 7 + 3) % 5
    a[k] *= half[i % 3]
    s = 0.0
    for v in a:
        s += v * v
    y[i] = y[i] * s - half[0]


@case((2, 8), lambda g: (g.random(16), np.zeros(16)))
@cuda.jit
def prefix_sum(x, y):
    s = cuda.shared.array((2, 8), float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    source = 0
    s[0, t] = x[i] * x[i]
    cuda.syncthreads()
    step = 1
    while step < 8:
        if t >= step:
            s[1 - source, t] = s[source, t] + s[source, t - step]
        else:
            s[1 - source, t] = s[source, t]
        source = 1 - source
        cuda.syncthreads()
        step *= 2
    y[i] = s[source, t] * x[i]


@case((2, 8), lambda g: (0.2 + 0.5 * g.random(N), np.zeros(N), N), adds=0)
@cuda.jit
def functions(x, y, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        s = math.sin(v) + math.cos(v) + math.tan(v) + math.asin(v) + math.acos(v) + math.atan(v)
        s += math.sinh(v) + math.cosh(v) * math.tanh(v) + math.asinh(v) + math.acosh(1.0 + v)
        s += math.atanh(v) + math.exp(v) * math.expm1(v) + math.log(v) * math.log1p(v)
        s += math.log2(v) * math.log10(v) + math.sqrt(v) + math.erf(v) * math.erfc(v)
        s += math.gamma(v) + math.lgamma(v) + math.hypot(v, 0.3) + math.atan2(v, 0.7)
        s += math.fmod(3.0 * v, 0.9) + math.copysign(v, -1.0) + math.fabs(v) + math.pow(v, 1.7)
        y[i] = s + v**3 + v**-2 + v**0.5 + (7.0 * v) % 0.9 + math.floor(v) + math.degrees(v)


@case((2, 8), lambda g: (0.2 + 0.5 * g.random(N), np.zeros(N), N), adds=0)
@cuda.jit
def numpy_functions(x, y, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        s = np.sin(v) + np.cos(v) + np.tanh(v) + np.arctan2(v, 0.3)
        y[i] = s + min(v, 0.4) + max(v, 0.5) + abs(v - 0.45)


@case(
    (2, 8),
    lambda g: (g.random(N, np.float32), g.random(N, np.float32), np.float32(0.3), N),
    adds=1,
)
@cuda.jit
def single_functions(x, y, a, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        for k in range(3):
            v = math.exp(-v) * a + math.tanh(v) / (float32(1.0) + v * v)
        y[i] = math.sqrt(v * v + y[i]) + v**2


@case(((1, 2), (8, 2)), lambda g: (g.random((4, 8)), g.random(8), np.zeros((4, 8))))
@cuda.jit
def rows_and_columns(a, b, c):
    j, i = cuda.grid(2)
    w, h = cuda.gridsize(2)
    if i < a.shape[0] and j < a.shape[1]:
        s = 0.0
        for k in range(h):
            s += a[k, j] * b[(j + k) % w]
        c[i, j] = s * a[i, j]
        cuda.atomic.add(c, (i, j), b[j] * b[j])


@case((1, 8), lambda g: (g.random(8), g.random(8), 3))
@cuda.jit
def exchange(x, y, steps):
    t = cuda.threadIdx.x
    for k in range(steps):
        if k % 2 == 0:
            y[t] = x[7 - t] * y[t]
            cuda.syncthreads()
            x[t] = x[t] + y[(t + 1) % 8] * 0.5
        cuda.syncthreads()


@case((2, 8), lambda g: (g.random(N), np.zeros(1, np.int64), np.zeros(N), N), atomic=True)
@cuda.jit
def append(x, count, y, n):
    i = cuda.grid(1)
    if i < n:
        if x[i] > 0.5:
            k = cuda.atomic.add(count, 0, 1)
            y[k] = x[i] * x[i]


@case((2, 8), lambda g: (g.random(N), g.random(N), 0.3, 3))
@cuda.jit
def names(x, y, a, cur):
    tape_thread = cuda.grid(1)
    if tape_thread >= x.shape[0]:
        return
    at, iter_0, kept_x, bar_a, d_x = x[tape_thread], 2, y[tape_thread], a * a, a + 1.0
    tape_last8 = cuda.local.array(2, float64)
    for base in range(cur):
        tape_last8[base % 2] = at * bar_a + kept_x
        at = tape_last8[base % 2] * d_x + x[(tape_thread + iter_0) % 3] * x[iter_0]
        kept_x = at * kept_x
    y[tape_thread] = at + kept_x * bar_a


@case((2, 8), lambda g: (g.random(20), 0.3, N), atomic=True)
@cuda.jit
def mixed_indices(x, a, n):
    i = cuda.grid(1)
    if i < n:
        t = x[i] * a
        x[i] = t * t
        if i % 4 == 0:
            cuda.atomic.add(x, 13 + i % 5, t)
        cuda.atomic.sub(x, 19, x[i] * a)


@case(((2, 1, 2), (2, 2, 1)), lambda g: (g.random(16), np.zeros(16)))
@cuda.jit
def indices(x, y):
    t = cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z)
    b = cuda.blockIdx.x + cuda.gridDim.x * (cuda.blockIdx.y + cuda.gridDim.y * cuda.blockIdx.z)
    w, h, d = cuda.gridsize(3)
    i, j, k = cuda.grid(3)
    at = t + b * cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z
    y[at] = x[at] * x[i + w * (j + h * k)] * (w + 2 * h + 3 * d) / cuda.warpsize


@case((1, 8), lambda g: (0.3 + 0.5 * g.random(8), 0.3 + 0.5 * g.random(8)), adds=0)
@cuda.jit
def returns(x, y):
    i = cuda.grid(1)
    for _ in range(5):
        while True:
            x[i] *= y[i]
            if x[i] < 0.02:
                return
            if x[i] < 0.3:
                break
        for j in range(3):
            if x[i] + j > 2.2:
                return
            x[i] += 0.1 * y[i]


@case(
    (2, 2),
    lambda g: (
        g.random((3, 4)),
        np.array([1, 0, 1, 1], np.bool_),
        np.array([3, 200, 0, 255], np.uint8),
        g.random(4, np.float32).astype(float),
    ),
)
@cuda.jit
def views_and_masks(x, mask, weight, y):
    i = cuda.grid(1)
    turned = x.T
    back = x[::-1, 1:]
    if mask[i] and weight[i] > 2:
        y[i] = turned[i, 1] * back[0, i % 3] + y[i] * weight[i] * 0.01
    if i < 3:
        back[2, i - 3] += turned[i + 1, 0] * y[i]


@case((2, 8), lambda g: (0.1 + g.random(N), 0.37 + 0.01 * g.random(N), N), adds=0)
@cuda.jit
def more_functions(x, y, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        s = math.exp2(v) * v + math.nextafter(v, 2.0) + math.radians(v) * math.ceil(3.0 * v)
        s += math.remainder(v, y[i]) + v * math.trunc(5.0 * v) + round(v) * v + int(4.0 * v)
        if not (math.isnan(v) or math.isinf(v)) and math.isfinite(s):
            s *= v
        y[i] = s + (v if v > 0.5 else -v) * float(i) + v // 0.3 + divmod(i, 3)[1]


# ---- extrema by atomics --------------------------------------------------------------------------------


def _two_large(g: np.random.Generator) -> np.ndarray:
    """One in each block that stays the largest when all are moved a little."""
    x = 0.5 * g.random(16, np.float32)
    x[5], x[12] = 1.3, 2.1
    return x


@case(
    (2, 4),
    lambda g: (0.05 * g.permutation(20), np.array([0.11, 2.0, 0.33]), np.full((2, 2), 1.3), 20),
)
@cuda.jit
def largest(x, most, least, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        v = math.sin(x[i]) * x[i]
        if i % 5 != 1:
            cuda.atomic.max(most, i % 3, v)
        cuda.atomic.min(least, (i % 2, i // 10), 2.0 - v)


@case(
    (2, 8),
    lambda g: (_two_large(g), np.zeros(16, np.float32), np.full(1, -9.0, np.float32)),
    atomic=True,
)
@cuda.jit
def softmax(x, y, most):
    s = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    v = x[i] * x[i]
    if t == 0:
        s[0] = v
    cuda.syncthreads()
    cuda.atomic.max(s, 0, v)
    cuda.syncthreads()
    m = s[0]
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.max(most, 0, m)
        s[0] = float32(0.0)
    cuda.syncthreads()
    e = math.exp(v - m)
    cuda.atomic.add(s, 0, e)
    cuda.syncthreads()
    y[i] = e / s[0] * (float32(1.0) + m)


@case((2, 8), lambda g: (0.2 + 0.02 * g.permutation(48).reshape(3, 16), np.zeros((3, 2)), 3, 14))
@cuda.jit
def rows_of_blocks(x, y, rows, n):
    s = cuda.shared.array((2, 2), float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    for k in range(rows):
        if t < 4:
            s[t // 2, t % 2] = 0.4 + 0.2 * t
        cuda.syncthreads()
        if i < n:
            v = x[k, i] * x[k, i]
            if t % 2 == 0:
                cuda.atomic.max(s, (t // 4, 0), v)
            else:
                cuda.atomic.max(s, (t // 4, 1), 1.5 * v)
        cuda.syncthreads()
        if t == 0:
            y[k, cuda.blockIdx.x] += s[0, 0] * s[1, 1] + s[1, 0] * s[0, 1]
        cuda.syncthreads()


@case((2, 8), lambda g: (g.standard_normal(N), g.random(N), N))
@cuda.jit
def clamp(x, y, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.max(x, i, 0.0)
        cuda.atomic.min(y, i, 0.5)
