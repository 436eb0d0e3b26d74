"""What belongs to the type of an argument: the check of its shadow's type, and values made from what the
tape noted of it, from which `pullback.make_zero()` starts."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import intrinsic

from splitad.errors import ShadowError
from splitad.tape.columns import pointer

_i64 = ir.IntType(64)


@cache
def noted_array(array_type: types.Array) -> Any:
    """``f(address, offset)``: the array that was noted there, its memory perhaps gone: only its shape,
    its strides and its address mean anything."""

    @intrinsic
    def noted(typingctx: Any, address: Any, offset: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            base = pointer(builder, args[0], args[1])
            words = builder.bitcast(base, _i64.as_pointer())
            word = [
                builder.load(builder.gep(words, [_i64(k)])) for k in range(3 + 2 * array_type.ndim)
            ]
            shape, strides = word[3 : 3 + array_type.ndim], word[3 + array_type.ndim :]
            array = context.make_array(array_type)(context, builder)
            array.data = builder.inttoptr(word[0], array.data.type)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            nitems = _i64(1)
            for n in shape:
                nitems = builder.mul(nitems, n)
            array.nitems, array.itemsize = nitems, word[1]
            array.shape = cgutils.pack_array(builder, shape, _i64)
            array.strides = cgutils.pack_array(builder, strides, _i64)
            return array._getvalue()

        return array_type(types.int64, types.int64), codegen

    return noted


@cache
def new_struct(struct_type: types.Type) -> Any:
    """``f()``: a jitclass or structref instance with all bytes zero; no __init__ runs."""

    @intrinsic
    def new(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            memory_type = context.get_data_type(struct_type.get_data_type())
            size = context.get_constant(types.uintp, context.get_abi_sizeof(memory_type))
            dtor = imp_dtor(context, builder.module, struct_type)
            meminfo = context.nrt.meminfo_alloc_dtor(builder, size, dtor)
            cgutils.memset(builder, context.nrt.meminfo_data(builder, meminfo), size, 0)
            value = context.make_helper(builder, struct_type)
            value.meminfo = builder.bitcast(meminfo, value.meminfo.type)
            if isinstance(struct_type, types.ClassInstanceType):
                data = context.nrt.meminfo_data(builder, meminfo)
                value.data = builder.bitcast(data, value.data.type)
            return value._getvalue()

        return struct_type(), codegen

    return new


@cache
def shadow_check(argument: types.Type, name: str, function: str) -> Any:
    """``f(shadow)``: does nothing at run time, but compiling it raises ShadowError for a shadow whose type
    is not that of the argument `name` of `function`."""

    @intrinsic
    def check(typingctx: Any, shadow: Any) -> Any:
        reason = _mismatch(argument, shadow)
        if reason:
            raise ShadowError(
                f"the shadow of '{name}' {reason}",
                None,
                f"pullback.make_zero() makes the shadows that {function} needs.",
            )

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return context.get_dummy_value()

        return types.none(shadow), codegen

    return check


def _mismatch(argument: types.Type, shadow: types.Type) -> str:
    """Why a value of type `shadow` cannot be the shadow of an argument; empty where it can."""
    if isinstance(argument, types.Array):
        if not isinstance(shadow, types.Array):
            return f"is {shadow}, not an array"
        if shadow.dtype != argument.dtype:
            return f"has dtype {shadow.dtype}, not {argument.dtype}"
        if shadow.ndim != argument.ndim:
            return f"has {shadow.ndim} dimensions, not {argument.ndim}"
        return "" if shadow.mutable else "is read-only"
    if isinstance(argument, types.BaseTuple):
        if not isinstance(shadow, types.BaseTuple) or len(shadow) != len(argument):
            return f"is {shadow}, not a tuple of {len(argument)}"
        found = (_mismatch(a, s) for a, s in zip(argument.types, shadow.types, strict=True))
        return next((reason for reason in found if reason), "")
    if isinstance(argument, types.List):  # whether it is reflected may differ
        fits = isinstance(shadow, types.List) and shadow.dtype == argument.dtype
        return "" if fits else f"is {shadow}, not {argument}"
    if isinstance(argument, (types.ClassInstanceType, types.StructRef, types.ListType)):
        return "" if shadow == argument else f"is {shadow}, not {argument}"
    return ""
