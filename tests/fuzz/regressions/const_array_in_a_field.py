"""A field is given a Const argument, and what is written there then has the cotangent of the field."""

import math

import numpy as np

from tests.fuzz.helpers import State

GLOBAL = np.array([0.7, -0.4, 1.1, 0.2])


def f(x, a, y, s, z):
    s.g = x
    if a - 0.5 * a >= abs(a):
        pass
    else:
        for i10 in range(4):
            k11 = max(i10 - 1, 0)
            k12 = min(i10 + 1, 4 - 1)
            s.g[i10] = 0.4 * math.sin(y[k11] * (1.0 + s.c * s.c) ** 0.3 + y[k12]) + 0.3 * y[i10]
    return 0.2 * a + a


def make_args(seed=0):
    rng = np.random.default_rng(128 + 1000 * seed)
    x = rng.uniform(-1.2, 1.2, 4)
    m = rng.uniform(-1.2, 1.2, (3, 4))
    s = State(rng.uniform(-1.2, 1.2, 4), rng.uniform(-1.2, 1.2, 4), 0.8)
    return (
        x,
        rng.uniform(-1.2, 1.2),
        rng.uniform(-1.2, 1.2, 4),
        s,
        complex(rng.uniform(-1.2, 1.2), rng.uniform(-1.2, 1.2)),
    )


CONST = (0,)
SPLIT = {}
JIT = {}
EXTRA = ""
WITHOUT = ()
