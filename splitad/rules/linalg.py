"""Array rules of numpy.linalg.  The form and the protocol: `registry`.

dL = Re(sum(conj(x_bar) * dx)) throughout, so the adjoint of a product is the one with conjugate
transposes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from splitad.rules.arrays import Types, conj_t, numeric, same_kind
from splitad.rules.registry import array


def _check_matrix(args: Types, static: Mapping[str, Any]) -> str | None:
    if not numeric(args[0]) or args[0].ndim != 2:
        return "of anything but a matrix this has no derivative rule"
    return same_kind(*args) if all(numeric(a) for a in args) else "the operands must be arrays"


@njit(error_model="numpy")
def inv_pullback(out, d_out, d_a):  # type: ignore[no-untyped-def]
    """d(inv a) = -inv(a) da inv(a)"""
    c = conj_t(out)
    d_a -= np.dot(c, np.dot(np.ascontiguousarray(d_out), c))


def _outer_subtract(d_a: Any, b: Any, x: Any) -> None:
    raise NotImplementedError


@overload(_outer_subtract)
def _outer_subtract_impl(d_a, b, x):  # type: ignore[no-untyped-def]
    if b.ndim == 1:

        def vectors(d_a, b, x):  # type: ignore[no-untyped-def]
            for i in range(len(b)):
                for j in range(len(x)):
                    d_a[i, j] -= b[i] * x[j].conjugate()

        return vectors

    def matrices(d_a, b, x):  # type: ignore[no-untyped-def]
        d_a -= np.dot(b, conj_t(x))

    return matrices


@njit(error_model="numpy")
def solve_pullback(a, out, d_out, d_a, d_b):  # type: ignore[no-untyped-def]
    """a x = b: the cotangent of b solves the adjoint system"""
    bar = np.linalg.solve(conj_t(a), np.ascontiguousarray(d_out))
    if d_a is not None:
        _outer_subtract(d_a, np.ascontiguousarray(bar), out)
    if d_b is not None:
        d_b += bar


@njit(error_model="numpy")
def det_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    """By the adjugate, from singular values: it exists, and is exact, for a singular matrix as well"""
    n = len(a)
    if d_out != 0 and n > 0:
        u, s, vh = np.linalg.svd(np.ascontiguousarray(a))
        left, right = np.ascontiguousarray(u), np.ascontiguousarray(vh)
        unit = np.linalg.det(np.dot(left, right)).conjugate()
        for k in range(n):
            others = unit * d_out
            for i in range(n):
                if i != k:
                    others *= s[i]
            for i in range(n):
                for j in range(n):
                    d_a[i, j] += others * left[i, k] * right[k, j]


@njit(error_model="numpy")
def cholesky_pullback(out, d_out, d_a):  # type: ignore[no-untyped-def]
    """Only the lower triangle of a is read, so only that gets a cotangent (its diagonal a real one)"""
    n = len(out)
    upper = conj_t(out)
    p = np.dot(upper, np.tril(d_out))
    for i in range(n):
        p[i, i] = 0.5 * p[i, i].real
        for j in range(i + 1, n):
            p[i, j] = 0
    half = np.linalg.solve(upper, p)
    s = conj_t(np.linalg.solve(upper, conj_t(half)))
    for i in range(n):
        d_a[i, i] += s[i, i].real
        for j in range(i):
            d_a[i, j] += s[i, j] + s[j, i].conjugate()


array("inv", (np.linalg.inv,), "a", pullback=inv_pullback, check=_check_matrix)
array("solve", (np.linalg.solve,), "a b", pullback=solve_pullback, needed_by={"out": "a"},
      check=_check_matrix)  # fmt: skip
array("det", (np.linalg.det,), "a", pullback=det_pullback, check=_check_matrix)
array("cholesky", (np.linalg.cholesky,), "a", pullback=cholesky_pullback, check=_check_matrix)
