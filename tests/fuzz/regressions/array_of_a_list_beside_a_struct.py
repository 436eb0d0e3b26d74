"""Numba makes an array of the list, and then takes the stores to the struct's arrays for dead."""

import numpy as np
from numba import float64
from numba.experimental import jitclass


@jitclass([("h", float64[::1]), ("g", float64[::1])])
class State:
    def __init__(self, h, g):
        self.h = h
        self.g = g


def f(x):
    r = State(x.copy(), 2.0 * x)
    values = [0.5 * e for e in r.g]
    r.g[0] = np.array(values).sum()
    r.h[:] += 0.4 * r.g
    return x[0] * values[1]


def make_args():
    return (np.array([0.4, -0.7, 1.1]),)


CONST = ()
