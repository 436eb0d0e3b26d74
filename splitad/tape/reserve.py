"""Making room on the tape, as one call in generated code.

    base = reserve(tape, cur, nbytes)     there are nbytes behind offset cur; the address of the block

The block may have moved, so `base` replaces the old one.  TapeLimitError where max_tape_bytes forbids it,
MemoryError where there is no memory; the block is then given back.  `reserve(tape, cur, nbytes, x, y)` gives
back the references that the function has in its variables x and y, too, at a TapeLimitError: Numba would not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from splitad.errors import TapeLimitError
from splitad.tape.ops import TAPE, call_pool, handle_of

_i32, _i64 = ir.IntType(32), ir.IntType(64)


@cache
def reserve_for(message: str, held: int = 0) -> Any:
    """The function, with the text of its TapeLimitError; held: how many references it is given."""

    def typing(*given: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            tape, cur, nbytes = args[:3]
            address = handle_of(context, builder, tape)
            handle = builder.inttoptr(address, _i64.as_pointer())
            total = builder.add(cur, nbytes)
            capacity = builder.load(builder.gep(handle, [_i64(1)]))
            with builder.if_then(builder.icmp_signed(">", total, capacity), likely=False):
                got = call_pool(builder, "splitad_tape_grow", _i32, [address, cur, total])
                with builder.if_then(builder.icmp_signed("<=", got, _i32(0)), likely=False):
                    call_pool(builder, "splitad_tape_release", ir.VoidType(), [address])
                    with cgutils.if_unlikely(builder, builder.icmp_signed("<", got, _i32(0))):
                        text = ("no memory for the tape",)
                        context.call_conv.return_user_exc(builder, MemoryError, text)
                    for kind, value in zip(given, args[3:], strict=True):
                        context.nrt.decref(builder, kind, value)
                    context.call_conv.return_user_exc(builder, TapeLimitError, (message,))
            return builder.load(handle)

        return types.int64(TAPE, types.int64, types.int64, *given), codegen

    listed = "".join(f", held_{k}" for k in range(held))
    scope: dict[str, Any] = {"typing": typing}
    exec(f"def reserve(typingctx, tape, cur, nbytes{listed}): return typing({listed[2:]})", scope)
    return intrinsic(scope["reserve"])
