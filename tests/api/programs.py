"""The functions of the tests of the public calls, and their pairs: made once, since compiling is slow."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import float64, int64, njit
from numba.experimental import jitclass

import splitad as ad


def advance(u, nu, steps=2, gain=1.0):
    """Writes u; u[0] < 0 after a step is an error, which leaves u half way."""
    total = 0.0
    for _ in range(steps):
        for i in range(len(u)):
            u[i] = u[i] + nu * u[i - 1] * u[i]
        if u[0] < 0.0:
            raise ValueError("u[0] is negative")
        total += gain * u[-1] * u[-1]
    return total


advance_pair = ad.split(advance)
advance_njit = njit(advance)
U = np.array([0.5, 0.7, 0.2, 0.9])
NU = -0.1


@jitclass([("h", float64[::1]), ("t", float64), ("n", int64)])
class State:
    def __init__(self, h, t):
        self.h = h
        self.t = t
        self.n = 0


def shift(s, r):
    """Writes r.h from s.h, which may be the same struct's."""
    for i in range(1, r.h.shape[0]):
        r.h[i] = r.t * s.h[i - 1]
    return s.h.sum() * s.t + r.t


def grow(s, a):
    """Writes s.h, then rebinds it to a longer array."""
    total = 0.0
    for i in range(len(s.h)):
        s.h[i] *= a
        total += s.h[i] * s.t
    longer = np.zeros(len(s.h) + 2)
    for i in range(len(s.h)):
        longer[i] = s.h[i] * s.h[i]
    s.h = longer
    s.t = s.t + a
    s.n += 1
    return total


grow_pair = ad.split(grow)


def dot(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * y[i] * y[i]
    return s


dot_pair = ad.split(dot)


def multiply(x, y):
    for i in range(len(x)):
        x[i] = x[i] * y[i]


multiply_pair = ad.split(multiply)

Flow = namedtuple("Flow", "u speed n")


def flow(q, a):
    s = 0.0
    for i in range(len(q.u)):
        q.u[i] = q.u[i] * q.speed
        s += q.u[i] * a
    return s * q.n


flow_pair = ad.split(flow)


def pair_of(x, a):
    """Two results: the first is the argument itself."""
    x[0] = a * x[1]
    return x, a * a


pair_of_pair = ad.split(pair_of)


def closed_in(x, y):
    """Writes and reads through two arguments that may be one array."""
    x[0] = 3.0 * y[0]
    return x[0] * y[0]


def while_smaller(x, limit):
    s = 0.0
    while s < limit:
        s += x * x
        x = x * 1.01
    return s
