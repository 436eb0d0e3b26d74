"""Functions with array rules inside of programs: results in tuples, some unused, loops, methods, views."""

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
    picked = m.take((2, -1)) * np.nanmax(v)
    rows, columns = np.nonzero(m > 0)
    return picked, spread, m[rows[0], columns[0]]


def moved(c, v, m):
    turned = np.transpose(c, (1, 2, 0))
    c[0, 1] = 2.0 * c[1, 1]
    turned[0] *= m[0, 0]
    rolled = np.moveaxis(turned, 0, 2) + np.swapaxes(np.swapaxes(c, 0, 2), 1, 2)
    v.sort()
    total = np.cumprod(m)[-1] + np.cumsum(c)[3]
    places = np.where(v > 0.5)
    picked = np.select([v > 1.0, v > 0.0], [v * v, np.sqrt(v)], total)
    return rolled, np.dstack((v, picked)), v[places[0][0]]


def test_factorisations():
    check_vjp(factored, REAL["p"], 2)


def test_orders_and_places():
    check_vjp(ordered, REAL["v"], REAL["m"], 0.7)


def test_views_with_their_axes_in_another_order():
    check_vjp(moved, REAL["c"], REAL["v"], REAL["m"])
