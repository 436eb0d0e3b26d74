"""Pairs and functions that tests share: what several of them use is compiled once for each type."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba

import splitad as ad
from splitad.testing import Report, check_vjp


@cache
def pair(f: Callable[..., Any], *activities: Any, **options: Any) -> Any:
    """ad.split, once."""
    return ad.split(f, *activities, **options)


@cache
def plain(f: Callable[..., Any], **options: Any) -> Any:
    """f as a dispatcher; options: of njit."""
    return f if hasattr(f, "py_func") else numba.njit(**options)(f)


def check(
    f: Callable[..., Any], *args: Any, activities: tuple[Any, ...] = (), **options: Any
) -> Report:
    """check_vjp, with the pair that other tests of f use as well; options: of the check."""
    forward = pair(f, *activities)
    return check_vjp(plain(f), *args, activities=activities or None, forward=forward, **options)
