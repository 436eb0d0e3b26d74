"""Indexing, allocation, reductions, attributes and methods of arrays."""

from __future__ import annotations

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

rng = np.random.default_rng(0)
MASK = np.array([True, False, True, True, False])
PICK = np.array([0, -1, 2, 2])
NARROW = np.array([1, 2], dtype=np.uint8)


# Index arrays of more than one dimension, or more than one of them: since Numba 0.66.
INDEX_ARRAYS = tuple(map(int, numba.__version__.split(".")[:2])) >= (0, 66)


def A(*shape: int, dtype: Any = float, order: str = "C") -> np.ndarray:
    values = np.asarray(rng.normal(size=shape) * 3)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return np.asarray(values.astype(dtype), order=order)


# ---- reading ------------------------------------------------------------------------------------


def vector(a):
    return a[0], a[-1], a[1:], a[:-1], a[::2], a[::-1], a[-2:], a[:2], a[None], a[...]


def matrix(a, i, j):
    return a[i, j], a[i], a[:, j], a[..., j], a[i:, None, :j], a[i:j, ...], a[None], a[-1, -1]


def scalar(a):
    return a[()]


def picked(a, i):
    return a[i]


def picked_inside(a, i):
    return a[:, i]


def picked_beside(a, i):
    return a[1, i], a[i, 1], a[1:, i], a[i, ...]


def of_expression(a):
    return (a * 2.0)[1:], (a + a)[0], np.exp(a)[::-1]


READING = [
    (vector, [(A(4),), (A(2),), (A(4, dtype=np.int64),), (A(8)[::2],)]),
    (
        matrix,
        [
            (A(4, 5), 1, 3),
            (A(4, 5, order="F"), -2, -1),
            (A(8, 10)[::2, ::-2], 1, 2),
            (A(4, 5), np.uint8(1), np.int32(2)),
        ],
    ),
    (scalar, [(A(),)]),
    (
        picked,
        [
            (A(5), PICK),
            (A(5, 3), PICK),
            *([(A(5, 3), np.array([[0, 1], [1, 4]]))] if INDEX_ARRAYS else []),
            (A(5), np.array([], dtype=np.int64)),
            (A(5, 4, order="F"), NARROW),
            (A(5), MASK),
            (A(5, 3), MASK),
            (A(0), np.zeros(0, bool)),
            (A(5), np.zeros(5, bool)),
        ],
    ),
    (picked_inside, [(A(4, 5), PICK), (A(4, 5), MASK), (A(2, 5, 3), MASK)]),
    (picked_beside, [(A(5, 5), PICK)]),
    (of_expression, [(A(4),)]),
]


# ---- writing ------------------------------------------------------------------------------------


def write(a, b):
    a[1] = b[0]
    a[-1] += 2.0
    a[1:3] = 7.0
    a[::2] = b[::2]
    a[:] = a * 2
    return a


def write_parts(a, b):
    a[0] = b
    a[:, 1] = b[0]
    a[..., 2] = 3
    a[1:, :2] *= 2.0
    return a


def write_all(a, b):
    a[:] = b


def write_picked(a, i, v):
    a[i] = v


def update_picked(a, i):
    a[i] = a[:4]
    a[i] += 1.0
    a[i] *= a[i]


def update_masked(a):
    a[a > 0] *= 2.0
    a[a < 0] = -a[a < 0]


def overlapping(a, b):
    a[1:] = a[:-1]
    b[:] = b[::-1]
    a[:-1] = a[1:] + b[1:]


def transposed_onto_itself(a):
    a[:] = a.T + 1.0


WRITING = [
    (write, [(A(5), A(5)), (A(5, dtype=np.float32), A(5))]),
    (write_parts, [(A(3, 4), A(4)), (A(3, 4, order="F"), A(4)), (A(3, 4), A(1)), (A(3, 4), A(5))]),
    (
        write_all,
        [
            (A(3, 4), A(4)),
            (A(3, 4), A(3)),
            (A(3, 4), A(1, 4)),
            (A(3, 4), A(3, 1)),
            (A(3, 4), A(3, 4)),
            (A(3, 4), A(1, 3, 4)),
            (A(3, 4), A(2, 3, 4)),
            (A(4), A(1)),
            (A(4), A()),
            (A(4), A(3)),
            (A(1), A(3)),
            (A(0), A(1)),
            (A(0), A(0)),
            (A(3, 4), 2.0),
            (A(4, dtype=np.float32), A(4)),
            (A(4, dtype=np.complex128), A(4)),
            (A(4), A(4, dtype=np.int64)),
        ],
    ),
    (
        write_picked,
        [
            (A(5), PICK, A(4)),
            (A(5), PICK, 1.5),
            (A(5), PICK, A(3)),
            (A(5, 3), PICK, A(4, 3)),
            (A(5, 3), PICK, A(3)),
            (A(5), MASK, A(3)),
            (A(5), MASK, A(2)),
            (A(5), MASK, 2.0),
            (A(5, 3), MASK, A(3, 3)),
            (A(5, 3), MASK, 2.0),
        ],
    ),
    (update_picked, [(A(5), PICK)]),
    (update_masked, [(A(6),)]),
    (overlapping, [(A(5), A(5)), (A(8)[::2], A(8)[::-2])]),
    (transposed_onto_itself, [(A(3, 3),), (A(3, 3, order="F"),)]),
]


# ---- making -------------------------------------------------------------------------------------


def made(n, x):
    return (
        np.zeros(n),
        np.zeros((n, 2), np.float32),
        np.ones(n),
        np.full(n, x),
        np.full((2, n), 1.5),
        np.empty(0),
        np.eye(n),
        np.identity(n),
        np.eye(n, n + 1),
        np.arange(n),
        np.arange(1, n),
        np.arange(0, n, 2),
        np.arange(0.0, 1.0, 0.25),
        np.linspace(0.0, x, n),
        np.zeros((n, n), dtype=np.complex128),
    )


def alike(a):
    return (
        np.zeros_like(a),
        np.ones_like(a),
        np.full_like(a, 2),
        np.zeros_like(a, dtype=np.float32),
        np.ones(a.shape),
        np.zeros(a.shape[0]),
        np.zeros_like(a * 2.0),
    )


def displayed(x, y):
    return (
        np.array([x, y]),
        np.array([[x, 1.0], [2.0, y]]),
        np.array((x, y, 3)),
        np.array([1, 2, 3]),
        np.array([x, y], dtype=np.float32),
    )


def joined(a, b):
    return np.concatenate((a, b)), np.hstack((a, b * 2)), np.concatenate((b, a, b))


def stacked(a, b):
    return (
        np.vstack((a, a + b)),
        np.stack((a, b)),
        np.stack((a, b), axis=1),
        np.column_stack((a, b)),
    )


def joined_matrices(a, b):
    return (
        np.concatenate((a, a, b), axis=0),
        np.vstack((a, b)),
        np.concatenate((a, a), axis=1),
        np.hstack((a, a)),
        np.stack((a, a), -1),
    )


MAKING = [
    (made, [(3, 2.5), (1, 1.0), (0, 1.0)]),
    (alike, [(A(3, 2),), (A(3, 2, order="F"),), (A(3, 2, dtype=np.int64),)]),
    (displayed, [(1.5, 2.5)]),
    (joined, [(A(3), A(4)), (A(0), A(2))]),
    (stacked, [(A(3), A(3)), (A(3), A(4))]),
    (joined_matrices, [(A(2, 3), A(4, 3)), (A(2, 3), A(4, 2))]),
]


# ---- attributes and methods ---------------------------------------------------------------------


def attributes(a):
    return (
        a.copy(),
        a.T,
        a.T.copy(),
        a.ravel(),
        a.flatten(),
        a.astype(np.float32),
        a.shape,
        a.size,
        a.ndim,
        len(a),
        a.itemsize,
        np.ascontiguousarray(a),
        np.transpose(a),
        a.transpose(),
    )


def reshaped(a, n):
    return (
        a.reshape(4, 3),
        a.reshape((2, -1)),
        a.reshape(-1),
        np.reshape(a, (6, 2)),
        np.ravel(a),
        a.reshape((n, 3)) + 1.0,
    )


def parts(a):
    b = a.imag
    b += 2.0
    a.real[:] = a.real * 2.0
    return a, np.conj(a), a.conj(), np.real(a), np.abs(a)


def fill(a, v):
    a.fill(v)
    return a[0:1, 0:1].item()


def item(a):
    return a[1:2].item()


def more_axes(a):
    return (
        np.expand_dims(a, 0),
        np.expand_dims(a, -1),
        np.flip(a),
        np.atleast_2d(a),
        np.atleast_1d(a),
    )


def by_source(a):
    return np.diff(a), np.roll(a, 2), np.repeat(a, 2), np.trace(np.diag(a)), a.argmax()


METHODS = [
    (attributes, [(A(3, 4),), (A(3, 4, order="F"),), (A(3),), (A(2, 3, dtype=np.int64),)]),
    (reshaped, [(A(3, 4), 4), (A(12), -1), (A(3, 4), 5), (A(3, 3), 3)]),
    (parts, [(A(3, dtype=np.complex128),), (A(3, 2, dtype=np.complex128),)]),
    (fill, [(A(3, 2), 3.0)]),
    (item, [(A(3),), (A(1),)]),
    (more_axes, [(A(3),)]),
    (by_source, [(A(4),)]),
]


# ---- reductions ---------------------------------------------------------------------------------


def reduced(a):
    return (
        a.sum(),
        a.mean(),
        a.prod(),
        a.min(),
        a.max(),
        np.std(a),
        a.var(),
        a.any(),
        a.all(),
        np.sum(a * a + 1),
        np.max(a - 1),
        np.count_nonzero(a > 0),
    )


def summed(a):
    return np.sum(a), np.cumsum(a), np.cumprod(a)


def averaged(a):
    return np.mean(a)


def extremes(a):
    return np.max(a), np.min(a)


REDUCING = [
    (
        reduced,
        [
            (A(7),),
            (A(3, 4, order="F"),),
            (A(8, 6)[::2, ::3],),
            (A(1),),
        ],
    ),
    (summed, [(A(0),), (A(4, dtype=np.complex128),), (A(5),)]),
    (averaged, [(A(4, dtype=np.complex128),), (A(5),)]),
    (extremes, [(A(0),), (np.array([1, np.nan, 3.0]),), (np.array([np.nan, 1.0]),)]),
]


# ---- records ------------------------------------------------------------------------------------


def records() -> np.ndarray:
    made = np.zeros(4, np.dtype([("x", "f8"), ("y", "f4"), ("n", "i8")], align=True))
    made["x"], made["y"], made["n"] = A(4), A(4), [1, 2, 3, 4]
    return made


def fields(z):
    z[0]["x"] = z[1]["x"] * 2.0
    z["y"][1:] += 3 * z["y"][1:]
    z["n"][:] = 7
    z[2]["x"] = 1.0
    return z[0]["x"] + z[1]["y"], z["x"].sum(), z["n"].sum()


def whole_records(z):
    z[0] = z[1]
    z[1:3] = z[2:4]
    return z["x"].sum()


def reduced_expressions(a, b):
    return (
        np.sum(a * b, axis=0), (a - b).sum(axis=1), np.sum(a * a, -1), np.sum(a + b, axis=None),
        np.max(a * b), (a - b).min(), np.var(a * b), np.std(a + np.exp(b)), np.mean(a * b), np.prod(a - b),
    )  # fmt: skip


def sums_of_cubes(a, b):
    return np.sum(a * b, axis=1), np.sum(a * b, axis=-1), (a[0, 0] * b[0, 0]).sum(axis=0)


@numba.njit
def doubled(a):
    a *= 2.0
    return a[0]


def changed_before_the_call(a):
    """The expression is that of before its argument is evaluated."""
    return (a * a).clip(-1.0, doubled(a)), a.sum()


def extremes_of_complex(a):
    return a.max(), np.min(a), np.max(a * a), np.amin(-a)


def widened(a, m):
    u, w = np.broadcast_arrays(a, m)
    return (
        np.broadcast_to(a, (2, 3)), np.broadcast_to(2.5, (2,)), u, w, np.broadcast_shapes((2, 1), (3,)),
        np.broadcast_to(m[:, :1], (4, 2, 3)) + a,
    )  # fmt: skip


def numbered(k):
    return np.indices((2, 3)), np.eye(3, 4, k), np.eye(2, 3, k=-1), np.eye(2, 2, 7)


def divided(a, b):
    return np.divmod(a, b)


FUSED = [
    (reduced_expressions, [(A(3, 4), A(4)), (A(3, 4, order="F"), A(1, 4)), (A(2, 1), A(2, 1))]),
    (sums_of_cubes, [(A(2, 3, 4), A(3, 4))]),
    (changed_before_the_call, [(A(4),)]),
    (extremes_of_complex, [(A(5) + 1j * A(5)[::-1],), (np.array([1 + 1j, 1 + 2j, 1 - 1j]),)]),
    (widened, [(A(3), A(2, 3)), (A(1), A(2, 3))]),
    (numbered, [(0,), (2,), (-2,), (9,)]),
    (divided, [(A(4), A(4) - 2.1), (A(3), 0.7)]),
]


RECORDS = [(fields, [(records(),)]), (whole_records, [(records(),)])]

PROGRAMS = READING + WRITING + MAKING + METHODS + REDUCING + FUSED + RECORDS


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's about empty arrays
@pytest.mark.parametrize("fn, inputs", PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_agrees_with_numpy(fn: Callable[..., Any], inputs: list[tuple[Any, ...]]) -> None:
    agree(fn, *inputs)


def narrow_sums(a):
    return a.sum(), a.mean(), a.prod(), np.var(a), np.std(a), np.cumsum(a)


def test_narrow_types_accumulate_as_numba_does() -> None:
    agree(narrow_sums, (A(50, dtype=np.float32),), (A(5, dtype=np.int32),), njit=True)


# ---- what is emitted ----------------------------------------------------------------------------


def kinds(fn: Callable[..., Any], *args: Any) -> list[str]:
    found = []
    for stmt in walk.walk(lowered(fn, *args).body):
        if isinstance(stmt, (ir.Alloc, ir.For, ir.If)):
            found.append(type(stmt).__name__)
    return found


def stencil(u):
    u[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]


def onto_itself(u):
    u[:] = np.exp(u) * 2.0 + u


def test_a_slice_needs_no_check_and_an_overlap_one_copy() -> None:
    assert kinds(stencil, A(5)) == ["Alloc", "For", "For"]


def test_the_same_place_needs_no_copy() -> None:
    assert kinds(onto_itself, A(5)) == ["For"]


def fused_sum(a):
    return np.sum(a * a)


def test_a_sum_is_fused() -> None:
    assert kinds(fused_sum, A(5)) == ["For"]


def fused_reductions(a, b, x):
    total = np.sum(np.sin(a) * b) + (a * a).mean() + np.prod(a - x) + np.var(x * a - b)
    total += np.max(np.where(a > x, a, b)) + (a + b).min() + np.sum(np.clip(a * b, -1.0, x))
    return total + (a - b).sum(axis=0)[0] + np.sum(a * b, axis=1)[0]


def test_reductions_of_expressions_make_no_temporary() -> None:
    """Only the two results of sums along an axis are arrays."""
    assert kinds(fused_reductions, A(3, 4), A(3, 4), 0.5).count("Alloc") == 2


def normalised(a):
    return (a - np.mean(a)) / (1e-3 + np.std(a)) * math.sqrt(a[1])


def test_an_array_is_summed_once_and_calls_in_an_expression_do_not_end_it() -> None:
    assert kinds(normalised, A(5)) == ["For", "For", "If", "Alloc", "For"]


def summed_again(a, b):
    part, copy = a[1:], a * 2.0
    found = [np.sum(a) + np.sum(part)]
    b[1] = 7.0  # it may be a
    found.append(np.sum(a) + np.sum(part) + np.sum(copy))
    copy[0] = np.sum(a)
    found.append(np.sum(copy))
    if a[0] > 0:
        found[0] += np.mean(a)
        a[2] = 1.5
    found.append(np.mean(a))
    for k in range(3):
        found[1] += np.sum(a)
        a[k] = np.sum(b) * np.sum(a)
    part.sort()
    return found[0], found[1], found[2], found[3], np.sum(a), np.sum(part), a.mean()


def test_an_array_that_may_have_been_written_is_summed_again() -> None:
    one, other = A(4), A(4)
    agree(summed_again, (one, other), (one, one), (-one, -one))


def fused_targets(a, b, x):
    out = np.ones((3, 4))
    out[1:, ::2] = np.where(a[1:, ::2] > x, a[1:, ::2] * 2.0, b[1:, ::2])
    out[0][1:3] += a[0, 1:3] * x
    np.multiply(a, b + x, out)
    out *= np.exp(a) - b
    out -= x


def test_expressions_are_computed_into_their_targets() -> None:
    assert kinds(fused_targets, A(3, 4), A(3, 4), 0.5).count("Alloc") == 1  # the target


# ---- what is refused ----------------------------------------------------------------------------


def two_index_arrays(a, i):
    return a[i, i]


def flattened_fortran(a):
    return a.reshape(6)


def reinterpreted(a):
    return a.view(np.int64)


@pytest.mark.parametrize(
    "fn, args, reason",
    [
        pytest.param(
            two_index_arrays,
            (A(3, 3), PICK[:1]),
            "More than one index array",
            marks=pytest.mark.skipif(not INDEX_ARRAYS, reason="Numba itself refuses it"),
        ),
        (flattened_fortran, (A(2, 3, order="F"),), "not in C order"),
        (reinterpreted, (A(3),), "another dtype"),
    ],
)
def test_refused(fn: Callable[..., Any], args: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        lowered(fn, *args)


def made_contiguous(a, k, n, m):
    v = a[::k, ::n, ::m]
    c = np.ascontiguousarray(v)
    f = np.asfortranarray(v)
    c += 1.0
    f *= 2.0
    return v, c, f


def test_contiguous_where_only_the_strides_tell() -> None:
    """Writing to what is made contiguous shows whether it is the array itself; axes of one element or
    none count as Numba counts them."""
    sizes = [(2, 3, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1), (1, 1, 3), (2, 1, 1), (1, 1, 1), (0, 2, 3)]
    steps = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (5, 5, 1), (1, 5, 5), (-1, 1, 1)]
    inputs = [(A(*size, order=o), *step) for size in sizes for step in steps for o in "CF"]
    agree(made_contiguous, *inputs, njit=True)
