"""Layers with a state that each call overwrites: gradients of parameters and of the initial state.

The RNN's numbers are those that Flux and Zygote document.  They were computed in float32 with h = tanh(x)
close to 1, where the derivative 1 - h * h is known to about 2 ** -24 / (1 - h), that is to 1e-4; the test
against the closed formula in float64 is as loose for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import splitad as ad
from examples.layers import GRU, LSTM, RNN
from tests.pairs import check, pair

f4 = np.float32


@njit
def loss(layer, series):
    """The sum of squares of all outputs; series: (features, batch, time)."""
    total = np.float32(0)
    for t in range(series.shape[2]):
        h = layer.step(series[:, :, t].copy())
        total += np.sum(h * h)
    return total


gradient = ad.value_and_grad(loss)


def ones() -> Any:
    """RNN 2 => 3, all weights 1, bias and state 0."""
    return RNN(np.ones((3, 2), f4), np.ones((3, 3), f4), np.zeros(3, f4), np.zeros((3, 1), f4))


ONE_STEP = np.array([[1, 2], [3, 4]], f4)[:, :, None]
FOUR_STEPS = np.arange(1, 25, dtype=f4).reshape((2, 3, 4), order="F").copy(order="C")


@pytest.mark.parametrize(
    "series, Wi, b, state",
    [
        (ONE_STEP, [0.0027779222, 0.008236016], 0.0027290469, 0.00818714),
        (FOUR_STEPS, [0.019653967, 0.03929506], 0.019641092, 0.058923274),
    ],
    ids=["one step", "four steps"],
)
def test_published_values(series: np.ndarray, Wi: list[float], b: float, state: float) -> None:
    layer = ones()
    _, bar = gradient(layer, series)
    np.testing.assert_allclose(bar.Wi, np.tile(Wi, (3, 1)), rtol=3e-4)
    np.testing.assert_allclose(bar.b, np.full(3, b), rtol=3e-4)
    np.testing.assert_allclose(bar.state, np.full((3, 1), state), rtol=3e-4)
    if series is ONE_STEP:
        np.testing.assert_array_equal(bar.Wh, np.zeros((3, 3)))  # it met a state of zeros
    for name in ("Wi", "Wh", "b", "state"):
        assert getattr(bar, name).dtype == f4
    np.testing.assert_array_equal(layer.state, np.zeros((3, 1)))  # put back


def test_one_step_in_closed_form() -> None:
    x = ONE_STEP[:, :, 0].astype(float)
    h = np.tanh(x.sum(axis=0))
    of_sum = 2 * h * (1 - h * h)
    _, bar = gradient(ones(), ONE_STEP)
    np.testing.assert_allclose(bar.Wi, np.tile(x @ of_sum, (3, 1)), rtol=3e-4)
    np.testing.assert_allclose(bar.b, np.full(3, of_sum.sum()), rtol=3e-4)


def drawn(kind: Any, seed: int = 0) -> Any:
    """A layer 2 => 3."""
    random = np.random.default_rng(seed)
    gates = {RNN: 1, LSTM: 4, GRU: 3}[kind]
    shapes = [(3 * gates, 2), (3 * gates, 3), (3 * gates,), (3, 1)]
    shapes += [(3, 1)] if kind is LSTM else []
    return kind(*(random.normal(0, 0.5, s).astype(f4) for s in shapes))


def sequence(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(2, 3, 4)).astype(f4)


@pytest.mark.parametrize("kind", [RNN, LSTM, GRU], ids=["RNN", "LSTM", "GRU"])
def test_layers(kind: Any) -> None:
    check(loss, drawn(kind), sequence())


def test_two_calls_before_either_pullback() -> None:
    forward = pair(loss)
    layer, series = drawn(RNN), sequence()
    _, first = forward(layer, series)
    _, second = forward(layer, series)  # the state goes on from where the first call left it
    layer.state[:] = np.nan

    def run_twice(layer, series):
        return loss(layer, series) + loss(layer, series)

    _, expected = ad.value_and_grad(run_twice)(drawn(RNN), series)
    zeros = second.make_zero()
    second(f4(1), *zeros)
    first(f4(1), *zeros)
    for name in ("Wi", "Wh", "b", "state"):
        got = getattr(zeros[0], name)
        np.testing.assert_allclose(got, getattr(expected, name), rtol=2e-5, atol=1e-6)
    assert zeros[0].state.shape == (3, 1)
