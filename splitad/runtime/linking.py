"""Calls of functions that are compiled already, by their address.

Numba links what a function calls into it: the callee is optimised and turned into machine code once more in
every caller.  The halves of a pair are large and never inlined, so a caller only gets their address.  The
callee must live as long as the caller: the types of forwards, pullbacks and gradients see to that.

A function that holds an address of this process is not cached on disk by Numba; splitad's own are, where
the address has a name (stored.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

# Options of functions that only compiled code calls: no entry from Python, none from C.
NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(dispatcher: Any, argtypes: tuple[types.Type, ...]) -> Any:
    """Numba's compile result for just these types."""
    if argtypes not in dispatcher.overloads:
        dispatcher.compile(argtypes)
    return dispatcher.overloads[argtypes]


def call_status(context: Any, builder: Any, result: Any, args: list[Any]) -> tuple[Any, ir.Value]:
    """Call a compile result with values of the types of its signature: (status, value), nothing raised."""
    name, signature = result.fndesc.llvm_func_name, result.signature
    address = result.library.get_pointer_to_function(name)
    pointer = context.add_dynamic_addr(builder, address, info=name)
    kind = context.call_conv.get_function_type(signature.return_type, signature.args)
    return context.call_conv.call_function(  # type: ignore[no-any-return]
        builder,
        builder.bitcast(pointer, kind.as_pointer()),
        signature.return_type,
        signature.args,
        args,
    )


def call(context: Any, builder: Any, result: Any, args: list[Any]) -> ir.Value:
    """The same; an exception goes on to the caller."""
    status, value = call_status(context, builder, result, args)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return value
