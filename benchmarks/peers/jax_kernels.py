"""The kernels in JAX: whole arrays, a new one for each update, loops as scans, everything under jit."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.kernels import Kernel
from benchmarks.program import Gradients, Program, Written, as_they_are, folded

jax.config.update("jax_enable_x64", True)

written = Written()


@written("whole arrays")
def rosenbrock(x):
    a = x[1:] - x[:-1] ** 2
    b = 1.0 - x[:-1]
    return jnp.sum(100.0 * a * a + b * b)


@written("a new array each step, in a scan")
def burgers(u0, nu, dt, dx, steps):
    def step(u, _):
        inner = (
            u[1:-1]
            - dt / dx * u[1:-1] * (u[1:-1] - u[:-2])
            + nu * dt / (dx * dx) * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        )
        return u.at[1:-1].set(inner), None

    u, _ = lax.scan(step, u0, None, length=steps)
    return jnp.sum(u * u)


@written("sweeps along the diagonals, whose entries do not depend on each other; scans")
def gauss_seidel(f, u, h2, sweeps):
    n, m = u.shape
    row = np.arange(n)
    column = np.arange(n + m - 1)[:, None] - row  # of row's entry in each diagonal
    exists = (column >= 0) & (column < m)
    inside = (column > 0) & (column < m - 1) & (row > 0) & (row < n - 1)

    def by_diagonals(a):
        return jnp.where(exists, a[row, np.clip(column, 0, m - 1)], 0.0)

    def diagonal(before, inputs):
        old, after, source, inside = inputs
        around = jnp.roll(before, 1) + jnp.roll(after, -1) + before + after
        r = 0.25 * (around + h2 * source)
        new = jnp.where(inside, r / (1.0 + 0.01 * r * r), old)
        return new, new

    def sweep(u, _):
        after = jnp.concatenate((u[1:], jnp.zeros((1, n))))
        return lax.scan(diagonal, jnp.zeros(n), (u, after, source, inside))[1], None

    source = by_diagonals(f)
    u, _ = lax.scan(sweep, by_diagonals(u), None, length=sweeps)
    return jnp.sum(u * u)


@written("a new array each step, in a scan")
def lorenz96(x, F, dt, steps):
    def rhs(x):
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + F

    def step(x, _):
        k1 = rhs(x)
        k2 = rhs(x + 0.5 * dt * k1)
        k3 = rhs(x + 0.5 * dt * k2)
        k4 = rhs(x + dt * k3)
        return x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

    x, _ = lax.scan(step, x, None, length=steps)
    return jnp.sum(x * x)


@written("whole arrays, einsum")
def gmm(alphas, means, icf, x, gamma, m):
    N, d = x.shape
    K = alphas.shape[0]
    rows, columns = _lower(d)
    diagonal = jnp.exp(icf[:, :d])
    lower = jnp.zeros((K, d, d)).at[:, rows, columns].set(icf[:, d:])
    centred = x[:, None, :] - means
    Q = diagonal * centred + jnp.einsum("kba,nka->nkb", lower, centred)
    qsum = jnp.sum(icf[:, :d], axis=1)
    lse = alphas + qsum - 0.5 * jnp.sum(Q * Q, axis=2)
    slse = jnp.sum(jax.nn.logsumexp(lse, axis=1))
    squares = jnp.sum(diagonal**2, axis=1) + jnp.sum(icf[:, d:] ** 2, axis=1)
    wishart = jnp.sum(0.5 * gamma * gamma * squares - m * qsum)
    return slse - N * jax.nn.logsumexp(alphas) + wishart


def _lower(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the kernel's entries below the diagonal go: column by column."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


@written("all pairs as arrays, a scan over the steps")
def nbody(pos, vel, dt, steps):
    same = jnp.eye(pos.shape[0], dtype=bool)

    def force(pos):
        apart = pos[:, None] - pos[None]
        r2 = jnp.sum(apart * apart, axis=2)
        inv = jnp.where(same, 0.0, 1.0 / jnp.where(same, 1.0, r2))
        i6 = inv**3
        return jnp.sum((24.0 * i6 * (2.0 * i6 - 1.0) * inv)[:, :, None] * apart, axis=1)

    def step(state, _):
        pos, vel, frc = state
        vel = vel + 0.5 * dt * frc
        pos = pos + dt * vel
        frc = force(pos)
        return (pos, vel + 0.5 * dt * frc, frc), None

    (pos, _, _), _ = lax.scan(step, (pos, vel, force(pos)), None, length=steps)
    return jnp.sum(pos * pos)


@written("the library's factorisation")
def cholesky(A):
    return 2.0 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(A))))


@written("new arrays each step, in a scan")
def sine_gordon(u0, c2, steps):
    def step(state, _):
        um, u = state
        c = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * c
        inner = 2.0 * c - um[1:-1, 1:-1] + c2 * lap - 0.01 * jnp.sin(c)
        return (u, u.at[1:-1, 1:-1].set(inner)), None

    (_, u), _ = lax.scan(step, (u0, u0), None, length=steps)
    return jnp.sum(u * u)


@written("a new state each step, in a scan")
def rnn(Wi, Wh, b, h, x):
    def step(h, x):
        h = jnp.tanh(Wi @ x + Wh @ h + b)
        return h, jnp.sum(h * h)

    return jnp.sum(lax.scan(step, h, x)[1])


@written("a new state each step, in a scan")
def lstm(Wi, Wh, b, h, c, x):
    H = h.shape[0]

    def step(state, x):
        h, c = state
        g = Wi @ x + Wh @ h + b
        i, f, o = (jax.nn.sigmoid(g[k * H : (k + 1) * H]) for k in (0, 1, 3))
        c = f * c + i * jnp.tanh(g[2 * H : 3 * H])
        h = o * jnp.tanh(c)
        return (h, c), jnp.sum(h * h)

    return jnp.sum(lax.scan(step, (h, c), x)[1])


# ---- as programs -------------------------------------------------------------------------------------


def program(kernel: Kernel, args: tuple[Any, ...]) -> Program:
    fn, note = written.find(kernel.fn.__name__)
    static = tuple(k for k, a in enumerate(args) if isinstance(a, int))
    both = jax.jit(jax.value_and_grad(fn, argnums=kernel.wrt), static_argnums=static)

    def split(*args: Any) -> Any:
        def of_wrt(*wanted: Any) -> Any:
            given = list(args)
            for k, a in zip(kernel.wrt, wanted, strict=True):
                given[k] = a
            return fn(*given)

        return jax.vjp(of_wrt, *(args[k] for k in kernel.wrt))

    forward = jax.jit(split, static_argnums=static)
    pullback = jax.jit(lambda vjp, bar: vjp(bar))
    # The work is asynchronous: a call has taken as long as its results take to be there.
    return Program(
        value_and_grad=lambda *args: jax.block_until_ready(both(*args)),
        gradients=partial(_gradients, kernel.fn.__name__),
        args=as_they_are(tuple(a if isinstance(a, int) else jnp.asarray(a) for a in args)),
        forward=lambda *args: jax.block_until_ready(forward(*args)),
        pullback=lambda vjp, bar: jax.block_until_ready(pullback(vjp, bar)),
        seed=lambda out: (out[1], jnp.ones_like(out[0])),
        tape_bytes=_tape_bytes,
        note=note,
    )


def _gradients(name: str, result: Any) -> Gradients:
    value, gradients = result
    found = float(value), [np.asarray(g) for g in gradients]
    return folded(found) if name == "cholesky" else found


def _tape_bytes(out: Any) -> int:
    """The arrays that the pullback holds."""
    leaves = jax.tree_util.tree_leaves(out[1])
    return sum(a.nbytes for a in {id(a): a for a in leaves if hasattr(a, "nbytes")}.values())


def warm_up() -> None:
    jax.jit(jax.value_and_grad(lambda x: jnp.sum(x * x)))(jnp.ones(3))
