"""Recursive functions, direct and mutual, of numbers and of arrays that they write."""

from __future__ import annotations

import math

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


PROGRAMS = {
    "deep": (deep, lambda r: (0.7, 3)),
    "called": (f1, lambda r: (0.7,)),
    "twice": (f2, lambda r: (0.8,)),
    "halves": (sweep, lambda r: (r.random(6), 0, 6, 1.1)),
    "halves_in_a_loop": (f3, lambda r: (r.random(5), 0.9)),
    "pairs": (f4, lambda r: (0.6,)),
    "mutual": (f5, lambda r: (0.4,)),
    "integers": (f6, lambda r: (0.4, 4)),
}
