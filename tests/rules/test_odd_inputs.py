"""Array rules on arguments in odd places: backwards and with gaps, empty, of one element, given twice, in
Fortran order; in float64, and all but the first in float32.

The pairs are run as the text that they are (tests/fuzz/interpreted.py); rules' own pullbacks are compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from splitad.ir import activities
from splitad.rules import registry
from tests.fuzz.interpreted import Interpreted, check_in_python
from tests.rules.numpy_status import arguments, forms, function_called, functions
from tests.rules.numpy_table import ARGUMENTS
from tests.rules.single import check_single

# by the first of their calls; of complex dtype, where real ones say less
RULES = {
    name: calls[0]
    for _, name, calls in forms()
    if (rule := registry.array_rule(function_called(name))) is not None and rule.call
}


def backwards(array: Any) -> Any:
    """The same elements, with negative strides and with gaps."""
    if not isinstance(array, np.ndarray) or array.ndim == 0 or array.dtype.kind not in "fc":
        return array
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    turned = wide[(slice(None, None, -2),) * array.ndim]
    turned[...] = array
    return turned


@pytest.mark.filterwarnings("ignore::numba.NumbaPerformanceWarning")
@pytest.mark.parametrize("name", RULES)
def test_backwards_and_with_gaps(name: str) -> None:
    (call,) = functions([RULES[name]])
    args = [backwards(arg) for arg in arguments(call, "float64")]
    check_in_python(call, *args, directions=1)


_pairs: dict[Any, Interpreted] = {}


def pair(
    function: Callable[..., Any], args: tuple[Any, ...], kinds: tuple[Any, ...]
) -> Interpreted:
    """One text for all arguments of these types."""
    key = function, tuple(map(numba.typeof, args))
    if key not in _pairs:
        _pairs[key] = Interpreted(numba.njit(function), kinds, args, {})
    return _pairs[key]


def check(function: Callable[..., Any], make: Callable[..., Any], *arrays: Any) -> None:
    """Of the arguments that make() makes of the arrays: float64 against differences, float32 against that."""
    args, small = (make(*(a.astype(kind) for a in arrays)) for kind in (np.float64, np.float32))
    kinds = tuple(activities.default(numba.typeof(arg)) for arg in args)
    forward = pair(function, args, kinds)
    check_in_python(function, *args, forward=forward, directions=1)
    check_single(function, small, kinds, pair(function, small, kinds), forward)


def of_any_size(x, m):
    total = x.sum() + np.prod(m) + np.sum(x * x) + np.sum(m * m, axis=0).sum() + np.nansum(x)
    total += np.sum(np.where(x > 0, x, 0.5 * x)) + np.dot(x, x) + np.linalg.norm(x) ** 2
    m[:, :] = m * 2.0
    rows = np.concatenate((x, x[::-1])) + np.repeat(x, 2)
    parts = np.sort(x), np.cumsum(m), m.T @ m, np.outer(x, x), np.diff(rows), np.unique(x)
    return total, parts, np.broadcast_to(x, (2, x.size)) * 2.0


@pytest.mark.parametrize("size", [0, 1])
def test_none_and_one(size: int) -> None:
    x, m = np.full(size, 0.7), np.full((size, 2), -1.3)
    check(of_any_size, lambda x, m: (x, m[:, ::-1]), x, m)


def given_twice(x, y):
    y *= 2.0
    x[1:] += np.sort(y)[:-1] * np.cumsum(x)[1:]
    return np.dot(x, y) + np.sum(x * y) + np.max(x) * np.median(y)


def test_given_twice() -> None:
    x = np.array([0.3, -1.2, 0.8, 0.5])
    check(given_twice, lambda x: (x, x), x)
    check(given_twice, lambda x: (x, x[::-1]), x)


def without_dimensions(x, m):
    return np.exp(x) * m + np.sum(x) + np.where(x > 0, x * m, m) + np.ravel(x)[0] * x[()]


def test_zero_dimensions() -> None:
    check(without_dimensions, lambda x, m: (x, m), np.array(0.7), np.array([[0.3, -0.4]]))


def by_columns(m, n, s):
    m[1:] += m[:-1] * n.T[1:]
    total = np.sum(m @ n) * np.median(m) + np.sum(np.linalg.solve(s, m)) + np.linalg.norm(n)
    return total * np.sum(m, axis=0), np.cumsum(n)[5]


def test_fortran_order() -> None:
    def by_column(m: Any, n: Any, s: Any) -> Any:
        return np.asfortranarray(m), n.T, np.asfortranarray(s)

    check(by_columns, by_column, *(ARGUMENTS[key](np.dtype(float)) for key in "mms"))
