"""More faults of the kinds in handout_cases: each function is checked whole, some have a known gradient.

VARIATIONS holds (function, arguments, options) where options are those of `check_vjp`, and `gradient`: what
the pullback must return (Active arguments) or leave in shadows (the others) for result_bar 1 and zero
shadows, by position, where that is easily worked out by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import float64, njit
from numba.experimental import jitclass


@dataclass(frozen=True)
class Variation:
    fn: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    gradient: dict[int, Any] = field(default_factory=dict)
    const: tuple[int, ...] = ()
    jit: dict[str, Any] = field(default_factory=dict)
    id: str = ""

    @property
    def name(self) -> str:
        return self.id or self.fn.__name__


VARIATIONS: list[Variation] = []


def case(*builders: Callable[[], tuple[Any, ...]], gradients: Any = (), **options: Any) -> Any:
    """Registers a function once for each builder of arguments."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for number, args in enumerate(builders):
            name = fn.__name__ if len(builders) == 1 else f"{fn.__name__}-{number}"
            gradient = gradients[number] if number < len(gradients) else {}
            VARIATIONS.append(Variation(fn, args, gradient, id=name, **options))
        return fn

    return register


def A(*v: float) -> np.ndarray:
    return np.array(v, np.float64)


def X() -> np.ndarray:
    return A(0.7, -1.3, 0.4, 1.9, -0.2)


def M() -> np.ndarray:
    return np.sin(np.arange(12.0)).reshape(3, 4)


# ---- read, modify, write ------------------------------------------------------------------------


@case(lambda: (X(),), gradients=[{0: 16 * X() ** 15}])
def square_in_place_again_and_again(x):
    for _ in range(4):
        for i in range(x.size):
            x[i] *= x[i]
    return x.sum()


@case(lambda: (X(), 1.3))
def recurrence_in_place(x, a):
    for i in range(1, x.size):
        x[i] = a * x[i - 1] * x[i] + math.sin(x[i])


@case(lambda: (X(),))
def backwards_sweep(x):
    for i in range(x.size - 2, -1, -1):
        x[i] = x[i] * x[i + 1] + x[i + 1]
    return x[0]


@case(lambda: (X(),))
def same_element_three_times(x):
    x[0] = x[0] * x[1]
    x[0] = x[0] * x[0]
    x[1] = x[0] + x[1] * x[0]
    x[0] = 2.0
    return x[1] * x[0]


@case(lambda: (A(2.0, 3.0),), gradients=[{0: A(3.0, 2.0)}])
def swap_elements(x):
    x[0], x[1] = x[1], x[0]
    return x[0] * x[1]


@case(lambda: (X(),))
def reverse_in_place(x):
    i = 0
    j = x.size - 1
    while i < j:
        x[i], x[j] = x[j] * x[j], x[i]
        i += 1
        j -= 1


@case(lambda: (X(), 0.3))
def accumulate_in_element(x, a):
    for k in range(6):
        x[k % 2] += a * x[k % x.size] * x[(k + 1) % x.size]
    return x[0] - x[1]


# ---- overwritten inputs, workspaces, non-zero shadows (the checker's are) ------------------------------


@case(lambda: (X(), np.full(5, np.nan)), const=(1,))
def workspace_is_const(x, w):
    for i in range(x.size):
        w[i] = math.exp(-x[i] * x[i])
    s = 0.0
    for i in range(x.size):
        s += w[i] * x[i]
    return s


@case(lambda: (X(), np.zeros(5), 3), const=(1,))
def workspace_used_over_and_over(x, w, n):
    s = 0.0
    for k in range(n):
        for i in range(x.size):
            w[i] = x[i] * x[i] + k * w[i]
        for i in range(x.size):
            x[i] = math.sin(w[i])
            s += x[i]
    return s


@case(lambda: (X(), A(1.0, 2.0, 3.0, 4.0, 5.0)), const=(1,))
def const_data_that_is_overwritten_with_active(x, c):
    s = 0.0
    for i in range(x.size):
        s += c[i] * x[i]
        c[i] = x[i]
    for i in range(x.size):
        s += c[i] * c[i]
    return s


@case(lambda: (X(), A(1.0, 0.5)))
def input_set_to_zero(x, y):
    y[0] = x[0] * y[0] * y[1]
    x[:] = 0.0
    x[1] = y[0]


@case(lambda: (X(), np.zeros(5), np.zeros(5)), const=(1, 2))
def two_workspaces_swapped(x, a, b):
    for i in range(x.size):
        a[i] = x[i]
    for _ in range(3):
        for i in range(1, x.size):
            b[i] = a[i] * a[i - 1]
        a, b = b, a
    return a.sum() + 2.0 * b.sum()


# ---- overlapping arguments ----------------------------------------------------------------------


def _twice() -> tuple[Any, ...]:
    x = X()
    return x, x


def _view_and_base() -> tuple[Any, ...]:
    x = X()
    return x, x[1:4]


def _interleaved() -> tuple[Any, ...]:
    x = np.cos(np.arange(10.0))
    return x[::2], x[1::2]


@case(_twice, _view_and_base, _interleaved)
def write_through_one_read_through_other(a, b):
    s = 0.0
    for i in range(b.size):
        a[i] = a[i] * b[i] + 0.5
        s += b[i] * b[i]
    return s


@case(_twice, _view_and_base)
def read_both(a, b):
    s = 0.0
    for i in range(b.size):
        s += a[i] * math.sin(b[i])
    return s


@case(_twice, _view_and_base)
def write_both(a, b):
    for i in range(b.size):
        a[i] = math.sin(b[i])
        b[i] = b[i] * a[i]


def _rows() -> tuple[Any, ...]:
    m = M()
    return m, m[1], m[:, 2]


@case(_rows)
def matrix_its_row_and_its_column(m, row, column):
    for i in range(row.size):
        row[i] = row[i] * m[1, i] + m[0, i]
    for i in range(column.size):
        column[i] *= 1.0 + m[i, 0]
    return m[1, 2] * row[0]


# ---- structs ------------------------------------------------------------------------------------


@jitclass([("h", float64[::1]), ("w", float64[:, ::1]), ("scale", float64)])
class Layer:
    def __init__(self, h, w, scale):
        self.h = h
        self.w = w
        self.scale = scale

    def step(self, x):
        new = np.empty_like(self.h)
        for i in range(new.size):
            s = x * self.scale
            for j in range(self.h.size):
                s += self.w[i, j] * self.h[j]
            new[i] = math.tanh(s)
        self.h = new
        self.scale = self.scale * 0.9
        return new[0]


def _layer() -> Layer:
    return Layer(A(0.3, -0.5, 0.1), 0.5 * np.cos(np.arange(9.0)).reshape(3, 3), 1.2)


@case(lambda: (_layer(), 0.7))
def stateful_layer_called_twice(layer, x):
    a = layer.step(x)
    b = layer.step(x * a)
    return a + b


@case(*[lambda n=n: (_layer(), A(0.5, -0.2, 0.9)[:n]) for n in (0, 1, 3)])
def stateful_layer_over_a_sequence(layer, xs):
    s = 0.0
    for k in range(xs.size):
        s += layer.step(xs[k]) * (k + 1.0)
    return s


@case(*[lambda n=n: (_layer(), n) for n in (0, 1, 3)])
def field_rebound_in_loop(layer, n):
    for _ in range(n):
        layer.h = layer.h * layer.h + 1.0
    return layer.h.sum() * layer.scale


@case(lambda: (_layer(), 2.5), lambda: (_layer(), 0.1))
def field_rebound_on_one_branch(layer, x):
    if x > 1.0:
        layer.h = layer.h * x
    else:
        layer.h[0] = x * x
    return (layer.h * layer.h).sum()


@case(lambda: (_layer(),))
def field_updated_in_place_and_rebound(layer):
    h = layer.h
    layer.h = h + 1.0
    h[0] = h[0] * h[1]
    layer.h[1] = layer.h[1] * h[0]
    return h.sum() + layer.h[1]


@case(lambda: (_layer(), 4))
def scalar_field_in_loop(layer, n):
    for k in range(n):
        layer.scale = layer.scale * layer.scale * 0.7 + layer.h[0]
        layer.h[0] += layer.scale
    return layer.scale


# ---- control flow -------------------------------------------------------------------------------


@case(*[lambda c=c: (X(), c) for c in (0.1, 2.0, 100.0)])
def break_depends_on_data(x, cap):
    s = 0.0
    for i in range(x.size):
        if x[i] < -1.0:
            continue
        s += x[i] * x[i]
        if s > cap:
            x[i] = s
            break
        x[i] = math.sin(s)
    else:
        s *= 3.0
    return s


@case(*[lambda c=c: (M(), c) for c in (0.5, 1.5, 99.0)])
def return_from_nested_loops(m, cap):
    s = 0.0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            s += m[i, j] * m[i, j]
            if s > cap:
                return s * m[i, j]
            m[i, j] = s
    return -s


@case(lambda: (M(),))
def triangular_ranges(m):
    s = 0.0
    for i in range(m.shape[0]):
        for j in range(i, m.shape[1]):
            for k in range(j, i, -1):
                s += m[i, j] * m[i, k - 1]
                m[i, j] = math.cos(s)
    return s


@case(lambda: (3.7,), lambda: (0.2,), gradients=[{0: 0.5**3}, {0: 1.0}])
def while_with_data_dependent_trips(x):
    while x > 0.5:
        x *= 0.5
    return x


@case(lambda: (2.0, 5.0))
def newton_until_converged(x, a):
    n = 0
    while abs(x * x - a) > 1e-13 and n < 50:
        x = 0.5 * (x + a / x)
        n += 1
    return x


@case(lambda: (X(),))
def nested_while_with_breaks(x):
    s = 0.0
    i = 0
    while True:
        if i >= x.size:
            break
        t = x[i]
        while t * t < 30.0:
            t = t * 1.7 + 0.3
            s += t
            if s > 40.0:
                return s * x[0]
        i += 2
        s += t
    return s


@case(*[lambda n=n: (X(), n) for n in (0, 1, 3)])
def rebinding_in_loop(u, n):
    for _ in range(n):
        u = u + 1.0
    u[0] = u[0] * u[1]
    return (u * u).sum()


@case(*[lambda n=n: (X(), n) for n in (0, 1, 3)])
def rebinding_to_product_in_loop(u, n):
    v = u
    for _ in range(n):
        v = u * v
    v[1] = 2.0 * v[1]
    return v


@case(lambda: (A(0.5, 1.5), 3))
def values_kept_across_loops(x, n):
    a = math.exp(x[0])
    b = a * x[1]
    s = 0.0
    for k in range(n):
        c = b * s
        for j in range(k + 1):
            s += math.sin(c + j * a)
            x[1] = x[1] * b
        s += c * b
    return s * a + b


@case(*[lambda x=x: (x, 1.5) for x in (-2.0, 0.5, 3.0)])
def branches_that_define_different_things(x, y):
    if x < 0.0:
        a = x * y
    elif x < 1.0:
        a = x
        y = y * a
    else:
        a = y
    b = a if a > y else y * y
    return a * b + y


@case(lambda: (X(), 1), lambda: (X(), 0))
def conditional_picks_an_array(x, k):
    y = x * 2.0
    z = x if k else y
    for i in range(z.size):
        z[i] = z[i] * z[i]
    return x.sum() + 3.0 * y.sum()


# ---- guarded singularities ----------------------------------------------------------------------


@case(lambda: (A(-0.5, 4.0, -1.0, 0.25),))
def guarded_sqrt_log_div_pow(x):
    s = 0.0
    for i in range(x.size):
        if x[i] > 0.0:
            s += math.sqrt(x[i]) + math.log(x[i]) + 1.0 / x[i] + x[i] ** 1.7
        else:
            s += x[i]
    return s


@case(lambda: (A(0.0, 2.0, -3.0),), gradients=[{0: A(0.0, 1 / 2.0, 0.0)}])
def where_does_not_select_infinity_or_nan(x):
    return np.where(x > 0.5, np.log(x), 0.0).sum()


@case(lambda: (A(0.0, 0.0),), gradients=[{0: A(0.0, 0.0)}])
def norm_that_is_not_taken(x):
    s = x[0] * x[0] + x[1] * x[1]
    return math.sqrt(s) if s > 0.0 else s


@case(lambda: (A(0.0, 3.0), 2), gradients=[{0: A(0.0, 6.0)}])
def integer_powers_at_zero(x, n):
    return x[0] ** n + x[1] ** n


# ---- indices, views, broadcasting ---------------------------------------------------------------


@case(lambda: (X(), np.array([0, 3, 0, 0, -1]), A(1.0, 2.0, 3.0, 4.0, 5.0)))
def scatter_with_repeated_indices(x, index, w):
    y = np.zeros(x.size)
    for k in range(index.size):
        y[index[k]] += w[k] * x[index[k]]
        x[index[k]] = y[index[k]] * w[k]
    return (y * y).sum()


@case(lambda: (X(), np.array([0, 2, 0, 1])))
def gather_then_write(x, index):
    y = x[index]
    x[:] = 1.0
    y[0] = y[0] * y[2]
    return (y * y).sum()


@case(lambda: (X(),))
def shifted_slices_run_in_order(x):
    x[1:] += x[:-1] * 0.5
    x[:-1] *= x[1:]


@case(lambda: (X(),))
def views_of_views(x):
    v = x[1:]
    w = v[::-2]
    w[0] = w[0] * v[0]
    v[1] = w[1] * x[0]
    return x[2] * w[0]


@case(lambda: (M(),))
def rows_columns_and_transposes(m):
    t = m.T
    for i in range(t.shape[0]):
        row = t[i]
        row[0] = row[1] * row[2]
        m[1, i] += row[0]
    return t[2, 1] * m[0, 3]


@case(lambda: (M(), A(0.5, -1.0, 2.0, 0.1), A(1.5, 0.2, -0.7)))
def broadcast_in_place(m, b, c):
    m *= b
    m += c.reshape(-1, 1)
    m[:, 1:] -= m[:, :-1] * 0.25
    return (m * m).sum()


@case(lambda: (M(), 0.3))
def scalar_broadcast_into_slices(m, a):
    m[1:, ::2] = a
    m[0, :] += a * a
    return m[2, 2] * m[0, 1]


@case(lambda: (M(),))
def views_with_negative_indices(m):
    v = m[-1, ::-1]
    v[-1] = v[0] * m[-2, -1]
    m[-3] = v
    return m[0, 0] * v[-2]


# ---- swapped buffers ----------------------------------------------------------------------------


@case(*[lambda n=n: (X(), n) for n in (0, 1, 2, 3)])
def argument_swapped_with_a_local(u, n):
    v = np.zeros_like(u)
    for _ in range(n):
        for i in range(1, u.size - 1):
            v[i] = u[i - 1] * u[i + 1] + 0.5 * u[i]
        u, v = v, u
    return u.sum() + 2.0 * v[1]


@case(*[lambda n=n: (X(), np.cos(X()), n) for n in (0, 1, 2, 5)])
def three_buffers_rotate(a, b, n):
    c = a * b
    for _ in range(n):
        for i in range(a.size):
            c[i] = a[i] * b[i] - 0.5 * c[i]
        a, b, c = b, c, a
    return a[0] + 2.0 * b[1] + 3.0 * c[2]


@case(*[lambda n=n: (X(), np.cos(X()), n) for n in (0, 1, 4)])
def swapped_under_a_condition(a, b, n):
    for k in range(n):
        if a[0] > b[0]:
            a, b = b, a
        a[0] = a[0] * 0.5 + b[k] * b[0]
    return a


# ---- calls, closures, aliasing inside -----------------------------------------------------------


@njit
def _scale(x, a):
    for i in range(x.size):
        x[i] *= a
    return x


@njit
def _fresh(x, a):
    return x * a


@njit
def _tail(x):
    return x[1:]


@case(lambda: (X(), 1.4))
def callee_returns_its_argument(x, a):
    y = _scale(x, a)
    y[0] = y[1] * x[0]
    return x[0] * a


@case(lambda: (X(), 1.4))
def callee_returns_fresh_or_view(x, a):
    y = _fresh(x, a)
    t = _tail(y)
    t[0] = t[0] * t[0]
    x[0] = y[1] * t[1]
    return _tail(x)


def _closure(factor: float, table: np.ndarray) -> Callable[..., Any]:
    def closure(x):
        s = 0.0
        for i in range(x.size):
            x[i] = factor * x[i] * table[i]
            s += x[i] * x[i]
        return s

    return closure


case(lambda: (X(),), gradients=[{0: 2 * 1.5**2 * X() * np.arange(5.0) ** 2}])(
    _closure(1.5, np.arange(5.0))
)


@case(lambda: (X(),))
def local_function(x):
    def inner(a, b):
        return a * b + math.sin(a)

    s = 0.0
    for i in range(1, x.size):
        s = inner(s, x[i]) + inner(x[i], x[i - 1])
    return s


@case(lambda: (X(),))
def returns_views_and_numbers(x):
    x[0] = x[0] * x[1]
    return x[1:3], x[0] * x[0], x.size


# ---- types --------------------------------------------------------------------------------------


@case(lambda: (X().astype(np.float32), np.float32(0.3)))
def single_precision(x, a):
    s = np.float32(0.0)
    for i in range(x.size):
        x[i] = np.float32(2.0) * x[i] * a
        s += math.sin(x[i]) * x[0]
    return s


@case(lambda: (X().astype(np.float32), X()))
def mixed_precision(x, y):
    for i in range(x.size):
        y[i] *= x[i]
        x[i] = y[i] * 0.5
    return (x * y).sum()


@case(lambda: (X() + 1j * np.cos(X()), 0.4 - 0.3j))
def complex_in_place(z, a):
    for i in range(1, z.size):
        z[i] = z[i] * z[i - 1] + a * np.conj(z[i])
    return z[2].real * abs(z[1])


@case(lambda: ((1.5, 0.5), (X(), 0.7)))
def tuples(p, q):
    a, b = p
    x, c = q
    x[0] = a * x[1] * c
    return b * x[0] + c * c


@case(lambda: (np.asfortranarray(M()), M()[:, ::2], M()[::-1]))
def layouts(f, s, r):
    for i in range(f.shape[0]):
        for j in range(s.shape[1]):
            f[i, j] = s[i, j] * r[i, j] + f[i, j + 1]
            s[i, j] = f[i, j] * r[i, 0]
    return f[0, 0]
