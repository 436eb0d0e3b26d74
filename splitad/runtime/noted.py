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
            return _of_note(context, builder, array_type, words)._getvalue()

        return array_type(types.int64, types.int64), codegen

    return noted


def _words(builder: Any, note: Any) -> Any:
    return builder.inttoptr(note, _i64.as_pointer())


def _word(builder: Any, words: Any, k: int) -> Any:
    return builder.load(builder.gep(words, [_i64(k)]))


def _of_note(context: Any, builder: Any, array_type: types.Array, words: Any) -> Any:
    """The array that was noted, with no owner."""
    word = [_word(builder, words, k) for k in range(3 + 2 * array_type.ndim)]
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
    return array


@cache
def part_of(array_type: types.Array) -> Any:
    """``f(shadow, whole, part)``: of the shadow of the noted array `whole`, what belongs to the noted array
    `part`, which lies in it."""

    @intrinsic
    def of(typingctx: Any, shadow: Any, whole: Any, part: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            given = context.make_array(shadow)(context, builder, args[0])
            words, base = (_words(builder, note) for note in args[1:][::-1])
            ndim = shadow.ndim
            same = cgutils.true_bit
            for k, stride in enumerate(cgutils.unpack_tuple(builder, given.strides)):
                short = builder.icmp_signed("<=", _word(builder, base, 3 + k), _i64(1))
                equal = builder.icmp_signed("==", _word(builder, base, 3 + ndim + k), stride)
                same = builder.and_(same, builder.or_(short, equal))
            with builder.if_then(builder.not_(same), likely=False):
                text = (
                    "a field that is assigned was a part of another argument, whose shadow must then be "
                    "laid out as the argument is",
                )
                context.call_conv.return_user_exc(builder, ShadowError, text)
            array = _of_note(context, builder, array_type, words)
            behind = builder.sub(_word(builder, words, 0), _word(builder, base, 0))
            data = builder.add(builder.ptrtoint(given.data, _i64), behind)
            array.data = builder.inttoptr(data, array.data.type)
            array.meminfo, array.parent = given.meminfo, given.parent
            value = array._getvalue()
            context.nrt.incref(builder, array_type, value)
            return value

        return array_type(shadow, types.int64, types.int64), codegen

    return of


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
