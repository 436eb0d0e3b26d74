"""A simulation loop, itself njit, that keeps the pullbacks of ten steps and calls them backwards.

Each step is differentiated alone; what happens between the steps is ordinary code. So one may keep
the pullbacks in a list, inspect the cotangent on the way back, or add to it at any step, as for the
observations made along the way here.

    python examples/split_from_njit.py
"""

import numpy as np
from numba import njit

import splitad as ad

STEPS = 10


@njit
def step(x, forcing, dt):
    """One Euler step of the Lorenz-96 model, in place."""
    n = x.shape[0]
    rate = np.empty(n)
    for i in range(n):
        rate[i] = (x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + forcing
    for i in range(n):
        x[i] += dt * rate[i]


forward = ad.split(step, ad.Duplicated, ad.Active, ad.Const)


@njit
def misfit_and_gradient(x, forcing, dt, observed):
    """0.5 * sum over k of (state after step k - observed[k])**2, and its derivatives; advances x."""
    value = 0.0
    errors = np.empty_like(observed)
    pullbacks = []
    for k in range(observed.shape[0]):
        _, pullback = forward(x, forcing, dt)
        pullbacks.append(pullback)
        errors[k] = x - observed[k]
        value += 0.5 * np.sum(errors[k] ** 2)

    x_bar = np.zeros_like(x)
    forcing_bar = 0.0
    for k in range(observed.shape[0] - 1, -1, -1):
        x_bar += errors[k]  # the state after step k was observed
        (bar,) = pullbacks[k](None, x_bar)  # x_bar: now of the state before step k
        forcing_bar += bar
    return value, x_bar, forcing_bar


def main():
    rng = np.random.default_rng(0)
    x, forcing, dt = rng.standard_normal(40), 8.0, 0.02
    observed = rng.standard_normal((STEPS, x.size))

    value, x_bar, forcing_bar = misfit_and_gradient(x.copy(), forcing, dt, observed)
    print(f"misfit {value:.6f}, its derivative in the forcing {forcing_bar:.6f}")

    # against central differences
    h = 1e-5
    direction = rng.standard_normal(x.size)

    def along(s, forcing):
        return misfit_and_gradient(x + s * direction, forcing, dt, observed)[0]

    by_state = (along(h, forcing) - along(-h, forcing)) / (2.0 * h)
    by_forcing = (along(0.0, forcing + h) - along(0.0, forcing - h)) / (2.0 * h)
    print(f"state:   pullback {x_bar @ direction:.8f}   differences {by_state:.8f}")
    print(f"forcing: pullback {forcing_bar:.8f}   differences {by_forcing:.8f}")
    np.testing.assert_allclose(x_bar @ direction, by_state, rtol=1e-6)
    np.testing.assert_allclose(forcing_bar, by_forcing, rtol=1e-6)


if __name__ == "__main__":
    main()
