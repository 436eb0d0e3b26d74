"""Rules of interpolation, differences and polynomials against finite differences, and at knots."""

import numpy as np

from tests.rules.numpy_table import ARGUMENTS
from tests.rules.results import check_results, pull

polyval = np.polynomial.polynomial.polyval
CHECKED = {np.interp, np.ediff1d, np.unwrap, polyval}
REAL = {key: make(np.float64) for key, make in ARGUMENTS.items()}
COMPLEX = {key: make(np.complex128) for key, make in ARGUMENTS.items()}


def test_interpolation():
    check_results(np.interp, [REAL["m"], REAL["g"], REAL["w"]])


def test_at_a_knot_interpolation_has_the_slope_to_the_right():
    knots, line = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 5.0, 5.0])
    x = np.array([0.0, 1.0, 2.0, 3.0, -1.0, 4.0])
    shadows, _ = pull(np.interp, [x, knots, line], {}, lambda out: (np.ones(6),))
    assert shadows[0].tolist() == [2, 2, 0, 0, 0, 0]
    assert shadows[2].tolist() == [2, 1, 1, 2]


def test_differences():
    check_results(np.ediff1d, [REAL["m"]])
    check_results(np.unwrap, [3 * REAL["m"]])


def test_polynomials():
    check_results(polyval, [COMPLEX["m"], COMPLEX["y"]])
    _, (slope,) = pull(polyval, [2.0, np.array([1.0, 2.0, 3.0])], {}, lambda out: (1.0,))
    assert slope == 14
