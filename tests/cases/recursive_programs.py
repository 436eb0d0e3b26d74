"""Recursive functions, direct and mutual: of numbers, of arrays that they write, and that return arrays."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit
def deep(a, n):
    if n <= 0:
        return math.cos(a)
    return 0.7 * deep(a + 0.3 * n, n - 1) + 0.2 * a


@njit
def fib(x, n):
    if n < 2:
        return x * (n + 1.0)
    return fib(x, n - 1) * math.sin(fib(x * 0.5, n - 2))


@njit
def sweep(x, lo, hi, a):
    if hi - lo < 1:
        return 0.0
    if hi - lo == 1:
        x[lo] = math.sin(x[lo] * a)
        return x[lo]
    m = (lo + hi) // 2
    s = sweep(x, lo, m, a)
    t = sweep(x, m, hi, a * s)
    x[lo] = x[lo] * x[hi - 1] + t
    return s * t


@njit
def two(a, n):
    if n == 0:
        return a, a * a
    b, c = two(a * 0.5 + 0.1, n - 1)
    return b * c + a, c - a


def f1(a):
    return deep(a, 4)


def f2(x):
    return fib(x, 5)


def f3(x, a):
    s = 0.0
    for k in range(2):
        s += sweep(x, 0, x.size, a)
        s += sweep(x[1:], 0, x.size - 1, a)
    return s


def f4(a):
    u, v = two(a, 3)
    return u * v


@njit
def even(a, n):
    if n == 0:
        return a * a
    return odd(a * 1.1, n - 1) * 0.9


@njit
def odd(a, n):
    if n == 0:
        return math.sin(a)
    return even(a + 0.1, n - 1) + a


def f5(a):
    return even(a, 5)


@njit
def cnt(n):
    if n <= 0:
        return 0
    return 1 + cnt(n - 1)


def f6(a, n):
    return a * a * cnt(n)


# ---- arrays that are returned -----------------------------------------------------------------------


@njit
def powers(x, n):
    if n == 0:
        return x * x
    a = powers(x, n - 1)
    b = powers(a, n - 1)
    return np.sin(a) + b * x


@njit
def fft(x):
    n = x.shape[0]
    if n == 1:
        return x.copy()
    e = fft(x[::2])
    o = fft(x[1::2])
    out = np.empty(n, np.complex128)
    for k in range(n // 2):
        t = np.exp(-2j * np.pi * k / n) * o[k]
        out[k] = e[k] + t
        out[k + n // 2] = e[k] - t
    return out


def spectrum(x):
    y = fft(x)
    s = 0.0
    for k in range(y.shape[0]):
        s += abs(y[k]) ** 2 * (k + 1)
    return s


@njit
def merge_sort(x, w):
    n = x.shape[0]
    if n == 1:
        return x.copy(), w * x[0]
    a, s = merge_sort(x[: n // 2], w)
    b, t = merge_sort(x[n // 2 :], w * 0.5)
    out = np.zeros(n)
    i = 0
    j = 0
    for k in range(n):
        if j >= b.shape[0] or (i < a.shape[0] and a[i] < b[j]):
            out[k] = a[i] * w
            i += 1
        else:
            out[k] = b[j]
            j += 1
    a[0] = 5.0
    return out, s * t + a[0]


def sorted_(x, w):
    y, s = merge_sort(x, w)
    y[0] *= s
    return y


@njit
def in_tuples(x, n):
    y = x * 0.5
    if n == 0:
        return (y, (x[0], n)), y * 2.0
    (a, (s, k)), b = in_tuples(y, n - 1)
    return (a * s, (s + b[0], k + n)), b * y


def untupled(x):
    (a, (s, k)), b = in_tuples(x, 2)
    return a[0] * s * k + b[1]


@njit
def writing(x, n):
    """It writes its argument and what it got back, and chooses a view of that."""
    y = np.sin(x)
    x[0] *= 1.1
    if n == 0:
        return y
    z = writing(y, n - 1)
    y[1] = z[0] * x[0]
    row = z
    if y[0] > 0.0:
        row = z[1:]
    row[0] = y[1]
    return y + z


def written(x):
    z = writing(x, 2)
    return z[0] * z[1] * x[0]


WEIGHTS = np.array([1.5, 2.5])


@njit
def weighted(x, g, n):
    if n == 0:
        return x[0] * g[0]
    return weighted(x * x, g, n - 1) * g[1]


def constants(x):
    """Arrays that carry no derivative: made here, and global."""
    return weighted(x, np.ones(2), 2) * weighted(x, WEIGHTS, 1) + powers(np.ones(2), 1)[0]


@njit
def alias(x, n):
    if n == 0:
        return x
    return alias(x * x, n - 1)


@njit
def twice(x, n):
    a = x * x
    if n == 0:
        return a, a
    b, c = twice(a, n - 1)
    return b, c


@njit
def smooth(x, n):
    if n == 0:
        return x
    for i in range(1, x.size):
        x[i] = 0.5 * x[i] + 0.2 * x[i - 1] * x[i]
    return smooth(x, n - 1)


@njit
def smoothed(x, n):
    """What comes back is the argument itself."""
    y = smooth(x, n)
    y[0] *= x[1]
    return y[2] * x[0]


@njit
def quick(a, lo, hi):
    if lo < hi:
        i = lo
        for j in range(lo, hi):
            if a[j] < a[hi]:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        quick(a, lo, i - 1)
        quick(a, i + 1, hi)
    return a


@njit
def quicksort(x):
    y = quick(x.copy(), 0, x.size - 1)
    s = 0.0
    for k in range(y.size):
        s += (k + 1) * y[k] * x[k]
    return s


@njit
def either(x, y, n):
    if n == 0:
        return x
    return either(y, x, n - 1)


PROGRAMS = {
    "smoothed": (smoothed, lambda r: (r.random(4), 3)),
    "quicksort": (quicksort, lambda r: (r.random(6),)),
    "deep": (deep, lambda r: (0.7, 3)),
    "called": (f1, lambda r: (0.7,)),
    "twice": (f2, lambda r: (0.8,)),
    "halves": (sweep, lambda r: (r.random(6), 0, 6, 1.1)),
    "halves_in_a_loop": (f3, lambda r: (r.random(5), 0.9)),
    "pairs": (f4, lambda r: (0.6,)),
    "mutual": (f5, lambda r: (0.4,)),
    "powers": (powers, lambda r: (r.random(3), 2)),
    "fft": (spectrum, lambda r: (r.random(4) + 1j * r.random(4),)),
    "merge_sort": (sorted_, lambda r: (r.random(4), 0.8)),
    "in_tuples": (untupled, lambda r: (r.random(3),)),
    "written": (written, lambda r: (r.random(3),)),
    "constants": (constants, lambda r: (r.random(3),)),
    "integers": (f6, lambda r: (0.4, 4)),
}
