"""One struct as two arguments, and only read: its arrays share one shadow, its scalars have one each."""

import numpy as np
from numba import float64
from numba.experimental import jitclass


@jitclass([("h", float64[::1]), ("g", float64[::1]), ("c", float64)])
class State:
    def __init__(self, h, g, c):
        self.h = h
        self.g = g
        self.c = c


def f(x, s, r):
    s.h[0] = x[0] * r.g[1]
    return s.c * r.h[1] + r.c


def make_args(seed=0):
    rng = np.random.default_rng(seed)
    s = State(rng.uniform(0.2, 1.2, 3), rng.uniform(0.2, 1.2, 3), 0.8)
    return (rng.uniform(0.2, 1.2, 3), s, s)


CONST = ()
