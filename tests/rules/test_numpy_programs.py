"""Functions with array rules inside of programs: results in tuples, some unused, loops, methods, views.

Most of the pairs are run as the text that they are (tests/fuzz/interpreted.py); compiling one is slow.
"""

import numpy as np

from splitad.testing import check_vjp
from tests.fuzz.interpreted import check_in_python
from tests.rules.numpy_table import ARGUMENTS

P = np.polynomial.polynomial
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


def parts(v, m, c, k):
    """Split, repeated and numbered: views of the arguments, which are written afterwards."""
    left, right = np.split(v, 2)
    left *= right
    total = np.hsplit(m, 2)[1][0, 0] * np.vsplit(m, np.array([1, 2]))[2][0, 1]
    for part in np.array_split(m, k, axis=1):
        total += part[1, 0] * np.dsplit(c, 2)[1][0, 0, 0]
    rows = np.broadcast_to(v[:4], (3, 4))
    m[0, 0] = rows[1, 1]
    v[1] = 2.0 * total  # rows sees it
    wide, narrow = np.broadcast_arrays(m, v[:4])
    grid = np.indices((2, 3))
    moved = (np.eye(3, 4, 1) + np.eye(3, 5, -k)[:, :4]) * v[grid[1, 1, 2]]
    whole, rest = np.divmod(v, 0.7)
    deep = np.atleast_3d(v)[0, 2, 0] * np.atleast_3d(m)[1, 1, 0]
    total += np.sum(rows * m) + wide[2, 1] * narrow[2, 1] + np.sum(rest * whole) + deep
    return total, rows[2], moved


def coefficients(v, y, s):
    quotient, remainder = P.polydiv(v, y)
    products = P.polymul(v, P.polysub(y, v)) * P.polyadd(v, y)[1]
    v[0] = 0.0
    return quotient, 2.0 * remainder, products, np.trim_zeros(v), np.linalg.matrix_power(s, -3) @ s


def along(m, c, z, i, j):
    picked = np.take(m, i, 1)[1], np.take(m, -1, axis=0), np.take(c, i, axis=-1)
    return picked, np.take_along_axis(m, j, 1), np.max(z) * np.conj(np.min(z)) + np.ptp(z)


def fused(m, n, x):
    apart = m - x * n
    sums = np.sum(m * n, axis=0), (apart * apart).sum(axis=1), np.sum(np.sin(m) * n)
    return (
        sums,
        np.max(m * n) - (m + x).min(),
        np.var(m * n) * np.std(m - x) * np.prod(x - m) + np.mean(m / n),
    )


def test_reductions_of_expressions():
    check_in_python(fused, REAL["m"], REAL["n"].T.copy(), 0.7)


def test_parts_of_arrays():
    check_in_python(parts, REAL["v"], REAL["m"], REAL["c"], 2)


def test_polynomials_and_powers():
    check_in_python(coefficients, REAL["v"], REAL["y"], REAL["s"])


def test_picking_along_an_axis():
    places = np.array([[1, 3], [0, -1], [2, 2]])
    z = ARGUMENTS["v"](np.complex128)
    check_in_python(along, REAL["m"], REAL["c"], z, np.array([0, -1, 0]), places)


def test_factorisations():
    check_in_python(factored, REAL["p"], 2)


def test_orders_and_places():
    check_in_python(ordered, REAL["v"], REAL["m"], 0.7)


def test_views_with_their_axes_in_another_order():
    check_vjp(moved, REAL["c"], REAL["v"], REAL["m"])
