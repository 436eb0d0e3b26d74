"""Recurrent layers with a state, as one writes them in Numba: each call overwrites `state`.

    layer = LSTM(random, inputs=1, size=16)
    y = layer.step(x)          x: (inputs, batch), y: (size, batch)

Parameters, state and results have one dtype, float32.  The state starts as one column, which is broadcast
over the batch; the first call rebinds it to an array with a column for each sample.  Weights are drawn as
Glorot and Bengio (2010) propose, from the uniform distribution on +-sqrt(6 / (rows + columns)).
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit
from numba.experimental import jitclass

matrix, vector = float32[:, ::1], float32[::1]


@njit
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@jitclass([("Wi", matrix), ("Wh", matrix), ("b", vector), ("state", matrix)])
class RNN:
    """h = tanh(Wi x + Wh h + b)"""

    def __init__(self, Wi, Wh, b, state):
        self.Wi, self.Wh, self.b, self.state = Wi, Wh, b, state

    def step(self, x):
        self.state = np.tanh(self.Wi @ x + self.Wh @ self.state + self.b.reshape((-1, 1)))
        return self.state


@jitclass([("Wi", matrix), ("Wh", matrix), ("b", vector), ("state", matrix), ("cell", matrix)])
class LSTM:
    """Gates i, f, g, o in the rows of Wi, Wh and b (Hochreiter and Schmidhuber 1997, with forget gates)."""

    def __init__(self, Wi, Wh, b, state, cell):
        self.Wi, self.Wh, self.b, self.state, self.cell = Wi, Wh, b, state, cell

    def step(self, x):
        n = self.state.shape[0]
        gates = self.Wi @ x + self.Wh @ self.state + self.b.reshape((-1, 1))
        entry, forget = sigmoid(gates[:n]), sigmoid(gates[n : 2 * n])
        new, out = np.tanh(gates[2 * n : 3 * n]), sigmoid(gates[3 * n :])
        self.cell = forget * self.cell + entry * new
        self.state = out * np.tanh(self.cell)
        return self.state


@jitclass([("Wi", matrix), ("Wh", matrix), ("b", vector), ("state", matrix)])
class GRU:
    """Gates r, z and the candidate in the rows of Wi, Wh and b (Cho et al. 2014)."""

    def __init__(self, Wi, Wh, b, state):
        self.Wi, self.Wh, self.b, self.state = Wi, Wh, b, state

    def step(self, x):
        n = self.state.shape[0]
        from_x = self.Wi @ x + self.b.reshape((-1, 1))
        from_h = self.Wh @ self.state
        reset = sigmoid(from_x[:n] + from_h[:n])
        update = sigmoid(from_x[n : 2 * n] + from_h[n : 2 * n])
        candidate = np.tanh(from_x[2 * n :] + reset * from_h[2 * n :])
        self.state = (1 - update) * candidate + update * self.state
        return self.state
