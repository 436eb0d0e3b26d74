"""The kernels in PyTorch: whole tensors, a new one for each update, loops in Python.

Each program is given `compiled`, through which it passes what torch.compile should see: the whole function,
or one step where the loop over the steps would be unrolled into thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.kernels import Kernel
from benchmarks.program import Gradients, Program, Written, as_they_are, folded

Compiled = Callable[[Callable[..., Any]], Callable[..., Any]]

written = Written(
    reasons={"gauss_seidel": "every entry needs its neighbours' new values: one by one, in Python"}
)


@written("whole tensors")
def rosenbrock(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def run(x):
        a = x[1:] - x[:-1] ** 2
        b = 1.0 - x[:-1]
        return torch.sum(100.0 * a * a + b * b)

    return run


@written("a new tensor each step")
def burgers(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def step(u, nu, dt, dx):
        inner = (
            u[1:-1]
            - dt / dx * u[1:-1] * (u[1:-1] - u[:-2])
            + nu * dt / (dx * dx) * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        )
        return torch.cat((u[:1], inner, u[-1:]))

    def run(u, nu, dt, dx, steps):
        for _ in range(steps):
            u = step(u, nu, dt, dx)
        return torch.sum(u * u)

    return run


@written("a new tensor each step")
def lorenz96(compiled: Compiled) -> Callable[..., Any]:
    def rhs(x, F):
        return (torch.roll(x, -1) - torch.roll(x, 2)) * torch.roll(x, 1) - x + F

    @compiled
    def step(x, F, dt):
        k1 = rhs(x, F)
        k2 = rhs(x + 0.5 * dt * k1, F)
        k3 = rhs(x + 0.5 * dt * k2, F)
        k4 = rhs(x + dt * k3, F)
        return x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    def run(x, F, dt, steps):
        for _ in range(steps):
            x = step(x, F, dt)
        return torch.sum(x * x)

    return run


@written("whole tensors, einsum")
def gmm(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def run(alphas, means, icf, x, gamma, m):
        N, d = x.shape
        K = alphas.shape[0]
        columns, rows = torch.triu_indices(d, d, 1)  # entries are stored column by column
        diagonal = torch.exp(icf[:, :d])
        lower = torch.zeros(K, d, d, dtype=x.dtype)
        lower[:, rows, columns] = icf[:, d:]
        centred = x[:, None, :] - means
        Q = diagonal * centred + torch.einsum("kba,nka->nkb", lower, centred)
        qsum = torch.sum(icf[:, :d], dim=1)
        lse = alphas + qsum - 0.5 * torch.sum(Q * Q, dim=2)
        slse = torch.sum(torch.logsumexp(lse, dim=1))
        squares = torch.sum(diagonal**2, dim=1) + torch.sum(icf[:, d:] ** 2, dim=1)
        wishart = torch.sum(0.5 * gamma * gamma * squares - m * qsum)
        return slse - N * torch.logsumexp(alphas, dim=0) + wishart

    return run


@written("all pairs as tensors")
def nbody(compiled: Compiled) -> Callable[..., Any]:
    def force(pos):
        apart = pos[:, None] - pos[None]
        r2 = torch.sum(apart * apart, dim=2)
        one = torch.eye(pos.shape[0], dtype=pos.dtype)
        inv = (1.0 - one) / (r2 + one)
        i6 = inv**3
        return torch.sum((24.0 * i6 * (2.0 * i6 - 1.0) * inv)[:, :, None] * apart, dim=1)

    @compiled
    def step(pos, vel, frc, dt):
        vel = vel + 0.5 * dt * frc
        pos = pos + dt * vel
        frc = force(pos)
        return pos, vel + 0.5 * dt * frc, frc

    def run(pos, vel, dt, steps):
        frc = force(pos)
        for _ in range(steps):
            pos, vel, frc = step(pos, vel, frc, dt)
        return torch.sum(pos * pos)

    return run


@written("the library's factorisation")
def cholesky(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def run(A):
        return 2.0 * torch.sum(torch.log(torch.diagonal(torch.linalg.cholesky(A))))

    return run


@written("a new tensor each step")
def sine_gordon(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def step(um, u, c2):
        c = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * c
        new = u.clone()
        new[1:-1, 1:-1] = 2.0 * c - um[1:-1, 1:-1] + c2 * lap - 0.01 * torch.sin(c)
        return new

    def run(u0, c2, steps):
        um = u = u0
        for _ in range(steps):
            um, u = u, step(um, u, c2)
        return torch.sum(u * u)

    return run


@written("a new state each step")
def rnn(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def step(Wi, Wh, b, h, x):
        return torch.tanh(Wi @ x + Wh @ h + b)

    def run(Wi, Wh, b, h, x):
        s = 0.0
        for x_t in x:
            h = step(Wi, Wh, b, h, x_t)
            s = s + torch.sum(h * h)
        return s

    return run


@written("a new state each step")
def lstm(compiled: Compiled) -> Callable[..., Any]:
    @compiled
    def step(Wi, Wh, b, h, c, x):
        i, f, g, o = torch.chunk(Wi @ x + Wh @ h + b, 4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def run(Wi, Wh, b, h, c, x):
        s = 0.0
        for x_t in x:
            h, c = step(Wi, Wh, b, h, c, x_t)
            s = s + torch.sum(h * h)
        return s

    return run


# ---- as programs -------------------------------------------------------------------------------------


def program(kernel: Kernel, args: tuple[Any, ...], compile: bool = False) -> Program:
    make, note = written.find(kernel.fn.__name__)
    run = make(torch.compile if compile else lambda f: f)
    given = tuple(_tensor(a, k in kernel.wrt) for k, a in enumerate(args))
    wanted = [given[k] for k in kernel.wrt]

    def value_and_grad(*args: Any) -> Any:
        value = run(*args)
        return value, torch.autograd.grad(value, wanted)

    return Program(
        value_and_grad=value_and_grad,
        gradients=partial(_gradients, kernel.fn.__name__),
        args=as_they_are(given),
        forward=run,
        # torch.compile's backward hands its buffers on, and so works once.
        pullback=lambda value: torch.autograd.grad(value, wanted, retain_graph=not compile),
        once=compile,
        tape_bytes=lambda out: None if compile else _tape_bytes(run, given),
        note=note,
    )


def _tensor(a: Any, wanted: bool) -> Any:
    if isinstance(a, np.ndarray):
        return torch.tensor(a, requires_grad=wanted)
    return torch.tensor(a, dtype=torch.float64, requires_grad=True) if wanted else a


def _gradients(name: str, result: Any) -> Gradients:
    value, gradients = result
    found = float(value.detach()), [g.numpy() for g in gradients]
    return folded(found) if name == "cholesky" else found


def _tape_bytes(run: Callable[..., Any], given: tuple[Any, ...]) -> int:
    """The memory of what the graph saves, without the arguments."""
    mine = {_storage(a)[0] for a in given if isinstance(a, torch.Tensor)}
    found = {}

    def pack(tensor: Any) -> Any:
        address, nbytes = _storage(tensor)
        if address not in mine:
            found[address] = nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        held = run(*given)
    del held  # only now, so that no address is used twice
    return sum(found.values())


def _storage(tensor: Any) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def warm_up() -> None:
    torch.set_num_threads(1)
    x = torch.ones(3, requires_grad=True)
    torch.autograd.grad(torch.sum(x * x), x)
