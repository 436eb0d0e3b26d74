"""The Python source that a user gave a function by ``@overload`` or ``@register_jitable``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from splitad.ir.types import overload_dispatcher


def implementation(
    fn: Callable[..., Any], kinds: tuple[types.Type, ...], named: dict[str, types.Type]
) -> Callable[..., Any] | None:
    """The dispatcher of the implementation for these types; None where Numba has none in Python."""
    return overload_dispatcher(fn, kinds, named)
