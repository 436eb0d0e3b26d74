"""A pair written by hand: f(x, a, s=2.0) scales x by a in place s times over ... and returns sum(x)."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
from numba import njit, types

from splitad.errors import TapeLimitError
from splitad.runtime.callables import Forward
from splitad.runtime.pairs import register_pair
from splitad.tape.ops import column, tape_grow

_numbers = itertools.count()


def f(x, a, s=2.0):
    """x becomes a*x, then the result is s * sum(x**2); ValueError where a is negative."""


@njit
def forward_impl(tape, x, a, s):
    n = x.shape[0]
    need = 8 * n + 24
    if tape[1] < need and not tape_grow(tape, 0, need):
        raise TapeLimitError("the tape would outgrow max_tape_bytes")
    c = column(tape[0], 24, np.float64)
    head = column(tape[0], 0, np.float64)
    head[0], head[1], head[2] = a, s, n
    tape[2] = need
    if a < 0.0:
        raise ValueError("a is negative")
    total = 1.0 / a * 0.0  # ZeroDivisionError
    for k in range(n):
        c[k] = x[k]
        x[k] *= a
        total += x[k] ** 2
    return s * total, (x.copy(),)


@njit
def reverse_impl(tape, refs, result_bar, x_bar):
    head, c = column(tape[0], 0, np.float64), column(tape[0], 24, np.float64)
    a, s = head[0], head[1]
    a_bar, s_bar = 0.0, 0.0
    for k in range(x_bar.shape[0]):
        y = c[k] * a
        s_bar += result_bar * y * y
        y_bar = x_bar[k] + result_bar * s * 2.0 * refs[0][k]
        a_bar += y_bar * c[k]
        x_bar[k] = y_bar * a
    return a_bar, s_bar


@njit
def zero_impl(tape, refs):
    return (np.zeros(int(column(tape[0], 0, np.float64)[2])),)


class HandMade:
    """A resolver; counts what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def forward_dispatcher(self, argtypes: tuple[types.Type, ...]) -> tuple[Any, str]:
        self.asked.append("forward " + ", ".join(map(str, argtypes)))
        return forward_impl, "; ".join(map(str, argtypes))

    def reverse_dispatcher(self, spec_key: str) -> Any:
        self.asked.append("reverse")
        return reverse_impl

    def zero_dispatcher(self, spec_key: str) -> Any:
        self.asked.append("zero")
        return zero_impl

    def plain_zeros(self, spec_key: str) -> None:
        return None

    def content(self, spec_key: str) -> None:
        return None


def make(max_tape_bytes: int | None = None, nogil: bool = False) -> tuple[Forward, HandMade]:
    resolver = HandMade()
    key = f"handmade {next(_numbers)}"
    pair = register_pair(key, resolver, inspect.signature(f), "f", max_tape_bytes)
    return Forward(pair, nogil), resolver


def expected(
    x: Any, a: float, s: float, result_bar: float, x_bar: Any
) -> tuple[Any, float, float, Any]:
    """result, a_bar, s_bar, x_bar at entry."""
    y = a * x
    y_bar = x_bar + result_bar * s * 2 * y
    return s * (y @ y), y_bar @ x, result_bar * (y @ y), y_bar * a
