# ruff: noqa
"""Random program 101."""

import math

import numpy as np
from numba import njit


@njit
def h_mix(a, b):
    return 0.5 * math.sin(a * b) + 0.4 * b


@njit
def h_branch(a, b):
    if a > b:
        return a * math.cos(b)
    c = b
    for _ in range(3):
        c = 0.7 * c + 0.2 * a
        if c > 0.8:
            return c
    return c * b / (1.0 + b * b)


@njit
def h_power(a, b):
    return (1.5 + math.sin(a)) ** (0.5 * math.cos(b))


@njit
def h_sum(x):
    s = 0.0
    for i in range(x.size):
        s = 0.8 * s + math.sin(x[i])
    return s


@njit
def h_sum2(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.5 * s + x[i, j] * 0.5
    return s


@njit
def h_fill(x, a):
    for i in range(x.size):
        x[i] = 0.6 * x[i] * math.cos(a) + 0.3 * x[-1 - i]


@njit
def h_same(x, a):
    x[0] = math.sin(x[0] + a)
    return x


@njit
def h_tail(x):
    return x[1:]


@njit
def h_pair(x, y, a):
    x[0] = y[0] * a
    return (y, x)


@njit
def h_deep(a, n):
    if n <= 0:
        return math.cos(a)
    return 0.7 * h_deep(a + 0.3 * n, n - 1) + 0.2 * a


@njit
def h_new(x, a):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = math.tanh(x[i] * a)
    return y


from numba import float64
from numba.experimental import jitclass


@jitclass([("h", float64[::1]), ("c", float64)])
class State:
    def __init__(self, h, c):
        self.h = h
        self.c = c

    def step(self, v):
        self.h = 0.6 * self.h * self.c + v
        self.c = math.sin(self.c + self.h[0])
        return self.h[1] * self.c


def f(x, a, s):
    x = s.h[:].copy()
    for e11, e12 in zip(s.h, x):
        x = x + math.exp(-e11 * e11)


def make_args():
    rng = np.random.default_rng(101)
    x = rng.uniform(-1.2, 1.2, 4)
    m = rng.uniform(-1.2, 1.2, (3, 4))
    return (x, rng.uniform(-1.2, 1.2), State(rng.uniform(-1.2, 1.2, 4), 0.8))


CONST = ()
