"""What gpu_check.py times, in Warp: kernels that write arrays of their own, and a tape of the launches."""

# (no postponed annotations: Warp reads those of a kernel)
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

wp.config.quiet = True
TILE = 256
F1 = wp.array(dtype=wp.float32)
F2 = wp.array2d(dtype=wp.float32)
F3 = wp.array3d(dtype=wp.float32)
V1 = wp.array(dtype=wp.vec2)


@wp.kernel
def _axpy(x: F1, y: F1, a: wp.float32, z: F1):
    i = wp.tid()
    z[i] = a * x[i] * x[i] + y[i]


@wp.kernel
def _heat2(u: F2, v: F2, c: wp.float32, w: F2):
    i, j = wp.tid()
    if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1:
        t = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
        w[i, j] = u[i, j] + c * t * u[i, j]
    else:
        w[i, j] = v[i, j]


@wp.kernel
def _heat3(u: F3, v: F3, c: wp.float32, w: F3):
    i, j, k = wp.tid()
    inside = i > 0 and j > 0 and k > 0
    if inside and i < u.shape[0] - 1 and j < u.shape[1] - 1 and k < u.shape[2] - 1:
        t = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
        t = t + u[i, j, k - 1] + u[i, j, k + 1] - 6.0 * u[i, j, k]
        w[i, j, k] = u[i, j, k] + c * t
    else:
        w[i, j, k] = v[i, j, k]


@wp.kernel
def _bodies(x: V1, n: int, f: V1):
    i = wp.tid()
    own = x[i]
    a = wp.vec2(0.0, 0.0)
    for j in range(n):
        d = x[j] - own
        r = wp.dot(d, d) + 0.01
        a += d / (r * wp.sqrt(r))
    f[i] = a


@wp.kernel
def _total(x: F1, y: F1):
    i = wp.tid()
    t = wp.tile_load(x, shape=TILE, offset=i * TILE)
    wp.tile_atomic_add(y, wp.tile_sum(wp.tile_map(wp.mul, t, t)), offset=0)


@wp.kernel
def _histogram(x: F1, weight: F1, bins: F1):
    i = wp.tid()
    k = wp.min(int(x[i] * float(bins.shape[0])), bins.shape[0] - 1)
    wp.atomic_add(bins, k, weight[i] * x[i])


@wp.func
def _sigmoid(v: wp.float32):
    return 1.0 / (1.0 + wp.exp(-v))


@wp.kernel
def _lstm(gates: F1, cell: F1, after: F1, hidden: F1):
    i = wp.tid()
    n = cell.shape[0]
    c = _sigmoid(gates[n + i]) * cell[i] + _sigmoid(gates[i]) * wp.tanh(gates[3 * n + i])
    after[i] = c
    hidden[i] = _sigmoid(gates[2 * n + i]) * wp.tanh(c)


KERNELS: dict[str, Any] = {
    "axpy": _axpy, "heat 2-D": _heat2, "heat 3-D": _heat3, "n-body": _bodies, "sum": _total,
    "histogram": _histogram, "lstm cell": _lstm,
}  # fmt: skip


def usable(simulated: bool) -> None:
    """ImportError where Warp sees no GPU; with the simulator, its CPU will do."""
    wp.init()
    if not simulated and not wp.is_cuda_available():
        raise ImportError(f"Warp {wp.config.version} finds no GPU")


def program(
    name: str, args: list[Any], bars: list[np.ndarray], written: tuple[int, ...]
) -> tuple[Callable[[], Any], Callable[[], None], Callable[[], dict[int, np.ndarray]]]:
    """What is timed, what waits for it, and the gradients with respect to the arrays, by position."""
    device = "cuda" if wp.is_cuda_available() else "cpu"
    vectors = name == "n-body"

    def put(x: np.ndarray, grad: bool = True) -> Any:
        kind = wp.vec2 if vectors else wp.float32
        return wp.array(x, dtype=kind, device=device, requires_grad=grad)

    arrays = [k for k, x in enumerate(args) if isinstance(x, np.ndarray)]
    seeds = {k: put(bar, False) for k, bar in zip(arrays, bars, strict=True) if k in written}
    own = {k: put(args[k]) for k in arrays}
    results = {k: put(np.zeros_like(args[k])) for k in written}
    shape = args[arrays[0]].shape
    inputs = [own.get(k, x) for k, x in enumerate(args)]
    launch: dict[str, Any] = {"dim": shape}
    if name in ("sum", "histogram"):  # adds to what is there
        inputs = [x for k, x in enumerate(inputs) if k not in written]
    elif name == "lstm cell":
        inputs, launch["dim"] = inputs[:2], args[1].shape
    elif name == "n-body":
        inputs, launch["dim"] = [inputs[0], args[2]], shape[0]
    tiled = name == "sum"
    if tiled:
        launch = {"dim": [-(-shape[0] // TILE)], "block_dim": TILE}

    last: list[Any] = []

    def run() -> None:
        for x in own.values():
            x.grad.zero_()
        if name in ("sum", "histogram"):
            for x in results.values():
                x.zero_()
        tape = wp.Tape()
        with tape:
            start = wp.launch_tiled if tiled else wp.launch
            start(
                KERNELS[name],
                inputs=inputs,
                outputs=list(results.values()),
                device=device,
                **launch,
            )
        tape.backward(grads={results[k]: seeds[k] for k in written})
        last[:] = [tape]

    def wait() -> None:
        wp.synchronize_device(device)

    def gradients() -> dict[int, np.ndarray]:
        """Of those that the kernel reads."""
        read = [k for k, x in own.items() if any(x is given for given in inputs)]
        return {k: own[k].grad.numpy().reshape(args[k].shape) for k in read}

    return run, wait, gradients
