"""The kernels in Warp as they stand, updating arrays in place: what such a program's gradient is worth.

Warp takes these programs without a word (its documentation warns of them).  The backward pass reads arrays
as they are at the end, so most gradients are wrong; `warp_kernels` has programs that avoid it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import warp as wp

from benchmarks.peers import warp_kernels
from benchmarks.peers.warp_kernels import (
    F,
    Matrix,
    Run,
    Vector,
    burgers_step,
    scalar,
    sine_gordon_step,
    states,
    sum_squares_1d,
    sum_squares_2d,
)
from benchmarks.program import Written

written = Written(
    reasons=dict.fromkeys(
        ("rosenbrock", "gmm", "nbody", "rnn", "lstm"), "not tried in place; see warp"
    )
)


@written("")
def burgers(u0: Any, nu: Any, dt: float, dx: float, steps: int) -> Run:
    s, (u, un) = scalar(), states(2, u0)

    def run() -> Any:
        s.zero_()
        wp.copy(u, u0)
        for _ in range(steps):
            wp.launch(burgers_step, u.shape[0], inputs=[u, nu, dt, dx], outputs=[un])
            wp.copy(u, un)
        wp.launch(sum_squares_1d, u.shape[0], inputs=[u], outputs=[s])
        return s

    return run


@wp.kernel(module="unique")
def gauss_seidel_in_place(f: Matrix, u: Matrix, h2: F):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            r = F(0.25) * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h2 * f[i, j])
            u[i, j] = r / (F(1.0) + F(0.01) * r * r)


@written("")
def gauss_seidel(f: Any, u0: Any, h2: float, sweeps: int) -> Run:
    s, (u,) = scalar(), states(1, u0)

    def run() -> Any:
        s.zero_()
        wp.copy(u, u0)
        for _ in range(sweeps):
            wp.launch(gauss_seidel_in_place, 1, inputs=[f, u, h2])
        wp.launch(sum_squares_2d, u.shape, inputs=[u], outputs=[s])
        return s

    return run


@wp.func
def rhs(x: Vector, i: int, n: int, forcing: F):
    return (x[(i + 1) % n] - x[(i + n - 2) % n]) * x[(i + n - 1) % n] - x[i] + forcing


@wp.kernel(module="unique")
def lorenz96_in_place(
    x: Vector,
    forcing: Vector,
    dt: F,
    steps: int,
    y: Vector,
    k1: Vector,
    k2: Vector,
    k3: Vector,
    k4: Vector,
):
    n = x.shape[0]
    for _t in range(steps):
        for i in range(n):
            k1[i] = rhs(x, i, n, forcing[0])
        for i in range(n):
            y[i] = x[i] + F(0.5) * dt * k1[i]
        for i in range(n):
            k2[i] = rhs(y, i, n, forcing[0])
        for i in range(n):
            y[i] = x[i] + F(0.5) * dt * k2[i]
        for i in range(n):
            k3[i] = rhs(y, i, n, forcing[0])
        for i in range(n):
            y[i] = x[i] + dt * k3[i]
        for i in range(n):
            k4[i] = rhs(y, i, n, forcing[0])
        for i in range(n):
            x[i] = x[i] + dt / F(6.0) * (k1[i] + F(2.0) * k2[i] + F(2.0) * k3[i] + k4[i])


@written("")
def lorenz96(x0: Any, forcing: Any, dt: float, steps: int) -> Run:
    s, (x, *work) = scalar(), states(6, x0)

    def run() -> Any:
        s.zero_()
        wp.copy(x, x0)
        wp.launch(lorenz96_in_place, 1, inputs=[x, forcing, dt, steps], outputs=work)
        wp.launch(sum_squares_1d, x.shape[0], inputs=[x], outputs=[s])
        return s

    return run


@wp.kernel(module="unique")
def cholesky_in_place(A: Matrix, logdet: Vector):
    n = A.shape[0]
    for j in range(n):
        s = A[j, j]
        for k in range(j):
            s -= A[j, k] * A[j, k]
        d = wp.sqrt(s)
        A[j, j] = d
        for i in range(j + 1, n):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            A[i, j] = s / d
    for j in range(n):
        wp.atomic_add(logdet, 0, F(2.0) * wp.log(A[j, j]))


@written("")
def cholesky(A0: Any) -> Run:
    s, (A,) = scalar(), states(1, A0)

    def run() -> Any:
        s.zero_()
        wp.copy(A, A0)
        wp.launch(cholesky_in_place, 1, inputs=[A], outputs=[s])
        return s

    return run


@written("")
def sine_gordon(u0: Any, c2: float, steps: int) -> Run:
    s, buffers = scalar(), states(3, u0)

    def run() -> Any:
        s.zero_()
        for buffer in buffers:
            wp.copy(buffer, u0)
        um, u, up = buffers
        for _ in range(steps):
            wp.launch(sine_gordon_step, u.shape, inputs=[um, u, c2], outputs=[up])
            um, u, up = u, up, um
        wp.launch(sum_squares_2d, u.shape, inputs=[u], outputs=[s])
        return s

    return run


program = partial(warp_kernels.program, written=written)
warm_up = warp_kernels.warm_up
