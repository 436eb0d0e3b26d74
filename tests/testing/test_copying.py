"""Copies keep layout, aliasing and content, and share nothing with what they were made from."""

from __future__ import annotations

from collections import namedtuple

import numba
import numpy as np
import pytest
from numba import float64, int64
from numba.experimental import jitclass
from numba.typed import List

from splitad.testing.copying import aliasing, arrays_in, copy_args
from splitad.testing.differences import directional
from splitad.testing.leaves import change, leaves, path_text

Pair = namedtuple("Pair", "a b")


def layouts():
    base = np.arange(24.0).reshape(4, 6)
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    return {
        "c": base,
        "fortran": np.asfortranarray(base),
        "strided": base[::2, 1::3],
        "backwards": base[::-1, ::-2],
        "0-d": np.array(2.0),
        "empty": np.zeros((0, 3)),
        "read only": frozen,
        "complex": base + 1j,
        "record": np.zeros(3, [("p", np.float64), ("k", np.int32)]),
        "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    }


@pytest.mark.parametrize("name", layouts())
def test_layouts(name: str) -> None:
    array = layouts()[name]
    (copy,) = copy_args((array,))
    assert np.array_equal(copy, array)
    assert numba.typeof(copy) == numba.typeof(array)
    assert copy.strides == array.strides or array.size == 0
    assert not np.may_share_memory(copy, array)


def test_aliasing_is_kept() -> None:
    base = np.arange(10.0)
    args = (base, base[2:5], Pair(base[::2], 3.0), base[1::2], np.ones(2), base)
    copy = copy_args(args)
    assert aliasing(copy) == aliasing(args)
    copy[1][0] = -1.0
    assert copy[0][2] == copy[2].a[1] == copy[5][2] == -1.0
    assert base[2] == 2.0
    assert type(copy[2]) is Pair


def test_widened_views_lie_as_before() -> None:
    base = np.arange(6, dtype=np.float32)
    args = (base, base[1::2], np.float32(0.5), np.arange(2))
    wide = copy_args(args, widen=True)
    assert [a.dtype.str for a in arrays_in(wide)] == ["<f8", "<f8", "<i8"]
    assert np.array_equal(wide[1], base[1::2])
    wide[1][0] = 7.0
    assert wide[0][1] == 7.0
    assert type(wide[2]) is np.float64


def test_typed_and_plain_lists() -> None:
    typed = List([np.ones(2), np.zeros(3)])
    copies = copy_args((typed, [1.0, 2.0]))
    copies[0][0][0] = 5.0
    copies[1][0] = 5.0
    assert typed[0][0] == 1.0
    assert [path for path, _ in leaves(copies)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_list_given_twice_is_copied_once() -> None:
    typed = List([1.0, 2.0])
    copies = copy_args((typed, typed, List([1.0])))
    copies[0][0] = 5.0
    assert (copies[1][0], copies[2][0], typed[0]) == (5.0, 1.0, 1.0)


def test_change_rebuilds_tuples_and_keeps_arrays() -> None:
    array = np.ones(2)
    value = Pair(array, (1.0, 2))
    new = change(
        value, lambda path, leaf: leaf.__imul__(3) if path[-1] == 0 and leaf is array else leaf + 1
    )
    assert new.a is array and array[0] == 3.0
    assert new.b == (2.0, 3)


def test_paths_read_like_python() -> None:
    assert path_text((0, "h", 2)) == "argument 0.h[2]"
    assert path_text(("result", 1)) == "result[1]"


def test_step_study_on_a_smooth_function_near_a_singularity() -> None:
    with np.errstate(invalid="ignore"):
        found = directional(lambda h: np.sqrt(np.array([1e-3 + h])), np.ones(1))
    assert found.value == pytest.approx(0.5 / np.sqrt(1e-3), rel=1e-8)
    assert found.error < 1e-6


def test_step_study_takes_a_function_that_fails_far_away() -> None:
    def along(h):
        return None if abs(h) > 1e-3 else np.array([np.exp(h)])

    assert directional(along, np.ones(1)).value == pytest.approx(1.0, rel=1e-9)


def test_noise_does_not_settle() -> None:
    rng = np.random.default_rng(0)
    assert directional(lambda h: rng.standard_normal(1), np.ones(1)).error > 1e-2


@jitclass([("h", float64[::1]), ("c", float64), ("n", int64)])
class State:
    def __init__(self, h, c):
        self.h = h
        self.c = c
        self.n = 3


def test_structs_are_copied_by_field_each_once() -> None:
    state = State(np.arange(3.0), 2.0)
    args = (state, state.h[1:], (state, 1.0))
    copies = copy_args(args)
    assert copies[0] is copies[2][0] and copies[0] is not state
    assert (copies[0].c, copies[0].n) == (2.0, 3)
    assert aliasing(copies) == aliasing(args)
    copies[1][0] = 9.0
    assert copies[0].h[1] == 9.0 and state.h[1] == 1.0
    change(copies[0], lambda path, leaf: leaf if path == ("h",) else leaf + 1)
    assert (copies[0].c, copies[0].n) == (3.0, 4)
    with pytest.raises(ValueError, match="single precision"):
        copy_args((List([np.zeros(2, np.float32)]),), widen=True)
