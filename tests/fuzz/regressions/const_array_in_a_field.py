"""A field is given a Const argument, and what is written there then has the cotangent of the field."""

import math

import numpy as np

from tests.fuzz.helpers import State


def f(x, a, y, s, z):
    s.g = x
    for i in range(4):
        left = max(i - 1, 0)
        right = min(i + 1, 4 - 1)
        s.g[i] = 0.4 * math.sin(y[left] * (1.0 + s.c * s.c) ** 0.3 + y[right]) + 0.3 * y[i]
    return 0.2 * a + a


def make_args(seed=0):
    rng = np.random.default_rng(128 + 1000 * seed)
    x = rng.uniform(-1.2, 1.2, 4)
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
