"""Differentiate code that changes a struct: one field is rebound, another updated.

With x = 1, p1 = [2, 3] and p2 = 1 the derivative in x is 4 for p2 + 2*x**2 and for p2 * 2*x**2,
and 8 for the latter if p2 was 2: what counts is p2 before the call, not what the call made of it.

    python examples/mutable_struct.py
"""

import numpy as np
from numba import float64, njit
from numba.experimental import jitclass

import splitad as ad


@jitclass([("p1", float64[::1]), ("p2", float64)])
class State:
    def __init__(self, p1, p2):
        self.p1 = p1
        self.p2 = p2


@njit
def add(x, s):
    s.p1 = s.p1 + 1.0  # rebinds the field to a new array
    s.p2 = s.p2 + 2.0 * x**2
    return s.p2


@njit
def multiply(x, s):
    s.p1 = s.p1 + 1.0
    s.p2 = s.p2 * 2.0 * x**2
    return s.p2


def state(p2=1.0):
    return State(np.array([2.0, 3.0]), p2)


def derivative(f, s, activity=ad.Duplicated):
    """df/dx at x = 1, by a forward and a pullback called apart; s is changed as by f itself."""
    forward = ad.split(f, ad.Active, activity)
    _, pullback = forward(1.0, s)
    (x_bar,) = pullback(1.0, *pullback.make_zero())
    return x_bar


def main():
    for f in (add, multiply):
        print(f"{f.__name__}: dx = {derivative(f, state())}")
        print(f"{f.__name__}, struct given as Const: dx = {derivative(f, state(), ad.Const)}")

        f(1.0, state())  # an earlier call, on a struct of its own, changes nothing
        print(f"{f.__name__}, after another call: dx = {derivative(f, state())}")

    print(f"multiply, p2 = 2: dx = {derivative(multiply, state(p2=2.0))}")

    # value_and_grad puts the struct back, so it says the same each time
    s = state()
    for _ in range(2):
        value, x_bar = ad.value_and_grad(multiply)(1.0, s)
        print(f"multiply, value_and_grad: value = {value}, dx = {x_bar}, p2 = {s.p2}, p1 = {s.p1}")


if __name__ == "__main__":
    main()
