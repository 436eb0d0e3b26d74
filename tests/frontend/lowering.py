"""Compares a function's IR, as tests/ir_interp.py executes it, with what plain njit does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import splitad.rules  # noqa: F401
from splitad.frontend.lower import CompileFlags, lower
from splitad.ir import nodes as ir
from splitad.ir.verify import verify
from splitad.rules import ops, registry
from tests import ir_interp


def lowered(fn: Callable[..., Any], *args: Any, **flags: Any) -> ir.Function:
    """The IR for arguments like these, verified."""
    kinds = tuple(map(numba.typeof, args))
    made = lower(getattr(fn, "py_func", fn), kinds, CompileFlags(**flags), registry, ops)
    verify(made)
    return made


def outcome(call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any, tuple[Any, ...]]:
    """(result, exception, arguments afterwards)."""
    try:
        return call(*args), None, args
    except Exception as error:
        return None, error, args


def _fresh(args: Any) -> tuple[Any, ...]:
    return args() if callable(args) else copy.deepcopy(args)  # type: ignore[no-any-return]


def check(fn: Callable[..., Any], *inputs: Any) -> None:
    """Result, exception and side effects are those of njit, for each of the inputs.

    An input is a tuple of arguments, or a function that makes one where they cannot be copied.
    """
    plain = fn if hasattr(fn, "py_func") else numba.njit(fn)
    model = getattr(fn, "targetoptions", {}).get("error_model", "python")
    made = lowered(fn, *_fresh(inputs[0]), error_model=model)
    for args in inputs:
        want, wrong, after = outcome(plain, _fresh(args))
        got, also_wrong, also_after = outcome(lambda *a: ir_interp.run(made, *a), _fresh(args))
        if wrong is None and also_wrong is not None:
            raise also_wrong
        assert type(wrong) is type(also_wrong), (wrong, also_wrong)
        assert wrong is None or str(wrong) == str(also_wrong), (wrong, also_wrong)
        same(got, want)
        same(also_after, after)


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert type(got) is type(want) and len(got) == len(want), (got, want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    elif hasattr(want, "_numba_type_") and hasattr(want._numba_type_, "struct"):
        for name in want._numba_type_.struct:
            same(getattr(got, name), getattr(want, name))
    elif isinstance(want, (np.ndarray, np.generic, int, float, complex, bool)):
        a, b = np.asarray(got), np.asarray(want)
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind, (got, want)
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-300)
    else:
        assert got is want or got == want, (got, want)
