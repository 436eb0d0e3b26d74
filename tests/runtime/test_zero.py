"""make_zero: types, layouts, aliasing, structs, lists; in Python and in njit code."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import float64, int64, njit, typed, types
from numba.experimental import jitclass, structref

from splitad.runtime import zero
from splitad.runtime.zero import make_zero, zeros_as
from tests.leaks import no_leak

Point = namedtuple("Point", "x y")


@njit
def compiled(x):
    return make_zero(x)


both = pytest.mark.parametrize("make", [make_zero, compiled])


@jitclass([("a", float64[:]), ("b", float64[:]), ("v", float64[:]), ("n", int64), ("t", float64)])
class State:
    def __init__(self, a, b, v):
        self.a, self.b, self.v = a, b, v
        self.n, self.t = 7, 1.5

    def total(self):
        return self.a.sum() + self.b.sum() + self.t


@jitclass(
    [
        ("left", State.class_type.instance_type),
        ("right", State.class_type.instance_type),
        ("_m", float64[:, ::1]),
    ]
)
class Two:
    def __init__(self, left, right, m):
        self.left, self.right, self._m = left, right, m

    def m(self):
        return self._m


@structref.register
class BoxType(types.StructRef):
    pass


class Box(structref.StructRefProxy):
    def __new__(cls, a, k):
        return structref.StructRefProxy.__new__(cls, a, k)

    @property
    def a(self):
        return _box_a(self)

    @property
    def k(self):
        return _box_k(self)


structref.define_proxy(Box, BoxType, ["a", "k"])


@njit
def _box_a(box):
    return box.a


@njit
def _box_k(box):
    return box.k


@both
@pytest.mark.parametrize(
    "x", [1.5, np.float32(2), 3 - 1j, np.complex64(1), 4, True, None, np.int32(7)]
)
def test_scalars(make: Any, x: Any) -> None:
    got = make(x)
    discrete = x is None or isinstance(x, (int, np.integer))
    assert got == (x if discrete else 0)
    if make is make_zero:
        assert type(got) is type(x)
    elif isinstance(x, np.inexact):
        with no_leak():
            assert np.asarray(compiled(np.array([x]))).dtype == x.dtype


@both
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.bool_])
def test_arrays(make: Any, dtype: Any) -> None:
    full = np.ones((4, 6, 2)).astype(dtype)
    for x in (
        full,
        np.asfortranarray(full),
        full[::2, ::-1],
        full[0, 0],
        np.ones((), dtype),
        full[:0],
        full.T,
    ):
        got = make(x)
        assert got.shape == x.shape and got.dtype == x.dtype
        assert np.array_equal(got, x if np.dtype(dtype).kind in "bi" else np.zeros_like(x))
        assert got.flags.f_contiguous or not x.flags.f_contiguous or x.flags.c_contiguous
        assert got.flags.c_contiguous or not x.flags.c_contiguous
        assert got.flags.writeable and not np.shares_memory(got, x)


@both
def test_read_only_and_broadcast_arrays(make: Any) -> None:
    x = np.broadcast_to(np.ones(3), (4, 3))
    got = make(x)
    assert got.shape == (4, 3) and got.flags.writeable
    got[0, 0] = 1.0
    assert got.sum() == 1.0


@both
def test_tuples(make: Any) -> None:
    x = (np.ones(3), Point(2.0, np.ones((2, 2))), (4, 5.0), ())
    a, point, pair, nothing = make(x)
    assert np.array_equal(a, np.zeros(3)) and type(point) is Point and point.x == 0.0
    assert np.array_equal(point.y, np.zeros((2, 2))) and pair == (4, 0.0) and nothing == ()


def offset(view: np.ndarray, base: np.ndarray) -> int:
    return view.__array_interface__["data"][0] - base.__array_interface__["data"][0]


@both
def test_aliases(make: Any) -> None:
    base = np.arange(20.0)
    grid = base.reshape(4, 5)
    views = (
        base[3:9],
        base[::2],
        base,
        grid[:, 1],
        grid.T,
        base[::-1],
        base.view(np.int64)[2:4],
        np.ones(3),
        base[:0],
    )
    got = make(views)
    for shadow, view in zip(got, views, strict=True):
        assert shadow.shape == view.shape and shadow.dtype == view.dtype
    for k in range(7):
        assert offset(got[k], got[2]) == offset(views[k], base)
        assert got[k].strides == views[k].strides
    assert not np.shares_memory(got[7], got[2])
    got[2][:] = 0.0
    got[2][4] = 1.0
    assert got[0][1] == 1.0 and got[1][2] == 1.0 and got[4].sum() == 1.0


@both
def test_the_same_array_twice_and_neighbours(make: Any) -> None:
    base = np.ones(10)
    a, b, c = make((base[:5], base[:5], base[5:]))
    a[0] = 1.0
    assert b[0] == 1.0 and not np.shares_memory(a, c)
    assert a.base is None or a.nbytes == 40


@both
def test_alignment_in_a_block(make: Any) -> None:
    raw = np.zeros(64, np.uint8)
    raw = raw[-raw.__array_interface__["data"][0] % 8 :]
    x = (raw[4:8].view(np.float32), raw[4:40], raw[8:16].view(np.float64))
    assert all(shadow.flags.aligned for shadow in make(x))


@both
def test_record_arrays(make: Any) -> None:
    x = np.ones(3, [("k", "i4"), ("x", "f8"), ("z", "c16"), ("y", "f4", (2,))])
    got = make(x)
    assert got.dtype == x.dtype and np.array_equal(got["k"], x["k"])
    assert not got["x"].any() and not got["z"].any() and not got["y"].any()


@both
def test_jitclass(make: Any) -> None:
    base = np.ones(6)
    x = State(base[:4], base[2:], base)
    got = make(x)
    assert type(got) is type(x) and got.n == 7 and got.t == 0.0 and got.total() == 0.0
    got.v[2] = 1.0
    assert got.a[2] == 1.0 and got.b[0] == 1.0 and x.v[2] == 1.0
    got.v = np.ones(2)  # fields can be bound again


@both
def test_nested_structs_and_aliases(make: Any) -> None:
    a = np.ones(3)
    state, other = State(a, np.ones(2), a), State(np.ones(1), a, np.ones(4))
    for right in (state, other):
        pair = Two(state, right, np.ones((2, 2)))
        got, same, array = make((pair, state, a))
        array[1] = 5.0
        assert got.left.a[1] == 5.0 and got.left.v[1] == 5.0 and same.a[1] == 5.0
        assert np.array_equal(got.m(), np.zeros((2, 2)))
        same.t = 3.0
        assert got.left.t == 3.0 and (got.right.t == 3.0) == (right is state)
        assert right is state or got.right.b[1] == 5.0


@both
def test_structref(make: Any) -> None:
    x = Box(np.ones(3), 4)
    got, again = make((x, x))
    assert isinstance(got, Box) and got.k == 4 and np.array_equal(got.a, np.zeros(3))
    got.a[1] = 2.0
    assert again.a[1] == 2.0


@both
def test_typed_lists(make: Any) -> None:
    a, b = np.ones(3), np.ones(4)
    got = make(typed.List([a, b, a]))
    assert [len(item) for item in got] == [3, 4, 3] and not sum(item.sum() for item in got)
    got[0][1] = 1.0
    assert got[2][1] == 1.0
    assert list(make(typed.List([1.0, 2.0]))) == [0.0, 0.0]
    assert list(make(typed.List([1, 2]))) == [1, 2]
    states = typed.List([State(a, b, a), State(b, b, b)])
    got = make(states)
    assert len(got) == 2 and got[0].total() == 0.0 and got[1].a.shape == (4,)
    empty = typed.List.empty_list(types.float64)
    assert len(make(empty)) == 0


def test_the_same_list_twice() -> None:
    numbers = typed.List([1.0, 2.0])
    first, again, other = make_zero((numbers, numbers, typed.List([1.0, 2.0])))
    first[1] = 5.0
    assert again[1] == 5.0 and other[1] == 0.0


def test_python_lists() -> None:
    a = np.ones(3)
    got = make_zero([a, a, 1.0])
    got[0][1] = 1.0
    assert got[1][1] == 1.0 and got[2] == 0.0


def test_many_arrays_in_a_list() -> None:
    base = np.ones((300, 2))
    got = make_zero(typed.List([base[k // 2] for k in range(600)]))
    assert got[598].sum() == 0.0
    got[598][0] = 1.0
    assert got[599][0] == 1.0 and got[0][0] == 0.0


def test_other_values_are_kept() -> None:
    f = len
    assert make_zero((None, "text", f)) == (None, "text", f)
    assert compiled((None, "text", 1.0)) == (None, "text", 0.0)


def test_nothing_leaks() -> None:
    base = np.ones(6)
    state = State(base[:4], base[2:], base)
    items = typed.List([base, base[1:], np.ones(3)])
    things = (Two(state, state, np.ones((2, 2))), items, (base, base[::2]), Box(base, 3), base)

    def use() -> None:
        for make in (make_zero, compiled):
            got = make(things)
            got[0].left.a[0] = 1.0
            got[0].left.a = np.ones(2)
            del got

    use()
    with no_leak():
        for _ in range(3):
            use()


def test_plain_values_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero, "_compiled", None)
    make_zero((np.ones(3), 1.0, [np.ones(2)]))


def test_zeros_as_reads_no_element() -> None:
    @njit
    def of_layout(x):
        return zeros_as(x)

    x = np.ones(3, [("k", "i4"), ("x", "f8")])
    a, n, r = of_layout((np.ones((2, 3)), np.ones(2, np.int64), x))
    assert (
        a.shape == (2, 3) and not a.any() and not n.any() and not r["k"].any() and not r["x"].any()
    )
