"""Recover the initial state and the viscosity of a Burgers flow from its noisy final state.

`burgers` is an ordinary time stepper that works in place; nobody wrote it with derivatives in mind.
splitad differentiates it as it stands, and scipy's L-BFGS-B does the rest.

    python examples/recover_initial_state.py [--iterations 300] [--output FILE.png]
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from numba import njit
from scipy.optimize import minimize
from tqdm import tqdm

import splitad as ad

CELLS, STEPS, DT = 128, 200, 0.005
DX = 2.0 * np.pi / CELLS
VISCOSITY, VISCOSITY_START, NOISE = 0.05, 0.15, 0.02


@njit
def burgers(u, nu, dx, dt, steps):
    """Advances u in place: upwind convection, central diffusion, periodic ends."""
    n = u.shape[0]
    new = np.empty(n)
    for _ in range(steps):
        for i in range(n):
            left, right = u[i - 1], u[(i + 1) % n]
            slope = u[i] - left if u[i] > 0.0 else right - u[i]
            diffusion = nu * (right - 2.0 * u[i] + left) / (dx * dx)
            new[i] = u[i] + dt * (diffusion - u[i] * slope / dx)
        u[:] = new


@njit
def misfit(u, nu, dx, dt, steps, observed):
    """How far the flow that starts at u ends from what was observed, plus how rough u is."""
    roughness = 0.0
    for i in range(u.shape[0]):
        curvature = u[i - 1] - 2.0 * u[i] + u[(i + 1) % u.shape[0]]
        roughness += curvature * curvature
    burgers(u, nu, dx, dt, steps)
    return 0.5 * (np.sum((u - observed) ** 2) + roughness)


def recover(observed, iterations):
    """The initial state and the viscosity that explain the observation best."""
    misfit_and_gradient = ad.value_and_grad(misfit, wrt=("u", "nu"))

    def objective(z):
        # u is advanced by the flow, and put back by value_and_grad
        value, (u_bar, nu_bar) = misfit_and_gradient(z[:-1], z[-1], DX, DT, STEPS, observed)
        return value, np.append(u_bar, nu_bar)

    start = np.append(observed, VISCOSITY_START)
    bounds = [(None, None)] * CELLS + [(0.01, 0.2)]
    with tqdm(total=iterations, desc="L-BFGS-B", unit="it") as bar:

        def report(intermediate_result):
            bar.set_postfix(misfit=f"{intermediate_result.fun:.4f}", refresh=False)
            bar.update()

        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=report,
            options={"maxiter": iterations, "maxcor": 30},
        )
    return found.x[:-1], found.x[-1]


def draw(x, truth, observed, result, path):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(x, truth, "k-", label="truth: initial state")
    axes.plot(x, observed, ".", color="tab:gray", label="start: the observed final state")
    axes.plot(x, result, "-", color="tab:red", label="result")
    axes.set_xlabel("x")
    axes.set_ylabel("u")
    axes.set_title("Initial state of a Burgers flow, from its noisy final state")
    axes.legend()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".png"))
    options = parser.parse_args()

    x = np.arange(CELLS) * DX
    truth = np.sin(x) + 0.5 * np.cos(2.0 * x)
    observed = truth.copy()
    burgers(observed, VISCOSITY, DX, DT, STEPS)
    observed += NOISE * np.random.default_rng(0).standard_normal(CELLS)

    result, viscosity = recover(observed, options.iterations)

    def error(u):
        return np.sqrt(np.mean((u - truth) ** 2))

    print(f"viscosity: truth {VISCOSITY}, start {VISCOSITY_START}, result {viscosity:.4f}")
    print(f"error of the initial state: start {error(observed):.4f}, result {error(result):.4f}")
    draw(x, truth, observed, result, options.output)
    print(f"drawn to {options.output}")


if __name__ == "__main__":
    main()
