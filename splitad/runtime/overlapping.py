"""The pair for arguments that overlap in memory, behind the pair for distinct ones.

Of two arguments that overlap and of which one is written, the forward for distinct arguments knows nothing:
it writes MARK into tape[2] and raises.  Whoever called it then calls the forward of the other pair instead,
on the same tape.  What that one keeps alive goes to the tape as well, since the type of the pullback is that
of the first pair: tape[4] is a MemInfo that holds it, tape[5] how many bytes of arrays it keeps alive.  Where
tape[4] is not 0, the reverse and the zero shadows are those of the other pair.

    forward_function(spec) -> Late           (tape, *args) -> result
    reverse_function(spec, types) -> Late    (tape, result_bar, *shadows) -> cotangents
    zero_function(spec) -> Late              (tape) -> zero shadows

They are compiled when they are first called: most programs never need them, and a pair takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from splitad.runtime.content import Unknown
from splitad.runtime.late import Late
from splitad.runtime.linking import call, compiled
from splitad.runtime.stored import Keeper, keeping_jit, key_of
from splitad.tape.ops import TAPE, handle_of

MARK = -1
CAPACITY, USED, KEPT, KEPT_BYTES = 1, 2, 4, 5  # words of the handle
_i64 = ir.IntType(64)
Half = Any  # a Specialisation of pairs.py, which stands on this file
Emit = Callable[[Any, Any, list[Any]], Any]  # (context, builder, arguments) -> the value


def word_of(context: Any, builder: Any, tape: Any, which: int) -> Any:
    """A pointer to a word of the tape's handle."""
    handle = builder.inttoptr(handle_of(context, builder, tape), _i64.as_pointer())
    return builder.gep(handle, [_i64(which)])


def is_overlapping(context: Any, builder: Any, tape: Any) -> Any:
    """Whether the other pair wrote this tape."""
    kept = builder.load(word_of(context, builder, tape, KEPT))
    return builder.icmp_signed("!=", kept, _i64(0))


def may_refuse(forward: Any) -> bool:
    """Whether a forward's text says that arguments may be found to overlap."""
    return "ArgumentsOverlap" in getattr(forward, "py_func", forward).__code__.co_names


# ---- the functions ---------------------------------------------------------------------------------------


def forward_function(spec: Half) -> Late:
    def make() -> Any:
        other = spec.overlapping
        result = other.forward_result

        def emit(context: Any, builder: Any, args: list[Any]) -> Any:
            value = call(context, builder, result, args)
            refs = builder.extract_value(value, 1)
            _keep(context, builder, args[0], other.refs_type, refs)
            return builder.extract_value(value, 0)

        return _dispatcher(other, "forward", (TAPE, *spec.argtypes), other.result_type, emit)

    return Late(
        make, signature(spec.result_type, TAPE, *spec.argtypes), spec.symbol("overlapping forward")
    )


def reverse_function(spec: Half, given: Sequence[types.Type], cotangents: types.Type) -> Late:
    """given: the types of result_bar and the shadows."""
    name = None
    # by content: the name of a jitclass's type holds an address of this process
    with suppress(Unknown):
        name = spec.symbol(f"overlapping reverse {key_of(cotangents, *given)}")
    return Late(lambda: reverse_dispatcher(spec, given), signature(cotangents, TAPE, *given), name)


def zero_function(spec: Half, shadows: types.Type) -> Late:
    return Late(
        lambda: zero_dispatcher(spec), signature(shadows, TAPE), spec.symbol("overlapping zero")
    )


def reverse_dispatcher(spec: Half, given: Sequence[types.Type]) -> Any:
    """The reverse, for calls from Python."""
    return _of_kept(spec.overlapping, "reverse", given)


def zero_dispatcher(spec: Half) -> Any:
    """The zero shadows, for calls from Python."""
    return _of_kept(spec.overlapping, "zero", ())


def _of_kept(other: Half, half: str, given: Sequence[types.Type]) -> Any:
    """``f(tape, *given)``, which calls ``other.half(tape, refs, *given)``."""
    argtypes = (TAPE, other.refs_type, *given)
    result = compiled(getattr(other, half), argtypes)

    def emit(context: Any, builder: Any, args: list[Any]) -> Any:
        refs = _kept(context, builder, args[0], other.refs_type)
        return call(context, builder, result, [args[0], refs, *args[1:]])

    return _dispatcher(other, half, (TAPE, *given), result.signature.return_type, emit)


def _dispatcher(
    other: Half, half: str, argtypes: Sequence[types.Type], result: types.Type, emit: Emit
) -> Any:
    """An njit function of such arguments whose body is emitted by `emit`, which calls other's half."""

    def typing(*given: Any) -> Any:
        return result(*argtypes), lambda context, builder, sig, args: emit(context, builder, args)

    names = ", ".join(f"a{k}" for k in range(len(argtypes)))
    scope: dict[str, Any] = {"typing": typing}
    exec(f"def body(typingctx, {names}): return typing({names})", scope)
    scope["body"] = intrinsic(scope["body"])
    exec(f"def overlapping({names}): return body({names})", scope)
    keeper = Keeper(lambda args: key_of("overlapping", half, other.content_name(), *args))
    return keeping_jit(scope["overlapping"], keeper, nogil=True)


# ---- what the tape keeps alive ---------------------------------------------------------------------------


def _keep(context: Any, builder: Any, tape: Any, refs_type: types.Type, refs: Any) -> None:
    """Give the reference to `refs` to the tape."""
    size = max(context.get_abi_sizeof(context.get_value_type(refs_type)), 8)
    dtor = _destructor(context, builder.module, refs_type)
    size = context.get_constant(types.uintp, size)
    meminfo = context.nrt.meminfo_alloc_dtor(builder, size, dtor)
    builder.store(refs, _contents(context, builder, meminfo, refs_type))
    builder.store(builder.ptrtoint(meminfo, _i64), word_of(context, builder, tape, KEPT))
    nbytes = arrays_nbytes(context, builder, refs_type.types[0], builder.extract_value(refs, 0))
    builder.store(nbytes, word_of(context, builder, tape, KEPT_BYTES))


def _kept(context: Any, builder: Any, tape: Any, refs_type: types.Type) -> Any:
    """What was kept, not counted as references: the tape lives longer than the call."""
    meminfo = builder.load(word_of(context, builder, tape, KEPT))
    meminfo = builder.inttoptr(meminfo, cgutils.voidptr_t)
    refs = builder.load(_contents(context, builder, meminfo, refs_type))
    return _uncounted(context, builder, refs_type, refs)


def _contents(context: Any, builder: Any, meminfo: Any, refs_type: types.Type) -> Any:
    data = context.nrt.meminfo_data(builder, meminfo)
    return builder.bitcast(data, context.get_value_type(refs_type).as_pointer())


def _uncounted(context: Any, builder: Any, typ: types.Type, value: Any) -> Any:
    if isinstance(typ, types.Array):
        array = context.make_array(typ)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    for k, item in enumerate(typ.types if isinstance(typ, types.BaseTuple) else ()):
        part = _uncounted(context, builder, item, builder.extract_value(value, k))
        value = builder.insert_value(value, part, k)
    return value


def _destructor(context: Any, module: ir.Module, refs_type: types.Type) -> ir.Function:
    """For Numba's runtime: what becomes of the contents of such a MemInfo."""
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, _i64, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(module, kind, f"splitad_drop.{refs_type}")
    if function.is_declaration:
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block())
        contents = context.get_value_type(refs_type).as_pointer()
        refs = builder.load(builder.bitcast(function.args[0], contents))
        context.nrt.decref(builder, refs_type, refs)
        builder.ret_void()
    return function


def arrays_nbytes(context: Any, builder: Any, typ: types.Type, value: Any) -> Any:
    """The bytes of the arrays in a value."""
    if isinstance(typ, types.Array):
        array = context.make_array(typ)(context, builder, value)
        return builder.mul(array.nitems, array.itemsize)
    total = _i64(0)
    for k, item in enumerate(typ.types if isinstance(typ, types.BaseTuple) else ()):
        part = arrays_nbytes(context, builder, item, builder.extract_value(value, k))
        total = builder.add(total, part)
    return total
