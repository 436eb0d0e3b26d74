# ruff: noqa
"""Random program 223."""

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
    return y, x


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


def f(x, a, y, p):
    b1 = x
    y[::-2] = np.sin(x[0])
    a -= 0.3 * math.sin(y[(0 * y.shape[0] + 1) % 4])
    x[-2], x[2] = x[2], x[-2]
    for i2 in range((y.shape[0] * b1.shape[0] + 1) % 4):
        for i3 in range(4):
            a /= 1.2 + math.sin(math.sqrt(1.0 + p[1] * p[1]) - 1.0) ** 2
            a = math.tanh(abs(x[i3]))
            a = h_mix(p[0], a) - 0.5 * (p[1] * math.cos(b1[i3]))
            n4 = 0
            while n4 < 4 and (i3 + x.shape[0]) % 2 != 0:
                n4 += 1
                b5 = h_same(x, (a - 0.5 * b1[i3]))
                a = h_mix(0.4 * y[i3] ** 2 / (1.0 + abs(y[i3])), (0.6 * x[i3] + 0.5 * p[0]))
                v7 = 0.6 * 0.5 * h_sum(y[-2:]) + 0.5 * x[i3] / (1.5 + b1[-2] * b1[-2])
            a = (np.sin(x)).mean()
            a = b1[i3]
        n8 = 0
        while n8 < 4 and a >= (b1[1] - 0.5 * x[3]):
            n8 += 1
            if 0.77 - 1.0 < (0.5 * math.sin(p[0])) < 1.1:
                break
    return x[-3]


def make_args():
    rng = np.random.default_rng(223)
    x = rng.uniform(-1.2, 1.2, 4)
    m = rng.uniform(-1.2, 1.2, (3, 4))
    return (
        x,
        rng.uniform(-1.2, 1.2),
        rng.uniform(-1.2, 1.2, 4),
        (rng.uniform(-1.2, 1.2), 0.7),
    )


CONST = ()
