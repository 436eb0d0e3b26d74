"""Whether two jitclass or structref instances of one type are one object, in njit code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

_i64 = ir.IntType(64)


@intrinsic
def same_object(typingctx: Any, a: Any, b: Any) -> Any:
    if a != b or not isinstance(a, (types.ClassInstanceType, types.StructRef)):
        raise NumbaTypeError(f"two instances of one class are needed, not {a} and {b}")

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        one, other = (
            builder.ptrtoint(context.make_helper(builder, a, value=value).meminfo, _i64)
            for value in args
        )
        return builder.icmp_signed("==", one, other)

    return types.boolean(a, b), codegen
