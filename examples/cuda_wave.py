"""A wave on a membrane, on the GPU: the gradient with respect to its initial state and its speed.

The stepper is an ordinary kernel: it overwrites the older of two states, and the two change places between
steps.  Each launch gives a pullback; afterwards they run in reverse order, on two shadows that change places
too.  The gradient is compared with finite differences.

    python examples/cuda_wave.py [--cells 512] [--steps 300]

Without a GPU it runs in numba's simulator, at a small size, and says so.
"""

import argparse
import os
import sys

import numpy as np
from numba import cuda

if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1" and not cuda.is_available():
    # numba looks at this when it is imported
    os.execve(
        sys.executable, [sys.executable, *sys.argv], {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    )

import splitad as ad

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
DX, DT = 1.0, 0.4


@cuda.jit
def step(old, now, speed):
    """old becomes the state after now: one step of u_tt = speed**2 (u_xx + u_yy), with fixed edges."""
    i, j = cuda.grid(2)
    if i >= old.shape[0] or j >= old.shape[1]:
        return
    if i == 0 or j == 0 or i == old.shape[0] - 1 or j == old.shape[1] - 1:
        old[i, j] = 0.0
        return
    bend = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
    r = speed * DT / DX
    old[i, j] = 2.0 * now[i, j] - old[i, j] + r * r * bend


def launch(cells):
    threads = (4, 4) if SIMULATED else (8, 32)
    return tuple(-(-cells // t) for t in threads), threads


def final(first, speed, steps):
    """The state of a membrane that starts at rest."""
    old, now = cuda.to_device(first), cuda.to_device(first)
    for _ in range(steps):
        step[launch(len(first))](old, now, speed)
        old, now = now, old
    return now.copy_to_host()


def misfit(first, speed, steps, observed):
    return 0.5 * np.sum((final(first, speed, steps) - observed) ** 2)


def misfit_and_gradient(first, speed, steps, observed):
    """The misfit, and its gradients with respect to the initial state and the speed."""
    forward = ad.cuda.split(step)
    old, now = cuda.to_device(first), cuda.to_device(first)
    pullbacks = []
    for _ in range(steps):
        pullbacks.append(forward[launch(len(first))](old, now, speed))
        old, now = now, old
    residual = now.copy_to_host() - observed

    now_bar, old_bar, speed_bar = cuda.to_device(residual), ad.make_zero(old), 0.0
    for pullback in reversed(pullbacks):
        old_bar, now_bar = now_bar, old_bar
        (part,) = pullback(old_bar, now_bar)
        speed_bar += part
    first_bar = old_bar.copy_to_host() + now_bar.copy_to_host()  # both states began as `first`
    return 0.5 * np.sum(residual**2), first_bar, speed_bar, sum(p.tape_nbytes for p in pullbacks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=8 if SIMULATED else 512)
    parser.add_argument("--steps", type=int, default=5 if SIMULATED else 300)
    given = parser.parse_args()
    if SIMULATED:
        print("no GPU that numba can use: this runs in numba's simulator, at a small size")

    x = np.linspace(-3.0, 3.0, given.cells)
    first = np.exp(-4.0 * (x[:, None] ** 2 + (x[None, :] - 0.5) ** 2))
    observed = final(np.roll(first, 1, 0), 1.1, given.steps)
    value, first_bar, speed_bar, nbytes = misfit_and_gradient(first, 1.0, given.steps, observed)
    print(f"{given.cells} x {given.cells} cells, {given.steps} steps, a tape of {nbytes} bytes")
    print(f"misfit {value:.6f}")

    h = 1e-5
    numeric = [misfit(first, 1.0 + s * h, given.steps, observed) for s in (1, -1)]
    print(f"with respect to the speed:     {speed_bar:.6f}")
    print(f"by finite differences:         {(numeric[0] - numeric[1]) / (2 * h):.6f}")
    way = np.random.default_rng(0).standard_normal(first.shape)
    numeric = [misfit(first + s * h * way, 1.0, given.steps, observed) for s in (1, -1)]
    print(f"with respect to the state:     {np.sum(first_bar * way):.6f}")
    print(f"by finite differences:         {(numeric[0] - numeric[1]) / (2 * h):.6f}")


if __name__ == "__main__":
    main()
