"""What random programs call: helper functions, structs and named tuples.

A program imports what it uses, so that a search compiles each helper once; reduced programs carry their own
copies, so what is here may change.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import float64, int64, njit
from numba.experimental import jitclass

Point = namedtuple("Point", "u w")
Box = namedtuple("Box", "arr g")


@jitclass([("h", float64[::1]), ("g", float64[::1]), ("c", float64), ("k", int64)])
class State:
    def __init__(self, h, g, c):
        self.h = h
        self.g = g
        self.c = c
        self.k = 1

    def step(self, v):
        self.h = 0.6 * self.h * self.c + v
        self.c = math.sin(self.c + self.h[0])
        self.k += 1
        return self.h[1] * self.c

    def swap(self):
        self.h, self.g = self.g, self.h

    def nudge(self, i, v):
        self.g[i] = 0.7 * self.g[i] + v * self.h[i]

    @property
    def energy(self):
        return 0.25 * (self.h * self.g).sum() + self.c


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
def h_power(a, b=0.3):
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
def h_sum3(x):
    s = 0.0
    for plane in x:
        s = 0.7 * s + 0.4 * h_sum2(plane)
    return s


@njit
def h_half(x, n):
    if n <= 0:
        return x * 0.5
    y = h_half(x, n - 1)
    y[n % x.size] += 0.3 * math.sin(x[0])
    return y


@njit
def h_fill(x, a):
    for i in range(x.size):
        x[i] = 0.6 * x[i] * math.cos(a) + 0.3 * x[-1 - i]


@njit
def h_two(x, y, a):
    for i in range(min(x.size, y.size)):
        if y[i] > 0.9:
            continue
        x[i] = 0.5 * x[i] + a * math.sin(y[i])
        y[-1 - i] *= 0.8


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
    return y, x


@njit
def h_deep(a, n):
    if n <= 0:
        return math.cos(a)
    return 0.7 * h_deep(a + 0.3 * n, n - 1) + 0.2 * a


@njit
def h_walk(x, n):
    if n <= 0:
        return x[0] * x[1]
    x[n % x.size] = 0.8 * math.sin(x[n % x.size]) + 0.1 * n
    return 0.5 * h_walk(x, n - 1) + x[-1]


@njit
def h_new(x, a):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = math.tanh(x[i] * a)
    return y


@njit
def h_smooth(x, steps, a):
    u = x.copy()
    v = np.empty_like(u)
    for _ in range(steps):
        v[0] = u[0]
        v[-1] = 0.5 * u[-1]
        for i in range(1, u.size - 1):
            v[i] = u[i] + 0.2 * a * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = v, u
    return u


@njit
def h_struct(s, v):
    s.g[0] += 0.3 * v
    s.h = 0.5 * s.g + s.c
    if s.c > 0.2:
        return s.h[1]
    s.c = v
    return s.g[-1]


@njit
def h_field(s):
    return s.h


@njit
def h_hand_over(s, r, x, a):
    if a > 0.1:
        s.h, r.g = r.g, x
        return
    s.g = r.h
    for i in range(3):
        s.g[i] += 0.3 * a
        if s.g[i] > 0.4:
            r.h, s.h = s.h, x


@njit
def h_early(x, a):
    for i in range(x.size):
        if x[i] > a:
            x[i] *= 0.5
            return x[i:]
    return x[:2]


@njit
def h_which(x, y, a):
    if a > 0.1:
        return x
    y[0] += a
    return y


@njit
def h_self(s, v):
    s.c += 0.2 * v
    return s


@njit
def h_grow(x, a):
    y = np.zeros(x.size + 1)
    y[:-1] = x
    y[-1] = a * x[0]
    return y


@njit
def h_count(s, n):
    if n <= 0:
        return s.c
    s.h[n % 4] *= 0.9 + 0.1 * s.c
    return 0.5 * h_count(s, n - 1) + s.h[0]


@njit
def h_complex(z, a):
    return z * z.conjugate() + 0.4 * a * z


@njit
def h_apply(g, a):
    return g(a) + 0.3 * g(0.5 * a)
