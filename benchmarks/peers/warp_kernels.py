"""The kernels in Warp, on the CPU: every state has an array of its own, since the backward pass reads arrays
as they are by then.

A program allocates its arrays once and returns `run`, which launches its kernels under a tape.  These arrays
are what other tools keep on a tape, and count as such; the peak of a call does not show them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from benchmarks.kernels import Kernel
from benchmarks.program import Gradients, Program, Written, as_they_are

F = wp.float64
f32 = wp.float32
Vector = wp.array(dtype=F)
Matrix = wp.array2d(dtype=F)
Matrix32 = wp.array2d(dtype=f32)

written = Written()
Run = Callable[[], Any]  # launches everything, returns the array that holds the value


_kept: list[Any] = []  # what the program that is being made has allocated


def new(shape: Any, dtype: Any = F) -> Any:
    """An array that a program keeps."""
    _kept.append(wp.zeros(shape, dtype=dtype, requires_grad=True))
    return _kept[-1]


def scalar(dtype: Any = F) -> Any:
    return new(1, dtype)


def states(count: int, like: Any) -> list[Any]:
    return [new(like.shape, like.dtype) for _ in range(count)]


@wp.kernel(module="unique")
def sum_squares_1d(a: Vector, s: Vector):
    i = wp.tid()
    wp.atomic_add(s, 0, a[i] * a[i])


@wp.kernel(module="unique")
def sum_squares_2d(a: Matrix, s: Vector):
    i, j = wp.tid()
    wp.atomic_add(s, 0, a[i, j] * a[i, j])


# ---- rosenbrock --------------------------------------------------------------------------------------


@wp.kernel(module="unique")
def rosenbrock_term(x: Vector, s: Vector):
    i = wp.tid()
    a = x[i + 1] - x[i] * x[i]
    b = F(1.0) - x[i]
    wp.atomic_add(s, 0, F(100.0) * a * a + b * b)


@written("a thread for each term, summed by atomics")
def rosenbrock(x: Any) -> Run:
    s = scalar()

    def run() -> Any:
        s.zero_()
        wp.launch(rosenbrock_term, x.shape[0] - 1, inputs=[x], outputs=[s])
        return s

    return run


# ---- burgers -----------------------------------------------------------------------------------------


@wp.kernel(module="unique")
def burgers_step(u: Vector, nu: Vector, dt: F, dx: F, out: Vector):
    i = wp.tid()
    if i == 0 or i == u.shape[0] - 1:
        out[i] = u[i]
    else:
        out[i] = (
            u[i]
            - dt / dx * u[i] * (u[i] - u[i - 1])
            + nu[0] * dt / (dx * dx) * (u[i + 1] - F(2.0) * u[i] + u[i - 1])
        )


@written("an array for each step, a launch each")
def burgers(u0: Any, nu: Any, dt: float, dx: float, steps: int) -> Run:
    s, us = scalar(), [u0, *states(steps, u0)]

    def run() -> Any:
        s.zero_()
        for u, out in zip(us, us[1:], strict=False):
            wp.launch(burgers_step, u.shape[0], inputs=[u, nu, dt, dx], outputs=[out])
        wp.launch(sum_squares_1d, u0.shape[0], inputs=[us[-1]], outputs=[s])
        return s

    return run


# ---- gauss_seidel ------------------------------------------------------------------------------------


@wp.kernel(module="unique")
def gauss_seidel_sweep(f: Matrix, u: Matrix, h2: F, out: Matrix):
    n = u.shape[0]
    m = u.shape[1]
    for i in range(n):
        out[i, 0] = u[i, 0]
        out[i, m - 1] = u[i, m - 1]
    for j in range(1, m - 1):
        out[0, j] = u[0, j]
        out[n - 1, j] = u[n - 1, j]
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            r = F(0.25) * (out[i - 1, j] + u[i + 1, j] + out[i, j - 1] + u[i, j + 1] + h2 * f[i, j])
            out[i, j] = r / (F(1.0) + F(0.01) * r * r)


@written("an array for each sweep, a launch each")
def gauss_seidel(f: Any, u: Any, h2: float, sweeps: int) -> Run:
    s, us = scalar(), [u, *states(sweeps, u)]

    def run() -> Any:
        s.zero_()
        for before, after in zip(us, us[1:], strict=False):
            wp.launch(gauss_seidel_sweep, 1, inputs=[f, before, h2], outputs=[after])
        wp.launch(sum_squares_2d, u.shape, inputs=[us[-1]], outputs=[s])
        return s

    return run


# ---- lorenz96 ----------------------------------------------------------------------------------------


@wp.func
def l96_rhs(x: Matrix, t: int, i: int, n: int, forcing: F):
    ahead = x[t, (i + 1) % n]
    return (ahead - x[t, (i + n - 2) % n]) * x[t, (i + n - 1) % n] - x[t, i] + forcing


@wp.kernel(module="unique")
def lorenz96_steps(
    x0: Vector,
    forcing: Vector,
    dt: F,
    steps: int,
    x: Matrix,
    k1: Matrix,
    k2: Matrix,
    k3: Matrix,
    k4: Matrix,
    y1: Matrix,
    y2: Matrix,
    y3: Matrix,
):
    n = x0.shape[0]
    for i in range(n):
        x[0, i] = x0[i]
    for t in range(steps):
        for i in range(n):
            k1[t, i] = l96_rhs(x, t, i, n, forcing[0])
            y1[t, i] = x[t, i] + F(0.5) * dt * k1[t, i]
        for i in range(n):
            k2[t, i] = l96_rhs(y1, t, i, n, forcing[0])
            y2[t, i] = x[t, i] + F(0.5) * dt * k2[t, i]
        for i in range(n):
            k3[t, i] = l96_rhs(y2, t, i, n, forcing[0])
            y3[t, i] = x[t, i] + dt * k3[t, i]
        for i in range(n):
            k4[t, i] = l96_rhs(y3, t, i, n, forcing[0])
            slope = k1[t, i] + F(2.0) * k2[t, i] + F(2.0) * k3[t, i] + k4[t, i]
            x[t + 1, i] = x[t, i] + dt / F(6.0) * slope


@wp.kernel(module="unique")
def sum_squares_of_row(a: Matrix, row: int, s: Vector):
    i = wp.tid()
    wp.atomic_add(s, 0, a[row, i] * a[row, i])


@written("a row for each step and stage, all steps in one launch")
def lorenz96(x: Any, forcing: Any, dt: float, steps: int) -> Run:
    s = scalar()
    rows = [new((steps + 1, x.shape[0])) for _ in range(8)]

    def run() -> Any:
        s.zero_()
        wp.launch(lorenz96_steps, 1, inputs=[x, forcing, dt, steps], outputs=rows)
        wp.launch(sum_squares_of_row, x.shape[0], inputs=[rows[0], steps], outputs=[s])
        return s

    return run


# ---- gmm ---------------------------------------------------------------------------------------------


@wp.func
def gmm_component(means: Matrix, icf: Matrix, x: Matrix, i: int, k: int, b: int):
    d = x.shape[1]
    q = wp.exp(icf[k, b]) * (x[i, b] - means[k, b])
    for a in range(b):
        c = d + a * d - (a * (a + 1)) / 2 + b - a - 1
        q += icf[k, c] * (x[i, a] - means[k, a])
    return q


@wp.kernel(module="unique")
def gmm_terms(alphas: Vector, means: Matrix, icf: Matrix, x: Matrix, lse: Matrix):
    i, k = wp.tid()
    qsum = F(0.0)
    sq = F(0.0)
    for b in range(x.shape[1]):
        qsum += icf[k, b]
        q = gmm_component(means, icf, x, i, k, b)
        sq += q * q
    lse[i, k] = alphas[k] + qsum - F(0.5) * sq


@wp.func
def largest(a: Matrix, i: int):
    top = a[i, 0]
    for k in range(1, a.shape[1]):
        top = wp.max(top, a[i, k])
    return top


@wp.func
def sum_exp(a: Matrix, i: int, top: F):
    e = F(0.0)
    for k in range(a.shape[1]):
        e += wp.exp(a[i, k] - top)
    return e


@wp.kernel(module="unique")
def gmm_logsumexp(lse: Matrix, factor: F, s: Vector):
    i = wp.tid()
    top = largest(lse, i)
    wp.atomic_add(s, 0, factor * (wp.log(sum_exp(lse, i, top)) + top))


@wp.kernel(module="unique")
def gmm_prior(icf: Matrix, gamma: F, m: F, d: int, s: Vector):
    k, c = wp.tid()
    half = F(0.5) * gamma * gamma
    if c < d:
        t = wp.exp(icf[k, c])
        wp.atomic_add(s, 0, half * t * t - m * icf[k, c])
    else:
        wp.atomic_add(s, 0, half * icf[k, c] * icf[k, c])


@written("a thread for each point and component, summed by atomics")
def gmm(alphas: Any, means: Any, icf: Any, x: Any, gamma: float, m: float) -> Run:
    (N, d), K = x.shape, alphas.shape[0]
    s = scalar()
    lse = new((N, K))

    def run() -> Any:
        s.zero_()
        wp.launch(gmm_terms, (N, K), inputs=[alphas, means, icf, x], outputs=[lse])
        wp.launch(gmm_logsumexp, N, inputs=[lse, 1.0], outputs=[s])
        weights = alphas.reshape((1, K))
        wp.launch(gmm_logsumexp, 1, inputs=[weights, -float(N)], outputs=[s])
        wp.launch(gmm_prior, icf.shape, inputs=[icf, gamma, m, d], outputs=[s])
        return s

    return run


# ---- nbody -------------------------------------------------------------------------------------------


@wp.kernel(module="unique")
def nbody_drift(pos: Matrix, vel: Matrix, frc: Matrix, dt: F, new_pos: Matrix, new_vel: Matrix):
    i, c = wp.tid()
    half = vel[i, c] + F(0.5) * dt * frc[i, c]
    new_vel[i, c] = half
    new_pos[i, c] = pos[i, c] + dt * half


@wp.kernel(module="unique")
def nbody_kick(vel: Matrix, frc: Matrix, dt: F, out: Matrix):
    i, c = wp.tid()
    out[i, c] = vel[i, c] + F(0.5) * dt * frc[i, c]


@wp.kernel(module="unique")
def nbody_force(pos: Matrix, frc: Matrix):
    i = wp.tid()
    fx = F(0.0)
    fy = F(0.0)
    fz = F(0.0)
    for j in range(pos.shape[0]):
        if i != j:
            dx = pos[i, 0] - pos[j, 0]
            dy = pos[i, 1] - pos[j, 1]
            dz = pos[i, 2] - pos[j, 2]
            inv = F(1.0) / (dx * dx + dy * dy + dz * dz)
            i6 = inv * inv * inv
            f = F(24.0) * i6 * (F(2.0) * i6 - F(1.0)) * inv
            fx += f * dx
            fy += f * dy
            fz += f * dz
    frc[i, 0] = fx
    frc[i, 1] = fy
    frc[i, 2] = fz


@written("arrays for each step, a thread for each particle, every pair twice")
def nbody(pos: Any, vel: Any, dt: float, steps: int) -> Run:
    n = pos.shape[0]
    s = scalar()
    ps, vs, halves = [pos, *states(steps, pos)], [vel, *states(steps, vel)], states(steps, vel)
    forces = states(steps + 1, pos)

    def run() -> Any:
        s.zero_()
        wp.launch(nbody_force, n, inputs=[pos], outputs=[forces[0]])
        for t in range(steps):
            drifted = [ps[t + 1], halves[t]]
            wp.launch(nbody_drift, (n, 3), inputs=[ps[t], vs[t], forces[t], dt], outputs=drifted)
            wp.launch(nbody_force, n, inputs=[ps[t + 1]], outputs=[forces[t + 1]])
            kick = [halves[t], forces[t + 1], dt]
            wp.launch(nbody_kick, (n, 3), inputs=kick, outputs=[vs[t + 1]])
        wp.launch(sum_squares_2d, (n, 3), inputs=[ps[-1]], outputs=[s])
        return s

    return run


# ---- cholesky ----------------------------------------------------------------------------------------


@wp.func
def rest(A: Matrix, L: Matrix, i: int, j: int):
    s = A[i, j]
    for k in range(j):
        s -= L[i, k] * L[j, k]
    return s


@wp.kernel(module="unique")
def cholesky_factor(A: Matrix, L: Matrix, logdet: Vector):
    n = A.shape[0]
    for j in range(n):
        # A sum in a loop, used in the loop around it, has a wrong gradient; in a function of its own not.
        L[j, j] = wp.sqrt(rest(A, L, j, j))
        for i in range(j + 1, n):
            L[i, j] = rest(A, L, i, j) / L[j, j]
    for j in range(n):
        wp.atomic_add(logdet, 0, F(2.0) * wp.log(L[j, j]))


@written("the factor in an array of its own, one thread")
def cholesky(A: Any) -> Run:
    s, (L,) = scalar(), states(1, A)

    def run() -> Any:
        s.zero_()
        wp.launch(cholesky_factor, 1, inputs=[A], outputs=[L, s])
        return s

    return run


# ---- sine_gordon -------------------------------------------------------------------------------------


@wp.kernel(module="unique")
def sine_gordon_step(um: Matrix, u: Matrix, c2: F, out: Matrix):
    i, j = wp.tid()
    if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:
        out[i, j] = u[i, j]
    else:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        lap = around - F(4.0) * u[i, j]
        out[i, j] = F(2.0) * u[i, j] - um[i, j] + c2 * lap - F(0.01) * wp.sin(u[i, j])


@written("an array for each step, a launch each")
def sine_gordon(u0: Any, c2: float, steps: int) -> Run:
    s, us = scalar(), [u0, u0, *states(steps, u0)]

    def run() -> Any:
        s.zero_()
        for t in range(steps):
            step = [us[t], us[t + 1], c2]
            wp.launch(sine_gordon_step, u0.shape, inputs=step, outputs=[us[t + 2]])
        wp.launch(sum_squares_2d, u0.shape, inputs=[us[-1]], outputs=[s])
        return s

    return run


# ---- rnn, lstm ---------------------------------------------------------------------------------------


@wp.kernel(module="unique")
def gates(Wi: Matrix32, Wh: Matrix32, b: Matrix32, h: Matrix32, x: Matrix32, out: Matrix32):
    i, j = wp.tid()
    s = b[i, 0]
    for k in range(x.shape[0]):
        s += Wi[i, k] * x[k, j]
    for k in range(h.shape[0]):
        s += Wh[i, k] * h[k, j]
    out[i, j] = s


@wp.kernel(module="unique")
def rnn_cell(g: Matrix32, h: Matrix32, s: wp.array(dtype=f32)):
    i, j = wp.tid()
    new = wp.tanh(g[i, j])
    h[i, j] = new
    wp.atomic_add(s, 0, new * new)


@wp.func
def sigmoid(v: f32):
    return f32(1.0) / (f32(1.0) + wp.exp(-v))


@wp.kernel(module="unique")
def lstm_cell(g: Matrix32, c: Matrix32, new_h: Matrix32, new_c: Matrix32, s: wp.array(dtype=f32)):
    i, j = wp.tid()
    H = c.shape[0]
    remembered = sigmoid(g[H + i, j]) * c[i, j]
    cell = remembered + sigmoid(g[i, j]) * wp.tanh(g[2 * H + i, j])
    h = sigmoid(g[3 * H + i, j]) * wp.tanh(cell)
    new_c[i, j] = cell
    new_h[i, j] = h
    wp.atomic_add(s, 0, h * h)


@written("arrays for each step, a thread for each entry of the state")
def rnn(Wi: Any, Wh: Any, b: Any, h: Any, x: Any) -> Run:
    s, hs, gs = scalar(f32), [h, *states(len(x), h)], states(len(x), h)

    def run() -> Any:
        s.zero_()
        for t, x_t in enumerate(x):
            wp.launch(gates, h.shape, inputs=[Wi, Wh, b, hs[t], x_t], outputs=[gs[t]])
            wp.launch(rnn_cell, h.shape, inputs=[gs[t]], outputs=[hs[t + 1], s])
        return s

    return run


@written("arrays for each step, a thread for each entry of the state")
def lstm(Wi: Any, Wh: Any, b: Any, h: Any, c: Any, x: Any) -> Run:
    s, hs, cs = scalar(f32), [h, *states(len(x), h)], [c, *states(len(x), c)]
    wide = (Wi.shape[0], h.shape[1])
    gs = [new(wide, f32) for _ in x]

    def run() -> Any:
        s.zero_()
        for t, x_t in enumerate(x):
            wp.launch(gates, wide, inputs=[Wi, Wh, b, hs[t], x_t], outputs=[gs[t]])
            after = [hs[t + 1], cs[t + 1], s]
            wp.launch(lstm_cell, h.shape, inputs=[gs[t], cs[t]], outputs=after)
        return s

    return run


# ---- as programs -------------------------------------------------------------------------------------


def program(kernel: Kernel, args: tuple[Any, ...], written: Written = written) -> Program:
    make, note = written.find(kernel.fn.__name__)
    given = tuple(_array(a, k in kernel.wrt) for k, a in enumerate(args))
    _kept.clear()
    run = make(*given)
    tape_bytes = sum(a.capacity for a in _kept)
    wanted = [given[k] for k in kernel.wrt]
    tape = wp.Tape()  # one for all calls: it knows which gradients have to be zero again

    def forward() -> Any:
        tape.reset()
        with tape:
            return run()

    def pullback(value: Any) -> None:
        tape.zero()
        tape.backward(value)

    def value_and_grad() -> Any:
        value = forward()
        tape.backward(value)
        return value, [a.grad for a in wanted]

    return Program(
        value_and_grad=value_and_grad,
        gradients=partial(_gradients, args, kernel.wrt),
        args=as_they_are(()),
        forward=forward,
        pullback=pullback,
        tape_bytes=lambda out: tape_bytes,
        note=note,
    )


def _array(a: Any, wanted: bool) -> Any:
    if isinstance(a, np.ndarray) and a.ndim == 3:  # a sequence
        return [wp.array(step) for step in a]
    if isinstance(a, np.ndarray):
        return wp.array(a, requires_grad=wanted)
    return wp.array([a], dtype=F, requires_grad=True) if wanted else a


def _gradients(args: tuple[Any, ...], wrt: tuple[int, ...], result: Any) -> Gradients:
    value, gradients = result
    found = [g.numpy().reshape(np.shape(args[k])) for g, k in zip(gradients, wrt, strict=True)]
    return float(value.numpy()[0]), found


def warm_up() -> None:
    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    wp.set_device("cpu")
    x, s = wp.ones(3, dtype=F, requires_grad=True), scalar()
    with wp.Tape() as tape:
        wp.launch(sum_squares_1d, 3, inputs=[x], outputs=[s])
    tape.backward(s)
