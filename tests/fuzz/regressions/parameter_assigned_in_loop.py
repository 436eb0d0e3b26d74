"""The types of a parameter that is assigned again, before a loop and in it."""

import math

import numpy as np


def f(x, a, y):
    x = y[:].copy()
    for e11, e12 in zip(y, x):
        x = x + math.exp(-e11 * e11) * e12
    return x.sum() * a


def make_args():
    rng = np.random.default_rng(101)
    return rng.uniform(-1.2, 1.2, 4), rng.uniform(-1.2, 1.2), rng.uniform(-1.2, 1.2, 4)


CONST = ()
