"""Programs for test_normalize: every construct, with arguments that take every path.

A program is a function with a list of argument tuples in `cases`.  Arrays are copied before each run.
"""

# ruff: noqa
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

PROGRAMS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = []
FACTOR = 2.5
LIMITS = (1.0, 3.0)


def program(*cases: tuple[Any, ...]) -> Callable[[Any], Any]:
    def add(fn: Any) -> Any:
        PROGRAMS.append((fn, list(cases)))
        return fn

    return add


def xs(n: int = 5) -> Any:
    return np.linspace(-1.0, 2.0, n)


LOG: list[Any] = []


def log(tag: Any, value: Any) -> Any:
    """Records the order of evaluation."""
    LOG.append(tag)
    return value


# ---- expressions -----------------------------------------------------------------------------


@program((1.0, 2.0), (-3.0, 0.5))
def arithmetic(a, b):
    """Precedence and signs."""
    return -(a**2) + (-a) ** 2 - 2.0**-b * a / b + a // b % 3 - (-1.5) ** 2 + abs(-a)


@program((2,), (5,))
def negative_constants(n):
    return -(1**n), (-1) ** n, -1.5 * n, +n, ~n, n << 2 | 1, -0.0, (-2.0) ** 2, 2 - -3


@program((0, 1), (1, 0), (2, 3), (0, 0))
def short_circuit_values(a, b):
    return a and b, a or b, a and b or 7, not a and b, not (a or b), a or b or "none"


@program((0, 1), (1, 0), (2, 3), (0, 0))
def short_circuit_order(a, b):
    if log(1, a) and (log(2, b) or log(3, a)) and not log(4, b):
        return "yes"
    elif log(5, a) or log(6, b):
        return "maybe"
    return log(7, a) and log(8, b)


@program((0,), (1,), (2,), (3,))
def chained(x):
    return 0 < x <= 2, log(1, 0) < log(2, x) < log(3, 3) < log(4, x + 2), 1 == x != 2


@program((1.0,), (-1.0,))
def conditional(x):
    y = 1.0 if x > 0 else 2.0 if x < -2 else 3.0
    x = y if x > 0 else x
    return (log("a", x) if x > 1 else log("b", -x)) + y


@program((3,))
def walrus(n):
    x = n
    y = x + (x := 4) + x
    if (m := n * 2) > 3 and (n := m):
        y += m
    z = [x, (x := 7), x]
    i = 0
    a = [0, 0, 0]
    a[i] = (i := 2)
    return y, n, x, z, a, (i, i := 1, i), i - (i := 5)


@program((2,))
def constant_tests(n):
    if True:
        n += 1
    else:
        n += 100
    while 0:
        n += 1000
    else:
        n += 2
    while 1:
        n += 1
        if n > 9:
            break
    return n if 1 else 0, n if "" else 5, not 0 and n, False or n


@program((xs(),))
def names_and_modules(x):
    return np.linalg.norm(x), math.pi, np.sin(x), FACTOR * x[1], LIMITS[1]


# ---- assignments -----------------------------------------------------------------------------


@program((1, 2), (5, 5))
def swaps(a, b):
    a, b = b, a
    (a, b), c = (b, a + 1), a
    [a, c] = c, b
    a = b = c = a + 1
    return a, b, c


@program((xs(),))
def element_swaps(x):
    i, j = 0, 3
    x[i], x[j] = x[j], x[i]
    i, x[i] = 2, 9.0
    x[i], i = 7.0, 1
    x[i] = x[i + 1] = x[-1] * 2
    return x, i


@program((xs(),))
def augmented(x):
    i = 1
    x[i] += 2.0
    x[i + 1] *= x[i]
    x[1:3] -= x[2:4]
    x[::-1] += 1.0
    x **= 2.0
    s = 3
    s += 4
    s //= 2
    s <<= 1
    x[log(1, i)] += log(2, 3.0)
    return x, s


class Box:
    def __init__(self) -> None:
        self.v = 1.0
        self.inner = None
        self.a = np.arange(3.0)


@program((2.0,))
def attributes(t):
    s = Box()
    s.v = t
    s.v += 3.0
    s.a[1] += s.v
    s.inner = Box()
    s.inner.v *= 5.0
    s.inner.a = s.a
    s.inner.a[0] = -1.0
    s.v, s.inner.v = s.inner.v, s.v
    return s.v, s.inner.v, s.a


@program((2.0,))
def order(t):
    box = [0, 0, 0]
    box[log("i", 1)] = log("v", 2)
    log("x", box)[log("i", 0)], y = log("a", 1), log("b", 2)
    log("y", box)[log("j", 2)] += log("w", 3)
    log("f", log)(log("arg", "k"), value=log("kw", t))
    z = log(1, t) * log(2, t) + log(3, t) ** log(4, 2)
    return box, y, z


@program((1,))
def annotations(n: int) -> int:
    x: int = n
    y: float
    y = 2.0
    return x + y


# ---- indices ---------------------------------------------------------------------------------


@program((np.arange(24.0).reshape(4, 6),))
def slices(a):
    n = 2
    b = a[1:, ::-1][..., n:].T
    c = a[n, :, None] + a[None, 0, : n + 1]
    d = a[n - 1 :, n : n + 2 : 1]
    e = a[np.newaxis, :, 1]
    a[:, 1:3] = 7.0
    a[n:, -1] = a[:-n, 0]
    a[(0, 1)] = -5.0
    f = a[a > 6][:2]
    g = a[np.array([0, 0, 1]), 2]
    return b, c, d, e, f, g, a[()], a[...]


@program((np.ones((2, 2, 3)),))
def index_tuples(a):
    i = (1, 0)
    a[i] += 3.0
    a[(*i, 2)] = 9.0
    return a, a[(*i,)]


# ---- loops -----------------------------------------------------------------------------------


@program((6,), (0,), (1,))
def ranges(n):
    s = 0
    i = -1
    for i in range(n):
        s += i
        i += 10
        s += i
    for j in range(n, 0, -2):
        if j == 3:
            continue
        s += j
    for k in range(1, n):
        if k == 4:
            break
        s += k
    else:
        s += 1000
    return s, i


@program((xs(),), (xs(0),))
def containers(x):
    s = 0.0
    for v in x:
        s += v
        v = 7.0
    for v in (1.0, 2.0, 3.0):
        s *= v
    for x in x:
        s -= x
    for v in [s, s + 1]:
        s += v
    return s


@program((xs(),), (xs(1),))
def enumerations(x):
    s = 0.0
    for i, v in enumerate(x):
        s += i * v
    for i, v in enumerate(x[1:], 3):
        s += i * v
        x = x * 2
    for i, v in enumerate(x, start=len(x)):
        s += i * v
    for p in enumerate(x):
        s += p[0] * p[1]
    for i, (a, b) in enumerate(zip(x, x[1:])):
        s += i * a * b
    return s


@program((xs(5), xs(3)), (xs(2), xs(4)))
def zips(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
    for x, y in zip(x, y):
        s += x - y
    for t in zip(range(3), (1.0, 2.0)):
        s += t[0] * t[1]
    for i, j, k in zip(range(2, 9, 2), range(10), range(5, 0, -1)):
        s += i * j * k
    return s


@program((xs(5),))
def reversals(x):
    out = []
    for i in reversed(range(2, 7)):
        out.append(i)
    for v in reversed(x):
        out.append(v)
    for i, v in enumerate(reversed(x)):
        x[i] = v
    for i, j in zip(range(2, 5), reversed(range(3, 7))):
        out.append(i * j)
    return out, x


@program((np.arange(12.0).reshape(3, 4),), (np.zeros((0, 2)),))
def nd_loops(a):
    s = 0.0
    for i, j in np.ndindex(3, 2):
        s = s * 0.5 + i - 2 * j
    for i, j in np.ndindex(a.shape):
        s += a[i, j] * i
    for i, j in np.ndindex((2, 2)):
        s += i * j
    for (i, j), v in np.ndenumerate(a):
        s = s * 0.5 + v * j - i
    for idx in np.ndindex(2, 3, 2):
        s += idx[0] * idx[1] + idx[2]
    for (i,), v in np.ndenumerate(a[:, 0]):
        s += i * v
    for i in np.ndindex(a.shape):
        s = s * 0.5 + a[i] * i[1]
    for i, v in np.ndenumerate(a.reshape(1, 2, a.size // 2)):
        s = s * 0.5 + v * i[2] + i[1]
    for p in np.ndenumerate(a):
        s += p[0][1] * p[1]
    for i in np.ndindex(()):
        s += len(i) + 1
    return s


@program((7,), (0,), (3,))
def whiles(n):
    s = 0
    while n > 0 and s < 50:
        n -= 1
        if n == 4:
            continue
        s += n
        while True:
            s += 1
            if s % 3 == 0:
                break
        if s == 18:
            break
    else:
        s += 1000
    while not n > 5:
        n += 1
    return s, n


@program((5,), (3,), (0,))
def else_with_jumps(n):
    out = []
    for i in range(n):
        k = i
        while k < 3:
            k += 1
            if k == 2 and i == 2:
                break
        else:
            out.append(i)
            if i == 1:
                continue
            if i == 3:
                break
        for j in range(i):
            if j == 2:
                break
        else:
            out.append(-i)
            if i == 4:
                break
            continue
        out.append(100 * i)
    else:
        out.append("end")
    return out


@program((4,), (0,))
def early_returns(n):
    for i in range(n):
        for j in range(n):
            if i * j == 2:
                return i, j
        while i > 2:
            return "while"
    else:
        return "else"
    return None


@program((3,))
def parallel(n):
    s = 0
    for i in prange(n):
        s += i
    for i in numba.prange(1, n):
        s += i
    return s


# ---- comprehensions --------------------------------------------------------------------------


@program((xs(5),))
def comprehensions(x):
    v = 100.0
    a = [v * 2 for v in x if v > 0]
    b = [i * j for i in range(4) if i % 2 for j in range(i) if j != 1]
    c = [[i + j for j in range(2)] for i in range(3)]
    d = [x for x in x for x in (x, x + 1)]
    e = [p + q for p, q in zip(x, a)]
    f = [(i, w) for i, w in enumerate(x)]
    g = [last := w for w in x]
    h = [w if w > 0 else -w for w in [u + 1 for u in x] if not w > 2 and w != 1]
    return a, b, c, d, e, f, g, last, v, h


@program(((1, 2),))
def starred(t):
    a, b = t
    return (*t, 3, *t), [*t, b], [*range(3), a], max(*t), ()


# ---- inner functions -------------------------------------------------------------------------


@program((3.0, 2.0))
def closures(x, a):
    def g(y, k=2.0):
        return y * a + k

    def h(y, b=x):
        z = g(y)
        return z + g(y, k=a) + b

    square = lambda t: t * t + a
    s = g(x) + h(x) + square(x)
    a = 10.0
    x = 5.0
    s += g(x, 3.0) + h(x) + h(x, b=1.0) + square(2.0)
    for i in range(3):
        s += g(i)
    return s + sum([square(w) for w in (1.0, 2.0)])


@program((3.0,))
def nested_closures(x):
    y = 2.0

    def outer(p):
        q = p * y

        def inner(r):
            if r > 2:
                return r * q + x
            return [r * c for c in (1.0, 2.0)][1]

        return inner(p) + inner(1.0)

    y = 3.0
    return outer(x) + outer(y)


@program((3.0,))
def passed_functions(x):
    def twice(f, v):
        return f(f(v))

    return twice(lambda u: u + FACTOR, x), twice(math.sin, x)


@program((2.0,))
def names_like_ours(_t1):
    _t2 = _t1 * 2
    _t3_x = _t2 + _t1
    u_t1 = 5.0
    return [_t2 + _t9 for _t9 in (_t3_x, u_t1)]


@program((4,))
def shadowed_builtins(n):
    range_ = n
    len = 3
    min = 4
    s = 0
    for v in (1, 2):
        for a, b in zip((1, 2, 3), (4, 5)):
            s += v * a * b
    bool = n > 2
    if bool and n:
        s += len + min + range_
    return s


# ---- exceptions, printing and the rest --------------------------------------------------------


@program((1,), (-1,), (0,), (5,), (7,))
def exceptions(n):
    if n < 0:
        raise ValueError("negative", n)
    if n == 0:
        raise ZeroDivisionError
    if n == 5:
        raise np.linalg.LinAlgError(f"five {n} {n + 1}!")
    assert n < 7, f"too {n}"
    assert n
    return n


@program((3,))
def the_rest(n):
    "a docstring"
    global FACTOR
    x = n
    del x
    pass
    ...
    "a string"
    n + 1
    print("n is", n, f"{n}")
    n.bit_length()
    return


@program((3.0,))
def arguments(x, /, y=2.0, *, z=1.0):
    return x * y + z


@program((1, 2, 3))
def varargs(first, *rest):
    s = first
    for r in rest:
        s = s * 10 + r
    return s, len(rest)


just_a_lambda = lambda x, k=3: x if x > k else -x
PROGRAMS.append((just_a_lambda, [(1,), (5,)]))


class Private:
    def __init__(self) -> None:
        self.__x = 3.0
        self._Other__y = 1.0

    def method(self, t):
        __local = t
        self.__x += t
        self.__x = self.__x * 2 + __local
        return self.__x, [__k + __local for __k in (1, 2)]

    @staticmethod
    def calls(t):
        p = Private()
        return p.method(t), p.method(t)


PROGRAMS.append((Private.calls, [(2.0,)]))


def _factory(scale: float) -> Callable[[float], float]:
    def made(x):
        return x * scale + FACTOR

    return made


PROGRAMS.append((_factory(2.0), [(3.0,)]))
PROGRAMS.append((_factory(-4.0), [(3.0,)]))
