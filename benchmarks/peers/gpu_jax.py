"""What gpu_check.py times, in JAX: whole arrays, as one writes them there, under jit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory too

import jax
import jax.numpy as jnp
import numpy as np


def _axpy(x: Any, y: Any, a: Any) -> Any:
    return (a * x * x + y,)


def _heat2(u: Any, v: Any, c: Any) -> Any:
    inner = u[1:-1, 1:-1]
    t = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * inner
    return (v.at[1:-1, 1:-1].set(inner + c * t * inner),)


def _heat3(u: Any, v: Any, c: Any) -> Any:
    inner = u[1:-1, 1:-1, 1:-1]
    t = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    t += u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6.0 * inner
    return (v.at[1:-1, 1:-1, 1:-1].set(inner + c * t),)


def _bodies(x: Any, f: Any, n: int) -> Any:
    @jax.checkpoint  # or all pairs would be kept
    def force(own: Any) -> Any:
        d = x - own
        r = jnp.sum(d * d, axis=1) + 0.01
        return jnp.sum(d / (r * jnp.sqrt(r))[:, None], axis=0)

    return (jax.lax.map(force, x, batch_size=min(n, 256)),)


def _total(x: Any, y: Any) -> Any:
    return (y + jnp.sum(x * x),)


def _histogram(x: Any, weight: Any, bins: Any) -> Any:
    count = bins.shape[0]
    k = jnp.minimum((x * count).astype(jnp.int32), count - 1)
    return (bins.at[k].add(weight * x),)


def _lstm(gates: Any, cell: Any, hidden: Any) -> Any:
    a, b, o, g = jnp.split(gates, 4)
    new = jax.nn.sigmoid(b) * cell + jax.nn.sigmoid(a) * jnp.tanh(g)
    return new, jax.nn.sigmoid(o) * jnp.tanh(new)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "axpy": _axpy, "heat 2-D": _heat2, "heat 3-D": _heat3, "n-body": _bodies, "sum": _total,
    "histogram": _histogram, "lstm cell": _lstm,
}  # fmt: skip


def usable(simulated: bool) -> None:
    """ImportError where JAX sees no GPU; with the simulator, its CPU will do."""
    if not simulated and jax.default_backend() != "gpu":
        raise ImportError(f"JAX {jax.__version__} finds no GPU")


def program(
    name: str, args: list[Any], bars: list[np.ndarray], written: tuple[int, ...]
) -> tuple[Callable[[], Any], Callable[[], None], Callable[[], dict[int, np.ndarray]]]:
    """What is timed, what waits for it, and the gradients with respect to the arrays, by position."""
    function = FUNCTIONS[name]
    arrays = [k for k, x in enumerate(args) if isinstance(x, np.ndarray)]
    seeds = tuple(jnp.asarray(bar) for k, bar in zip(arrays, bars, strict=True) if k in written)
    given = [jnp.asarray(args[k]) for k in arrays]

    def work(*own: Any) -> Any:
        full = list(args)
        for k, x in zip(arrays, own, strict=True):
            full[k] = x
        return function(*full)

    @jax.jit
    def both(own: Any, seeds: Any) -> Any:
        out, pull = jax.vjp(work, *own)
        return out, pull(seeds)

    last: list[Any] = []

    def run() -> None:
        last[:] = [both(given, seeds)]

    def wait() -> None:
        jax.block_until_ready(last)

    def gradients() -> dict[int, np.ndarray]:
        return {k: np.asarray(g) for k, g in zip(arrays, last[0][1], strict=True)}

    return run, wait, gradients
