"""Views that repeat elements, in generated code: np.broadcast_to, but also of a shadow, which is added to.

Before:  w = view a.broadcast(n, 3)        after:  w = as_strided(a, (n, 3,), (0, step_of(a, 0)))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

as_strided = np.lib.stride_tricks.as_strided


@register_jitable
def step_of(array: Any, axis: int) -> Any:
    """The stride of an axis in a wider array: an axis of size one is repeated."""
    return 0 if array.shape[axis] == 1 else array.strides[axis]
