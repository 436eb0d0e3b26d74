"""Array rules of numpy.linalg's factorisations, norms and what is made of them.

Sources of the formulas: Giles 2008, "Collected matrix derivative results" (eigenvalues, singular values);
Seeger, Hetzel, Dai and Lawrence 2017, "Auto-differentiating linear algebra" (QR, symmetric eigenvectors);
Townsend 2016, "Differentiating the singular value decomposition"; Golub and Pereyra 1973 (pseudo-inverse).
For complex matrices they are written with conjugate transposes, as in `linalg`.

Vectors are unique up to a sign or a phase only, and among equal eigenvalues or singular values not even that:
their rules hold for functions that do not depend on that choice, and give infinities at equal values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from splitad.rules.arrays import Types, conj_t, numeric
from splitad.rules.linalg import _check_matrix
from splitad.rules.registry import array, array_zero


@register_jitable
def _h(a):  # type: ignore[no-untyped-def]
    """The conjugate transpose, in C order."""
    return np.ascontiguousarray(conj_t(a))


@register_jitable
def _over(numerator, denominator):  # type: ignore[no-untyped-def]
    """A quotient that is zero where the numerator is."""
    return numerator / denominator if numerator != 0 else numerator


# ---- norms -----------------------------------------------------------------------------------------


@register_jitable
def _direction(x):  # type: ignore[no-untyped-def]
    """The derivative of abs, which is 0 at 0."""
    size = abs(x)
    return x / size if size != 0 else x


@register_jitable
def _norm2(a, out, d, d_a):  # type: ignore[no-untyped-def]
    if out != 0 and d != 0:
        shadow = d_a.flat
        flat = a.ravel()
        for k in range(len(flat)):
            shadow[k] += d * (flat[k] / out)


@register_jitable
def _norm_vector(a, ord, out, d, d_a):  # type: ignore[no-untyped-def]
    if ord == 2:
        _norm2(a, out, d, d_a)
    elif ord == np.inf or ord == -np.inf:
        sizes = np.empty(len(a))
        for k in range(len(a)):
            sizes[k] = abs(a[k])
        if len(a) > 0:
            chosen = np.argmax(sizes) if ord > 0 else np.argmin(sizes)
            d_a[chosen] += d * _direction(a[chosen])
    elif ord == 1:
        for k in range(len(a)):
            d_a[k] += d * _direction(a[k])
    elif ord != 0 and out != 0:
        for k in range(len(a)):
            if a[k] != 0:
                d_a[k] += d * (abs(a[k]) / out) ** (ord - 1) * _direction(a[k])


@register_jitable
def _norm_matrix(a, ord, out, d, d_a):  # type: ignore[no-untyped-def]
    if a.size == 0 or d == 0:
        return
    if ord == 2 or ord == -2:
        if out != 0:
            u, s, vh = np.linalg.svd(np.ascontiguousarray(a), 0)  # type: ignore[call-overload]
            k = 0 if ord == 2 else len(s) - 1
            for i in range(a.shape[0]):
                for j in range(a.shape[1]):
                    d_a[i, j] += d * u[i, k] * vh[k, j]
        return
    rows = ord == np.inf or ord == -np.inf
    sums = np.zeros(a.shape[0] if rows else a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            sums[i if rows else j] += abs(a[i, j])
    k = int(np.argmax(sums) if ord > 0 else np.argmin(sums))
    if rows:
        for j in range(a.shape[1]):
            d_a[k, j] += d * _direction(a[k, j])
    else:
        for i in range(a.shape[0]):
            d_a[i, k] += d * _direction(a[i, k])


def _norm(a: Any, ord: Any, out: Any, d: Any, d_a: Any) -> None:
    raise NotImplementedError


@overload(_norm)
def _norm_impl(a, ord, out, d, d_a):  # type: ignore[no-untyped-def]
    if not isinstance(ord, types.Number):
        return lambda a, ord, out, d, d_a: _norm2(a, out, d, d_a)
    if a.ndim == 1:
        return lambda a, ord, out, d, d_a: _norm_vector(a, ord, out, d, d_a)
    return lambda a, ord, out, d, d_a: _norm_matrix(a, ord, out, d, d_a)


@njit(error_model="numpy")
def norm_pullback(a, ord, out, d_out, d_a):  # type: ignore[no-untyped-def]
    """At the origin 0; of equal candidates the first."""
    _norm(a, ord, out, d_out, d_a)


def _check_norm(args: Types, static: Mapping[str, Any]) -> str | None:
    if not numeric(args[0]) or args[0].ndim not in (1, 2):
        return "of anything but a vector or a matrix this has no derivative rule"
    return None


# ---- eigenvalues -----------------------------------------------------------------------------------


@register_jitable
def _add_lower(g, d_a):  # type: ignore[no-untyped-def]
    """A cotangent of a Hermitian matrix, of which only the lower triangle was read."""
    for i in range(len(g)):
        d_a[i, i] += g[i, i].real
        for j in range(i):
            d_a[i, j] += g[i, j] + np.conj(g[j, i])


@register_jitable
def _eigenvalues(v, d_w, d_a):  # type: ignore[no-untyped-def]
    vc = np.ascontiguousarray(v)
    _add_lower(np.dot(vc * d_w, _h(vc)), d_a)


@njit(error_model="numpy")
def eigvalsh_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    _, v = np.linalg.eigh(np.ascontiguousarray(a))
    _eigenvalues(v, d_out, d_a)


@njit(error_model="numpy")
def eigh_pullback(w, v, d_w, d_v, d_a):  # type: ignore[no-untyped-def]
    """dv = v (F o v^H da v), with F[i, j] = 1 / (w[j] - w[i])"""
    if d_w is not None:
        _eigenvalues(v, d_w, d_a)
    if d_v is not None:
        vc = np.ascontiguousarray(v)
        vh = _h(vc)
        inner = np.dot(vh, np.ascontiguousarray(d_v))
        for i in range(len(w)):
            for j in range(len(w)):
                inner[i, j] = 0 if i == j else _over(inner[i, j], w[j] - w[i])
        _add_lower(np.dot(np.dot(vc, inner), vh), d_a)


@njit(error_model="numpy")
def eigvals_pullback(a, d_out, d_a):  # type: ignore[no-untyped-def]
    _, v = np.linalg.eig(np.ascontiguousarray(a))
    vh = _h(v)
    d_a += np.linalg.solve(vh, np.ascontiguousarray(d_out.reshape(-1, 1) * vh))


@njit(error_model="numpy")
def eig_pullback(w, v, d_w, d_v, d_a):  # type: ignore[no-untyped-def]
    """dw = diag(p), p = inv(v) da v; dv = v (F o p), each column kept at norm 1"""
    vh = _h(v)
    inner = np.zeros_like(vh)
    if d_v is not None:
        bar = d_v.copy()
        for k in range(len(w)):  # along v[:, k] a column does not change
            along = np.vdot(np.ascontiguousarray(v[:, k]), np.ascontiguousarray(d_v[:, k])).real
            for i in range(len(w)):
                bar[i, k] -= along * v[i, k]
        inner = np.dot(vh, np.ascontiguousarray(bar))
        for i in range(len(w)):
            for j in range(len(w)):
                inner[i, j] = 0 if i == j else _over(inner[i, j], np.conj(w[j] - w[i]))
    if d_w is not None:
        for k in range(len(w)):
            inner[k, k] += d_w[k]
    d_a += np.linalg.solve(vh, np.ascontiguousarray(np.dot(inner, vh)))


# ---- singular values -------------------------------------------------------------------------------


@register_jitable
def _add_singular(u, s, vh, d_s, d_a):  # type: ignore[no-untyped-def]
    for k in range(len(s)):
        if d_s[k] != 0:
            for i in range(d_a.shape[0]):
                for j in range(d_a.shape[1]):
                    d_a[i, j] += d_s[k] * u[i, k] * vh[k, j]


def _imaginary(inner: Any, k: Any, s: Any) -> Any:
    raise NotImplementedError


@overload(_imaginary)
def _imaginary_impl(inner, k, s):  # type: ignore[no-untyped-def]
    """What a phase of a singular vector contributes; it is the same for u and v, up to the sign."""
    if isinstance(inner.dtype, types.Complex):
        return lambda inner, k, s: _over(1j * inner[k, k].imag, s[k])
    return lambda inner, k, s: inner.dtype.type(0)


@register_jitable
def _left_vectors(u, s, vh, d_u, d_a):  # type: ignore[no-untyped-def]
    """a = u s vh, the cotangent of u; columns of u beyond those of s span what is left."""
    n = len(s)
    full = np.ascontiguousarray(u)
    inner = np.dot(_h(full), np.ascontiguousarray(d_u))
    thin, right = np.ascontiguousarray(full[:, :n]), np.ascontiguousarray(vh[:n])
    core = np.zeros((n, n), inner.dtype)
    for i in range(n):
        for j in range(n):
            if i != j:
                turned = inner[i, j] - np.conj(inner[j, i])
                core[i, j] = _over(turned, (s[j] - s[i]) * (s[j] + s[i])) * s[j]
        core[i, i] = _imaginary(inner, i, s)
    d_a += np.dot(np.dot(thin, core), right)
    # the part of d_u outside of u's span, and what turns u's further columns
    outside = np.ascontiguousarray(d_u[:, :n]) - np.dot(thin, np.ascontiguousarray(inner[:n, :n]))
    if u.shape[1] > n:
        rest = np.ascontiguousarray(full[:, n:])
        outside -= np.dot(rest, _h(inner[:n, n:]))
    for i in range(outside.shape[0]):
        for k in range(n):
            outside[i, k] = _over(outside[i, k], s[k])
    d_a += np.dot(outside, right)


@njit(error_model="numpy")
def svd_pullback(u, s, vh, d_u, d_s, d_vh, d_a):  # type: ignore[no-untyped-def]
    if d_s is not None:
        _add_singular(u, s, vh, d_s, d_a)
    if d_u is not None:
        _left_vectors(u, s, vh, d_u, d_a)
    if d_vh is not None:  # the same of the conjugate transpose; a phase counts once, with u
        turned = np.zeros((d_a.shape[1], d_a.shape[0]), d_a.dtype)
        _left_vectors(_h(vh), s, _h(u), _h(d_vh), turned)
        if d_u is not None:
            _without_phases(u, s, vh, d_vh, turned)
        d_a += conj_t(turned)


def _without_phases(u: Any, s: Any, vh: Any, d_vh: Any, turned: Any) -> None:
    raise NotImplementedError


@overload(_without_phases)
def _without_phases_impl(u, s, vh, d_vh, turned):  # type: ignore[no-untyped-def]
    if not isinstance(vh.dtype, types.Complex):
        return lambda u, s, vh, d_vh, turned: None

    def remove(u, s, vh, d_vh, turned):  # type: ignore[no-untyped-def]
        for k in range(len(s)):
            phase = 0.0
            for j in range(vh.shape[1]):
                phase += (vh[k, j] * np.conj(d_vh[k, j])).imag
            for i in range(turned.shape[0]):
                for j in range(turned.shape[1]):
                    turned[i, j] -= _over(1j * phase, s[k]) * np.conj(vh[k, i] * u[j, k])

    return remove


@njit(error_model="numpy")
def cond_pullback(a, p, d_out, d_a):  # type: ignore[no-untyped-def]
    _cond(a, p, d_out, d_a)


def _cond(a: Any, p: Any, d: Any, d_a: Any) -> None:
    raise NotImplementedError


@register_jitable
def _cond2(a, inverted, d, d_a):  # type: ignore[no-untyped-def]
    u, s, vh = np.linalg.svd(np.ascontiguousarray(a), 0)  # type: ignore[call-overload]
    d_s = np.zeros_like(s)
    top, low = (-1, 0) if inverted else (0, -1)
    d_s[top] += d / s[low]
    d_s[low] -= d * s[top] / (s[low] * s[low])
    _add_singular(u, s, vh, d_s, d_a)


@overload(_cond)
def _cond_impl(a, p, d, d_a):  # type: ignore[no-untyped-def]
    if not isinstance(p, types.Number):
        return lambda a, p, d, d_a: _cond2(a, False, d, d_a)

    def by_norms(a, p, d, d_a):  # type: ignore[no-untyped-def]
        if p == 2 or p == -2:
            _cond2(a, p == -2, d, d_a)
            return
        inverse = np.linalg.inv(np.ascontiguousarray(a))
        size, other = np.linalg.norm(a, p), np.linalg.norm(inverse, p)
        _norm_matrix(a, p, size, d * other, d_a)
        bar = np.zeros_like(inverse)
        _norm_matrix(inverse, p, other, d * size, bar)
        c = _h(inverse)
        d_a -= np.dot(c, np.dot(bar, c))

    return by_norms


# ---- QR --------------------------------------------------------------------------------------------


@njit(error_model="numpy")
def qr_pullback(a, q, r, d_q, d_r, d_a):  # type: ignore[no-untyped-def]
    """With as many rows as columns or more; else the columns beyond the square are q times those of r."""
    n = r.shape[0]
    q_ = np.ascontiguousarray(q)
    square = np.ascontiguousarray(r[:, :n])
    bar_q = np.zeros_like(q_)
    m = np.zeros_like(square)
    if d_q is not None:
        bar_q += d_q
    if d_r is not None:
        m += np.dot(square, _h(d_r[:, :n]))
        if r.shape[1] > n:
            beyond = np.ascontiguousarray(d_r[:, n:])
            bar_q += np.dot(np.ascontiguousarray(a[:, n:]), _h(beyond))
            d_a[:, n:] += np.dot(q_, beyond)
    m -= np.dot(_h(bar_q), q_)
    for i in range(n):
        m[i, i] = m[i, i].real
        for j in range(i + 1, n):
            m[i, j] = np.conj(m[j, i])
    bar = _h(bar_q + np.dot(q_, m))
    d_a[:, :n] += conj_t(np.linalg.solve(square, bar))


# ---- determinants and powers -------------------------------------------------------------------------


def _turn(sign: Any, d_sign: Any) -> Any:
    raise NotImplementedError


@overload(_turn)
def _turn_impl(sign, d_sign):  # type: ignore[no-untyped-def]
    """The sign of a complex determinant is a phase, which turns with the imaginary part of the trace."""
    if isinstance(d_sign, types.Complex) and isinstance(sign, types.Complex):
        return lambda sign, d_sign: 1j * (np.conj(sign) * d_sign).imag
    return lambda sign, d_sign: 0.0


@njit(error_model="numpy")
def slogdet_pullback(a, sign, logdet, d_sign, d_logdet, d_a):  # type: ignore[no-untyped-def]
    """d logdet = trace(inv(a) da); of a singular matrix it is infinite"""
    bar = _turn(sign, d_sign)
    if d_logdet is not None:
        bar += d_logdet
    if bar != 0:
        if logdet == -np.inf:
            d_a += bar * np.inf
        else:
            d_a += bar * conj_t(np.linalg.inv(np.ascontiguousarray(a)))


@register_jitable
def _copied(a):  # type: ignore[no-untyped-def]
    out = np.empty(a.shape, a.dtype)
    out[:, :] = a
    return out


def matrix_power_forward(a, n):  # type: ignore[no-untyped-def]
    """The products in Numba's order.  The type of Numba's own says that it may return None."""
    if n == 0:
        one = np.zeros(a.shape, a.dtype)
        for k in range(a.shape[0]):
            one[k, k] = 1.0
        return one
    if a.shape[0] != a.shape[1]:
        raise ValueError("input must be a square array")
    base = _copied(a)
    if a.shape[0] == 0:
        return base
    if n < 0:
        base = _copied(np.linalg.inv(base))
        n = -n
    if n == 3:
        return np.dot(np.dot(base, base), base)
    power, first = base, True
    while True:
        if n & 1:
            power = base if first else np.dot(power, base)
            first = False
        n = n >> 1
        if n == 0:
            return power
        base = np.dot(base, base)


@njit(error_model="numpy")
def matrix_power_pullback(a, n, d_out, d_a):  # type: ignore[no-untyped-def]
    """The sum of (a^H)^k d (a^H)^(n - 1 - k)"""
    if n == 0 or a.size == 0:
        return
    base = _h(a) if n > 0 else _h(np.linalg.inv(np.ascontiguousarray(a)))
    d = np.ascontiguousarray(d_out)
    total, moved = d.copy(), d.copy()
    for _ in range(abs(n) - 1):
        moved = np.dot(moved, base)
        total = np.dot(base, total) + moved
    if n > 0:
        d_a += total
    else:
        d_a -= np.dot(np.dot(base, total), base)


# ---- pseudo-inverse and least squares ------------------------------------------------------------------


@register_jitable
def _pinv(a, p, d, d_a):  # type: ignore[no-untyped-def]
    """dp = -p da p + p p^H da^H (1 - a p) + (1 - p a) da^H p^H p, for a rank that stays"""
    a_, ph, dh = np.ascontiguousarray(a), _h(p), _h(d)
    p_ = np.ascontiguousarray(p)
    d_a -= np.dot(np.dot(ph, np.ascontiguousarray(d)), ph)
    left = np.dot(np.dot(dh, p_), ph)
    d_a += left - np.dot(a_, np.dot(p_, left))
    right = np.dot(np.dot(ph, p_), dh)
    d_a += right - np.dot(np.dot(right, p_), a_)


@njit(error_model="numpy")
def pinv_pullback(a, out, d_out, d_a):  # type: ignore[no-untyped-def]
    _pinv(a, out, d_out, d_a)


def _columns(b: Any) -> Any:
    """A vector as a matrix of one column."""
    raise NotImplementedError


@overload(_columns)
def _columns_impl(b):  # type: ignore[no-untyped-def]
    if b.ndim == 1:
        return lambda b: np.ascontiguousarray(b).reshape(-1, 1)
    return lambda b: np.ascontiguousarray(b)


def _add_columns(d_b: Any, bar: Any) -> None:
    raise NotImplementedError


@overload(_add_columns)
def _add_columns_impl(d_b, bar):  # type: ignore[no-untyped-def]
    if d_b.ndim == 1:

        def vector(d_b, bar):  # type: ignore[no-untyped-def]
            for i in range(len(d_b)):
                d_b[i] += bar[i, 0]

        return vector

    def matrix(d_b, bar):  # type: ignore[no-untyped-def]
        d_b += bar

    return matrix


@njit(error_model="numpy")
def lstsq_pullback(a, b, x, rank, d_x, d_residuals, d_s, d_a, d_b):  # type: ignore[no-untyped-def]
    """x = pinv(a) b; residuals = norm(b - a x)^2, in which x is at its minimum"""
    u, s, vh = np.linalg.svd(np.ascontiguousarray(a), 0)  # type: ignore[call-overload]
    if d_s is not None and d_a is not None:
        _add_singular(u, s, vh, d_s, d_a)
    right, solution = _columns(b), _columns(x)
    if d_x is not None:
        scaled = _h(vh[:rank])
        for k in range(rank):
            for i in range(len(scaled)):
                scaled[i, k] /= s[k]
        p = np.dot(scaled, _h(u[:, :rank]))
        bar = _columns(d_x)
        if d_b is not None:
            _add_columns(d_b, np.dot(_h(p), bar))
        if d_a is not None:
            _pinv(a, p, np.dot(bar, _h(right)), d_a)
    if d_residuals is not None and len(d_residuals) > 0:
        apart = 2 * (right - np.dot(np.ascontiguousarray(a), solution))
        for i in range(apart.shape[0]):
            for j in range(apart.shape[1]):
                apart[i, j] *= d_residuals[j]
        if d_b is not None:
            _add_columns(d_b, apart)
        if d_a is not None:
            d_a -= np.dot(apart, _h(solution))


_L = np.linalg
array("norm", (_L.norm,), "a", pullback=norm_pullback, static="ord", check=_check_norm)
array("eigvalsh", (_L.eigvalsh,), "a", pullback=eigvalsh_pullback, check=_check_matrix)
array("eigh", (_L.eigh,), "a", pullback=eigh_pullback, results="w v", check=_check_matrix)
array("eigvals", (_L.eigvals,), "a", pullback=eigvals_pullback, check=_check_matrix)
array("eig", (_L.eig,), "a", pullback=eig_pullback, results="w v", check=_check_matrix)
array("svd", (_L.svd,), "a", pullback=svd_pullback, static="full_matrices", results="u s vh",
      check=_check_matrix)  # fmt: skip
array("qr", (_L.qr,), "a", pullback=qr_pullback, results="q r", check=_check_matrix)
array("slogdet", (_L.slogdet,), "a", pullback=slogdet_pullback, results="sign logdet",
      check=_check_matrix)  # fmt: skip
array("cond", (_L.cond,), "a", pullback=cond_pullback, static="p", check=_check_matrix)
array("matrix_power", (_L.matrix_power,), "a n", pullback=matrix_power_pullback,
      forward=matrix_power_forward,
      check=lambda args, static: _check_matrix(args[:1], static))  # fmt: skip
array("pinv", (_L.pinv,), "a", pullback=pinv_pullback, static="rcond", check=_check_matrix)
array("lstsq", (_L.lstsq,), "a b", pullback=lstsq_pullback, static="rcond",
      results="x residuals rank s", check=_check_matrix)  # fmt: skip
array_zero("matrix_rank", (_L.matrix_rank,), static="tol")
