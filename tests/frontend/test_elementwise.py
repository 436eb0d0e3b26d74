"""Operators, ufuncs, np.where and np.clip on arrays, and their in-place forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir import walk
from tests.frontend.array_agreement import agree
from tests.frontend.lowering import lowered
from tests.frontend.test_arrays import A
from tests.ir_interp import run

F4, F8, I8, C16 = np.float32, np.float64, np.int64, np.complex128


def add(a, b):
    return a + b


SHAPES = [(), (1,), (3,), (0,), (1, 3), (3, 1), (2, 3), (4,)]


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("right", [0, 1, 2])
def test_broadcasting(left: int, right: int) -> None:
    pairs = itertools.product(SHAPES, SHAPES)
    inputs = [(A(*x), A(*y)) for x, y in pairs if (len(x), len(y)) == (left, right)]
    agree(add, *inputs)


def layouts(a, b):
    return a + b, (a + b).T, -a, a * b + a


def test_layouts() -> None:
    agree(
        layouts,
        (A(2, 3, order="F"), A(2, 3, order="F")),
        (A(2, 3, order="F"), A(2, 3)),
        (A(6, 3)[::2], A(3, 3)),
        (A(4, 6)[:, ::-2], A(4, 1, order="F")),
    )


def test_the_layout_of_a_result() -> None:
    both = A(2, 3, order="F"), A(2, 3, order="F")
    assert lowered(add, *both).result.type.layout == "F"


# ---- against NumPy ------------------------------------------------------------------------------


def arithmetic(a, b):
    return (a * b + a) / (b + 2) - a, a // b, a % b, b - a * 0.5


def compared(a, b):
    return a < b, (a >= b) & (a != b), (a == b) | (a > 1), ~(a > 0), (a > 0) ^ (b > 0)


def logical(a, b):
    return np.logical_and(a > 0, b > 0), np.logical_not(a > 0), np.logical_xor(a > 0, b > 0)


def ufuncs(a, b):
    return (
        np.maximum(a, b) + np.arctan2(a, b) * np.hypot(a, b),
        -np.abs(a) + np.sign(b) - (+a),
        np.power(np.abs(a), b) + np.add(a, b) * np.subtract(a, b),
        np.divide(a, b) + np.fmod(a, b),
        np.sqrt(np.abs(a)) + np.exp(b) + np.tanh(a),
        np.floor(a) + np.square(b) - np.reciprocal(b),
        np.isnan(a) | np.isfinite(b),
    )


def powers(a):
    return a**2, a**3, a**0.5, a**-2.0, 2.0**a


def chosen(a, b):
    return np.where(a > b, a, b), np.where(a > 0, 1.0, b), np.where(a, b, 0)


def chosen_number(s, t):
    return np.where(s > 0.5, s * t, t).item()


def clipped(a):
    return np.clip(a, -1.0, 1.0), np.clip(a, None, 0.5), np.clip(a, 0.5, None)


def with_scalar(a, s):
    return a * s + s, s - a, a / s


def into(a, b, c):
    np.add(a, b, c)
    np.multiply(c, a, c)
    return np.exp(c, c)


def divided_by_zero(a, b):
    return a / b


ZEROS = np.array([1.0, 0.0, -2.0, 3.0])
NUMPY = [
    (arithmetic, [(A(4), A(4)), (A(4), ZEROS), (A(3, 4), A(4)), (A(3, 4), A(3, 1))]),
    (compared, [(A(5), A(5)), (A(5, dtype=I8), A(5))]),
    (logical, [(A(5), A(5))]),
    (ufuncs, [(A(5), A(5)), (A(2, 5), A(5))]),
    (powers, [(abs(A(4)),)]),
    (chosen, [(A(4), A(4)), (A(3), A(4)), (A(3, 1), A(4))]),
    (chosen_number, [(0.7, 2.0), (0.3, 2.0)]),
    (clipped, [(A(4),), (A(3, 4),), (np.array([np.nan, 1, -5, 5]),)]),
    (with_scalar, [(A(3), 2.0), (A(3), 3), (A(3), 1j), (A(3), 0.0)]),
    (into, [(A(4), A(4), A(4)), (A(3, 4), A(4), A(3, 4))]),
    (divided_by_zero, [(A(4), ZEROS), (A(4, dtype=I8), ZEROS.astype(I8))]),
]


@pytest.mark.parametrize("fn, inputs", NUMPY, ids=[fn.__name__ for fn, _ in NUMPY])
def test_agrees_with_numpy(fn: Callable[..., Any], inputs: list[tuple[Any, ...]]) -> None:
    agree(fn, *inputs)


# ---- where Numba differs from NumPy -------------------------------------------------------------


def wide_inside(a, b):
    """Numba computes a fused expression of float32 arrays and Python numbers in double precision."""
    return a * 0.1 + b * 3 - a / 7


def mixed(a, b):
    return a + b, a * b - a


def in_order(a):
    a[1:] += a[:-1]
    a[::-1] -= a
    a[:-1] *= a[1:]


def in_order_after_a_copy(a):
    a[1:] += 2 * a[:-1]


def onto_the_transpose(a):
    a += a.T


def longer_operand(a, b):
    a += b


def in_place(a, b):
    a += b
    a *= b
    a -= b
    a /= b
    a **= 2


def in_place_integers(a, b):
    a += b
    a //= b
    a *= 3
    a %= b


SMALL = [np.int8, np.int32, I8, F4, F8]
PAIRS = [(A(6, dtype=x), A(6, dtype=y)) for x in SMALL[1:] for y in SMALL]
NUMBA = [
    (wide_inside, [(A(50, dtype=F4), A(50, dtype=F4))]),
    (mixed, PAIRS[::2]),
    (in_order, [(A(5),), (A(4, 3),), (A(4, 3, order="F"),), (A(8)[::2],), (A(0),)]),
    (in_order_after_a_copy, [(A(5),)]),
    (onto_the_transpose, [(A(4, 4),), (A(4, 4, order="F"),)]),
    (longer_operand, [(A(3), A(5)), (A(3, 4), A(1, 4)), (A(3, 4), A(3, 1)), (A(1, 4), A(1))]),
    (in_place, [(A(4), A(4)), (A(4, dtype=F4), A(4)), (A(4, dtype=C16), A(4))]),
    (in_place_integers, [(A(4, dtype=I8), np.array([1, 2, 0, -3]))]),
    (divided_by_zero, [(A(4, dtype=C16), A(4)), (A(4, dtype=C16), ZEROS + 0j)]),
    (clipped, [(A(5, dtype=F4),)]),
    (chosen, [(A(4, dtype=F4), A(4, dtype=I8))]),
    (with_scalar, [(A(3, dtype=F4), 2.0), (A(3, dtype=F4), np.float32(2)), (A(3, dtype=I8), 3)]),
]


@pytest.mark.parametrize("fn, inputs", NUMBA, ids=[fn.__name__ for fn, _ in NUMBA])
def test_agrees_with_numba(fn: Callable[..., Any], inputs: list[tuple[Any, ...]]) -> None:
    agree(fn, *inputs, njit=True)


@numba.njit
def first(a):
    return a[0]


@numba.njit
def overwritten(a):
    a[:] = 2.0
    return a[1]


def across_calls(a, b):
    """A call in the middle of an expression does not end it: what stands before is not rounded to float32."""
    stretch = (
        (a * 3 - b) / (1.0 + np.std(a)),
        (a * 3 - b) / (1.0 + first(a)),
        (a * 3 - b) * math.exp(b[0]),
    )
    ordered = (
        (a * 3 - b) / np.sort(a),
        (b * 3 - a).sum() / np.max(b),
        (a * 3 - b) / (1.0 + b.copy()),
    )
    return stretch, ordered, np.square(a) * np.square(b * 3 - a)


def before_a_write(a, b):
    return (a * 3 - b) / overwritten(a), (b * 0.5 + a) * np.add(a, 1.0, a)


def test_calls_within_an_expression_round_where_numba_does() -> None:
    args = A(50, dtype=F4), A(50, dtype=F4)[::-1].copy()
    same(run(lowered(across_calls, *args), *args), numba.njit(across_calls)(*args))
    agree(before_a_write, (A(5), A(5)))  # Numba reads what was written


def same(got: Any, want: Any) -> None:
    for mine, other in zip(got, want, strict=True):
        if isinstance(other, tuple):
            same(mine, other)
        else:
            np.testing.assert_array_equal(mine, other)


def test_an_operand_that_is_too_short_raises() -> None:
    # Plain Numba reads out of bounds here.
    made = lowered(longer_operand, A(5), A(3))
    with pytest.raises(ValueError, match="broadcast"):
        run(made, A(5), A(3))


# ---- what is emitted ----------------------------------------------------------------------------


def fused(a):
    return np.exp(a) * 2.0 + a * a


def test_an_expression_is_one_loop_and_reads_each_array_once() -> None:
    stmts = list(walk.walk(lowered(fused, A(4)).body))
    assert sum(isinstance(stmt, ir.For) for stmt in stmts) == 1
    assert sum(isinstance(stmt, ir.Load) for stmt in stmts) == 1
    assert sum(isinstance(stmt, ir.If) for stmt in stmts) == 0


def known_to_fit(a):
    b = np.zeros_like(a)
    c = np.ones(a.shape[0])
    return (a + b) * c + a[:, None][:, 0]


def test_equal_sizes_that_are_known_are_not_checked() -> None:
    stmts = list(walk.walk(lowered(known_to_fit, A(4)).body))
    assert not any(isinstance(stmt, ir.If) for stmt in stmts)


def more_dimensions(a, b):
    a += b


def test_refused() -> None:
    with pytest.raises(UnsupportedError, match="more dimensions"):
        lowered(more_dimensions, A(3), A(2, 3))
