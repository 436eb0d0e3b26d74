"""The benchmark kernels at small sizes: checked whole, and against extended precision.

The reference is the kernel itself, run by Python on long doubles (80 bits on x86): differences of fourth
order with a step of 1e-4 are then good to some 1e-14.
"""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

import splitad as ad
from benchmarks.kernels import KERNELS
from splitad.testing import check_vjp

LONG = np.longdouble
STEP = LONG(1e-4)
# Single precision gradients are sums of thousands of products, each rounded to 6e-8.
RTOL = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-4}


class _LongNumPy:
    """numpy, except that what is made without a dtype, or in single precision, is a long double."""

    float32 = LONG

    def empty(self, shape):
        return np.empty(shape, LONG)

    def zeros(self, shape):
        return np.zeros(shape, LONG)

    def __getattr__(self, name):
        return getattr(np, name)


class _LongMath:
    """math, on long doubles: math's own functions would round them to double."""

    def __getattr__(self, name):
        return getattr(np, name) if hasattr(np, name) else getattr(math, name)


def in_long_double(fn):
    """fn as plain Python, with its helpers."""
    plain = getattr(fn, "py_func", fn)
    names = {**plain.__globals__, "np": _LongNumPy(), "math": _LongMath()}
    for name in plain.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = in_long_double(names[name])
    return types.FunctionType(plain.__code__, names)


def extended(args, along, h):
    wide = [a.astype(LONG) if isinstance(a, np.ndarray) else a for a in args]
    wide = [LONG(a) if isinstance(a, float) else a for a in wide]
    return [a + h * along[k] if k in along else a for k, a in enumerate(wide)]


def reference(fn, args, along):
    run = in_long_double(fn)

    def difference(h):
        return run(*extended(args, along, h)) - run(*extended(args, along, -h))

    return (8 * difference(STEP) - difference(2 * STEP)) / (12 * STEP)


@pytest.mark.parametrize("name", KERNELS)
def test_checked(name: str) -> None:
    kernel = KERNELS[name]
    check_vjp(kernel.fn, *kernel.small())


@pytest.mark.parametrize("name", KERNELS)
def test_extended_precision(name: str) -> None:
    kernel = KERNELS[name]
    args = kernel.small()
    _, gradients = ad.value_and_grad(kernel.fn, wrt=kernel.wrt)(*kernel.small())
    rng = np.random.default_rng(1)
    along = {k: LONG(1) * rng.standard_normal(np.shape(args[k])) for k in kernel.wrt}
    terms = [along[k] * g for k, g in zip(kernel.wrt, gradients, strict=True)]
    size = max(np.sqrt(sum(np.sum(t * t) for t in terms)), 1e-30)
    rtol = RTOL[np.result_type(*[g for g in gradients if isinstance(g, np.ndarray)])]
    error = abs(sum(np.sum(t) for t in terms) - reference(kernel.fn, args, along)) / size
    assert error < rtol
