"""Zero shadows of arrays, in tuples or not, without a function of their own.

    plain_zeros(x, together)    in njit code: as make_zero(x) if `together`, else arrays that share none

Plain are arrays of floats, tuples of what is plain, floats and None: what has other parts (structs, lists,
integers) goes through the function of zero_text.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from splitad.runtime.extents import COLUMNS
from splitad.runtime.zero_parts import call_code, is_fortran, on_stack, room_for
from splitad.tape.arrays import raise_wrong

_i64 = ir.IntType(64)


def is_plain(x: types.Type) -> bool:
    """See the module."""
    if isinstance(x, types.BaseTuple):
        return all(map(is_plain, x.types))
    if isinstance(x, types.Array):
        return isinstance(x.dtype, _NUMBERS)
    return isinstance(x, (*_NUMBERS, types.NoneType))


_NUMBERS = (types.Float, types.Complex)


def plain_arrays(x: types.Type) -> Iterator[types.Array]:
    """The types of the arrays in a plain type."""
    if isinstance(x, types.Array):
        yield x
    elif isinstance(x, types.BaseTuple):
        for item in x.types:
            yield from plain_arrays(item)


def shadow_type(x: types.Type) -> types.Type:
    """The type of the zeros of a plain type."""
    if isinstance(x, types.Array):
        return x.copy(readonly=False)
    if isinstance(x, types.BaseTuple):
        named = x.instance_class if isinstance(x, types.BaseNamedTuple) else None
        return types.BaseTuple.from_types([shadow_type(item) for item in x.types], named)
    return x


@intrinsic
def plain_zeros(typingctx: Any, x: Any, together: Any) -> Any:
    """See the module."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = list(_arrays_in(builder, x, args[0]))
        return emit_zeros(context, builder, x, arrays, args[1])

    return shadow_type(x)(x, types.boolean), codegen


def _arrays_in(builder: Any, x: types.Type, value: Any) -> Iterator[Any]:
    if isinstance(x, types.Array):
        yield value
    elif isinstance(x, types.BaseTuple):
        for k, item in enumerate(x.types):
            yield from _arrays_in(builder, item, builder.extract_value(value, k))


def emit_zeros(
    context: Any, builder: Any, x: types.Type, arrays: Sequence[Any], together: ir.Value
) -> Any:
    """The zeros of a value of type x that has these arrays.  together: whether what they share is shared."""
    found = list(plain_arrays(x))
    rooms = [room_for(context, builder, shadow_type(typ)) for typ in found]
    given = [on_stack(context, builder, *pair) for pair in zip(found, arrays, strict=True)]
    out = [
        [is_fortran(typ), builder.ptrtoint(room, _i64)]
        for typ, room in zip(found, rooms, strict=True)
    ]
    if len(found) > 1:
        table = [_stack_words(builder, len(found) * COLUMNS), _stack_words(builder, 3)]
        with builder.if_then(together):
            for array in given:
                call_code(builder, "splitad_zero_note", ir.VoidType(), [*table, *array])
            call_code(builder, "splitad_zero_group", ir.VoidType(), table)
        wrong = _i64(0)
        for array, place in zip(given, out, strict=True):
            result = call_code(builder, "splitad_zero_shadow", _i64, [*table, *array, *place])
            wrong = builder.or_(wrong, result)
        call_code(builder, "splitad_zero_drop", ir.VoidType(), table)
    else:
        wrong = _i64(0)
        for array, place in zip(given, out, strict=True):
            wrong = call_code(builder, "splitad_zeros_like", _i64, [*array, *place])
    with builder.if_then(builder.icmp_signed("!=", wrong, _i64(0)), likely=False):
        for typ, room in zip(found, rooms, strict=True):
            context.nrt.decref(builder, typ, builder.load(room))
        raise_wrong(context, builder, wrong)
    made = iter([builder.load(room) for room in rooms])
    return _build(context, builder, x, made)


def _stack_words(builder: Any, count: int) -> Any:
    """The address of so many words on the stack, all 0."""
    kind = ir.ArrayType(_i64, count)
    return builder.ptrtoint(cgutils.alloca_once_value(builder, cgutils.get_null_value(kind)), _i64)


def _build(context: Any, builder: Any, x: types.Type, made: Iterator[Any]) -> Any:
    if isinstance(x, types.Array):
        return next(made)
    if isinstance(x, types.BaseTuple):
        items = [_build(context, builder, item, made) for item in x.types]
        return context.make_tuple(builder, shadow_type(x), items)
    return cgutils.get_null_value(context.get_value_type(x))
