"""The kernels in autograd: NumPy on whole arrays, a new one for each update, loops in Python."""

from __future__ import annotations

from functools import partial
from typing import Any

import autograd
import autograd.numpy as anp
import autograd.scipy.special as special
import numpy as np

from benchmarks.kernels import Kernel
from benchmarks.program import Gradients, Program, Written, as_they_are, folded

written = Written(
    reasons={"gauss_seidel": "every entry needs its neighbours' new values: one by one, in Python"}
)


@written("whole arrays")
def rosenbrock(x):
    a = x[1:] - x[:-1] ** 2
    b = 1.0 - x[:-1]
    return anp.sum(100.0 * a * a + b * b)


@written("a new array each step")
def burgers(u, nu, dt, dx, steps):
    for _ in range(steps):
        inner = (
            u[1:-1]
            - dt / dx * u[1:-1] * (u[1:-1] - u[:-2])
            + nu * dt / (dx * dx) * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        )
        u = anp.concatenate((u[:1], inner, u[-1:]))
    return anp.sum(u * u)


@written("a new array each step")
def lorenz96(x, F, dt, steps):
    def rhs(x):
        return (anp.roll(x, -1) - anp.roll(x, 2)) * anp.roll(x, 1) - x + F

    for _ in range(steps):
        k1 = rhs(x)
        k2 = rhs(x + 0.5 * dt * k1)
        k3 = rhs(x + 0.5 * dt * k2)
        k4 = rhs(x + dt * k3)
        x = x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return anp.sum(x * x)


@written("whole arrays, matrix products")
def gmm(alphas, means, icf, x, gamma, m):
    N, d = x.shape
    K = alphas.shape[0]
    padded = anp.concatenate((icf[:, d:], np.zeros((K, 1))), axis=1)
    lower = padded[:, _places(d)]
    diagonal = anp.exp(icf[:, :d])
    centred = anp.reshape(x, (1, N, d)) - anp.reshape(means, (K, 1, d))
    Q = diagonal[:, None, :] * centred + anp.matmul(centred, anp.transpose(lower, (0, 2, 1)))
    qsum = anp.sum(icf[:, :d], axis=1)
    lse = (alphas + qsum)[:, None] - 0.5 * anp.sum(Q * Q, axis=2)
    slse = anp.sum(special.logsumexp(lse, axis=0))
    squares = anp.sum(diagonal**2, axis=1) + anp.sum(icf[:, d:] ** 2, axis=1)
    wishart = anp.sum(0.5 * gamma * gamma * squares - m * qsum)
    return slse - N * special.logsumexp(alphas) + wishart


def _places(d: int) -> np.ndarray:
    """For each entry of the lower triangle where it is stored; elsewhere the last place, which holds 0."""
    columns, rows = np.triu_indices(d, 1)  # stored column by column
    places = np.full((d, d), rows.size)
    places[rows, columns] = np.arange(rows.size)
    return places


@written("all pairs as arrays")
def nbody(pos, vel, dt, steps):
    one = np.eye(pos.shape[0])

    def force(pos):
        apart = pos[:, None] - pos[None]
        r2 = anp.sum(apart * apart, axis=2)
        inv = (1.0 - one) / (r2 + one)
        i6 = inv**3
        return anp.sum((24.0 * i6 * (2.0 * i6 - 1.0) * inv)[:, :, None] * apart, axis=1)

    frc = force(pos)
    for _ in range(steps):
        vel = vel + 0.5 * dt * frc
        pos = pos + dt * vel
        frc = force(pos)
        vel = vel + 0.5 * dt * frc
    return anp.sum(pos * pos)


@written("the library's factorisation")
def cholesky(A):
    return 2.0 * anp.sum(anp.log(anp.diagonal(anp.linalg.cholesky(A), axis1=-1, axis2=-2)))


@written("a new array each step")
def sine_gordon(u0, c2, steps):
    um = u = u0
    for _ in range(steps):
        c = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * c
        inner = 2.0 * c - um[1:-1, 1:-1] + c2 * lap - 0.01 * anp.sin(c)
        rows = anp.concatenate((u[1:-1, :1], inner, u[1:-1, -1:]), axis=1)
        um, u = u, anp.concatenate((u[:1], rows, u[-1:]))
    return anp.sum(u * u)


@written("a new state each step")
def rnn(Wi, Wh, b, h, x):
    s = 0.0
    for x_t in x:
        h = anp.tanh(anp.dot(Wi, x_t) + anp.dot(Wh, h) + b)
        s = s + anp.sum(h * h)
    return s


@written("a new state each step")
def lstm(Wi, Wh, b, h, c, x):
    H = h.shape[0]
    one = np.float32(1.0)
    s = 0.0
    for x_t in x:
        g = anp.dot(Wi, x_t) + anp.dot(Wh, h) + b
        i, f, o = (one / (one + anp.exp(-g[k * H : (k + 1) * H])) for k in (0, 1, 3))
        c = f * c + i * anp.tanh(g[2 * H : 3 * H])
        h = o * anp.tanh(c)
        s = s + anp.sum(h * h)
    return s


# ---- as programs -------------------------------------------------------------------------------------


def program(kernel: Kernel, args: tuple[Any, ...]) -> Program:
    fn, note = written.find(kernel.fn.__name__)
    forward = autograd.make_vjp(fn, kernel.wrt)
    return Program(
        value_and_grad=autograd.value_and_grad(fn, kernel.wrt),
        gradients=partial(_gradients, kernel.fn.__name__),
        args=as_they_are(args),
        forward=forward,
        pullback=lambda vjp, bar: vjp(bar),
        seed=lambda out: (out[0], np.ones_like(out[1])),
        note=note,
    )


def _gradients(name: str, result: Any) -> Gradients:
    value, gradients = result
    found = float(value), [np.asarray(g) for g in gradients]
    return folded(found) if name == "cholesky" else found


def warm_up() -> None:
    autograd.value_and_grad(lambda x: anp.sum(x * x))(np.ones(3))
