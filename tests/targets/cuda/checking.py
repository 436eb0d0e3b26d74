"""Checks a kernel's pair in numba's simulator: against the plain kernel, and against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

import splitad as ad

STEP = {8: 1e-3, 4: 3e-2}  # of fourth-order differences, by item size
TOLERANCE = {8: 1e-8, 4: 2e-3}


def to_device(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(to_device, x))
    return cuda.to_device(x) if isinstance(x, np.ndarray) else x


def to_host(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(to_host, x))
    return x.copy_to_host() if hasattr(x, "copy_to_host") else x


def arrays(x: Any) -> list[Any]:
    """Every array of floats, on the host or the device, in a fixed order."""
    if isinstance(x, (tuple, list)):
        return [a for item in x for a in arrays(item)]
    return (
        [x]
        if hasattr(x, "shape") and getattr(x, "ndim", len(x.shape)) and x.dtype.kind == "f"
        else []
    )


def run(kernel: Any, launch: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the plain kernel leaves of its arguments."""
    given = to_device(args)
    kernel[launch](*given)
    return to_host(given)


def check(
    kernel: Any, launch: Any, args: tuple[Any, ...], *, atomic: bool = False, **options: Any
) -> Any:
    """The pullback, once it has been checked."""
    g = np.random.default_rng(5)
    expected = run(kernel, launch, args)
    forward = ad.cuda.split(kernel, **options)
    given = to_device(args)
    pullback = forward[launch](*given)
    for mine, plain in zip(arrays(to_host(given)), arrays(expected), strict=True):
        assert mine.dtype == plain.dtype
        if atomic:
            np.testing.assert_allclose(mine, plain, rtol=1e-6)
        else:
            np.testing.assert_array_equal(mine, plain)
    for a in arrays(given):
        a.copy_to_device(np.full(a.shape, np.nan, a.dtype))

    inputs = arrays(args)
    size = inputs[0].dtype.itemsize
    scalars = [k for k, x in enumerate(args) if isinstance(x, (float, np.floating))]
    bars = [g.standard_normal(a.shape).astype(a.dtype) for a in inputs]
    for _ in range(2):
        shadows = to_device(_like(args, list(bars)))
        found = pullback(*shadows)
        assert len(found) == len(scalars)
        entry = arrays(to_host(shadows))
        directions = [g.standard_normal(a.shape).astype(a.dtype) for a in inputs]
        along = g.standard_normal(len(scalars))

        def loss(t: float) -> float:
            moved = _like(
                args, [a + a.dtype.type(t) * d for a, d in zip(inputs, directions, strict=True)]
            )
            own = list(_all(args, moved))
            for k, d in zip(scalars, along, strict=True):
                own[k] = type(args[k])(args[k] + t * d)
            after = arrays(run(kernel, launch, tuple(own)))
            return sum(float(np.sum(b.astype(float) * a)) for b, a in zip(bars, after, strict=True))

        h = STEP[size]
        numeric = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
        exact = sum(
            float(np.sum(e.astype(float) * d)) for e, d in zip(entry, directions, strict=True)
        )
        exact += float(np.dot(found, along))
        scale = max(1.0, abs(numeric))
        assert abs(exact - numeric) < TOLERANCE[size] * scale, (exact, numeric)
    return pullback


def _like(x: Any, values: list[np.ndarray]) -> Any:
    """The Duplicated arguments with other arrays of floats in them, in order."""
    found = []
    for item in x:
        if isinstance(item, tuple):
            found.append(_like(item, values))
        elif arrays(item):
            found.append(values.pop(0))
    return tuple(found)


def _all(args: tuple[Any, ...], floats: tuple[Any, ...]) -> Any:
    """The arguments, with those that hold floats replaced."""
    own = list(floats)
    for x in args:
        yield own.pop(0) if arrays(x) else (x.copy() if isinstance(x, np.ndarray) else x)
