"""Functions with array rules inside of programs: results in tuples, some unused, constants, loops, methods."""

import numpy as np

from splitad.testing import check_vjp
from tests.rules.numpy_table import ARGUMENTS

REAL = {key: make(np.float64) for key, make in ARGUMENTS.items()}


def factored(p, steps):
    total = 0.0
    for k in range(steps):
        w, v = np.linalg.eigh(p)
        _, logdet = np.linalg.slogdet(p)
        total += logdet * w[k] * v[k, k] ** 2
        p = p * 0.5
    return total


def ordered(v, m, x):
    spread = np.histogram(v, 3)[1]
    v[:3] = np.sort(v[:3] * x)
    picked = m.take(np.argmax(m, axis=0)) * np.percentile(v, (25, 50.0 * x, 90))[0]
    rows, columns = np.nonzero(m > 0)
    return picked, spread, m[rows[0], columns[0]]


def test_factorisations():
    check_vjp(factored, REAL["p"], 2)


def test_orders_and_places():
    check_vjp(ordered, REAL["v"], REAL["m"], 0.7)
