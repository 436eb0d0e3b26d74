"""Fields of jitclass and structref instances that share arrays, with one another and with other arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, njit, types
from numba.experimental import jitclass, structref

from tests.pairs import check


@jitclass([("h", float64[::1]), ("g", float64[::1]), ("c", float64)])
class Jitclass:
    def __init__(self, h, g, c):
        self.h = h
        self.g = g
        self.c = c


@structref.register
class StructrefType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(type)) for name, type in fields)


class Structref(structref.StructRefProxy):
    def __new__(cls, h, g, c):
        return structref.StructRefProxy.__new__(cls, h, g, c)


structref.define_proxy(Structref, StructrefType, ["h", "g", "c"])


@jitclass([("inner", Jitclass.class_type.instance_type), ("h", float64[::1])])
class Outer:
    def __init__(self, inner, h):
        self.inner = inner
        self.h = h


def exchanged(s, r, n):
    """In a loop, some at a time and by turns; what is stored is what another field loads."""
    for k in range(n):
        a = s.h
        s.h = r.g
        r.g = a
        for i in range(a.shape[0]):
            a[i] = a[i] * s.h[i] + r.h[-1 - i] * 0.2
            r.h[i] -= 0.1 * a[i] * s.c
        if k == 1:
            r.h, s.g = s.g, r.h
    return s.h[0] + r.h[1] * s.g[0] + r.g[2]


def chosen(s, x, n):
    """A field becomes an argument, another field, or a new array."""
    if n > 0:
        s.h = x
    elif n < 0:
        s.h = s.g
    else:
        s.h = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        s.h[i] = s.h[i - 1] * s.c + x[i] * s.g[i]
        s.g[i - 1] = math.sin(s.h[i])
    y = x if n == 0 else s.g
    for i in range(x.shape[0]):
        y[i] = y[i] * s.h[i] * 1.1
    return s.h.sum() + (x * s.g).sum()


@njit
def hand_over(s, a, b, w):
    for i in range(a.shape[0]):
        a[i] = a[i] + w * b[-1 - i]
        b[i] = b[i] * s.c
    s.h = a


def in_a_callee(s, r, n):
    for k in range(n):
        hand_over(s, r.h, s.g, 0.3)
        hand_over(r, s.h, r.g, 0.2)
        if k == 0:
            r.h = s.g
    return s.h[0] * r.h[1] + s.g[2] * r.g[0]


def written_beside(s, x, n):
    """No field is assigned; only x is written."""
    for i in range(n, x.shape[0]):
        x[i] = x[i - 1] * s.h[i] + s.c
        x[i - 1] = s.g[i - 1] + s.h[i] * s.g[i]
    return x[0] * s.h[2] + (s.g * x).sum()


def inside_another(o, x, n):
    for k in range(n):
        for i in range(1, x.shape[0]):
            o.h[i] = o.inner.h[i - 1] * x[i] + 0.2 * o.h[i]
            o.inner.g[i] += o.h[i] * o.inner.c
        if k == 0:
            o.inner.h = o.h
        else:
            o.h, o.inner.g = o.inner.g, o.h
    return o.h[0] * o.inner.h[1] + o.inner.g.sum() * x[0]


# which arrays are the same, by their letters
TWO_STRUCTS = ["abcd", "aabb", "abab", "abbb", "aaaa"]
STRUCT_AND_ARRAY = ["abc", "aab", "aba", "aaa"]


def arrays(same: str) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    made = {letter: rng.uniform(0.4, 1.2, 4) for letter in "abcd"}
    return [made[letter] for letter in same]


@pytest.mark.parametrize("kind", [Jitclass, Structref])
@pytest.mark.parametrize("f", [exchanged, in_a_callee])
def test_of_two_structs(f: Callable[..., Any], kind: Any) -> None:
    for same in TWO_STRUCTS:
        h, g, other_h, other_g = arrays(same)
        check(f, kind(h, g, 0.7), kind(other_h, other_g, 0.4), 3, directions=1)


@pytest.mark.parametrize("kind", [Jitclass, Structref])
@pytest.mark.parametrize("f, n", [(chosen, 1), (chosen, -1), (chosen, 0), (written_beside, 1)])
def test_of_a_struct_and_an_argument(f: Callable[..., Any], n: int, kind: Any) -> None:
    for same in STRUCT_AND_ARRAY:
        h, g, x = arrays(same)
        check(f, kind(h, g, 0.7), x, n, directions=1)


def test_of_a_struct_in_another() -> None:
    for same in TWO_STRUCTS:
        inner_h, inner_g, h, x = arrays(same)
        check(inside_another, Outer(Jitclass(inner_h, inner_g, 0.7), h), x, 2, directions=1)
