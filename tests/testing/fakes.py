"""Pairs written by hand, with the interface of split's: right ones, and ones with a known fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np


def scale_and_square(x, a):
    """x is overwritten, a is a scalar."""
    s = 0.0
    for i in range(x.size):
        x[i] = a * x[i] * x[i]
        s += x[i]
    return s


@numba.njit
def _pull(x0, a, result_bar, x_bar):
    a_bar = 0.0
    for i in range(x0.size):
        total = x_bar[i] + result_bar
        a_bar += total * x0[i] * x0[i]
        x_bar[i] = total * 2.0 * a * x0[i]
    return a_bar


class Pullback:
    def __init__(self, x0: Any, a: float, fault: str) -> None:
        self.x0, self.a, self.fault, self.calls = x0, a, fault, 0

    def make_zero(self) -> tuple[Any, ...]:
        dtype = np.float32 if self.fault == "dtype" else self.x0.dtype
        zero = np.zeros(self.x0.size, dtype)
        if self.fault == "not zero":
            zero[0] = 1.0
        return (zero,)

    def __call__(self, result_bar: Any, x_bar: Any) -> tuple[Any, ...]:
        self.calls += 1
        entry = np.zeros_like(x_bar) if self.fault == "assigns" else x_bar.copy()
        a_bar = _pull(self.x0, self.a, result_bar, entry)
        x_bar[:] = entry
        if self.fault == "writes argument":
            self.x0[0] = 3.0
        if self.fault == "differs" and self.calls % 2 == 0:
            x_bar[0] += 1e-15
        if self.fault == "small entry":
            x_bar[1] += 1e-4
        if self.fault == "scalar":
            a_bar *= 1.01
        return () if self.fault == "forgets" else (a_bar,)


_plain = numba.njit(scale_and_square)
_copy = numba.njit(lambda x: x.copy())


def make_forward(fault: str = "") -> Callable[..., Any]:
    held = []

    def forward(x: Any, a: float) -> tuple[Any, Pullback]:
        by_reference = fault in ("keeps argument", "writes argument")
        x0 = x if by_reference else _copy(x)
        if fault == "leaks":
            held.append(_copy(x))
        if fault == "shares":
            held[:] = [x0]
            x0 = held[0]
        result = _plain(x, a)
        if fault == "primal":
            result += 1e-12
        if fault == "side effect":
            x[0] += 1e-13
        return result, Pullback(x0, a, fault)

    return forward
