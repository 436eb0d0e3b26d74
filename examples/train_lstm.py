"""Train an LSTM, a layer whose state each call overwrites, to continue a noisy sine.

The layer is the jitclass in layers.py, as one writes it in Numba.  The gradient of the squared error of its
one-step forecasts, in all parameters, goes to scipy's L-BFGS-B.

    python examples/train_lstm.py [--iterations 100] [--output FILE.png]
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from layers import LSTM
from numba import njit
from scipy.optimize import minimize
from tqdm import tqdm

import splitad as ad

SIZE, BATCH, LENGTH, AHEAD = 16, 8, 60, 60
PERIOD, NOISE = 20.0, 0.1


@njit
def misfit(lstm, out, shift, series):
    """The mean squared error of forecasts one step ahead; series: (1, batch, time)."""
    total = np.float32(0.0)
    for t in range(series.shape[2] - 1):
        hidden = lstm.step(series[:, :, t].copy())
        error = out @ hidden + shift - series[:, :, t + 1]
        total += np.sum(error * error)
    return total / np.float32(series[:, :, 1:].size)


@njit
def forecast(lstm, out, shift, start, ahead):
    """Feeds a series, then its own forecasts."""
    x = start[:, :, :1].copy().reshape((1, 1))
    made = np.empty(start.shape[2] + ahead, np.float32)
    for t in range(made.size):
        if t < start.shape[2]:
            x[0, 0] = start[0, 0, t]
        x = out @ lstm.step(x) + shift
        made[t] = x[0, 0]
    return made


def shapes():
    return [(4 * SIZE, 1), (4 * SIZE, SIZE), (4 * SIZE,), (1, SIZE), (1, 1)]


def model(z):
    """The layer and the readout that a vector of parameters stands for."""
    ends = np.cumsum([np.prod(shape) for shape in shapes()])
    parts = np.split(z.astype(np.float32), ends[:-1])
    wi, wh, b, out, shift = (part.reshape(s) for part, s in zip(parts, shapes(), strict=True))
    rest = np.zeros((SIZE, 1), np.float32)
    return LSTM(wi, wh, b, rest, rest.copy()), out, shift


def first_guess(random):
    """Glorot and Bengio (2010): uniform on +-sqrt(6 / (rows + columns)); the forget gates start open."""
    wi, wh, _, out, _ = (
        random.uniform(-1, 1, s) * np.sqrt(6 / sum(s)) if len(s) == 2 else None for s in shapes()
    )
    b = np.zeros(4 * SIZE)
    b[SIZE : 2 * SIZE] = 1.0
    return np.concatenate([wi.ravel(), wh.ravel(), b, out.ravel(), [0.0]])


def train(series, z, iterations):
    """The parameters found, and the misfit after each iteration."""
    misfit_and_gradient = ad.value_and_grad(misfit, wrt=("lstm", "out", "shift"))

    def objective(z):
        value, (lstm_bar, out_bar, shift_bar) = misfit_and_gradient(*model(z), series)
        bars = (lstm_bar.Wi, lstm_bar.Wh, lstm_bar.b, out_bar, shift_bar)
        return float(value), np.concatenate([bar.ravel() for bar in bars]).astype(float)

    history = [objective(z)[0]]
    with tqdm(total=iterations, desc="L-BFGS-B", unit="it") as bar:

        def report(intermediate_result):
            history.append(intermediate_result.fun)
            bar.set_postfix(misfit=f"{history[-1]:.4f}", refresh=False)
            bar.update()

        found = minimize(
            objective,
            z,
            jac=True,
            method="L-BFGS-B",
            callback=report,
            options={"maxiter": iterations, "maxcor": 20},
        )
    return found.x, history


def draw(history, truth, start, made, path):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1, 2))
    left.semilogy(history)
    left.axhline(NOISE**2, color="grey", linestyle=":", label="variance of the noise")
    left.set(xlabel="iteration", ylabel="mean squared error")
    left.legend()
    right.plot(truth, color="grey", label="without noise")
    right.plot(np.arange(len(start)), start, "k.", markersize=3, label="what the LSTM was shown")
    steps = np.arange(1, len(made) + 1)
    right.plot(steps[: len(start)], made[: len(start)], label="forecast, one step ahead")
    right.plot(steps[len(start) - 1 :], made[len(start) - 1 :], label="forecast from its forecasts")
    right.set(xlabel="step", ylim=(-1.75, 1.25))
    right.legend(loc="lower center", ncols=2)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".png"))
    options = parser.parse_args()

    random = np.random.default_rng(1)
    angle = 2 * np.pi / PERIOD * np.arange(LENGTH)
    phases = random.uniform(0, 2 * np.pi, BATCH + 1)
    truth = np.sin(angle + phases[:, None])
    series = (truth + NOISE * random.normal(size=truth.shape)).astype(np.float32)[None]

    z, history = train(series[:, :-1].copy(), first_guess(random), options.iterations)
    start = series[:, -1:].copy()  # this one it has not seen
    made = forecast(*model(z), start, AHEAD)
    going_on = np.sin(2 * np.pi / PERIOD * np.arange(LENGTH + AHEAD) + phases[-1])
    error = np.sqrt(np.mean((made[LENGTH - 1 : -1] - going_on[LENGTH:]) ** 2))
    print(f"misfit: {history[0]:.4f} at first, {history[-1]:.4f} after training")
    print(f"root mean square error of {AHEAD} forecasts, each from the last: {error:.3f}")
    draw(history, going_on, series[0, -1], made, options.output)
    print(f"picture: {options.output}")


if __name__ == "__main__":
    main()
