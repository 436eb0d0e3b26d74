"""Loop kernels for benchmarks and tests: simulations, solvers and networks, as one writes them in Numba.

KERNELS maps a name to a `Kernel`: the function, its arguments at full, at small and at any other size, and
the positions whose gradient is wanted. Several of them overwrite their arguments (the caller's state), swap
buffers, or keep workspaces; that is the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np


@dataclass(frozen=True)
class Kernel:
    fn: Callable[..., Any]
    full: Callable[[], tuple[Any, ...]]
    small: Callable[[], tuple[Any, ...]]
    wrt: tuple[int, ...]
    make: Callable[..., tuple[Any, ...]]  # sizes -> arguments


# ---- the kernels -----------------------------------------------------------------------------------


def rosenbrock(x):
    s = 0.0
    for i in range(x.shape[0] - 1):
        a = x[i + 1] - x[i] * x[i]
        b = 1.0 - x[i]
        s += 100.0 * a * a + b * b
    return s


def burgers(u0, nu, dt, dx, steps):
    """Viscous Burgers equation, explicit steps into a second array that is copied back."""
    n = u0.shape[0]
    u = u0.copy()
    un = u0.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            un[i] = (
                u[i]
                - dt / dx * u[i] * (u[i] - u[i - 1])
                + nu * dt / (dx * dx) * (u[i + 1] - 2.0 * u[i] + u[i - 1])
            )
        for i in range(n):
            u[i] = un[i]
    s = 0.0
    for i in range(n):
        s += u[i] * u[i]
    return s


def gauss_seidel(f, u, h2, sweeps):
    """Nonlinear Gauss-Seidel sweeps; u is overwritten."""
    n, m = u.shape
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                r = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h2 * f[i, j])
                u[i, j] = r / (1.0 + 0.01 * r * r)
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j]
    return s


@numba.njit
def l96_rhs(x, F, out):
    n = x.shape[0]
    for i in range(n):
        out[i] = (x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + F


def lorenz96(x, F, dt, steps):
    """Lorenz 96 by Runge-Kutta; x is overwritten."""
    n = x.shape[0]
    k1 = np.empty(n)
    k2 = np.empty(n)
    k3 = np.empty(n)
    k4 = np.empty(n)
    y = np.empty(n)
    for _ in range(steps):
        l96_rhs(x, F, k1)
        for i in range(n):
            y[i] = x[i] + 0.5 * dt * k1[i]
        l96_rhs(y, F, k2)
        for i in range(n):
            y[i] = x[i] + 0.5 * dt * k2[i]
        l96_rhs(y, F, k3)
        for i in range(n):
            y[i] = x[i] + dt * k3[i]
        l96_rhs(y, F, k4)
        for i in range(n):
            x[i] += dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
    return s


def gmm(alphas, means, icf, x, gamma, m):
    """ADBench's log-likelihood of a Gaussian mixture.

    alphas (K,), means (K, d), icf (K, d + d(d-1)/2), x (N, d).
    """
    N, d = x.shape
    K = alphas.shape[0]
    xc = np.empty(d)
    Qxc = np.empty(d)
    lse = np.empty(K)
    qsum = np.empty(K)
    for k in range(K):
        q = 0.0
        for j in range(d):
            q += icf[k, j]
        qsum[k] = q
    slse = 0.0
    for i in range(N):
        for k in range(K):
            for j in range(d):
                xc[j] = x[i, j] - means[k, j]
            for j in range(d):
                Qxc[j] = math.exp(icf[k, j]) * xc[j]
            c = d
            for a in range(d):
                for b in range(a + 1, d):
                    Qxc[b] += icf[k, c] * xc[a]
                    c += 1
            sq = 0.0
            for j in range(d):
                sq += Qxc[j] * Qxc[j]
            lse[k] = alphas[k] + qsum[k] - 0.5 * sq
        mx = lse[0]
        for k in range(1, K):
            if lse[k] > mx:
                mx = lse[k]
        e = 0.0
        for k in range(K):
            e += math.exp(lse[k] - mx)
        slse += math.log(e) + mx
    mx = alphas[0]
    for k in range(1, K):
        if alphas[k] > mx:
            mx = alphas[k]
    e = 0.0
    for k in range(K):
        e += math.exp(alphas[k] - mx)
    lsea = math.log(e) + mx
    wishart = 0.0
    for k in range(K):
        squares = 0.0
        for j in range(d):
            t = math.exp(icf[k, j])
            squares += t * t
        for j in range(d, icf.shape[1]):
            squares += icf[k, j] * icf[k, j]
        wishart += 0.5 * gamma * gamma * squares - m * qsum[k]
    return slse - N * lsea + wishart


@numba.njit
def lj_force(pos, frc):
    n = pos.shape[0]
    for i in range(n):
        for c in range(3):
            frc[i, c] = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = pos[i, 0] - pos[j, 0]
            dy = pos[i, 1] - pos[j, 1]
            dz = pos[i, 2] - pos[j, 2]
            r2 = dx * dx + dy * dy + dz * dz
            inv = 1.0 / r2
            i6 = inv * inv * inv
            f = 24.0 * i6 * (2.0 * i6 - 1.0) * inv
            frc[i, 0] += f * dx
            frc[i, 1] += f * dy
            frc[i, 2] += f * dz
            frc[j, 0] -= f * dx
            frc[j, 1] -= f * dy
            frc[j, 2] -= f * dz


def nbody(pos, vel, dt, steps):
    """Lennard-Jones particles by velocity Verlet; pos and vel are overwritten."""
    n = pos.shape[0]
    frc = np.zeros((n, 3))
    lj_force(pos, frc)
    for _ in range(steps):
        for i in range(n):
            for c in range(3):
                vel[i, c] += 0.5 * dt * frc[i, c]
                pos[i, c] += dt * vel[i, c]
        lj_force(pos, frc)
        for i in range(n):
            for c in range(3):
                vel[i, c] += 0.5 * dt * frc[i, c]
    s = 0.0
    for i in range(n):
        for c in range(3):
            s += pos[i, c] * pos[i, c]
    return s


def cholesky(A):
    """The Cholesky factor, in place; returns log det A."""
    n = A.shape[0]
    for j in range(n):
        s = A[j, j]
        for k in range(j):
            s -= A[j, k] * A[j, k]
        d = math.sqrt(s)
        A[j, j] = d
        for i in range(j + 1, n):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            A[i, j] = s / d
    s = 0.0
    for j in range(n):
        s += math.log(A[j, j])
    return 2.0 * s


def sine_gordon(u0, c2, steps):
    """A wave equation whose three time levels are three buffers that swap their names."""
    n, m = u0.shape
    um = u0.copy()
    u = u0.copy()
    up = u0.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                up[i, j] = 2.0 * u[i, j] - um[i, j] + c2 * lap - 0.01 * math.sin(u[i, j])
        um, u, up = u, up, um
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j]
    return s


def rnn(Wi, Wh, b, h, x):
    """A recurrent cell over a sequence x (T, I, B); its state h (H, B) is overwritten."""
    T = x.shape[0]
    s = np.float32(0.0)
    for t in range(T):
        h[:, :] = np.tanh(Wi @ x[t] + Wh @ h + b)
        s += np.sum(h * h)
    return s


def lstm(Wi, Wh, b, h, c, x):
    """An LSTM over a sequence x (T, I, B), gates stacked (4H); its state h, c (H, B) is overwritten."""
    T = x.shape[0]
    H = h.shape[0]
    s = np.float32(0.0)
    one = np.float32(1.0)
    for t in range(T):
        g = Wi @ x[t] + Wh @ h + b
        i = one / (one + np.exp(-g[0:H]))
        f = one / (one + np.exp(-g[H : 2 * H]))
        cc = np.tanh(g[2 * H : 3 * H])
        o = one / (one + np.exp(-g[3 * H : 4 * H]))
        c[:, :] = f * c + i * cc
        h[:, :] = o * np.tanh(c)
        s += np.sum(h * h)
    return s


# ---- their arguments ---------------------------------------------------------------------------------


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _rosenbrock(n):
    return (_rng().standard_normal(n),)


def _burgers(n, steps):
    return np.sin(np.linspace(0, 2 * np.pi, n)) + 1.5, 0.002, 0.1024 / n, 1.0 / n, steps


def _gauss_seidel(n, sweeps):
    r = _rng()
    return r.standard_normal((n, n)), r.standard_normal((n, n)), 1e-2, sweeps


def _lorenz96(n, steps):
    return _rng().standard_normal(n) + 8, 8.0, 0.01, steps


def _gmm(d, K, N):
    r = _rng()
    means, icf = r.standard_normal((K, d)), r.standard_normal((K, d + d * (d - 1) // 2)) * 0.1
    return r.standard_normal(K), means, icf, r.standard_normal((N, d)), 1.0, 0.0


def _nbody(side, steps):
    r = _rng()
    axes = np.meshgrid(*[np.arange(side)] * 3, indexing="ij")
    grid = np.stack(axes, -1).reshape(-1, 3) * 1.2
    position = grid + 0.01 * r.standard_normal(grid.shape)
    return position, 0.1 * r.standard_normal(grid.shape), 1e-3, steps


def _cholesky(n):
    M = _rng().standard_normal((n, n))
    return (M @ M.T + n * np.eye(n),)


def _sine_gordon(n, steps):
    return _rng().standard_normal((n, n)), 0.1, steps


def _rnn(inputs, H, B, T, gates=1):
    r = _rng()

    def normal(*shape):
        return r.standard_normal(shape).astype(np.float32)

    weights = normal(gates * H, inputs) * np.float32(0.1), normal(gates * H, H) * np.float32(0.1)
    state = [np.zeros((H, B), np.float32) for _ in range(2 if gates == 4 else 1)]
    return (*weights, np.zeros((gates * H, 1), np.float32), *state, normal(T, inputs, B))


def _lstm(inputs, H, B, T):
    return _rnn(inputs, H, B, T, gates=4)


def _kernel(fn, make, full, small, wrt) -> Kernel:
    return Kernel(fn, lambda: make(*full), lambda: make(*small), wrt, make)


KERNELS = {
    "rosenbrock": _kernel(rosenbrock, _rosenbrock, (1_000_000,), (7,), (0,)),
    "burgers": _kernel(burgers, _burgers, (1024, 1000), (16, 8), (0, 1)),
    "gauss_seidel": _kernel(gauss_seidel, _gauss_seidel, (128, 100), (6, 5), (0, 1)),
    "lorenz96": _kernel(lorenz96, _lorenz96, (40, 1000), (7, 6), (0, 1)),
    "gmm": _kernel(gmm, _gmm, (32, 25, 1000), (3, 4, 6), (0, 1, 2)),
    "nbody": _kernel(nbody, _nbody, (4, 100), (2, 4), (0, 1)),
    "cholesky": _kernel(cholesky, _cholesky, (128,), (6,), (0,)),
    "sine_gordon": _kernel(sine_gordon, _sine_gordon, (256, 100), (6, 5), (0,)),
    "rnn_2x3": _kernel(rnn, _rnn, (2, 3, 100, 1), (2, 3, 4, 2), (0, 1, 2, 3)),
    "rnn_128x256": _kernel(rnn, _rnn, (128, 256, 512, 4), (3, 5, 2, 3), (0, 1, 2, 3)),
    "lstm_20x30": _kernel(lstm, _lstm, (20, 30, 100, 1), (2, 3, 4, 1), (0, 1, 2, 3, 4)),
    "lstm_20x30_T50": _kernel(lstm, _lstm, (20, 30, 100, 50), (3, 2, 3, 4), (0, 1, 2, 3, 4)),
}
