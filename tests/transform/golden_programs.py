"""The functions whose generated pairs are kept as text in tests/golden/pairs."""

from __future__ import annotations

import math

from tests.transform.programs import Case, State, ramp

CASES: list[Case] = []


def square(x):
    for i in range(x.size):
        x[i] = x[i] * x[i]


def loop_with_break(x, limit):
    s = 0.0
    for i in range(x.size):
        s += math.sin(x[i])
        if s > limit:
            break
    return s


def if_else(x, c):
    if x > c:
        y = x * x
    else:
        y = c / x
    return y


def three_buffers(um, u, up, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            up[i] = 2.0 * u[i] - um[i] - math.sin(u[i]) * u[i + 1]
        um, u, up = u, up, um
    return u[1]


def field_rebound(state):
    state.a, state.b = state.b, state.a
    state.s = state.s * state.a[0]
    return state.s


def undo_log(a):
    n = a.shape[0]
    for j in range(n):
        t = a[j, j]
        for k in range(j):
            t -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(t)


def rounding(x, y):
    s = 0.0
    for i in range(x.size):
        above = x[i] * x[i] - y[i] > 0.0
        if above:
            s += x[i]
    return s


CASES += [
    Case(square, lambda: (ramp(),)),
    Case(loop_with_break, lambda: (ramp(), 1.0)),
    Case(if_else, lambda: (1.0, 2.0)),
    Case(three_buffers, lambda: (ramp(), ramp(), ramp(), 3)),
    Case(field_rebound, lambda: (State(ramp(), ramp()),)),
    Case(undo_log, lambda: (ramp(9).reshape(3, 3),)),
]
