"""Programs for test_lower: control flow, scalars, tuples, structs, calls; as users write them."""

# ruff: noqa
from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange
from numba.experimental import jitclass
from numba.extending import overload, register_jitable

PROGRAMS: list[tuple[Callable[..., Any], list[Any]]] = []
WEIGHTS = np.array([0.5, 1.5, -2.0])
SCALE = 2.5
LIMITS = (1.0, 3.0)
DEBUG = False
trapezoid = getattr(np, "trapezoid", None) or np.trapz  # its name before NumPy 2
Pair = namedtuple("Pair", "left right")


def program(*cases: Any) -> Callable[[Any], Any]:
    def add(fn: Any) -> Any:
        PROGRAMS.append((fn, list(cases)))
        return fn

    return add


def xs(n: int = 6, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=n)


# ---- loops ------------------------------------------------------------------------------------------


@program((xs(), 6), (xs(), 0), (np.full(4, 3.0), 4))
def break_and_continue(x, n):
    s = 0
    for i in range(n):
        if x[i] > 2.0:
            break
        if x[i] < 0:
            continue
        s += x[i]
    return s


@program((xs(), 6), (xs(seed=3), 4), (-abs(xs()), 6))
def nested_breaks(x, n):
    count, s = 0, 0.0
    for i in range(n):
        for j in range(i, n):
            if x[j] > 1.0:
                break
            for k in range(3):
                if k == 2 and x[i] > 0:
                    break
                if k == 1:
                    continue
                s += x[i] * x[j] + k
                count += 1
            else:
                s -= 1.0
        else:
            count += 100
            continue
        s *= 0.5
    return s, count


@program((xs(), 0.5), (xs(), 50.0), (-abs(xs()), 0.5))
def return_out_of_two_loops(x, cap):
    for i in range(x.size):
        for j in range(x.size):
            if x[i] * x[j] > cap:
                return i * 10.0 + x[j]
    return -1.0


@program((xs(), 3), (xs(), 0), (xs(), 100))
def while_with_everything(x, n):
    i = 0
    s = 1.5
    while i < n and i < x.size:
        i += 1
        if i == 2:
            continue
        if x[i - 1] > 1.5:
            s = -s
            break
        if x[i - 1] < -2.0:
            return s, i
        s += x[i - 1]
    else:
        s *= 2.0
    return s, i


@program((3,), (0,), (20,))
def while_true(n):
    k = 0
    total = 0.0
    while True:
        if k >= n:
            break
        if k % 3 == 1:
            k += 2
            continue
        total += math.sqrt(k)
        k += 1
    return total


@program((5, 1), (5, 7), (0, 1))
def for_else(n, stop):
    r = 0
    for i in range(n):
        r += i
        if i == stop:
            break
    else:
        r += 1000
    for i in range(n):
        if i == stop:
            return r
    else:
        r -= 1
    return r


@program((2, 11, 3), (11, 2, -3), (3, 3, 1), (0, 5, 2), (5, 0, 2))
def ranges(a, b, c):
    s = 0
    for i in range(a, b, c):
        if s > 30:
            break
        s = 2 * s + i
    for i in range(b, a, -1):
        s += i
        i = 100
        s += i
    for i in range(1, 20, 4):
        if i > b + 10:
            break
        s += i
    return s


@program((0,), (4,))
def range_step_zero(step):
    s = 0
    for i in range(0, 10, step):
        if s > 100:
            break
        s += i
    return s


@program((1,), (3,), (6,))
def both_sides_may_go_on(n):
    s = 0
    for i in range(10):
        if i % 2 == 0:
            if i > n:
                break
            s += 1
        else:
            if i == n:
                continue
            s += 10
        s += 100
        if s > 500:
            if i == 5:
                return -s
            s -= 7
        s += 1000
    return s


@program((xs(), 3), (xs(), 0))
def loop_variable_after_loop(x, n):
    last = -1
    y = 0.0
    for i in range(n):
        last = i
        y = x[i] * 2
    return last, y


@program((xs(), 4))
def defined_in_the_loop_only(x, n):
    s = 0.0
    for i in range(n):
        if i == 0:
            first = x[i]
        else:
            s += first * x[i]
            first = s
    return s


@program((4,), (0,))
def ints_become_floats(n):
    a, b, c = 0, True, 1
    for i in range(n):
        a = a + 0.5
        b = a > 1
        c = c * 2
    return a, b, c


@program((5,))
def nested_types_widen(n):
    s = 0
    for i in range(n):
        t = 0
        for j in range(i):
            for k in range(j):
                t += 0.25 * k
            s += t
    return s


@program((xs(), xs(seed=1), 3), (xs(), xs(seed=1), 0))
def swapped_arrays(u, v, n):
    for i in range(n):
        for j in range(u.size):
            v[j] = u[j] * 0.5 + i
        u, v = v, u
    return u[0] - v[1]


@program((xs(), 3), (xs(), 0))
def rebound_array(u, n):
    for i in range(n):
        u = u * 1.5 + i
    return u


@program((xs(), True), (xs(), False))
def array_by_condition(u, flag):
    w = np.zeros(6)
    if flag:
        t = w
    else:
        t = u
    t[0] = 7.0
    return w[0] + u[0]


@program((xs(),))
def triangular(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            s = s + x[i] * x[j] * (1.0 + i)
    return s


# ---- branches and returns ---------------------------------------------------------------------------


@program((1.0,), (-1.0,), (5.0,), (0.25,))
def early_returns(x):
    if x < 0:
        return 0.0
    if x > 2:
        if x > 4:
            return x
        y = x
    else:
        y = -x
        if x < 0.5:
            return y * 3
    return y + 1


@program((1, 2.0), (-1, 2.0))
def int_or_float(n, x):
    if n > 0:
        r = n
    else:
        r = x
    return r * 2


@program((2.0,), (-2.0,))
def conditional_expressions(x):
    a = 1 if x > 0 else 2.5
    b = x > 1 and x < 3 or x == -2
    c = not b
    return a, b, c, (x if 0 < x < 5 else -x)


@program((3.0,), (-3.0,))
def raises(x):
    if x < 0:
        raise ValueError("negative", 3)
    y = math.sqrt(x)
    assert y > 1, "too small"
    return y


@program((1.0, 0.0), (1.0, 2.0), (0.0, 0.0))
def divisions(x, y):
    return x / y


@program((7, 0), (7, 2), (-7, 2))
def integer_divisions(a, b):
    return a / b, a // b, a % b


@program((7.5, 0.5), (-7.5, 2.0))
def float_divisions(a, b):
    return a // b, a % b, divmod(a, b)


@njit(error_model="numpy")
def numpy_model(x, y):
    return x / y, x / (y + 1)


PROGRAMS.append((numpy_model, [(1.0, 0.0), (1.0, 2.0)]))


@program((2.0, None), (3.0, None))
def none_given(x, y):
    if y is None:
        return x
    z = y + 1
    return x * z


@program((2.0, 5.0))
def none_not_given(x, y):
    if y is None:
        return 0.0
    if y is not None and y > 2:
        x += y
    return x


@program((2.0,))
def global_flag(x):
    if DEBUG:
        x = undefined_name(x)
    return x * SCALE + LIMITS[1] + WEIGHTS[2]


# ---- scalars ---------------------------------------------------------------------------------------------


@program((3.0, 2), (-1.5, 3))
def arithmetic(x, n):
    a = x**2 + x**n - 2**n + (-x)
    b = (n << 2) | 3 & ~n ^ 5
    c = abs(x) + abs(n) + max(x, n, 1.0) - min(n, 2, x)
    d = math.sin(x) + np.cos(x) + math.atan2(x, n) + np.arctan2(n, x)
    e = round(x) + int(x) + float(n) + pow(x, 2)
    return a, b, c, d, e


@program((np.float32(1.5), 2.5), (np.float32(-2.25), 0.5))
def single_precision(x, y):
    a = x * 2
    b = x * x + np.float32(y)
    c = x + y
    d = np.float32(2) * x
    e = math.sqrt(abs(x)) + np.float32(1)
    return a, b, c, d, e, np.sin(x)


@program((1.0 + 2.0j, 2.0), (-0.5j, 3.0))
def complex_numbers(z, x):
    w = z * x + 1j
    w = w * z.conjugate() + complex(x, 2.0)
    return w, w.real, w.imag, abs(z), z / w, z**2


@program((5, 3), (-5, 3))
def booleans(a, b):
    t = a > b
    u = t + 1
    v = t and b > 2
    w = (a > 0) == (b > 0)
    n = 0
    if a:
        n += 1
    if not b - 3:
        n += 10
    return u, v, w, n, bool(a)


@program((np.int32(5), np.int8(3)))
def small_integers(a, b):
    return a + b, a * 2, b // 2, -b


@program((2,))
def powers(n):
    x = 1.1
    return x**2, x**-1, x**0.5, 2**n, x**n, (x * 1j) ** 2


@program((0.3,))
def numpy_scalars(x):
    return (
        np.exp(x),
        np.maximum(x, 0.5),
        np.minimum(x, 1),
        np.hypot(x, 2.0),
        np.log1p(x),
        np.sign(x),
        np.floor(x),
        np.float64(3),
        np.square(x),
        np.power(x, 3),
    )


# ---- tuples ------------------------------------------------------------------------------------------------


@program(((1.0, 2.0), 3.0))
def tuples(t, x):
    a, b = t
    u = (a, b * x, x)
    c, (d, e) = 1, (a, b)
    v = u + (d,)
    s = 0.0
    for item in v:
        s += item
    return v, v[0], v[-1], len(v), s, u[1:], e + c


@program(((1.0, 2, 3.0), 1), ((0.5, 7, 1.0), 0))
def tuple_carried(t, n):
    for i in range(n):
        t = (t[0] + i, t[1] + 1, t[2])
    a, b = t[0], t[1]
    a, b = b, a
    return t, a, b


@program((Pair(1.0, 2.0),))
def namedtuples(p):
    q = Pair(p.right, p.left * 2)
    return q.left - q[1], q, p.left + q.right


@program((3,))
def tuple_by_condition(n):
    if n > 2:
        t = (1, 2.0)
    else:
        t = (2, 3.5)
    return t[0] + t[1], t == (1, 2.0), 2 in (1, n, 2), t < (n, 0.0), (1, n) >= (1, 3)


@program((np.ones((2, 3)),))
def shapes(a):
    n, m = a.shape
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += a[i, j] * (i + 1) + a[-1, j]
    return s, a.ndim, a.size, len(a), a.shape[1]


@program(((xs(), xs(seed=4)), 0.5))
def tuple_of_arrays(t, x):
    a, b = t
    a[0] = x
    s = 0.0
    for i in range(a.size):
        s += a[i] * b[i]
    return s


# ---- calls ------------------------------------------------------------------------------------------------


@njit
def square(x):
    return x * x


@njit
def with_defaults(x, scale=2.0, shift=None, *rest):
    if shift is None:
        return x * scale + len(rest)
    return x * scale + shift + len(rest)


@njit
def changes(a, i):
    a[i] += 1.0
    if a[i] > 2.0:
        return a
    return a


@njit(error_model="numpy")
def careless(x, y):
    return x / y


@njit
def first_positive(x):
    for i in range(x.size):
        if x[i] > 0:
            return i
    return -1


@register_jitable
def jitable(x, y):
    return x - 2 * y


def overloaded(x):
    return x + 1


@overload(overloaded)
def _overloaded(x):
    if isinstance(x, numba.types.Float):
        return lambda x: x * 10
    return lambda x: x + 100


@program((2.0, xs()))
def calls(x, a):
    s = square(x) + square(3) + with_defaults(x) + with_defaults(x, shift=1.0)
    s += with_defaults(x, 3.0, 4.0, 5, 6)
    b = changes(a, 1)
    b[2] = 9.0
    return s, a[2], first_positive(a), first_positive(-np.abs(a)), jitable(x, s)


@program((2.0,))
def overloads(x):
    return overloaded(x), overloaded(3)


@program((1.0, 0.0), (1.0, 2.0))
def mixed_error_models(x, y):
    a = careless(x, y)
    return a, square(a) / y


@program((2.0, 3))
def closures(x, n):
    k = x * 2

    def add(y, z=1):
        return y * k + z

    f = lambda y: add(y) - x
    return add(n), add(n, 2.5), f(1.5)


def make_closure(factor):
    def scaled(x):
        return x * factor + WEIGHTS[0]

    return scaled


PROGRAMS.append((make_closure(3.0), [(2.0,)]))


@njit
def apply(f, x):
    return f(x) + 1


@program((2.0,))
def functions_as_arguments(x):
    return apply(square, x)


@program((xs(), 4))
def call_in_loop(x, n):
    s = 0.0
    for i in range(n):
        k = first_positive(x[i:])
        if k < 0:
            break
        s += square(x[k + i])
    return s


# ---- structs ----------------------------------------------------------------------------------------------


@jitclass([("pos", numba.float64[::1]), ("mass", numba.float64), ("count", numba.int64)])
class Body:
    def __init__(self, pos, mass):
        self.pos = pos
        self.mass = mass
        self.count = 0

    def kick(self, f):
        for i in range(self.pos.size):
            self.pos[i] += f / self.mass
        self.count += 1
        return self.mass

    @property
    def heavy(self):
        return self.mass * 100

    @heavy.setter
    def heavy(self, value):
        self.mass = value / 100

    @staticmethod
    def twice(x):
        return 2 * x


def body(seed=0):
    return Body(xs(3, seed), 2.0)


@program(lambda: (body(), 3), lambda: (body(), 0))
def struct_methods(s, n):
    total = 0.0
    for i in range(n):
        total += s.kick(i * 1.0)
        s.mass = s.mass + 0.5
        if s.count > 1:
            s.pos = s.pos * 2
    s.heavy += 1
    return total + s.heavy + s.count


@program(lambda: (body(), 1.0), lambda: (body(), -1.0))
def struct_in_branches(s, x):
    if x > 0:
        s.mass = x
        p = s.pos
    else:
        p = s.pos.copy()
        s.pos = p
    p[0] = 100.0
    if x > 5:
        return x
    s.count = 7
    return s.pos[0] + s.mass


@program(lambda: (body(), body(1)))
def two_structs(a, b):
    a.pos = b.pos
    a.pos[1] = 4.0
    b.mass += a.mass
    t = a
    t.mass *= 2
    return b.pos[1] + t.mass


@program((xs(3), 3.0))
def local_struct(x, m):
    b = Body(x, m)
    s = 0.0
    for i in range(3):
        s += b.kick(1.0) + b.twice(i)
        b.mass += 1
    return s + b.mass, b.pos[0], b.count


# ---- arrays, in passing --------------------------------------------------------------------------------


@program((np.arange(12.0).reshape(3, 4), 2))
def elements_and_views(a, k):
    a[1, 2] = 5
    a[0] += 1.0
    a[:, k] = a[:, 0] * 2
    row = a[-1]
    row[1:] = 0.25
    a[k, 0] += a[0, k]
    b = a.T
    b[0, 1] = -1
    return a.sum() + row[0], a[1:, ::2]


@program((xs(),))
def array_iteration(x):
    s, t = 0.0, 0
    for v in x:
        s += v
    for i, v in enumerate(x):
        t += i
        s -= v * i
    for v, w in zip(x, x[1:]):
        s += v * w
    return s, t


@program((xs(), 3))
def in_place(x, n):
    y = x
    y += 1
    for i in range(n):
        y *= 0.5
        x[i] -= y[i]
    return y


@program((xs(),))
def printing(x):
    print("x0", x[0], 3)
    return x[0]


@njit(parallel=True)
def parallel_sum(x, out):
    s = 0.0
    for i in prange(x.size):
        s += x[i]
        out[i] = x[i] * 2
    return s


PROGRAMS.append((parallel_sum, [(xs(), np.zeros(6))]))


# ---- harder ones -------------------------------------------------------------------------------------------


@jitclass(
    [("inner", Body.class_type.instance_type), ("__hidden", numba.float64), ("n", numba.int64)]
)
class Outer:
    def __init__(self, inner, n):
        self.inner = inner
        self.__hidden = 1.5
        self.n = n

    def work(self, x):
        self.__hidden += x
        self.inner.mass += self.__hidden
        return self.inner.kick(x)

    def hidden(self):
        return self.__hidden

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.inner.pos[i]


@program(lambda: (Outer(body(), 3), 2))
def nested_structs(s, n):
    t = 0.0
    for i in range(n):
        t += s.work(i + 0.5)
    inner = s.inner
    inner.pos = inner.pos + 1.0
    s.n += 1
    return t + s.hidden() + inner.count + s.inner.pos[0]


@program((xs(3), 4))
def struct_made_in_loop(x, n):
    s = 0.0
    for i in range(n):
        b = Body(x, 1.0 + i)
        if i == 2:
            continue
        b.kick(1.0)
        s += b.mass * b.pos[0] + b.count
    return s


@njit
def advance(b, dt):
    if dt < 0:
        return -1.0
    while b.kick(dt) < 3.0 and b.count < 5:
        b.mass += 0.75
    return b.mass


@program(lambda: (body(), 0.5), lambda: (body(), -0.5))
def struct_in_callee(b, dt):
    r = advance(b, dt)
    for k in range(2):
        r += advance(b, dt * k)
        if r > 1e3:
            return r
    return r + b.count


@program(lambda: ((body(), 2.0, (xs(), 3)), 1))
def struct_in_tuple(t, n):
    b, f, (a, k) = t
    b.mass += f
    a[k] = b.mass
    return a.sum() + b.pos[n]


@program((3, xs()), (0, xs()), (7, xs()))
def changed_counter(n, x):
    s = 0.0
    for i in range(n):
        i += 2
        if i >= x.size:
            i = 0
        s += x[i] * i
    return s


@program((2, xs()), (-1, xs()))
def defined_under_a_condition(n, x):
    if n > 0:
        y = x[0]
        z = (y, n)
    for i in range(3):
        if n > 0:
            y += z[0] * i
            z = (y, i)
    if n > 0:
        return y + z[1]
    return 0.0


@njit
def no_result(a, k):
    if k > 2:
        return
    a[k] = 5.0


@njit
def pair(x):
    if x > 0:
        return x, 1
    return -x, 2


@njit
def pick(a, b, flag):
    if flag:
        return a
    for i in range(b.size):
        if b[i] > 0:
            return b[i:]
    return a[1:]


@program((xs(), xs(seed=5), 3), (xs(), -np.abs(xs()), 1))
def results_of_callees(a, b, n):
    s = 0.0
    for k in range(n + 1):
        no_result(a, k)
        x, i = pair(a[k])
        s += x * i
        c = pick(a, b, k == 2)
        c[0] += s
        s += c.sum()
    return s


@program((xs(),), (-np.abs(xs()),))
def while_with_effects(x):
    k = 0
    while pair(x[k])[1] == 1 and k + 1 < x.size:
        x[k] = x[k] - 1.0
        k += 1
    while True:
        k -= 1
        if k < 0:
            return x[0] + k


@program(((xs(), xs(seed=1), xs(seed=2)),))
def loop_over_tuple_of_arrays(arrays):
    s = 0.0
    for a in arrays:
        a *= 2
        s += a[1]
    return s


@program((np.int32(5), np.uint8(3)), (np.int32(1), np.uint8(9)))
def narrow_ranges(n, m):
    s = 0
    for i in range(n):
        s += i * 2
        if s > 15:
            break
    for j in range(m):
        s += j
    for k, v in enumerate(range(1, s, 2)):
        s += k * v
    return s


@program((np.arange(12.0).reshape(4, 3),))
def rows(a):
    s = 0.0
    for row in a:
        for v in row:
            s += v
            if v > 7:
                break
        row[0] = s
    return s


@program((2,))
def frozen_arrays(i):
    w = WEIGHTS[1:]
    s = w[0] + WEIGHTS[i] + len(WEIGHTS) + WEIGHTS.sum() + WEIGHTS.shape[0]
    for v in WEIGHTS:
        s += v
    return s, w + 1.0


@program((1.0, True, 3), (2.0, False, 0))
def flags_and_ints(x, flag, n):
    count = 0
    done = flag
    while not done and count < 10:
        count += 1
        done = x * count > 5
    ok = done and n > 0 or flag
    m = n if ok else -n
    return count, done, ok, m * x, not ok


@program((xs(), 2), (xs(), -1))
def raise_in_loop(x, n):
    s = 0.0
    for i in range(x.size):
        if n < 0 and i == 3:
            raise RuntimeError("at three")
        while s < 100:
            if x[i] > 1e9:
                raise ValueError("big")
            s += 10 + abs(x[i])
    return s


@njit
def always_raises(x):
    raise ValueError("always")


@program((1.0,), (-1.0,))
def callee_that_raises(x):
    if x < 0:
        always_raises(x)
    return x + 1


@njit
def checked_sqrt(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


@program((4.0, 9.0), (4.0, -9.0))
def exceptions_of_callees(x, y):
    r = checked_sqrt(x)
    for i in range(3):
        r += checked_sqrt(y - i)
    return r


@program((5,), (0,))
def deep_nest(n):
    total = 0
    for a in range(n):
        b = 0
        while b < n:
            b += 1
            for c in range(b):
                if c == 3:
                    break
                d = n
                while d > 0:
                    d -= 1
                    if d == c:
                        continue
                    total += a + d
                    if total > 500:
                        return total, a, b, c, d
            else:
                total += 1
    return total, 0, 0, 0, 0


@program((1.5, 2), (-1.5, 3))
def min_and_max(x, n):
    return max(x, n), min(n, x), max(n, 2), min((x, 2.0, -x)), max(-0.0, 0.0), min(x, x + 1, x - 1)


@program((2.5, 3))
def casts(x, n):
    return (
        int(x),
        float(n),
        np.float32(x),
        np.int64(x),
        bool(n),
        complex(x),
        np.complex128(n),
        numba.float32(n),
        int(True),
        np.int8(300 + n),
        np.bool_(x),
    )


@program((np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0])))
def index_arrays(a, idx):
    b = a[idx]
    b[0, 0] += 1
    mask = a[0] > 1.5
    c = a[0][mask]
    a[idx, 1] = 7
    return b.sum() + c.sum()


@program((xs(), 2))
def array_functions(x, n):
    y = np.zeros(n)
    z = np.empty_like(x)
    z[:] = np.sin(x) * 2 + np.exp(-x * x)
    y[0] = np.sum(z) + np.max(x) + np.dot(x, z) + z.mean()
    w = np.array([1.0, x[0], n])
    v = np.where(x > 0, x, -x)
    return y, w, v, np.abs(x), np.arange(n), np.linspace(0.0, 1.0, 5)


# ---- lists ---------------------------------------------------------------------------------------------------


@program((4, xs()), (0, xs()), (30, xs(40)))
def growing_lists(n, x):
    a = []
    for i in range(n):
        if x[i] > 1.0:
            continue
        a.append(x[i] * 2)
    b = a
    b.append(7.0)
    a[0] = -a[-1] + 0.5
    s = 0.0
    for v in a:
        s += v * len(b)
    return s, np.array(a), a[len(a) - 1]


@program((xs(),), (xs(12),))
def comprehensions(x):
    a = [v * 2 for v in x if v > 0]
    b = np.array([v * v + 1 for v in x])
    c = [(i, v) for i, v in enumerate(x)]
    s = 0.0
    for i, v in c:
        s += i * v
    d = [[i * j for i in range(3)][1] for j in range(4)]
    return sum(a), b, s, len(c), sum(d)


@njit
def fill(values, x, n):
    for k in range(n):
        values.append(x / (k + 1))
    return len(values)


@program((2.0, 3), (2.0, 20))
def list_in_callee(x, n):
    values = [1.0, 2.0]
    m = fill(values, x, n)
    zeros = [0.0] * n
    zeros[1] = x
    both = zeros + values
    both.extend(values)
    last = both.pop()
    while len(both) > 3:
        both.pop()
    return m, values[-1], sum(zeros), len(both), last, both[1]


@program((3, 2), (3, 5), (3, -9), (0, 0))
def list_errors(n, k):
    a = [1.5, 2.5, 3.5]
    for i in range(3 - n):
        a.pop()
    return a[k]


@program((xs(), 2), (xs(), 9), (xs(), -1))
def message_with_values(x, k):
    assert k >= 0, f"{k} is negative"
    for i in range(x.shape[0]):
        if i + k > 10:
            where = str(i)
            raise ValueError(f"at {where}: {i + k} > {10}, {k > 3}", k)
    return x[0]


# ---- what Numba implements in Python -----------------------------------------------------------------------


@program((np.abs(xs()), 0.3))
def numbas_own_implementations(x, t):
    grid = np.linspace(0.0, 1.0, 6)
    a = np.interp(t, grid, x)
    b = trapezoid(x, grid)
    c = np.diff(x).sum() + np.ptp(x)
    return a, b, c, np.flip(x)[0], np.cross(x[:3], x[3:])[1], np.roll(x, 2)[0]


@program((xs(),), (np.zeros(0),))
def mean_of_what_there_is(x):
    return x.mean()


@program((xs(),), (np.zeros(0),))
def variance_of_what_there_is(x):
    return np.var(x) + x.std()


@program((xs(),), (np.array([1.0, np.nan, 3.0]),), (np.zeros(0),))
def builtins_of_arrays(x):
    return sum(x), max(x), min(x[1:]), sum(x, 2.0)


# ---- parameters that are assigned again ------------------------------------------------------------------


@program((xs(), 3), (xs(), 0), (xs(seed=3), 6))
def array_parameter_again(x, n):
    x = x * 0.5
    for i in range(n):
        for j in range(n):
            x = x + x[j]
            if x[0] > 3.0:
                break
        else:
            x = np.where(x > 0.2, x, 0.5 * x).copy()
            continue
        if x[i] > 9.0:
            return x * 2.0
        x = x - 1.0
    return x


@program((2, 0.7, 3), (5, 2.5, 0))
def number_parameter_again(k, a, n):
    k = k * a
    for i in range(n):
        k = k * 0.5
        if k < 0.3:
            k = 1
    a = n
    a = a + k
    n = n / 2
    n += 1
    return k, a, n


@program((xs(), xs(seed=1), 0.7), (xs(), xs(seed=1), 0.2))
def tuple_of_arrays_again(x, y, a):
    t = (x, y)
    x = y * a
    for i in range(3):
        t = (t[1], t[0] * x[i])
        if t[0][i] > 1.0:
            x, y = y, x
            break
        x = t[0] + y
    u, v = t
    return u + v * x


@program((xs(), 0.2), (xs() - 3.0, 0.2))
def known_condition_and_a_return(x, a):
    """What follows a branch that is known to be taken, where the other one might leave."""
    if not DEBUG:
        x[0] = x[1] * a
    elif x[2] > 0.0:
        return 1.0
    total = 0.0
    for k in range(x.size):
        if 2 != 0:
            total += x[k]
        elif total > a:
            continue
        if 1 > 2:
            total = total * a
        elif x[k] > 5.0:
            break
        total += a
    n = 0
    while n < 5:
        n += 1
        if SCALE > 0.0:
            total += 0.25
        else:
            if total > a:
                return total
            total = 1.0
        total *= 1.5
    return total + x[0]
