"""(function, types, activities, options) -> compiled pair."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba
from numba import types

from splitad.analysis.memory import is_array
from splitad.analysis.returned import check_returned
from splitad.codegen.load import load_source
from splitad.errors import InternalError, Loc, SplitadError, UnsupportedError
from splitad.frontend import jit_options
from splitad.frontend.lower import lower, lower_recursive
from splitad.frontend.state import CompileFlags
from splitad.ir import activities as act
from splitad.ir.types import NumbaError, struct_fields
from splitad.pipeline import Options, PairText, build
from splitad.rules import ops, registry
from splitad.runtime.linking import NO_WRAPPERS
from splitad.transform.lists import is_written

# Sums of cotangents may be reassociated; infinities and NaN keep their meaning.
PULLBACK_FASTMATH = {"reassoc", "contract", "nsz", "arcp"}


@dataclass(frozen=True)
class Request:
    """What `split` was asked for."""

    function: Any  # the plain function or dispatcher
    activities: tuple[act.Activity, ...] | None  # None: by the types
    wrt: tuple[int, ...] | None  # with activities None: the arguments that are not Const
    options: Options

    @property
    def py_func(self) -> Callable[..., Any]:
        return getattr(self.function, "py_func", self.function)


class CompiledPair:
    """The two functions of one specialisation; each is compiled when it is first needed."""

    def __init__(self, request: Request, argtypes: tuple[types.Type, ...]) -> None:
        self.request, self.argtypes = request, argtypes
        self.activities = self._activities()
        self.inner: dict[str, tuple[CompileFlags, PairText]] = {}  # pairs of recursive functions

    def _activities(self) -> tuple[act.Activity, ...]:
        names = list(inspect.signature(self.request.py_func).parameters)
        given = self.request.activities
        wrt = self.request.wrt
        if given is None:
            return tuple(
                act.default(t) if wrt is None or k in wrt else act.Activity.Const
                for k, t in enumerate(self.argtypes)
            )
        function = self.request.py_func.__name__
        for activity, type, name in zip(given, self.argtypes, names, strict=True):
            act.check(activity, type, name, function)
        return given

    @cached_property
    def text(self) -> PairText:
        options = self.request.options
        flags = CompileFlags(
            error_model=options.error_model,
            boundscheck=options.boundscheck,
            kernel=options.kernel is not None,
        )
        try:
            fn = lower(self.request.py_func, self.argtypes, flags, registry, ops)
            pair = build(fn, tuple(a.value for a in self.activities), options)
            self.inner = _recursive_pairs(pair, options)
            return pair
        except (SplitadError, NumbaError):
            raise
        except Exception as error:  # a fault of splitad's own must not look like one of the user's
            name = self.request.py_func.__name__
            raise InternalError(
                f"splitad failed on {name}: {type(error).__name__}: {error}",
                None,
                "This is a fault of splitad; please report it together with the function.",
            ) from error

    @cached_property
    def written(self) -> tuple[tuple[tuple[int | str, ...], bool], ...]:
        """The leaves of the arguments that a call changes; see transform/gradient.py."""
        facts = self.text.facts
        memory, root = facts.active.memory, facts.where.root
        found = []
        for leaf in facts.fn.leaves:
            if is_array(leaf.var) and any(memory.writes_to(leaf.var, root)):
                found.append((leaf.path, False))
            if leaf.exit != leaf.var:
                found.append((leaf.path, True))
        changed = (each for each in facts.fn.lists if is_written(facts, each))
        found += [((each.position,), False) for each in changed]
        return tuple(found)

    @cached_property
    def _module(self) -> Any:
        text = self.text
        key = f"# {self.argtypes} {[a.name for a in self.activities]} {self.request.options}\n"
        names = dict(text.names)
        parts = [key, text.forward, text.pullback, text.zero]
        for _, pair in self.inner.values():
            parts += [pair.forward, pair.pullback]
            names.update(pair.names)
        module = load_source(text.facts.fn.name, "\n\n".join(parts), names)
        for name, (flags, _) in self.inner.items():  # they call themselves and each other
            for half, jit in (
                ("__forward", self._forward_jit(flags)),
                ("__pullback", _INNER_PULLBACK_JIT),
            ):
                plain = getattr(module, name + half)
                if not hasattr(plain, "py_func"):
                    setattr(module, name + half, jit(plain))
        return module

    def _forward_jit(self, flags: CompileFlags | Options) -> Any:
        options = self.request.options
        return numba.njit(
            fastmath=options.fastmath,
            error_model=flags.error_model,
            boundscheck=options.boundscheck,
            nogil=options.nogil,
            **NO_WRAPPERS,
        )

    @cached_property
    def forward(self) -> Any:
        jit = self._forward_jit(self.request.options)
        return jit(getattr(self._module, self.text.facts.fn.name + "__forward"))

    @cached_property
    def reverse(self) -> Any:
        return _PULLBACK_JIT(getattr(self._module, self.text.facts.fn.name + "__pullback"))

    @cached_property
    def zero(self) -> Any:
        return numba.njit(getattr(self._module, self.text.facts.fn.name + "__zero"))


_PULLBACK_OPTIONS = {"fastmath": PULLBACK_FASTMATH, "error_model": "numpy", "nogil": True}
_PULLBACK_JIT = numba.njit(**_PULLBACK_OPTIONS, no_cfunc_wrapper=True)
_INNER_PULLBACK_JIT = numba.njit(**_PULLBACK_OPTIONS, **NO_WRAPPERS)
_MOST_RECURSIVE = 30  # pairs of recursive functions in one module


def _recursive_pairs(pair: PairText, options: Options) -> dict[str, tuple[CompileFlags, PairText]]:
    """The pairs of the recursive functions that a pair calls, and that those call, by name."""
    found: dict[str, tuple[CompileFlags, PairText]] = {}
    while len(found) < len(pair.callees.names):
        if len(found) > _MOST_RECURSIVE:
            raise UnsupportedError(
                f"{pair.facts.fn.name} calls recursive functions with ever new types",
                pair.facts.fn.loc,
                "Pass the same types in every call.",
            )
        for callee, name in list(pair.callees.names.items()):
            if name not in found:
                fn = lower_recursive(callee, registry, ops)
                inner = replace(
                    options,
                    inner=True,
                    args_alias=True,
                    stable=(),
                    error_model=callee.flags.error_model,
                )
                activities = tuple(_inner_activity(t) for t in callee.argtypes)
                made = build(fn, activities, inner, pair.callees, name)
                check_returned(made.facts.fn, made.facts.active.memory)
                found[name] = (callee.flags, made)
    return found


def _inner_activity(type: types.Type) -> str:
    """A struct is there to be written: its fields are arguments of their own."""
    return "const" if struct_fields(type) is not None else act.default(type).value


class PairResolver:
    """Compiles the specialisations of one pair; see runtime/pairs.py for the interface."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.compiled: dict[str, CompiledPair] = {}
        self._numbers = itertools.count()

    def forward_dispatcher(self, argtypes: tuple[types.Type, ...]) -> tuple[Any, str]:
        pair = CompiledPair(self.request, argtypes)
        dispatcher = pair.forward
        key = f"{pair.text.facts.fn.name}_{next(self._numbers)}"
        self.compiled[key] = pair
        return dispatcher, key

    def reverse_dispatcher(self, spec_key: str) -> Any:
        return self.compiled[spec_key].reverse

    def zero_dispatcher(self, spec_key: str) -> Any:
        return self.compiled[spec_key].zero


def options_of(f: Any, base: Options) -> Options:
    """base, with f's own njit options; UnsupportedError for one that a pair cannot have."""
    why = jit_options.refused(f)
    if why is not None:
        code = f.py_func.__code__
        raise UnsupportedError(
            why[0], Loc(code.co_filename, code.co_firstlineno, f.__name__), why[1]
        )
    return replace(base, **jit_options.taken_over(f))
