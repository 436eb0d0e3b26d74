"""The types of a parameter that is assigned again, before a branch and in it."""

import numpy as np


def f(x, a, m, n):
    m = m + (0.6 * a + 0.5 * a)
    v1 = 0.6 * a + 0.5 * (1.0 + a * a) ** 0.3
    if m[(3 + m.shape[0]) % 3, -1] <= v1 / (1.0 + v1 * v1):
        m = np.where(m > m, m, 0.5 * m).copy()
    return m


def make_args():
    rng = np.random.default_rng(147)
    x = rng.uniform(-1.2, 1.2, 4)
    m = rng.uniform(-1.2, 1.2, (3, 4))
    return x, rng.uniform(-1.2, 1.2), m, 2


CONST = (2,)
