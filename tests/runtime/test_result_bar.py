"""result_bar is brought to the dtype of the result."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

from splitad.errors import NotDifferentiableError, ShadowError
from splitad.runtime.result_bar import bar_caster, cotangent_type


@pytest.mark.parametrize("result, given, cast", [
    (types.float64, 1, 1.0), (types.float32, 0.1, np.float32(0.1)), (types.complex64, 1.0, np.complex64(1)),
    (types.complex128, 2, 2 + 0j), (types.int64, None, None), (types.none, None, None),
    (types.UniTuple(types.float64, 2), (1, 2), (1.0, 2.0)),
    (types.Tuple((types.float32, types.int64)), (1, None), (1.0, None)),
])  # fmt: skip
def test_result_bar_is_cast(result: Any, given: Any, cast: Any) -> None:
    got = bar_caster(result)(given)
    assert got == cast and type(got) is type(cast)
    typ = cotangent_type(result, numba.typeof(given))
    assert typ == numba.typeof(cast) or isinstance(result, types.Tuple)


def test_result_bar_arrays_are_cast_in_python() -> None:
    cast = bar_caster(types.float32[:])
    same = np.ones(3, np.float32)
    assert cast(same) is same
    assert cast(np.ones(3)).dtype == np.float32 and cast([1, 2]).dtype == np.float32
    with pytest.raises(ShadowError):
        cast(np.ones((3, 3)))
    with pytest.raises(ShadowError):
        cast(np.ones(3) * 1j)


def test_named_tuples_in_compiled_code() -> None:
    """Numba casts no named tuples, so one stays what it is."""
    point = types.NamedTuple((types.float64, types.float64), namedtuple("Point", "u w"))
    assert cotangent_type(point, point) == point
    assert cotangent_type(point, types.UniTuple(types.int64, 2)) == types.UniTuple(types.float64, 2)
    integers = types.NamedTuple((types.int64, types.float64), namedtuple("Point", "u w"))
    with pytest.raises(ShadowError, match="no cotangent"):
        cotangent_type(point, integers)


def test_result_bar_that_does_not_fit() -> None:
    with pytest.raises(NotDifferentiableError, match="int64 has no cotangent"):
        bar_caster(types.int64)(1.0)
    with pytest.raises(NotDifferentiableError, match="int64 has no cotangent"):
        cotangent_type(types.int64, types.float64)
    for result, given in [
        (types.float64, 1j), (types.float64, np.ones(3)), (types.UniTuple(types.float64, 2), (1.0,)),
        (types.UniTuple(types.float64, 2), 1.0),
    ]:  # fmt: skip
        with pytest.raises(ShadowError, match="no cotangent of a result that is"):
            bar_caster(result)(given)
        with pytest.raises(ShadowError, match="no cotangent of a result that is"):
            cotangent_type(result, numba.typeof(given))
