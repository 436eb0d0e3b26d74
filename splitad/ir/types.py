"""What Numba's own typing says of an operation: the scalar types that a result has.

One of the few places where private names of Numba are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.np import numpy_support


@lru_cache(maxsize=4096)
def scalar_result(fn: Callable[..., Any], argtypes: tuple[types.Type, ...]) -> types.Type | None:
    """The type of ``fn(*args)`` for scalars of these types, as Numba infers it; None if it does not."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        function = context.resolve_value_type(fn)
        signature = function.get_call_type(context, tuple(map(types.unliteral, argtypes)), {})
    except NumbaError:
        return None
    return None if signature is None else types.unliteral(signature.return_type)


@lru_cache(maxsize=4096)
def ufunc_loop(
    ufunc: np.ufunc, argtypes: tuple[types.Type, ...]
) -> tuple[tuple[types.Type, ...], types.Type] | None:
    """The loop that Numba picks for a ufunc: (types of the inputs, type of the result).

    argtypes: the element types of the inputs, then of an explicit output if there is one.
    """
    loop = numpy_support.ufunc_find_matching_loop(ufunc, tuple(map(types.unliteral, argtypes)))
    if loop is None or len(loop.outputs) != 1:
        return None
    return tuple(loop.inputs), loop.outputs[0]


def unify(argtypes: Sequence[types.Type]) -> types.Type | None:
    """The type that holds values of all these types, as Numba unifies them; None if there is none."""
    return cpu_target.typing_context.unify_types(*map(types.unliteral, argtypes))
