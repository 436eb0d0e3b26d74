"""A whole random program, as the text of a module: `f`, `make_args()`, and the positions that are CONST."""

from __future__ import annotations

import random

from tests.fuzz.scope import Name, Scope
from tests.fuzz.statements import result, statements

SIZE = 4  # of the one-dimensional arguments
ROWS, COLUMNS = 3, 4

PRELUDE = """
import math

import numpy as np
from numba import njit


@njit
def h_mix(a, b):
    return 0.5 * math.sin(a * b) + 0.4 * b


@njit
def h_branch(a, b):
    if a > b:
        return a * math.cos(b)
    c = b
    for _ in range(3):
        c = 0.7 * c + 0.2 * a
        if c > 0.8:
            return c
    return c * b / (1.0 + b * b)


@njit
def h_power(a, b):
    return (1.5 + math.sin(a)) ** (0.5 * math.cos(b))


@njit
def h_sum(x):
    s = 0.0
    for i in range(x.size):
        s = 0.8 * s + math.sin(x[i])
    return s


@njit
def h_sum2(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.5 * s + x[i, j] * 0.5
    return s


@njit
def h_fill(x, a):
    for i in range(x.size):
        x[i] = 0.6 * x[i] * math.cos(a) + 0.3 * x[-1 - i]


@njit
def h_same(x, a):
    x[0] = math.sin(x[0] + a)
    return x


@njit
def h_tail(x):
    return x[1:]


@njit
def h_pair(x, y, a):
    x[0] = y[0] * a
    return y, x


@njit
def h_deep(a, n):
    if n <= 0:
        return math.cos(a)
    return 0.7 * h_deep(a + 0.3 * n, n - 1) + 0.2 * a


@njit
def h_new(x, a):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = math.tanh(x[i] * a)
    return y
"""

STRUCT = """
from numba import float64
from numba.experimental import jitclass


@jitclass([("h", float64[::1]), ("c", float64)])
class State:
    def __init__(self, h, c):
        self.h = h
        self.c = c

    def step(self, v):
        self.h = 0.6 * self.h * self.c + v
        self.c = math.sin(self.c + self.h[0])
        return self.h[1] * self.c
"""


def program(seed: int) -> str:
    """The module's text; the same seed gives the same text."""
    rng = random.Random(seed)
    s = Scope(rng, budget=rng.randrange(6, 26))
    s.result = s.pick(["f", "f", "f", "f", "tuple", "array", "none"])
    arguments, makers, const, set_up = _arguments(s)
    statements(s, 10)
    while s.budget > 0:
        statements(s, 4)
    s.emit(f"return {result(s)}")
    struct = STRUCT if s.names("s") else ""
    return "\n".join(
        [
            f'"""Random program {seed}."""',
            "# ruff: noqa",
            PRELUDE + struct,
            "",
            f"def f({', '.join(arguments)}):",
            *s.lines,
            "",
            "",
            "def make_args():",
            f"    rng = np.random.default_rng({seed % 1000})",
            *[f"    {line}" for line in set_up],
            f"    return ({', '.join(makers)},)",
            "",
            "",
            f"CONST = {const!r}",
            "",
        ]
    )


def _arguments(s: Scope) -> tuple[list[str], list[str], tuple[int, ...], list[str]]:
    """Parameters of f, expressions that make them, the Const ones, and lines before these."""
    names: list[Name] = []
    makers: list[str] = []
    lines = [
        f"x = rng.uniform(-1.2, 1.2, {SIZE})",
        f"m = rng.uniform(-1.2, 1.2, ({ROWS}, {COLUMNS}))",
    ]

    def add(name: Name, maker: str) -> None:
        names.append(name)
        makers.append(maker)
        s.define(name)

    add(Name("x", "a", (SIZE,)), "x")
    if s.chance(0.6):
        add(Name("a", "f"), "rng.uniform(-1.2, 1.2)")
    if s.chance(0.6):
        fresh = f"rng.uniform(-1.2, 1.2, {SIZE})"
        kind = s.rng.randrange(12)
        if kind == 0:
            add(Name("y", "a", (SIZE,)), "x")
        elif kind == 1:
            add(Name("y", "a", (SIZE - 1,)), "x[1:]")
        elif kind == 2:
            add(Name("y", "a", (SIZE,), contiguous=False), "x[::-1]")
        elif kind == 3:
            add(Name("y", "a", (COLUMNS,)), "m[1]")
        else:
            add(Name("y", "a", (SIZE,)), fresh)
    if s.chance(0.5):
        kind = s.rng.randrange(4)
        if kind == 0:
            add(Name("m", "a", (COLUMNS, ROWS), contiguous=False), "m.T")
        else:
            add(Name("m", "a", (ROWS, COLUMNS)), "m")
    if s.chance(0.3):
        add(Name("n", "i"), str(s.rng.randrange(4)))
    if s.chance(0.2):
        add(Name("p", "t"), "(rng.uniform(-1.2, 1.2), 0.7)")
    if s.chance(0.25):
        held = "x" if s.chance(0.15) else f"rng.uniform(-1.2, 1.2, {SIZE})"
        add(Name("s", "s", (SIZE,)), f"State({held}, 0.8)")
    arrays = [k for k, name in enumerate(names) if name.kind == "a"]
    const = (s.pick(arrays),) if len(arrays) > 1 and s.chance(0.2) else ()
    return [name.text for name in names], makers, const, lines
