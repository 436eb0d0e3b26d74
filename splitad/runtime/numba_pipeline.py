"""Numba's pipeline for generated code, without what that has no use for.

Generated code has no functions within functions, no `with`, no literal_unroll and no literally, so the passes
for these are left out where the function at hand really has none.  The rewrites after type inference are for
expressions of whole arrays and a few like them, and run only where there is one.

Type inference goes over all statements until nothing changes, and asks for the type of every call each time;
here the answers are remembered, for one function.

A function that is not compiled yet takes over fastmath and error_model from the code that calls it first.
Those of a pullback are not for the user's functions.

Numba compiles the product of two complex numbers, and more like it, as functions of its own that all code
shares, without regard to fastmath: what a pullback is the first to use would come out of later code, the
user's too, with other bits.  So code with fastmath gets functions that only such code shares.

CPython keeps the frames of Python functions in blocks of 16 KB, and gives a block back as soon as it is
empty: calls that go to and fro over the end of one take and return memory each time.  Compilers call deep
and often, so each compilation gets a large block for all its frames.  Nor is garbage searched for meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from types import CodeType, FunctionType
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.core import compiler, config, ir
from numba.core.codegen import CPUCodegen, JITCodeLibrary, _parse_refprune_flags
from numba.core.compiler_machinery import register_pass
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering, NopythonRewrites, NopythonTypeInference
from numba.core.untyped_passes import (
    FindLiterallyCalls,
    InlineClosureLikes,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    WithLifting,
)
from numba.np.ufunc.dufunc import DUFunc

from splitad.runtime.light_lowering import LightLowering, is_pullback
from splitad.runtime.light_passes import LIGHT
from splitad.runtime.no_collection import without_collection

_OWN = ("splitad", "splitad_generated")  # the modules of functions that are splitad's own
_CLOSURES = (InlineClosureLikes, MakeFunctionToJitFunction)
_NAMED = (FindLiterallyCalls, LiteralUnroll, WithLifting)  # passes for things that have a name
_NAMES = {"literally", "literal_unroll", "objmode", "objmode_context", "objectmode"}


# ---- LLVM ----------------------------------------------------------------------------------------------

# Up to 0.61, Numba set up one manager of passes for a module.
_SET_UP_ONCE = "llvm_module" in signature(CPUCodegen._function_pass_manager).parameters
_WRAPPER = "_ZN7cpython"  # what Numba's names of entries from Python begin with


class GeneratedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The machine code of a generated function.

    Numba optimises each function by itself, then all of them with what they call.  Of what Python calls, the
    wrappers and the small functions that lead to a pair's halves, the first time only brings variables from
    memory into values and prunes references.  (The code of the halves gets slower with less than all of it.)

    entry: of a function that only leads to others, for which the second time does not pay.
    """

    entry = False

    def _optimize_functions(self, ll_module: Any) -> None:
        """As Numba's otherwise, which also sets up the passes for every function that is only declared."""
        if _SET_UP_ONCE:
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                fully = not self.entry and not function.name.startswith(_WRAPPER)
                passes, builder = (
                    self._codegen._function_pass_manager() if fully else self._few_passes()
                )
                with self._recorded_timings.record(f"{function.name!r}", builder):
                    passes.run(function, builder)

    def _few_passes(self) -> Any:
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        if config.LLVM_REFPRUNE_PASS:
            passes.add_refprune_pass(_parse_refprune_flags())
        return passes, self._codegen._pass_builder()

    def _optimize_final_module(self) -> None:
        if not self.entry or _SET_UP_ONCE:
            super()._optimize_final_module()


# ---- passes --------------------------------------------------------------------------------------------

# Words that a frame is said to need.  It gets a block of the next power of two, of which the other half, a
# thousand frames or so, is for the functions that it calls; memory that is not touched costs nothing.
_ROOM = 33_000


def _call(function: Callable[[], Any]) -> Any:
    return function()


_with_room = FunctionType(_call.__code__.replace(co_stacksize=_ROOM), globals())


_SHARED: dict[frozenset[str], dict[Any, Any]] = {}  # Numba's internal functions, by their fastmath
_ENTRY = "splitad_entry"


def mark_entry(function: Any) -> None:
    """See GeneratedLibrary.entry."""
    setattr(function, _ENTRY, True)


def _put_in(pipeline: Any, instead: dict[type, type], left_out: Sequence[type] = ()) -> None:
    """Other passes in the place of some."""
    pipeline.passes = [
        (instead.get(found, found), text)
        for found, text in pipeline.passes
        if found not in left_out
    ]
    pipeline.finalize()


class SeparateCompiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's, whose code with fastmath shares no internal functions with other code."""

    def define_pipelines(self) -> Any:
        fastmath = self.state.flags.fastmath
        if fastmath:
            shared = _SHARED.setdefault(frozenset(fastmath.flags), {})
            self.state.targetctx.cached_internal_func = shared
        pipelines = super().define_pipelines()
        for each in pipelines:
            _put_in(each, {NopythonTypeInference: _ApartInference, NativeLowering: LightLowering})
        return pipelines


class GeneratedCompiler(SeparateCompiler):
    """See the module."""

    def define_pipelines(self) -> Any:
        self.state.library = self.new_library()
        self.state.library.entry = getattr(self.state.func_id.func, _ENTRY, False)
        self.state.library.enable_object_caching()
        code = self.state.func_id.func.__code__
        left_out: list[type] = []
        instead = dict(_INSTEAD)
        if not any(isinstance(const, CodeType) for const in code.co_consts):
            left_out += _CLOSURES
        if not _NAMES & set(code.co_names):
            left_out += _NAMED
            if not self.state.func_id.is_generator:
                instead |= LIGHT
        pipelines = super().define_pipelines()
        for each in pipelines:
            _put_in(each, instead, left_out)
        return pipelines

    def _compile_core(self) -> Any:
        return _with_room(partial(without_collection, super()._compile_core))

    def new_library(self) -> GeneratedLibrary:
        """What the machine code goes into."""
        codegen = self.state.targetctx.codegen()
        return GeneratedLibrary(codegen, self.state.func_id.func_qualname)


# ---- type inference ------------------------------------------------------------------------------------


class _Apart:
    """A typing context that has functions of others compiled with their own flags alone.

    With Numba's, what is not compiled yet takes over error_model and fastmath of the first that calls it,
    for good: a user's function those of a pullback.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if not isinstance(func, types.Dispatcher) or _is_own(func.dispatcher):
            return self._context.resolve_function_type(func, args, kws)
        flags = ConfigStack().top().copy()
        flags.fastmath, flags.error_model = False, "python"  # a function's own, where it has none
        with ConfigStack().enter(flags):
            return self._context.resolve_function_type(func, args, kws)


def _is_own(dispatcher: Any) -> bool:
    module = getattr(dispatcher.py_func, "__module__", None)
    return str(module).partition(".")[0] in _OWN


class _Remembering:
    """A typing context that answers the same question once."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._answers: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def _once(self, ask: Callable[..., Any], *question: Any) -> Any:
        key = (ask.__name__, *question)
        found = self._answers.get(key)
        if found is None:  # an answer of None is asked for again: it may be there later
            found = self._answers[key] = ask(*question)
        return found

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        # a function, or what stands for an operator; no methods, for which `self` may be refined
        named = not isinstance(func, types.Type)
        if not kws and (named or isinstance(func, (types.Function, types.Dispatcher))):
            return self._once(self._call, func, tuple(args))
        return self._context.resolve_function_type(func, args, kws)

    def _call(self, func: Any, args: Any) -> Any:
        return self._context.resolve_function_type(func, args, {})

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        return self._once(self._context.resolve_getattr, typ, attr)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        return self._once(self._context.resolve_setitem, target, index, value)


@register_pass(mutates_CFG=True, analysis_only=False)
class _ApartInference(NopythonTypeInference):  # type: ignore[misc]
    _name = "splitad_apart_type_inference"

    def run_pass(self, state: Any) -> bool:
        context = state.typingctx
        state.typingctx = self.context(
            _Apart(context) if is_pullback(state.func_id.func) else context
        )
        try:
            return super().run_pass(state)  # type: ignore[no-any-return]
        finally:
            state.typingctx = context

    def context(self, context: Any) -> Any:
        return context


@register_pass(mutates_CFG=True, analysis_only=False)
class _TypeInference(_ApartInference):
    _name = "splitad_type_inference"

    def context(self, context: Any) -> Any:
        return _Remembering(context)


# ---- rewrites ------------------------------------------------------------------------------------------


@register_pass(mutates_CFG=True, analysis_only=False)
class _Rewrites(NopythonRewrites):  # type: ignore[misc]
    _name = "splitad_rewrites"

    def run_pass(self, state: Any) -> bool:
        needed = any(
            _may_be_rewritten(stmt, state.typemap)
            for block in state.func_ir.blocks.values()
            for stmt in block.body
        )
        return super().run_pass(state) if needed else False


def _may_be_rewritten(stmt: Any, typemap: dict[str, Any]) -> bool:
    """Whether Numba's rewrites after type inference may be for this statement."""
    if isinstance(stmt, ir.SetItem):
        return isinstance(typemap[stmt.index.name], types.StringLiteral)
    if not (isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr)):
        return False
    expr = stmt.value
    if expr.op == "getitem":
        return isinstance(typemap[expr.index.name], types.StringLiteral)
    if expr.op == "call":
        key = getattr(typemap[expr.func.name], "typing_key", None)
        return isinstance(key, (np.ufunc, DUFunc)) or key is np.array
    whole = isinstance(typemap[stmt.target.name], types.Array)
    return whole and expr.op in ("binop", "inplace_binop", "unary")


_INSTEAD = {
    _ApartInference: _TypeInference,
    NopythonRewrites: _Rewrites,
}
