"""Lists to arrays and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.typed import List

from splitad.runtime.lists import (
    add_items,
    list_id,
    list_items,
    list_of_zeros,
    put_items,
    take_items,
)
from splitad.runtime.state import put_back

pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@njit
def items(xs):
    return list_items(xs)


@njit
def same(xs, ys):
    return list_id(xs) == list_id(ys)


@njit
def restore(xs, contents):
    put_back(xs, contents)


MAKERS = [List, list]


@pytest.mark.parametrize("make", MAKERS)
def test_items(make: Any) -> None:
    for values in ([1.0, 2.0], [1, 2], [1j], [True, False]):
        found = items(make(values))
        assert found.dtype == np.array(values).dtype
        assert list(found) == values


@pytest.mark.parametrize("make", MAKERS)
def test_adding_and_replacing(make: Any) -> None:
    shadow, array = make([1.0, 2.0]), np.array([10.0, 20.0, 30.0])
    take_items(shadow, array)
    assert list(array) == [11.0, 22.0, 30.0]
    add_items(shadow, array)
    assert list(shadow) == [12.0, 24.0]
    for want in ([5.0, 6.0, 7.0], [4.0], []):
        put_items(shadow, np.array(want))
        assert list(shadow) == want
    xs = make([1.0, 2.0])
    restore(xs, make([3.0]))
    assert list(xs) == [3.0]


def test_zeros() -> None:
    for kind in (types.ListType(types.float32), types.List(types.complex128, reflected=True)):
        made = list_of_zeros(kind)(3)
        assert list(made) == [0, 0, 0]
    assert len(list_of_zeros(types.ListType(types.float64))(0)) == 0


@pytest.mark.parametrize("make", MAKERS)
def test_which_list(make: Any) -> None:
    xs = make([1.0])
    assert same(xs, xs)
    assert not same(xs, make([1.0]))
