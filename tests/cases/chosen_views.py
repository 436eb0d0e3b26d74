"""Functions in which control flow chooses which view an array variable is, with arguments."""

from __future__ import annotations

import math

import numpy as np
from numba import float64, njit
from numba.experimental import jitclass

ROW = np.arange(1.0, 7.0)
RECORD = np.dtype([("p", np.float64), ("q", np.float64)])


def upwind(u, c):
    if c > 0.0:
        a = u[1:]
    else:
        a = u[:-1]
    s = 0.0
    for i in range(a.shape[0]):
        a[i] = a[i] * a[i] * c
        s += a[i]
    return s


def rows(x, y):
    row = y
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(row.shape[0]):
            s += row[j] * x[i, j]
            row[j] = math.sin(row[j]) * x[i, j]
        row = x[i]
    return s


def halves_of_a_buffer(x, n):
    buf = np.zeros((2, x.shape[0]))
    buf[0] = x
    cur, nxt = buf[0], buf[1]
    for _ in range(n):
        for i in range(x.shape[0]):
            nxt[i] = cur[i] * cur[i] + cur[i - 1] * 0.3
        cur, nxt = nxt, cur
    s = 0.0
    for i in range(x.shape[0]):
        s += cur[i]
    return s


def fortran(x, c):
    a = np.zeros((3, 2)).T
    if c > 0:
        a = x
    a[0, 1] = a[1, 1] * c * x[0, 0]
    return a


def steps(x, n):
    """Steps of both signs; the views overlap each other."""
    v = x[::2]
    for k in range(n):
        w = x[1::2]
        for i in range(w.shape[0]):
            v[i] = v[i] * w[i]
        if k % 2 == 0:
            v = x[::-1]
        else:
            v = x[1:]
    v[0] *= v[1]
    return v[2]


def shrinking(x):
    while x.shape[0] > 1:
        x[1] = x[0] * x[1]
        x = x[1:]
    return x[0]


def transposed(x, c):
    if c > 0:
        a = x.T
    else:
        a = x[::-1]
    a[0, 1] = a[1, 0] * a[1, 1] * c
    a = a[1:]
    return a[0, 0] * a[0, 1]


def of_new_arrays(x, c):
    s = 0.0
    a = x[0]
    for k in range(3):
        t = np.empty((2, x.shape[1]))
        for i in range(t.shape[1]):
            t[0, i] = a[i] * c
            t[1, i] = a[i] + c * k
        a = t[k % 2]
        s += a[0]
    return s * a[1]


def parts(z, c):
    if c > 0:
        a = z.real
    else:
        a = z.imag
    a[0] = a[1] * a[0]
    return a[0] * c + z[1].real


def or_a_global(x, c):
    a = ROW[::-1]
    if c > 0:
        a = x[::2]
    s = 0.0
    for i in range(2):
        s += a[i] * x[i] * c
    return s


def or_undefined(x, c):
    s = 0.0
    if c > 0:
        a = x[1:]
        s = 1.0
    if c > 0:
        s += a[0] * c
        a[0] = s
    return s


def of_a_result(x, c):
    y = np.linalg.inv(x)
    if c > 0:
        row = y[0]
    else:
        row = x[1]
    row[0] *= c * row[1]
    return row[0] + y[0, 0]


def workspace(x, w, c):
    row = w[0]
    for k in range(w.shape[0]):
        for j in range(x.shape[0]):
            row[j] += x[j] * c * row[j]
        row = w[k]
    return w[0, 0] * w[1, 1] + row[1]


def of_two(x, y, c):
    if c > 0:
        a = x[1:]
    else:
        a = y[1:]
    for i in range(a.shape[0]):
        a[i] = a[i] * x[i] * c + y[i] * y[i]
    return a[0]


@jitclass([("x", float64[:]), ("y", float64[:, ::1])])
class Pair:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def of_fields(s, c):
    row = s.x
    for i in range(s.y.shape[0]):
        for j in range(row.shape[0]):
            row[j] *= s.y[i, j] * c
        row = s.y[i]
    return s.x[0]


def nested(x, n):
    a = x[0]
    for i in range(n):
        b = a
        for j in range(2):
            for k in range(b.shape[0]):
                b[k] = b[k] * 0.9 + x[i + 1, k] * a[k]
            b = x[i + 1]
            if j == 1 and b[0] > 100.0:
                break
        a = x[i]
    return x


def of_records(p, c):
    a = p[1:]
    if c > 0:
        a = p[::2]
    a[0].p = a[1].q * c
    return a[0].p * p[1].p


@njit
def _shorter(x, n, c):
    if n == 0:
        return x[0] * c
    if n % 2 == 0:
        a = x[1:]
    else:
        a = x[::-1]
    a[0] = a[0] * a[1] * c
    return _shorter(x[:-1], n - 1, c) * a[0]


def in_a_recursion(x, c):
    return _shorter(x[::2], 3, c) * x[0]


def contiguous(x, k):
    """The array itself or a copy, depending on its strides."""
    v = x[::k]
    y = np.ascontiguousarray(v)
    z = np.asfortranarray(v)
    y[0, 0] = y[0, 0] * y[-1, -1]
    z[0, 0] = z[0, 0] * z[-1, -1] + y[0, 1]
    x[0, 0] *= y[0, 1]
    return y, z[0, 0] * x[0, 0]


def _records(r, n):
    made = np.zeros(n, RECORD)
    made["p"], made["q"] = r.random(n), r.random(n)
    return made


def _overlapping(r):
    base = r.random(6)
    return base[:-1], base[1:]


PROGRAMS = {
    "one_side": (upwind, lambda r: (r.random(4), 0.7)),
    "other_side": (upwind, lambda r: (r.random(4), -0.7)),
    "single": (upwind, lambda r: (r.random(4).astype(np.float32), np.float32(0.7))),
    "rows": (rows, lambda r: (r.random((3, 3)), r.random(3))),
    "halves_of_a_buffer": (halves_of_a_buffer, lambda r: (r.random(4), 3)),
    "fortran": (fortran, lambda r: (r.random((2, 3)), -0.5)),
    "steps": (steps, lambda r: (r.random(7), 3)),
    "shrinking": (shrinking, lambda r: (r.random(4),)),
    "transposed": (transposed, lambda r: (r.random((3, 3)), 0.6)),
    "of_new_arrays": (of_new_arrays, lambda r: (r.random((2, 3)), 1.1)),
    "parts": (parts, lambda r: (r.random(3) + 1j * r.random(3), -0.6)),
    "or_a_global": (or_a_global, lambda r: (r.random(4), -0.6)),
    "not_a_global": (or_a_global, lambda r: (r.random(4), 0.6)),
    "or_undefined": (or_undefined, lambda r: (r.random(3), -0.6)),
    "of_a_result": (of_a_result, lambda r: (r.random((2, 2)), 0.6)),
    "of_two": (of_two, lambda r: (r.random(4)[::-1], r.random(4), 0.6)),
    "overlapping": (of_two, lambda r: (*_overlapping(r), 0.6)),
    "of_fields": (of_fields, lambda r: (Pair(r.random(3), r.random((2, 3))), 0.6)),
    "nested": (nested, lambda r: (np.asfortranarray(r.random((3, 2))), 2)),
    "of_records": (of_records, lambda r: (_records(r, 4), 0.6)),
    "contiguous": (contiguous, lambda r: (r.random((4, 3)), 1)),
    "not_contiguous": (contiguous, lambda r: (r.random((4, 3)), 2)),
    "fortran_contiguous": (contiguous, lambda r: (np.asfortranarray(r.random((4, 3))), 1)),
    "in_a_recursion": (in_a_recursion, lambda r: (r.random(8), 0.6)),
}
