"""What grad and value_and_grad return: callable from Python and from njit code, a first-class value in both.

    gradient = Gradient(key, forward, compile)
    result = gradient(*args, **kwargs)

A call is made of up to three compiled functions, all of them njit dispatchers (see `Steps`):

    saved = save(*args)              copies of what run changes of the arguments
    result = run(*args)
    restore(saved, *args)            puts it back, also where run raised

compile(argument types) -> Steps.  As in runtime/callables.py, a Python call goes through a small njit
function of the same signature.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.core.imputils import lower_constant
from numba.core.typing.templates import Signature
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from splitad.errors import ArgumentsOverlap, SplitadError
from splitad.runtime.callables import Forward, without_wrapping
from splitad.runtime.linking import call, call_status, compiled
from splitad.runtime.numba_pipeline import mark_entry
from splitad.runtime.stored import Keeper, keeping_jit, key_of


@dataclass(frozen=True, eq=False)
class Steps:
    """The compiled functions of one tuple of argument types; see above."""

    run: Any
    save: Any = None  # None, None: nothing to put back
    restore: Any = None
    content: str | None = None  # what they are, in any process; see content.py

    def compile(self, argtypes: tuple[types.Type, ...]) -> None:
        """All of them."""
        compiled(self.run, argtypes)
        if self.save is not None:
            saved = compiled(self.save, argtypes).signature.return_type
            compiled(self.restore, (saved, *argtypes))


Compile = Callable[[tuple[types.Type, ...]], Steps]


class Gradient:
    """A function that returns a gradient."""

    is_derivative = True

    def __init__(self, key: str, forward: Forward, compile: Compile) -> None:
        self.__name__ = self.__qualname__ = forward.__name__
        self.__signature__ = forward.__signature__
        self._key, self._forward, self._compile = key, forward, compile
        self._count = forward._count
        self._steps: dict[tuple[types.Type, ...], Steps] = {}
        self._type, self._entry_type = GradientType(self, False), GradientType(self, True)
        self._run = _trampoline(self)
        _gradients[key] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self._count:
            args = self._forward._fold(args, kwargs)
        try:
            return self._run(*args)
        except ArgumentsOverlap as error:
            raise self._forward.why_none(error, args) from None
        except SplitadError as error:
            raise self._forward.placed(error) from None
        except NumbaError as error:
            raise self._forward.placed(without_wrapping(error, self.steps, args)) from None

    def steps(self, argtypes: tuple[types.Type, ...]) -> Steps:
        """The compiled functions for these types."""
        found = self._steps.get(argtypes)
        if found is None:
            found = self._steps[argtypes] = self._compile(argtypes)
        return found

    def __repr__(self) -> str:
        return f"<gradient of {self.__name__}>"


class _Entry:
    """What stands for the gradient in its trampoline."""

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient


def _trampoline(gradient: Gradient) -> Any:
    names = ", ".join(gradient.__signature__.parameters)
    name = f"{gradient.__name__}_gradient"
    name = name if name.isidentifier() else "gradient"
    nogil = gradient._forward._nogil

    def key(args: tuple[types.Type, ...]) -> str | None:
        argtypes = tuple(types.unliteral(t) for t in args)
        steps = gradient.steps(argtypes)
        if steps.content is None:
            return None
        steps.compile(argtypes)
        return key_of("gradient", names, nogil, steps.content, *args)

    scope: dict[str, Any] = {"_entry_": _Entry(gradient)}
    exec(f"def {name}({names}): return _entry_({names})", scope)
    mark_entry(scope[name])
    return keeping_jit(scope[name], Keeper(key), nogil=nogil, no_cfunc_wrapper=True)


# A gradient lives as long as its Python object, or compiled code that mentions its type.
_gradients: weakref.WeakValueDictionary[str, Gradient] = weakref.WeakValueDictionary()


class GradientType(types.Callable, types.Opaque):
    """The type of one Gradient.  entry: within its own trampoline."""

    is_derivative = True

    def __init__(self, gradient: Gradient, entry: bool) -> None:
        self.gradient, self.entry = gradient, entry
        super().__init__(f"gradient[{gradient.__name__}, {gradient._key}, {entry}]")

    @property
    def key(self) -> tuple[str, bool]:
        return self.gradient._key, self.entry

    def __reduce__(self) -> Any:
        return _gradient_type, (self.gradient._key, self.entry)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        if self.entry:
            argtypes = tuple(types.unliteral(t) for t in args)
        else:
            argtypes = self.gradient._forward._pair.fold(args, kws)
        run = compiled(self.gradient.steps(argtypes).run, argtypes)
        pysig = None if self.entry else self.gradient.__signature__
        return Signature(run.signature.return_type, argtypes, self, pysig)

    def get_call_signatures(self) -> tuple[list[Signature], bool]:
        return [], True

    def get_impl_key(self, sig: Signature) -> str:
        return "splitad gradient call"


def _gradient_type(key: str, entry: bool) -> GradientType:
    found = _gradients.get(key)
    if found is None:
        raise SplitadError(
            "this is a gradient of another process",
            None,
            "what grad and value_and_grad return cannot be pickled; call them in each process",
        )
    return found._entry_type if entry else found._type


@typeof_impl.register(Gradient)
def _typeof_gradient(value: Gradient, c: Any) -> GradientType:
    return value._type


@typeof_impl.register(_Entry)
def _typeof_entry(value: _Entry, c: Any) -> GradientType:
    return value.gradient._entry_type


# ---- in compiled code ----------------------------------------------------------------------------------

register_model(GradientType)(models.OpaqueModel)


@lower_constant(GradientType)
def _constant_gradient(context: Any, builder: Any, typ: GradientType, value: Gradient) -> Any:
    return context.get_dummy_value()


@lower_builtin("splitad gradient call", GradientType, types.VarArg(types.Any))
def _call_gradient(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    typ, argtypes, args = sig.args[0], tuple(sig.args[1:]), list(args[1:])
    steps = typ.gradient.steps(argtypes)
    saved_type, saved = types.none, context.get_dummy_value()
    if steps.save is not None:
        saved_type, saved = _step(context, builder, steps.save, argtypes, args)
    run = compiled(steps.run, argtypes)
    status, value = call_status(context, builder, run, args)
    if steps.restore is not None:
        _step(context, builder, steps.restore, (saved_type, *argtypes), [saved, *args])
        context.nrt.decref(builder, saved_type, saved)
    # Inside a `try` of the caller, Numba goes on after an error, with zeros, until the handler.
    result = sig.return_type
    out = cgutils.alloca_once_value(builder, cgutils.get_null_value(context.get_value_type(result)))
    with builder.if_else(status.is_error, likely=False) as (failed, done):
        with failed:
            context.call_conv.return_status_propagate(builder, status)
        with done:
            builder.store(value, out)
    return builder.load(out)


def _step(
    context: Any, builder: Any, dispatcher: Any, argtypes: tuple[types.Type, ...], args: list[Any]
) -> tuple[types.Type, Any]:
    """Call a dispatcher: the type of what it returns, and that."""
    result = compiled(dispatcher, argtypes)
    return result.signature.return_type, call(context, builder, result, args)


@box(GradientType)
def _box_gradient(typ: GradientType, value: Any, c: Any) -> Any:
    found = _address(c, typ.gradient)
    c.pyapi.incref(found)
    return found


@unbox(GradientType)
def _unbox_gradient(typ: GradientType, obj: Any, c: Any) -> NativeValue:
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    wrong = c.builder.icmp_unsigned("!=", obj, _address(c, typ.gradient))
    with c.builder.if_then(wrong, likely=False):
        c.builder.store(cgutils.true_bit, failed)
        c.pyapi.err_set_string(
            "PyExc_TypeError", f"the gradient of another function, not of {typ.gradient.__name__}"
        )
    return NativeValue(c.context.get_dummy_value(), is_error=c.builder.load(failed))


def _address(c: Any, value: object) -> ir.Value:
    """A borrowed reference to an object that lives at least as long as the type at hand."""
    address = c.context.add_dynamic_addr(c.builder, id(value), info=type(value).__name__)
    return c.builder.bitcast(address, c.pyapi.pyobj)
