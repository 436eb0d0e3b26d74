"""Whole-array code at kinks and singular points: the derivatives that exist are finite and right."""

import numpy as np
import pytest

import splitad as ad

INF = np.inf


def kinks(x, zeros, singular, logs, ties):
    root = np.sum(np.where(x > 0, np.sqrt(x), 0.0))
    top = np.max(logs)
    log_sum_exp = top + np.log(np.sum(np.exp(logs - top)))
    powers = np.sum(x**1.5) + np.sum(x**0.0)
    ordered = np.sort(ties)
    return (
        root, np.linalg.norm(zeros) ** 2, np.linalg.norm(zeros), np.prod(x), np.cumprod(x)[2],
        np.linalg.det(singular), log_sum_exp, powers, np.max(ties), np.min(ties), ordered[0] + 3 * ordered[3],
        np.median(ties), np.std(zeros),
    )  # fmt: skip


ARGUMENTS = (
    np.array([4.0, 0.0, 9.0]), np.zeros(3), np.array([[1.0, 2.0], [2.0, 4.0]]),
    np.array([-INF, 1.0, 1.0]), np.array([2.0, 1.0, 2.0, 1.0]),
)  # fmt: skip

# the result, the argument, its gradient
EXPECTED = {
    "a root that is not selected": (0, 0, [0.25, 0, 1 / 6]),
    "the square of a norm at the origin": (1, 1, [0, 0, 0]),
    "a norm at the origin": (2, 1, [0, 0, 0]),
    "a product with a zero": (3, 0, [0, 36, 0]),
    "a running product with a zero": (4, 0, [0, 36, 0]),
    "the determinant of a singular matrix": (5, 2, [[4, -2], [-2, 1]]),
    "log-sum-exp with -inf": (6, 3, [0, 0.5, 0.5]),
    "powers of zero": (7, 0, [3, 0, 4.5]),
    "a tie of max": (8, 4, [1, 0, 0, 0]),
    "a tie of min": (9, 4, [0, 1, 0, 0]),
    "a tie of sort": (10, 4, [0, 1, 3, 0]),
    "a tie of median": (11, 4, [0.5, 0, 0, 0.5]),
    "the deviation of equal numbers": (12, 1, [0, 0, 0]),
}


@pytest.fixture(scope="module")
def pulled():
    return ad.vjp(kinks, *ARGUMENTS)


@pytest.mark.parametrize("name", EXPECTED)
def test_derivative(name, pulled):
    place, argument, wanted = EXPECTED[name]
    result, pullback = pulled
    bars = pullback(tuple(float(k == place) for k in range(len(result))))
    np.testing.assert_allclose(bars[argument], wanted, rtol=1e-14, atol=1e-14)
    for k, bar in enumerate(bars):
        assert k == argument or (bar == 0).all(), (k, bar)
