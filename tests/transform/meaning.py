"""Whether two functions do the same: results, side effects and exceptions, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from tests import ir_interp
from tests.transform import random_ir


def outcome(fn: ir.Function, args: tuple[Any, ...]) -> bytes:
    """Everything that a caller can see of a call, as bytes."""
    try:
        result: Any = ir_interp.run(fn, *args)
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        result = type(error).__name__
    return repr((flat(result), [flat(a) for a in args])).encode()


def flat(value: Any) -> Any:
    if isinstance(value, tuple):
        return [flat(v) for v in value]
    if isinstance(value, np.ndarray):
        return [float(v).hex() for v in value.ravel()]
    return float(value).hex() if isinstance(value, float) else value


def check(transform: Callable[[ir.Function], ir.Function], seed: int) -> None:
    """transform keeps what the random function number `seed` means, and gives legal IR."""
    fn = random_ir.Generator(seed).function()
    verify(fn)
    shown = show(fn)
    changed = transform(fn)
    assert show(fn) == shown, "the input was changed"
    verify(changed)
    for call in range(3):
        before = outcome(fn, random_ir.arguments(seed + call))
        after = outcome(changed, random_ir.arguments(seed + call))
        if before != after:
            where = f"seed {seed}, call {call}"
            raise AssertionError(
                f"{where}\n{before!r}\n{after!r}\n{shown}\n---- became\n{show(changed)}"
            )
