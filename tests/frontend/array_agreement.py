"""Compares a function's IR with what NumPy makes of its source, or njit where these two differ."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from tests import ir_interp
from tests.frontend.lowering import lowered


def agree(fn: Callable[..., Any], *inputs: tuple[Any, ...], njit: bool = False) -> None:
    """Result, side effects and the kind of exception are the same for each tuple of arguments.

    Inputs of the same types share one IR.
    """
    reference = numba.njit(fn) if njit else fn
    made: dict[Any, Any] = {}
    for args in inputs:
        kinds = tuple(map(numba.typeof, args))
        if kinds not in made:
            made[kinds] = lowered(fn, *args)
        want = _outcome(reference, args)
        got = _outcome(lambda *a, ir=made[kinds]: ir_interp.run(ir, *a), args)
        if isinstance(want[0], Exception) or isinstance(got[0], Exception):
            if type(want[0]) is not type(got[0]):
                raise AssertionError(f"{want[0]!r}, not {got[0]!r}, for {args}")
            continue
        for a, b in zip(_leaves(want), _leaves(got), strict=True):
            _same(a, b, args)


def _outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """(result or exception, arguments afterwards)"""
    args = copy.deepcopy(args)
    try:
        with np.errstate(all="ignore"):
            return fn(*args), args
    except Exception as error:
        return error, args


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, np.ndarray) and value.dtype.names:
        return [value[name] for name in value.dtype.names]
    return [value]


def _same(want: Any, got: Any, args: tuple[Any, ...]) -> None:
    if want is None:
        assert got is None
        return
    if isinstance(want, np.ndarray):
        assert isinstance(got, np.ndarray), (want, got)
        assert (want.shape, want.dtype) == (got.shape, got.dtype), (want, got)
    small = np.asarray(want).dtype in (np.float32, np.complex64)
    # What elementary functions round differently is no matter here.
    np.testing.assert_allclose(got, want, rtol=2e-6 if small else 1e-13, atol=0, err_msg=str(args))
