"""Small functions for the transforms, each with one thing that is easily got wrong.

CASES are checked whole by test_pullback.py; add one with ``@case(arguments)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float64, int64
from numba.experimental import jitclass


@dataclass(frozen=True)
class Case:
    fn: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    const: tuple[int, ...] = ()  # positions of Const arguments


CASES: list[Case] = []


def case(args: Callable[[], tuple[Any, ...]], **options: Any) -> Any:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(fn, args, **options))
        return fn

    return register


def ramp(n: int = 5, by: float = 1.0) -> np.ndarray:
    return by * np.linspace(0.3, 1.4, n)


# ---- where loops start, stop and what they step by ---------------------------------------------


@case(lambda: (ramp(), np.uint64(4)))
def unsigned_trip_count(x, n):
    s = 0.0
    for i in range(n):
        s = s + x[i] * s + math.sin(x[i])
    return s


@case(lambda: (ramp(7),))
def negative_start(x):
    s = 1.0
    for i in range(-3, 4):
        s = s * math.sin(x[i + 3]) + x[i + 3] * s
    return s


@case(lambda: (ramp(7), 5))
def negative_step(x, n):
    s = 1.0
    for i in range(n, -1, -2):
        s = s * math.sin(x[i])
        x[i] = s * x[i + 1]
    return s


@case(lambda: (ramp(7), 0))
def zero_trip(x, n):
    s = x[0] * x[1]
    for i in range(n):
        t = math.sin(x[i] * s)
        for j in range(i, n, 2):
            t = t * math.cos(x[j] * t)
        s = s * t
    while s > 1e9:
        s = s * s
    return s * s


# ---- the tape: what lies on it where -----------------------------------------------------------


@case(lambda: (ramp(6),))
def push_in_one_branch(x):
    s = 1.0
    for i in range(x.size):
        if x[i] > 0.8:
            for j in range(i):
                s = s * math.sin(x[j] * s) + x[j]
            k = 0
            while s < 2.0:
                s = s * 1.5 + x[k]
                k += 1
        else:
            s = s * x[i]
        x[i] = s
    return s


@case(lambda: (ramp(5).astype(np.float32), np.arange(5) % 2 == 0, ramp(5) * (1 + 0.5j)))
def mixed_columns(x, b, z):
    s = np.float32(1.0)
    w = 1.0 + 0.2j
    n = 0
    for i in range(x.size):
        if b[i] and s < np.float32(3):
            s = s * np.float32(math.sin(x[i])) + x[i]
            n += i
        w = w * z[i] * s
        z[i] = w * w
    return w.real


@case(lambda: (ramp(0), np.zeros((0, 3))))
def empty(x, m):
    s = 0.5
    for i in range(x.size):
        s = s * math.sin(x[i])
        x[i] = s
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            s = s * m[i, j]
            m[i, j] = s
    return s * s


@case(lambda: (np.array(1.3), np.array(0.4)))
def zero_d(x, y):
    for k in range(3):
        x[()] = x[()] * math.sin(y[()])
        y[()] = x[()] * y[()]
    return x[()] * y[()]


@case(lambda: (ramp(), 3))
def while_with_snapshot(x, n):
    k = 0
    s = 1.0
    while k < n:
        y = np.zeros(5)
        for i in range(5):
            for j in range(5):
                y[i] += x[j] * x[i] * s
        if k % 2 == 0:
            for i in range(5):
                for j in range(3):
                    s += y[i] * y[j] * 0.01
        for i in range(5):
            x[i] = y[i] * 0.1
        k += 1
    return s


# ---- which array is which ----------------------------------------------------------------------


@case(lambda: (ramp(10)[::2], ramp(5), 3))
def swapped_noncontiguous(u, v, n):
    for t in range(n):
        for i in range(u.size):
            v[i] = u[i] * v[i] + math.sin(u[i])
        u, v = v, u
    return u[1] * v[0]


@case(lambda: (ramp(), ramp(5, 0.5), 3))
def swapped_then_outer_name(u, v, n):
    a = u
    for t in range(n):
        for i in range(u.size):
            v[i] = u[i] * v[i] + math.sin(a[i])
        u, v = v, u
    return u[1] * v[0]


@case(lambda: (ramp(5), 3))
def fresh_in_branch(x, n):
    a = x
    for t in range(n):
        if t % 2 == 0:
            b = np.empty(5)
            for i in range(5):
                b[i] = a[i] * a[4 - i]
        else:
            b = x
            for i in range(5):
                b[i] = a[i] * b[i]
        a = b
    return a[0]


@case(lambda: (ramp(), True))
def inactive_choice(x, c):
    if c:
        a = np.ones(5)
        for k in range(2):
            b = np.zeros(5)
            b, a = a, b
    else:
        a = x
    s = 0.0
    for i in range(5):
        s += a[i] * x[i] * a[i]
    return s


@case(
    lambda: (
        np.asfortranarray(ramp(9).reshape(3, 3)),
        np.asfortranarray(ramp(9).reshape(3, 3) * 2),
        3,
    )
)
def f_swapped(u, v, n):
    for k in range(n):
        for i in range(3):
            for j in range(3):
                u[i, j] = u[j, i] * v[i, j] + v[j, i]
        u, v = v, u
    return u[1, 2] * v[0, 1]


# ---- what memory held --------------------------------------------------------------------------


@case(lambda: (ramp(), ramp(5, 0.3)))
def load_written_in_between(x, y):
    s = 0.0
    for k in range(3):
        for i in range(x.size):
            s += x[i] * x[i]
        for i in range(x.size):
            for j in range(x.size):
                y[i] += math.sin(x[j]) * x[i]
        x[k] = s * y[k]
    return s


@case(lambda: (ramp(6),))
def undo_in_branch(a):
    s = 0.0
    for j in range(6):
        for k in range(j):
            s += a[k] * a[j] * a[k]
        if s > 1.0:
            a[j] = math.sin(s)
            for k in range(2):
                s += a[k] * a[k]
        else:
            a[j] = a[j] * s
        a[0] = s * 0.1
    return s


@case(lambda: (ramp(5), ramp(5, 0.3), 3))
def undo_two(a, b, n):
    s = 0.0
    for t in range(n):
        for i in range(5):
            for j in range(i):
                s += a[j] * b[i] * a[i]
            a[i] = a[i] * b[i] + s * 0.1
            for j in range(5):
                s += b[j] * a[i] * b[j]
            b[i] = s * 0.01
    return s


@case(lambda: (ramp(6, 3.0), ramp(6), ramp(6, 0.2)))
def ascending_undo(a, y, z):
    n = a.size
    for i in range(n - 1):
        a[i] = y[i] * y[i] * 3
        t = math.floor(a[i + 1] * 3)
        z[i] = t * y[i]
    s = 0.0
    for i in range(n):
        for j in range(n):
            s += a[i] * a[j] * z[j]
    return s


@case(lambda: (ramp(), np.array([1, 2, 0, 1, 3])))
def indirect(x, idx):
    for k in range(5):
        i = idx[k]
        idx[k] = idx[i]
        x[i] = x[idx[k]] * x[k]
    return x[0] * x[1]


@case(lambda: (ramp() * (1 + 0.3j),))
def real_views(z):
    r = z.real
    m = z.imag
    for k in range(3):
        for i in range(5):
            r[i] = r[i] * m[i] + z[i].real
            z[i] = z[i] * z[i]
            m[i] = r[i]
    return (z[0] * z[1]).imag


@case(lambda: (ramp(0), ramp(0), 7))
def gathered_empty(x, y, k):
    s = 1.0
    for i in range(y.size):
        s += x[k] * y[i] * x[k]
        y[i] = s
    return s


@case(lambda: (ramp(36).reshape(6, 6),))
def stencil_alias_rows(u):
    a = u[1]
    b = u[2]
    for t in range(2):
        for j in range(1, 5):
            b[j] = a[j - 1] * a[j + 1] + a[j]
        for j in range(1, 5):
            u[3, j] = b[j - 1] * b[j + 1] * u[4, j]
    return u[3, 3]


# ---- scalars that are carried ------------------------------------------------------------------


@case(lambda: (ramp(8), 0.9))
def early_return_nested(x, lim):
    s = 0.0
    for i in range(8):
        for j in range(i):
            s += x[j] * math.sin(s + x[i])
            if s > lim:
                return s * s
        x[i] = s
    return s


@case(lambda: (ramp(5), 3))
def swap_one_repeats(x, n):
    a, b, c = x[0] * x[1], x[1] * 2, x[2]
    for i in range(n):
        a, b, c = b, b, a * c
    return a * b + c


@case(lambda: (ramp(), ramp(5, 2.0)), const=(0,))
def const_swapped(w, x):
    a = w
    b = x
    for k in range(3):
        for i in range(5):
            a[i] = a[i] * b[i]
        a, b = b, a
    return a[0] + b[1]


# ---- names that generated code uses too --------------------------------------------------------


@case(lambda: (ramp(), ramp(5, 0.4), 1.3))
def shadow_like_names(x, d_x, d_d_x):
    s = 0.0
    for i in range(5):
        d_s = s * x[i]
        s = d_s * d_x[i] + d_d_x * x[i]
        x[i] = s
        d_x[i] = s * s
    return s * d_d_x


@case(lambda: (ramp(), 4))
def record_like_names(x, n):
    n_i = 2.0 * x[0]
    rec_i = x[1] * n_i
    k_i = 0.5 * x[2]
    s = 1.0
    tape_s = x[1]
    for i in range(0, n, 1):
        tape_s = tape_s * s
        s = s * x[i] * n_i + rec_i * k_i + tape_s
        for j in range(n - 1, -1, -1):
            k_j = s * x[j]
            n_j = 0.1 * k_j * math.sin(s)
            s = s + n_j * 0.1
    return s * n_i


# ---- structs ---------------------------------------------------------------------------------------------


@jitclass([("a", float64[::1]), ("b", float64[::1]), ("n", int64), ("s", float64)])
class State:
    def __init__(self, a, b):
        self.a = a
        self.b = b
        self.n = 0
        self.s = 0.5


@case(lambda: (State(ramp(), ramp(5, 0.2)), 4))
def fields_rebound(st, n):
    s = 0.0
    for k in range(n):
        for i in range(5):
            st.b[i] = st.b[i] * st.a[i] + 1.0
            s += st.b[i] * st.b[i]
        if k == 2:
            st.a = np.ones(5)
            st.s = s
        elif k == 1:
            st.a, st.b = st.b, st.a
        st.n += 1
    return s


@case(lambda: (State(ramp(), ramp(5, 0.2)),))
def field_becomes_zeros(st):
    for i in range(5):
        st.b[i] = st.b[i] * st.a[i]
    st.a = np.zeros(5)
