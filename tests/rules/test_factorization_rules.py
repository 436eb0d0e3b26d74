"""Rules of factorisations and norms against finite differences, and where they are singular."""

import numpy as np
import pytest

from tests.rules.numpy_table import ARGUMENTS
from tests.rules.results import check_results, inner, numbers, pull

L = np.linalg
CHECKED = {L.norm, L.eigvalsh, L.eigh, L.eigvals, L.eig, L.svd, L.qr, L.slogdet, L.cond,
           L.matrix_power, L.pinv, L.lstsq}  # fmt: skip
REAL = {key: make(np.float64) for key, make in ARGUMENTS.items()}
COMPLEX = {key: make(np.complex128) for key, make in ARGUMENTS.items()}


def test_norms_of_vectors():
    check_results(L.norm, [REAL["v"]])
    for ord in (1, 2, 3):
        check_results(L.norm, [COMPLEX["v"]], {"ord": ord})
    for ord in (np.inf, -np.inf):
        check_results(L.norm, [COMPLEX["v"]], {"ord": ord})


def test_norms_of_matrices():
    check_results(L.norm, [COMPLEX["m"]])
    for ord in (1, -1, 2, -2):
        check_results(L.norm, [REAL["m"]], {"ord": ord})
    for ord in (np.inf, -np.inf):
        check_results(L.norm, [REAL["m"]], {"ord": ord})


def test_norms_at_the_origin_have_derivative_zero():
    one = lambda out: (1.0,)
    for zero in (np.zeros(3), np.zeros((3, 4))):
        for static in ({}, {"ord": 1}, {"ord": 2}, {"ord": np.inf}):
            shadows, _ = pull(L.norm, [zero], static, one)
            assert (shadows[0] == 0).all(), static


def test_eigenvalues():
    check_results(L.eigvalsh, [COMPLEX["p"]], lower=True)
    check_results(L.eigvals, [COMPLEX["s"]])


def test_eigenvectors():
    """Of what does not depend on the sign or the phase of a vector."""
    w, c = numbers(0, (3, 3), complex), numbers(1, 3, float)
    check_results(
        L.eigh,
        [COMPLEX["p"]],
        loss=lambda e, v: inner(w, (v * c) @ v.conj().T) + e.sum(),
        bars=lambda e, v: (np.ones(3), ((w + w.conj().T) @ v) * c),
        lower=True,
    )
    apart = np.array([[3.0, 1.0, 0.2], [0.5, -1.0, 0.3], [0.1, 0.4, 1.0]])
    check_results(L.eig, [apart])


@pytest.mark.parametrize("key", ["m", "n", "s"])
def test_singular_values_and_vectors(key):
    a = COMPLEX[key]
    k = min(a.shape)
    w, c = numbers(0, a.shape, complex), numbers(1, k, float)

    def bars(u, s, vh):
        return w @ (c[:, None] * vh).conj().T, np.ones(k), (u * c).conj().T @ w

    thin = {"full_matrices": 0}
    check_results(L.svd, [a], thin, lambda u, s, vh: inner(w, (u * c) @ vh) + s.sum(), bars)
    if key == "m":  # the further vectors of vh span what the others do not: a projection
        w = numbers(0, (4, 4), complex)

        def rest(u, s, vh):
            return np.zeros_like(u), np.zeros(k), np.vstack([0 * vh[:k], vh[k:] @ (w + w.conj().T)])

        check_results(
            L.svd, [a], {"full_matrices": 1},
            lambda u, s, vh: inner(w, vh[k:].conj().T @ vh[k:]), rest,
        )  # fmt: skip


def test_qr():
    for key in ("m", "n", "s"):
        check_results(L.qr, [COMPLEX[key]])


def test_slogdet():
    check_results(L.slogdet, [COMPLEX["s"]])


def test_of_a_singular_matrix_the_log_of_the_determinant_is_infinite_and_zero_stays_zero():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    shadows, _ = pull(L.slogdet, [singular.astype(complex)], {}, lambda s, d: (0j, 0.0))
    assert (shadows[0] == 0).all()


def test_condition_numbers():
    check_results(L.cond, [REAL["s"]])
    for p in (2, -2, 1):
        check_results(L.cond, [REAL["s"]], {"p": p})


def test_powers_of_matrices():
    for n in (-2, -1, 0, 1, 2, 5):
        check_results(L.matrix_power, [COMPLEX["s"], n])


def test_pseudo_inverse_and_least_squares():
    for key in ("m", "n"):
        check_results(L.pinv, [COMPLEX[key]])
    check_results(L.lstsq, [COMPLEX["n"], numbers(0, (4, 2), complex)], {"rcond": -1})
    check_results(L.lstsq, [COMPLEX["m"], numbers(0, (3, 2), complex)], {"rcond": -1})
