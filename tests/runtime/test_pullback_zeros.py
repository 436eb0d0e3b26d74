"""pullback.make_zero() in Python: the same as what is compiled, for every kind of argument."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.runtime import overlapping
from tests.leaks import no_leak

Pair = namedtuple("Pair", "a b")
_block = np.arange(60.0)


def f(x, y, s):
    return s * s


def g(x, s):
    return s * s


@njit
def in_njit(pullback):
    return pullback.make_zero()


two = ad.split(f, ad.Duplicated, ad.Duplicated, ad.Active)
one = ad.split(g, ad.Duplicated, ad.Active)

PLAIN: dict[str, tuple[Any, ...]] = {
    "apart": (np.ones(3), np.ones((2, 2))),
    "single precision and complex": (np.ones(3, np.float32), np.ones(2, np.complex128)),
    "fortran order": (np.asfortranarray(np.ones((4, 3))), np.ones((3, 4)).T),
    "strided": (np.ones(9)[::2], np.ones((3, 6))[:, ::-2]),
    "without elements": (np.ones((0, 3)), _block[5:5]),
    "no dimensions": (np.ones(()), np.ones(())),
    "neighbours": (_block[:10], _block[10:20]),
    "overlapping": (_block[:10], _block[5:20]),
    "overlapping, strided": (_block[:20:2], _block[1:21].reshape(4, 5)[::-1]),
    "one within another": (_block[4:40].reshape(6, 6).T, _block[8:10]),
    "the same object": (_block, _block),
    "the same memory": (_block[:], _block[:]),
    "tuples": ((_block[:4], 2.0, np.ones(2)), Pair(_block[2:6], 1j)),
    "nothing beside an array": ((np.ones(2), ()), (None, 1.5, np.ones(1))),
}
OTHER: dict[str, Any] = {
    "integers": (np.ones(3), np.arange(3)),
    "an integer": (np.ones(3), 4),
    "records": (np.ones(3), np.zeros(2, [("a", float), ("k", int)])),
}


def leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, tuple) else [x]


def same(got: Any, wanted: Any) -> None:
    """Of the same types, layouts and values, and the same bytes shared."""
    assert type(got) is type(wanted)
    if isinstance(got, tuple):
        assert len(got) == len(wanted)
        for one_got, one_wanted in zip(got, wanted, strict=True):
            same(one_got, one_wanted)
    elif isinstance(got, np.ndarray):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        assert got.flags.f_contiguous == wanted.flags.f_contiguous
        assert got.flags.c_contiguous == wanted.flags.c_contiguous
        assert got.flags.writeable and np.array_equal(got, wanted)
    else:
        assert got == wanted


def shared(zeros: Any) -> list[int]:
    """How far apart arrays lie that share memory."""
    arrays = [leaf for leaf in leaves(zeros) if isinstance(leaf, np.ndarray)]
    return [
        a.__array_interface__["data"][0] - b.__array_interface__["data"][0]
        for a in arrays
        for b in arrays
        if a is not b and np.may_share_memory(a, b)
    ]


@pytest.mark.parametrize("name", PLAIN)
def test_as_compiled(name: str) -> None:
    args = PLAIN[name]
    _, pullback = two(*args, 2.0)
    spec = pullback._spec
    assert spec.plain_zeros is not None
    known = len(spec.zero.overloads)
    zeros = pullback.make_zero()
    assert len(spec.zero.overloads) == known  # nothing was compiled for them
    compiled = spec.zero(pullback._tape, pullback._refs)
    assert [o.signature.return_type for o in spec.zero.overloads.values()] == [spec.zeros_type]
    native = in_njit(pullback)
    for other in (compiled, native):
        same(zeros, other)
        if args[0] is not args[1]:  # then they are one object in Python, two in compiled code
            assert shared(zeros) == shared(other)
    with no_leak():
        for make in (pullback.make_zero, lambda: in_njit(pullback)):
            again = make()
            for leaf in leaves(again):
                if isinstance(leaf, np.ndarray):
                    leaf += 1.0
            del again, leaf
        same(pullback.make_zero(), zeros)
    arrays = [leaf for leaf in leaves(zeros) if isinstance(leaf, np.ndarray)]
    given = [leaf for leaf in leaves(args) if isinstance(leaf, np.ndarray)]
    assert not any(np.may_share_memory(a, b) for a in arrays for b in given)
    back = pullback(1.0, *zeros)
    assert leaves(back)[-1] == 4.0


@pytest.mark.parametrize("name", OTHER)
def test_others_are_compiled(name: str) -> None:
    _, pullback = one(OTHER[name], 2.0)
    assert pullback._spec.plain_zeros is None
    (zeros,) = pullback.make_zero()
    assert zeros[0].shape == (3,) and not zeros[0].any()
    same((zeros,), in_njit(pullback))


def test_a_read_only_argument() -> None:
    x = np.ones(4)
    x.flags.writeable = False
    _, pullback = two(x, x[:2], 2.0)
    for make in (pullback.make_zero, lambda: in_njit(pullback)):
        a, b = make()
        a[:] = 3.0
        assert b.tolist() == [3.0, 3.0]


def writes(x, y):
    x[0] = x[1] * y[0]
    return x[0]


def test_arguments_that_overlap_and_are_written() -> None:
    forward = ad.split(writes)
    block = np.arange(1.0, 6.0)
    _, pullback = forward(block[:3], block[2:])
    assert pullback.args_overlap and pullback._tape[overlapping.KEPT]
    for make in (pullback.make_zero, lambda: in_njit(pullback)):
        a, b = make()
        a[2] = 7.0
        assert b.tolist() == [7.0, 0.0, 0.0]


def test_many_arrays() -> None:
    args = [np.ones(2) for _ in range(40)]
    args[33] = args[7][1:]
    _, pullback = one(tuple(args), 2.0)
    for make in (pullback.make_zero, lambda: in_njit(pullback)):
        (zeros,) = make()
        zeros[7][1] = 5.0
        assert zeros[33].tolist() == [5.0]
        assert sum(float(z.sum()) for z in zeros) == 10.0


def test_a_shape_that_is_assigned_later_is_not_silently_taken() -> None:
    x = np.ones(6)
    _, pullback = one(x, 2.0)
    x.resize((2, 3), refcheck=False)  # in place
    with pytest.raises(Exception, match="shape|dimensions"):
        pullback(1.0, *pullback.make_zero())
