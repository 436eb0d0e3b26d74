"""Array rules on arguments in odd places: backwards and with gaps, empty, of one element, given twice.

The pairs are run as the text that they are (tests/fuzz/interpreted.py); rules' own pullbacks are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitad.rules import registry
from tests.fuzz.interpreted import check_in_python
from tests.rules.numpy_status import arguments, forms, function_called, functions

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


def of_any_size(x, m):
    total = x.sum() + np.prod(m) + np.sum(x * x) + np.sum(m * m, axis=0).sum() + np.nansum(x)
    total += np.sum(np.where(x > 0, x, 0.5 * x)) + np.dot(x, x) + np.linalg.norm(x) ** 2
    m[:, :] = m * 2.0
    rows = np.concatenate((x, x[::-1])) + np.repeat(x, 2)
    parts = np.sort(x), np.cumsum(m), m.T @ m, np.outer(x, x), np.diff(rows), np.unique(x)
    return total, parts, np.broadcast_to(x, (2, x.size)) * 2.0


@pytest.mark.parametrize("size", [0, 1])
def test_none_and_one(size: int) -> None:
    x = np.full(size, 0.7)
    check_in_python(of_any_size, x, np.full((size, 2), -1.3)[:, ::-1], directions=1)


def given_twice(x, y):
    y *= 2.0
    x[1:] += np.sort(y)[:-1] * np.cumsum(x)[1:]
    return np.dot(x, y) + np.sum(x * y) + np.max(x) * np.median(y)


def test_given_twice() -> None:
    x = np.array([0.3, -1.2, 0.8, 0.5])
    check_in_python(given_twice, x, x)
    check_in_python(given_twice, x, x[::-1])


def without_dimensions(x, m):
    return np.exp(x) * m + np.sum(x) + np.where(x > 0, x * m, m) + np.ravel(x)[0] * x[()]


def test_zero_dimensions() -> None:
    check_in_python(without_dimensions, np.array(0.7), np.array([[0.3, -0.4]]))
