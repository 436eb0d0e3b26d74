"""The checks of one call: which fault is found, in what words, and that raising it leaks nothing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numba import cfunc, njit

from splitad import errors
from splitad.runtime import faults
from splitad.runtime.faults import (
    CONSTANT,
    ON_ITSELF,
    ON_PRIMAL,
    OTHER_TYPE,
    OVERLAPPING,
    SEPARATE,
    TOUCHING,
    WRONG_SHAPE,
    arguments_fault,
    in_words,
    shadows_fault,
)
from tests.leaks import no_leak

BASE = np.zeros(60)
GRID = BASE.reshape(6, 10)


def notes(*arrays: np.ndarray) -> np.ndarray:
    """The notes of arrays, one behind the other; test_boundary checks that note_array writes the same."""
    words: list[int] = []
    for a in arrays:
        words += [a.ctypes.data, a.itemsize, a.ndim, *a.shape, *a.strides]
    return np.array(words, np.int64)


@njit
def _arguments(address, count, written, fixed, rebound, doubles, singles):
    return arguments_fault(address, count, written, fixed, rebound, doubles, singles)


@njit
def _shadows(address, count, shadows, which, written):
    return shadows_fault(address, count, shadows, which, written)


def taken_apart(code: int) -> Any:
    """0, or the kind and the two arguments."""
    return code and (code // 4096, code // 64 % 64, code % 64)


def arguments(
    *arrays: np.ndarray,
    written: int,
    fixed: int = 0,
    rebound: int = 0,
    doubles: int = 0,
    singles: int = 0,
) -> Any:
    noted = notes(*arrays)
    sets = written, fixed, rebound, doubles, singles
    return taken_apart(_arguments(noted.ctypes.data, len(arrays), *sets))


def shadows(arrays: Any, given: Any, which: int, written: int = 0) -> Any:
    noted, shadow = notes(*arrays), notes(*given)
    return taken_apart(_shadows(noted.ctypes.data, len(arrays), shadow.ctypes.data, which, written))


WINDOWS = np.lib.stride_tricks.sliding_window_view(np.zeros(10), 3)


@pytest.mark.parametrize(
    "a",
    [
        WINDOWS,
        np.broadcast_to(np.ones(3), (2, 3)),
        np.broadcast_to(np.ones((3, 1)), (3, 2)),
        np.lib.stride_tricks.as_strided(np.zeros(20), (3, 4), (8, 8)),
    ],
)
def test_a_written_argument_that_overlaps_itself(a: np.ndarray) -> None:
    assert arguments(BASE, a, written=0b10) == (ON_ITSELF, 1, 1)
    assert arguments(BASE, a, written=0b01) == 0


@pytest.mark.parametrize(
    "a",
    [
        BASE,
        GRID,
        GRID.T,
        GRID[::2, ::-3],
        BASE[::-1],
        GRID[:, :1],
        WINDOWS[:1],
        WINDOWS[::3],
        np.zeros((3, 1, 4, 1)),
        np.zeros(()),
        np.zeros((3, 0)),
        np.broadcast_to(np.ones(3), (0, 3)),
        np.diagonal(GRID),
        np.zeros((3, 4, 5)).transpose(1, 0, 2),
    ],
    ids=lambda a: f"{a.shape}{a.strides}",
)
def test_a_written_argument_that_does_not(a: np.ndarray) -> None:
    assert arguments(a, written=1) == 0


def test_arguments_that_overlap() -> None:
    x, y = np.zeros(4), np.zeros((2, 2))
    arrays = (x, y, x[1:], y[0])
    assert arguments(*arrays, written=0) == 0
    assert arguments(*arrays, written=0b0001) == (OVERLAPPING, 2, 0)
    assert arguments(*arrays, written=0b0100) == (OVERLAPPING, 2, 0)
    assert arguments(*arrays, written=0b0010) == (OVERLAPPING, 3, 1)
    assert arguments(*arrays, written=0b0010, fixed=0b1000) == (CONSTANT, 3, 1)
    assert arguments(*arrays, written=0b0010, fixed=0b0101) == (OVERLAPPING, 3, 1)
    assert arguments(*arrays, written=0b0011, fixed=0b1000) == (
        CONSTANT,
        3,
        1,
    )  # worse than 2 and 0
    assert arguments(x, written=1) == 0 and arguments(written=0) == 0


def test_a_rebound_field_must_be_a_part_of_the_other() -> None:
    x = np.zeros(6)
    parts = (x, x[1:4])
    for arrays, rebound, fine in [
        (parts, 0b10, True), (parts, 0b01, False), (parts, 0b11, True), (parts[::-1], 0b01, True),
        (parts[::-1], 0b10, False), (parts[::-1], 0b11, False), ((x, x), 0b01, True),
        ((x[:4], x[2:]), 0b10, False), ((x[::2], x[0:2]), 0b10, False), ((x, x[::-2]), 0b10, True),
    ]:  # fmt: skip
        want = (OVERLAPPING if fine else CONSTANT, 1, 0)
        assert arguments(*arrays, written=0b11, rebound=rebound) == want, (arrays, rebound)


def test_arguments_of_other_types_that_overlap() -> None:
    x = np.zeros(4)
    arrays = (x, x.view(np.complex128), x.view(np.float32), x.view(np.int64), x.view(np.int8))
    doubles, singles = 0b00011, 0b00100

    def found(*which: int) -> Any:
        bits = [
            sum(1 << n for n, k in enumerate(which) if (s >> k) & 1) for s in (doubles, singles)
        ]
        chosen = [arrays[k] for k in which]
        return arguments(*chosen, written=1, doubles=bits[0], singles=bits[1])

    assert found(0, 1) == (OVERLAPPING, 1, 0) and found(3, 4) == (OVERLAPPING, 1, 0)
    for pair in ((0, 2), (1, 2), (0, 3), (2, 3), (4, 1)):
        assert found(*pair) == (OTHER_TYPE, 1, 0), pair
    assert arguments(x, x, written=1, doubles=0b11, singles=0b10) == (OVERLAPPING, 1, 0)  # a record


def test_a_shadow() -> None:
    x, y = np.zeros((3, 4)), np.zeros(2)
    assert shadows((x,), (np.zeros((3, 4)),), 1) == 0
    assert shadows((x,), (np.zeros((4, 3)),), 1) == (WRONG_SHAPE, 0, 0)
    assert shadows((x,), (np.zeros((4, 3)).T,), 1) == 0
    assert shadows((x,), (x,), 1) == (ON_PRIMAL, 0, 0)
    assert shadows((y, x), (x[:, :2], np.zeros((3, 4))), 0b11) == (WRONG_SHAPE, 0, 0)
    assert shadows((y, x), (x[0, :2], np.zeros((3, 4))), 0b11) == (ON_PRIMAL, 0, 1)
    assert shadows((y, x), (np.zeros(12).reshape(3, 4),), 0b10) == 0
    assert shadows((y, x), (np.zeros(2),), 0b10) == (WRONG_SHAPE, 1, 1)


@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_two_shadows(written: int) -> None:
    """They must overlap as their primals do, and where nothing is written they may also be apart."""
    x, other = np.zeros(10), np.zeros(10)

    def found(primals: Any, given: Any) -> Any:
        return shadows(primals, given, 0b11, written)

    touching = (TOUCHING, 1, 0)
    apart = (SEPARATE, 1, 0) if written else 0
    askew = (SEPARATE, 1, 0) if written else touching
    parts = (x, x[2:6])
    assert found(parts, (other, other[2:6])) == 0
    assert found(parts, (other, np.zeros(4))) == apart
    assert found(parts, (other, other[3:7])) == askew
    assert found(parts, (other, other[2:10:2])) == askew
    assert found((x, x), (other, other)) == 0
    assert found((x, x), (other, other[::-1])) == askew
    assert found((x, np.zeros(10)), (other, np.zeros(10))) == 0
    assert found((x, np.zeros(10)), (other, other)) == touching
    assert found((x[::2], x[1::2]), (other[::2], other[1::2])) == 0
    assert found((x[::2], x[1::2]), (np.zeros(5), np.zeros(5))) == 0
    assert found((x[::2], x[1::2]), (other[:5], other[4:9])) == touching


def code_of(kind: int, one: int, other: int) -> int:
    return int(faults.first_code(kind)) + 64 * one + other


@pytest.mark.parametrize("kind", range(WRONG_SHAPE, OTHER_TYPE + 1))
def test_the_words_name_the_argument(kind: int) -> None:
    assert "'right'" in in_words(code_of(kind, 1, 0), "f|left|right")


@pytest.mark.parametrize("made", [
    faults.ShadowError(code_of(TOUCHING, 1, 0), "f|left|right"),
    faults.AliasingError(code_of(OVERLAPPING, 1, 0), "f|left|right"),
    faults.AliasingError(code_of(OVERLAPPING, 1, 0), "f|left|right").placed(errors.Loc("a.py", 3, "f")),
    faults.ShadowError(code_of(WRONG_SHAPE, 1, 0), "f|left|right").with_shapes((4,), (3,)).placed(
        errors.Loc("a.py", 3, "f")
    ),
    faults.ArgumentsOverlap("f|left|right"),
])  # fmt: skip
def test_an_error_can_be_pickled(made: Any) -> None:
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made) and str(again) == str(made)


def test_raising_from_compiled_code_does_not_leak() -> None:
    shadow_error, aliasing_error = faults.ShadowError, faults.AliasingError

    @njit
    def pullback(code):
        temporary = np.zeros(5)
        if code > 4 * 4096:
            raise aliasing_error(code, "f|u|v")
        if code != 0:
            raise shadow_error(code, "f|u|v")
        return temporary[0]

    assert pullback(0) == 0.0
    with no_leak():
        for _ in range(3):
            with pytest.raises(errors.ShadowError, match="the shadow of 'u' has another shape"):
                pullback(code_of(WRONG_SHAPE, 0, 0))
            with pytest.raises(errors.AliasingError, match="'v' and 'u' overlapped"):
                pullback(code_of(SEPARATE, 1, 0))


def test_a_folder_that_cannot_be_written_is_no_obstacle(monkeypatch) -> None:
    def without_folder(signature, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return cfunc(signature)

    monkeypatch.setattr(faults, "cfunc", without_folder)
    assert faults._compiled("int64(int64)", lambda n: n + 1).ctypes(2) == 3


def test_the_cached_checks_depend_on_all_their_sources(monkeypatch) -> None:
    (one, _), _ = faults._entry_points(faults._sources()).values()
    monkeypatch.setattr(faults, "boundary", faults)  # another text
    (other, _), _ = faults._entry_points(faults._sources()).values()
    cells = [[c.cell_contents for c in f.__closure__] for f in (one, other)]
    assert cells[0] != cells[1]
