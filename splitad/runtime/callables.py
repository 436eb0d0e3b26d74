"""`forward` and the pullback it returns: callable from Python and from njit code, first-class values in both.

    forward = Forward(register_pair(key, resolver, signature, name, max_tape_bytes), nogil=False)
    result, pullback = forward(*args, **kwargs)
    cotangents = pullback(result_bar, *shadows)
    shadows = pullback.make_zero()
    pullback.tape_nbytes
    pullback.args_overlap                          whether f writes memory that two arguments share

forward makes a tape as large as the last one of its specialisation, calls forward_impl, trims the tape and
returns the result and a pullback that holds the tape and `refs`.  forward_impl gets the tape without
ownership: an exception in it leaks what a compiled function holds at the time, and that is then not
the tape.  pullback casts result_bar to the result's dtype and calls reverse_impl.

All of this works in njit code as well.  There a forward is a value without contents, a pullback a struct of
tape and refs; both can be held in variables, merged by `if`, kept in tuples, lists and jitclass fields
(declared as numba.typeof(forward), numba.typeof(pullback)), boxed and unboxed.

A compiled function that calls either holds an address of this process, so Numba will not cache it on disk.
The small functions behind a call from Python are kept by splitad (stored.py), which knows what they call.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.core.imputils import lower_constant, lower_getattr
from numba.core.typing.templates import AttributeTemplate, Signature, bound_function, infer_getattr
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.misc.special import typeof

from splitad.errors import ArgumentsOverlap, InternalError, ShadowError, SplitadError
from splitad.runtime import faults, overlapping
from splitad.runtime.addresses import give_name
from splitad.runtime.late import Late
from splitad.runtime.linking import call, call_status, compiled
from splitad.runtime.numba_pipeline import mark_entry
from splitad.runtime.pairs import EntryType, ForwardType, Pair, PullbackType, Specialisation
from splitad.runtime.stored import Keeper, keeping_jit, key_of, need
from splitad.tape.ops import TAPE, call_pool, handle_of, make_tape, without_owner_value

_i64 = ir.IntType(64)


# ---- in Python -----------------------------------------------------------------------------------------


class Forward:
    """The forward half of a pair; calling it returns (result, pullback)."""

    is_derivative = True

    def __init__(self, pair: Pair, nogil: bool = False) -> None:
        self._pair = pair
        self._nogil = nogil
        self._run = _trampoline(pair, nogil)
        parameters = pair.signature.parameters.values()
        plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        self._count = len(parameters) if plain else -1  # so many positional ones need no binding
        self._defaults = [p.default for p in parameters]
        self._required = self._defaults.count(inspect.Parameter.empty) if plain else 0
        self.__name__ = self.__qualname__ = pair.name
        self.__signature__ = pair.signature
        pair.forward = weakref.ref(self)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        if kwargs or len(args) != self._count:
            args = self._fold(args, kwargs)
        try:
            made: tuple[Any, Pullback] = self._run(*args)
            if list in map(type, args):
                made[1]._lists = tuple(arg for arg in args if type(arg) is list)
            return made
        except ArgumentsOverlap as error:
            raise self.why_none(error, args) from None
        except SplitadError as error:
            raise self.placed(error) from None
        except NumbaError as error:
            raise self.placed(without_wrapping(error, self._pair.specialise, args)) from None

    def why_none(self, error: ArgumentsOverlap, args: tuple[Any, ...]) -> Exception:
        """Why there is no pair for such arguments, which overlap."""
        spec = self._pair.specialise(tuple(types.unliteral(typeof(a)) for a in args))
        late = spec.forward_overlapping
        reason = late.error if late is not None and late.error is not None else error
        return self.placed(reason)

    def placed(self, error: Exception) -> Exception:
        """The error, which names the function's definition if it named no place."""
        if isinstance(error, SplitadError):
            error.placed(self._pair.definition())
        return error.with_traceback(None)

    def _fold(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value per parameter, in their order."""
        if not kwargs and self._required <= len(args) < self._count:
            return (*args, *self._defaults[len(args) :])
        try:
            bound = self._pair.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def __repr__(self) -> str:
        return f"<forward of {self._pair.name}>"


def without_wrapping(
    error: NumbaError, compile: Callable[[tuple[types.Type, ...]], Any], args: tuple[Any, ...]
) -> Exception:
    """What compiling for these arguments raises, without what Numba says of our own functions around it."""
    try:
        compile(tuple(types.unliteral(typeof(a)) for a in args))
    except (SplitadError, NumbaError) as inner:
        return inner.with_traceback(None)
    return error.with_traceback(None)


class Entry:
    """What stands for the forward in its trampoline, or another function that holds no more than its
    arguments when it calls it; its type is EntryType."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair


def _trampoline(pair: Pair, nogil: bool) -> Any:
    """njit code that only calls the pair's forward, with one argument per parameter."""
    names = ", ".join(pair.signature.parameters)

    def key(args: tuple[types.Type, ...]) -> str:
        spec = pair.specialise(tuple(types.unliteral(t) for t in args))
        return key_of("entry", names, nogil, spec.content_name(), *args)

    name = f"{pair.name}_forward" if pair.name.isidentifier() else "forward"
    scope: dict[str, Any] = {"_entry_": Entry(pair)}
    exec(f"def {name}({names}): return _entry_({names})", scope)
    mark_entry(scope[name])
    return keeping_jit(scope[name], Keeper(key), nogil=nogil, no_cfunc_wrapper=True)


class Pullback:
    """The reverse half of one call; it may be called any number of times, from any thread."""

    is_derivative = True

    __slots__ = ("_spec", "_tape", "_refs", "_lists", "__weakref__")

    def __init__(self, spec: Specialisation, tape: Any, refs: Any) -> None:
        self._spec, self._tape, self._refs = spec, tape, refs
        # the lists among the arguments that are not typed: compiled code does not know which they were
        self._lists: tuple[Any, ...] = ()

    def __call__(self, result_bar: Any, *shadows: Any) -> Any:
        spec = self._spec
        if len(shadows) != spec.shadow_count:
            spec.check_count(1 + len(shadows))
        try:
            bar = spec.cast_bar(result_bar)
            if self._lists and any(shadow is given for shadow in shadows for given in self._lists):
                raise ShadowError("a list among the shadows is the one that was an argument")
            if self._tape[overlapping.KEPT]:
                return spec.call_overlapping(self._tape, bar, *shadows)
            return spec.reverse(self._tape, self._refs, bar, *shadows)
        except SplitadError as error:
            # no name for it here: with the frame that it refers to, it would keep the tape
            raise self._told(error.with_traceback(None), shadows) from None

    def _told(self, error: SplitadError, shadows: tuple[Any, ...]) -> SplitadError:
        """The error, with the shapes, and the place of the function's definition if it named none."""
        return self._shaped(error, shadows).placed(self._spec.pair.definition())

    def _shaped(self, error: SplitadError, shadows: tuple[Any, ...]) -> SplitadError:
        """An error about the shape of an argument's shadow says which the shapes are."""
        if not isinstance(error, faults.ShadowError):
            return error
        if error.misshapen not in self._spec.pair.signature.parameters:  # a part of an argument
            return error
        shapes = [
            (given.shape, zero.shape)
            for given, zero in zip(shadows, self.make_zero(), strict=True)
            if isinstance(given, np.ndarray) and given.shape != zero.shape
        ]
        return error.with_shapes(*shapes[0]) if len(shapes) == 1 else error

    def make_zero(self) -> Any:
        """A tuple of zero shadows, one per Duplicated argument, right for entering the pullback."""
        spec, refs = self._spec, self._refs
        if spec.plain_zeros is not None and refs:  # () where arguments overlap
            return spec.plain_zeros(refs[1])
        if self._tape[overlapping.KEPT]:
            return spec.make_zero_overlapping(self._tape)
        return spec.zero(self._tape, refs)

    @property
    def tape_nbytes(self) -> int:
        """What the pullback keeps: the reserved tape and the arrays kept alive."""
        kept = int(self._tape[overlapping.KEPT_BYTES])
        return int(self._tape[1]) + kept + _refs_nbytes(self._refs[:1])

    @property
    def args_overlap(self) -> bool:
        """Whether arguments overlapped in memory, one of them written."""
        return bool(self._tape[overlapping.KEPT])

    def __repr__(self) -> str:
        return f"<pullback of {self._spec.pair.name}, tape of {self.tape_nbytes} bytes>"


give_name(id(Pullback), "splitad.Pullback", Pullback)


def _refs_nbytes(refs: Any) -> int:
    if isinstance(refs, tuple):
        return sum(map(_refs_nbytes, refs))
    return getattr(refs, "nbytes", 0)


@typeof_impl.register(Forward)
def _typeof_forward(value: Forward, c: Any) -> ForwardType:
    return value._pair.forward_type


@typeof_impl.register(Entry)
def _typeof_entry(value: Entry, c: Any) -> EntryType:
    return value.pair.entry_type


@typeof_impl.register(Pullback)
def _typeof_pullback(value: Pullback, c: Any) -> PullbackType:
    return value._spec.pullback_type


# ---- in compiled code: forward -------------------------------------------------------------------------


register_model(ForwardType)(models.OpaqueModel)
register_model(EntryType)(models.OpaqueModel)


@register_model(PullbackType)
class PullbackModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: PullbackType) -> None:
        super().__init__(dmm, fe_type, [("tape", TAPE), ("refs", fe_type.spec.refs_type)])


@lower_constant(EntryType)
@lower_constant(ForwardType)
def _constant_forward(context: Any, builder: Any, typ: ForwardType, value: Forward) -> Any:
    return context.get_dummy_value()


def _counters(context: Any, builder: Any, spec: Specialisation) -> Any:
    """A pointer to spec.counters.  That an address of this process is used, keeps Numba from caching a user's
    function on disk, where it would go stale when the differentiated function changes."""
    address = context.add_dynamic_addr(builder, spec.counters.ctypes.data, info="splitad counters")
    return builder.bitcast(address, _i64.as_pointer())


@lower_builtin("splitad forward call", ForwardType, types.VarArg(types.Any))
def _call_forward(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pullback_type = sig.return_type.types[1]
    spec = pullback_type.spec
    need(context, ready_forward, spec)
    used = builder.gep(_counters(context, builder, spec), [_i64(0)])
    tape = make_tape(context, builder, builder.load(used), _i64(spec.pair.limit))
    borrowed = without_owner_value(context, builder, tape)
    status, value = call_status(context, builder, spec.forward_result, [borrowed, *args[1:]])
    # Inside a `try` of the caller, Numba goes on after an error, with zeros, until the handler.
    out = cgutils.alloca_once_value(
        builder, cgutils.get_null_value(context.get_value_type(sig.return_type))
    )

    def fail(status: Any) -> None:
        context.nrt.decref(builder, TAPE, tape)
        context.call_conv.return_status_propagate(builder, status)

    def give(result: Any, refs: Any = None) -> None:
        word = overlapping.word_of(context, builder, tape, overlapping.USED)
        builder.store(builder.load(word), used)
        trim = [handle_of(context, builder, tape)]
        call_pool(builder, "splitad_tape_trim", ir.VoidType(), trim)
        pullback = cgutils.create_struct_proxy(pullback_type)(context, builder)
        pullback.tape = tape
        if refs is not None:
            pullback.refs = refs
        items = [result, pullback._getvalue()]
        builder.store(context.make_tuple(builder, sig.return_type, items), out)

    with builder.if_else(status.is_error, likely=False) as (failed, done):
        with failed:
            late = spec.forward_overlapping
            if late is None:
                fail(status)
            else:
                _call_overlapping(context, builder, late, [borrowed, *args[1:]], status, fail, give)
        with done:
            give(builder.extract_value(value, 0), builder.extract_value(value, 1))
    return builder.load(out)


def _call_overlapping(
    context: Any,
    builder: Any,
    late: Late,
    args: list[Any],
    status: Any,
    fail: Callable[[Any], None],
    give: Callable[..., None],
) -> None:
    """After the error `status`: if arguments overlap, the other pair's forward."""
    used = overlapping.word_of(context, builder, args[0], overlapping.USED)
    address = cgutils.alloca_once_value(builder, _i64(0))
    marked = builder.icmp_signed("==", builder.load(used), _i64(overlapping.MARK))
    with builder.if_then(marked):
        builder.store(late.address(context, builder), address)
    there = builder.load(address)
    with builder.if_else(builder.icmp_signed("!=", there, _i64(0))) as (yes, no):
        with no:
            fail(status)
        with yes:
            builder.store(_i64(0), used)
            again, result = late.call(context, builder, there, args)
            with builder.if_else(again.is_error, likely=False) as (failed, done):
                with failed:
                    fail(again)
                with done:
                    give(result)


@box(ForwardType)
def _box_forward(typ: ForwardType, value: Any, c: Any) -> Any:
    return c.pyapi.call_method(_python_object(c, typ.pair), "forward_object")


@unbox(ForwardType)
def _unbox_forward(typ: ForwardType, obj: Any, c: Any) -> NativeValue:
    wrong = _is_other(c, obj, "_pair", typ.pair)
    return NativeValue(c.context.get_dummy_value(), is_error=wrong)


def _python_object(c: Any, value: object) -> Any:
    """A borrowed reference to an object that lives at least as long as the type that is boxed."""
    address = c.context.add_dynamic_addr(c.builder, id(value), info=type(value).__name__)
    return c.builder.bitcast(address, c.pyapi.pyobj)


def _is_other(c: Any, obj: Any, attribute: str, expected: object) -> Any:
    """Whether obj.attribute is not the expected object; then a TypeError is set.  Numba takes the type of a
    list from its first item, so a pullback may be met where one of another pair is expected."""
    found = c.pyapi.object_getattr_string(obj, attribute)
    other = c.builder.icmp_unsigned(
        "!=", c.builder.ptrtoint(found, _i64), c.builder.ptrtoint(_python_object(c, expected), _i64)
    )
    with cgutils.if_unlikely(c.builder, cgutils.is_not_null(c.builder, found)):
        c.pyapi.decref(found)
    with cgutils.if_unlikely(c.builder, other):
        c.pyapi.err_set_string(
            "PyExc_TypeError", "a value of another pair, or of other argument types"
        )
    return other


# ---- in compiled code: pullback ------------------------------------------------------------------------


@lower_builtin("splitad pullback call", PullbackType, types.VarArg(types.Any))
def _call_pullback(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    spec = sig.args[0].spec
    called = builder.gep(_counters(context, builder, spec), [_i64(1)])
    builder.store(_i64(1), called)
    pullback = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    argtypes = (TAPE, spec.refs_type, *sig.args[1:])
    tape = without_owner_value(context, builder, pullback.tape)
    values = [tape, pullback.refs, *args[1:]]
    usual = partial(_call, context, builder, spec, "reverse", argtypes, values)
    if spec.forward_overlapping is None:
        return usual()
    need(context, ready_late_reverse, spec, tuple(sig.args[1:]), sig.return_type)
    late = spec.reverse_overlapping(tuple(sig.args[1:]), sig.return_type)
    return _either(context, builder, late, [tape, *args[1:]], usual)


def _either(
    context: Any, builder: Any, late: Late, args: list[Any], usual: Callable[[], Any]
) -> Any:
    """What `late` returns where the pair for overlapping arguments wrote the tape args[0], else usual()."""
    kind = context.get_value_type(late.signature.return_type)
    out = cgutils.alloca_once_value(builder, cgutils.get_null_value(kind))
    other = overlapping.is_overlapping(context, builder, args[0])
    with builder.if_else(other, likely=False) as (yes, no):
        with yes:
            address = late.address(context, builder)
            with builder.if_then(builder.icmp_signed("==", address, _i64(0)), likely=False):
                text = ("the pullback for arguments that overlap cannot be compiled",)
                context.call_conv.return_user_exc(builder, InternalError, text)
            status, value = late.call(context, builder, address, args)
            with builder.if_then(status.is_error, likely=False):
                context.call_conv.return_status_propagate(builder, status)
            builder.store(value, out)
        with no:
            builder.store(usual(), out)
    return builder.load(out)


def _call(
    context: Any, builder: Any, spec: Specialisation, half: str, argtypes: Any, values: list[Any]
) -> Any:
    """Call spec.reverse or spec.zero, which is compiled by now."""
    dispatcher = getattr(spec, half)
    sig = types.Dispatcher(dispatcher).get_call_type(context.typing_context, argtypes, {})
    cast = [
        context.cast(builder, value, given, wanted)
        for value, given, wanted in zip(values, argtypes, sig.args, strict=True)
    ]
    need(context, ready_half, spec, half, sig.args)
    return call(context, builder, compiled(dispatcher, sig.args), cast)


# What gives names to the addresses in code that was kept: see stored.need.


def ready_forward(spec: Specialisation) -> None:
    _ = spec.forward_result, spec.forward_overlapping


def ready_half(spec: Specialisation, half: str, args: tuple[types.Type, ...]) -> None:
    compiled(getattr(spec, half), args)


def ready_late_reverse(
    spec: Specialisation, given: tuple[types.Type, ...], cotangents: types.Type
) -> None:
    spec.reverse_overlapping(given, cotangents)


def ready_late_zero(spec: Specialisation) -> None:
    _ = spec.zero_overlapping


@infer_getattr
class PullbackAttributes(AttributeTemplate):
    key = PullbackType

    def resolve_tape_nbytes(self, pullback: PullbackType) -> types.Type:
        return types.int64

    def resolve_args_overlap(self, pullback: PullbackType) -> types.Type:
        return types.boolean

    @bound_function("splitad pullback.make_zero")
    def resolve_make_zero(self, pullback: PullbackType, args: Any, kws: Any) -> Any:
        return Signature(pullback.spec.zeros_type, (), pullback)


@lower_builtin("splitad pullback.make_zero", PullbackType)
def _call_make_zero(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    spec = sig.args[0].spec
    pullback = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    tape = without_owner_value(context, builder, pullback.tape)
    if spec.plain_zeros is not None:
        held = builder.extract_value(pullback.refs, 1)
        usual = partial(spec.plain_zeros.emit, context, builder, held)
    else:
        values = [tape, pullback.refs]
        usual = partial(_call, context, builder, spec, "zero", (TAPE, spec.refs_type), values)
    if spec.forward_overlapping is None:
        return usual()
    need(context, ready_late_zero, spec)
    return _either(context, builder, spec.zero_overlapping, [tape], usual)


@lower_getattr(PullbackType, "args_overlap")
def _get_args_overlap(context: Any, builder: Any, typ: PullbackType, value: Any) -> Any:
    struct = cgutils.create_struct_proxy(typ)(context, builder, value)
    return overlapping.is_overlapping(context, builder, struct.tape)


@lower_getattr(PullbackType, "tape_nbytes")
def _get_tape_nbytes(context: Any, builder: Any, typ: PullbackType, value: Any) -> Any:
    struct = cgutils.create_struct_proxy(typ)(context, builder, value)
    words = (overlapping.CAPACITY, overlapping.KEPT_BYTES)
    parts = [builder.load(overlapping.word_of(context, builder, struct.tape, k)) for k in words]
    capacity = builder.add(*parts)
    refs_type = typ.spec.refs_type
    if len(refs_type) == 0:
        return capacity
    kept = builder.extract_value(struct.refs, 0)  # the rest are the caller's own arrays
    return builder.add(
        capacity, overlapping.arrays_nbytes(context, builder, refs_type.types[0], kept)
    )


@box(PullbackType)
def _box_pullback(typ: PullbackType, value: Any, c: Any) -> Any:
    struct = cgutils.create_struct_proxy(typ)(c.context, c.builder, value)
    tape = c.box(TAPE, struct.tape)
    overlap = overlapping.is_overlapping(c.context, c.builder, struct.tape)
    boxed = cgutils.alloca_once(c.builder, c.pyapi.pyobj)
    with c.builder.if_else(overlap, likely=False) as (other, own):
        with other:  # refs are zeros, and a list without memory cannot be boxed
            c.builder.store(c.pyapi.tuple_new(0), boxed)
        with own:
            c.builder.store(c.box(typ.spec.refs_type, struct.refs), boxed)
    refs = c.builder.load(boxed)
    made = c.pyapi.call_function_objargs(
        _python_object(c, Pullback), [_python_object(c, typ.spec), tape, refs]
    )
    c.pyapi.decref(tape)
    c.pyapi.decref(refs)
    return made


@unbox(PullbackType)
def _unbox_pullback(typ: PullbackType, obj: Any, c: Any) -> NativeValue:
    zero = cgutils.get_null_value(c.context.get_value_type(typ))
    struct = cgutils.create_struct_proxy(typ)(c.context, c.builder, zero)
    failed = cgutils.alloca_once_value(c.builder, cgutils.true_bit)
    with c.builder.if_then(c.builder.not_(_is_other(c, obj, "_spec", typ.spec))):
        tape = c.pyapi.object_getattr_string(obj, "_tape")
        refs = c.pyapi.object_getattr_string(obj, "_refs")
        native_tape = c.unbox(TAPE, tape)
        struct.tape = native_tape.value
        c.builder.store(native_tape.is_error, failed)
        with c.builder.if_then(c.builder.not_(native_tape.is_error), likely=True):
            overlap = overlapping.is_overlapping(c.context, c.builder, native_tape.value)
            with c.builder.if_then(c.builder.not_(overlap), likely=True):
                native_refs = c.unbox(typ.spec.refs_type, refs)
                struct.refs = native_refs.value
                c.builder.store(native_refs.is_error, failed)
        c.pyapi.decref(tape)
        c.pyapi.decref(refs)
    return NativeValue(struct._getvalue(), is_error=c.builder.load(failed))
