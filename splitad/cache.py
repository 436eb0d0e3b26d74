"""(function, types, activities, options) -> compiled pair; on disk, across processes.

What a pair is, is told by its content (runtime/content.py): the function with all that it calls and reads,
the argument types, the activities, the options, the versions.  Under that key are kept what the rest of
splitad wants to know of a pair (`Summary`) and, each when it was first needed, its compiled functions.  A
process that finds them reads no source, runs no pass and compiles nothing.

A pair is not kept where its content does not say it all: a function that the frontend read must have been
among it.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numba
import numpy as np
from numba import types

from splitad import store
from splitad.analysis.memory import is_array
from splitad.analysis.returned import check_returned
from splitad.codegen.load import load_source
from splitad.codegen.writer import primal_lines
from splitad.errors import InternalError, Loc, SplitadError, UnsupportedError
from splitad.frontend import jit_options
from splitad.frontend.lower import lower, lower_recursive
from splitad.frontend.read import watch
from splitad.frontend.state import CompileFlags
from splitad.ir import activities as act
from splitad.ir.types import NumbaError, struct_fields
from splitad.pipeline import Options, PairText, build
from splitad.rules import ops, registry
from splitad.runtime.content import MOST_BYTES, Content, Unknown, dump, restore
from splitad.runtime.light_lowering import mark_primal
from splitad.runtime.linking import NO_WRAPPERS
from splitad.runtime.numba_pipeline import SeparateCompiler
from splitad.runtime.overlapping import may_refuse
from splitad.runtime.pullback_zeros import PlainZeros
from splitad.runtime.stored import Keeper, keeping_jit, key_of
from splitad.transform.lists import is_written
from splitad.transform.zero import plain

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
        self.inner: _Inner = {}
        self._contents = Content()
        self._summary: Summary | None = None
        self.content = self._key(self._contents)  # None: not kept
        if self.content is not None:
            self._summary = Summary.load(self.content)

    def _key(self, contents: Content) -> str | None:
        """What the pair is, in any process; see the module."""
        if not store.enabled() or self.request.options.kernel is not None:
            return None
        activities = [a.name for a in self.activities]
        try:
            contents.add(self.request.function, *self.argtypes, activities)
            contents.add(self.request.options)
            return contents.digest()
        except Unknown:
            return None

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
            with watch() as read:
                fn = lower(self.request.py_func, self.argtypes, flags, registry, ops)
                pair = build(fn, tuple(a.value for a in self.activities), options)
                self.inner = {**_recursive_pairs(pair, options), **_replays(pair)}
            if not all(map(self._contents.saw, read)):
                self.content = None
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

    @property
    def summary(self) -> Summary:
        """What others want to know of the pair."""
        if self._summary is None:
            text, module = self.text, self._module
            name = text.facts.fn.name
            parameters = {
                half: ", ".join(signature(getattr(module, f"{name}__{half}")).parameters)
                for half in HALVES
            }
            refuses = may_refuse(getattr(module, f"{name}__forward"))
            result = text.facts.fn.result_type
            self._summary = Summary(
                name,
                result,
                self._written(),
                parameters,
                refuses,
                self._text_digest(),
                plain(text.facts),
                text.facts.sweep is not None,
                tuple(text.facts.fn.params.index(array) for array, _ in text.facts.cleared),
            )
            if self.content is not None:
                self._summary.save(self.content)
        return self._summary

    def _text_digest(self) -> str:
        """What was generated, without comments, and whatever numbers names got in this process."""
        texts = [self.text, *(pair for _, pair in self.inner.values())]
        whole = "\n".join(part for t in texts for part in (t.forward, t.pullback, t.zero))
        names = {name for t in texts for name in t.names}
        code = "\n".join(line for line in whole.split("\n") if not line.lstrip().startswith("#"))
        order: dict[str, str] = {}

        def plain(word: re.Match[str]) -> str:
            name = word.group()
            if name not in names:
                return name
            return order.setdefault(name, f"{name.rstrip('0123456789')}#{len(order)}")

        return hashlib.sha256(re.sub(r"[A-Za-z_]\w*", plain, code).encode()).hexdigest()

    def _written(self) -> tuple[tuple[tuple[int | str, ...], bool], ...]:
        """See Summary.written."""
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
        names = {name: _frozen(value) for name, value in text.names.items()}
        parts = [key, text.forward, text.pullback, text.zero]
        for _, pair in self.inner.values():
            parts += [pair.forward, pair.pullback]
            names.update({name: _frozen(value) for name, value in pair.names.items()})
        parts[0] += _stamp(names)
        source = "\n\n".join(parts)
        module = load_source(text.facts.fn.name, source, names)
        lines = () if self.request.options.fastmath else tuple(primal_lines(source))
        mark_primal(getattr(module, f"{text.facts.fn.name}__pullback"), lines)
        for name, (flags, _) in self.inner.items():  # they call themselves and each other
            forward_jit = _INNER_PULLBACK_JIT
            if flags is not None:
                forward_jit = numba.njit(
                    pipeline_class=SeparateCompiler, **self._forward_options(flags)
                )
            for half, jit in (("__forward", forward_jit), ("__pullback", _INNER_PULLBACK_JIT)):
                plain = getattr(module, name + half)
                if not hasattr(plain, "py_func"):
                    if jit is _INNER_PULLBACK_JIT:
                        mark_primal(plain, lines)
                    setattr(module, name + half, jit(plain))
        return module

    def _forward_options(self, flags: CompileFlags | Options) -> dict[str, Any]:
        options = self.request.options
        return dict(
            fastmath=options.fastmath,
            error_model=flags.error_model,
            boundscheck=options.boundscheck,
            nogil=options.nogil,
            **NO_WRAPPERS,
        )

    @cached_property
    def forward(self) -> Any:
        return self._half("forward")

    @cached_property
    def reverse(self) -> Any:
        return self._half("pullback")

    @cached_property
    def zero(self) -> Any:
        return self._half("zero")

    def _half(self, half: str) -> Any:
        """A dispatcher.  Where the pair was kept by another process it stands for the real one, which is only
        made if something is not there."""
        if self._summary is None or "text" in vars(self):
            dispatcher = self._real(half)
            _ = self.summary  # kept, now that the module is there
            return dispatcher
        function = self._summary.stand_in(half)
        return keeping_jit(function, self._keeper(half, lambda: self._later(half)))

    def _later(self, half: str) -> Any:
        """The real half of a pair of which another one may be in use, as it was kept."""
        if self._key(Content()) != self.content:
            name = self.request.py_func.__name__
            raise SplitadError(
                f"something that {name} reads has changed since its forward was made",
                None,
                "Globals that a function reads are constants to Numba: call split again.",
            )
        return self._real(half)

    def _check_text(self) -> None:
        """The halves of a pair must be of one text: they share the layout of the tape."""
        if self._summary is not None and self._summary.text != self._text_digest():
            raise InternalError(
                f"the code generated for {self.request.py_func.__name__} is not what was kept",
                None,
                "This is a fault of splitad, please report it; SPLITAD_CACHE=0 gets around it.",
            )

    def _real(self, half: str) -> Any:
        function = getattr(self._module, f"{self.text.facts.fn.name}__{half}")
        self._check_text()
        options = self._forward_options(self.request.options)
        if half == "pullback":
            options = {**_PULLBACK_OPTIONS, "no_cfunc_wrapper": True}
        if half == "zero":
            options = {}
        return keeping_jit(function, self._keeper(half), **options)

    def _keeper(self, half: str, stands_for: Any = None) -> Keeper:
        def key(args: tuple[types.Type, ...]) -> str | None:
            if self.content is None:
                return None
            return key_of(self.content, self.summary.text, half, *args)

        # a frozen array may have been written to since the key was made
        return Keeper(key, stands_for, lambda: self._key(Content()) == self.content)


def _frozen(value: object) -> object:
    """A frozen array as it is now: Numba reads it when a half is compiled, and that is not at once.  (A large
    one it never copies.)"""
    small = isinstance(value, np.ndarray) and value.nbytes <= MOST_BYTES
    if small and (value.flags.c_contiguous or value.flags.f_contiguous):  # type: ignore[attr-defined]
        return value.copy(order="K")  # type: ignore[attr-defined]
    return value


def _stamp(names: dict[str, object]) -> str:
    """Different for other contents of frozen arrays: modules of equal texts are shared."""
    arrays = [names[name] for name in sorted(names) if isinstance(names[name], np.ndarray)]
    contents = hashlib.sha256()
    for array in arrays:
        contents.update(array.tobytes())  # type: ignore[attr-defined]
    return f"# arrays: {contents.hexdigest()[:16]}\n" if arrays else ""


HALVES = ("forward", "pullback", "zero")


@dataclass(frozen=True)
class Summary:
    """What the rest of splitad wants to know of a compiled pair."""

    name: str
    result_type: types.Type
    # the leaves of the arguments that a call changes: see transform/gradient.py
    written: tuple[tuple[tuple[int | str, ...], bool], ...]
    parameters: dict[str, str]  # of the generated functions
    may_refuse: bool  # whether the forward may find that arguments overlap
    text: str  # a digest of the generated code
    plain: tuple[int, ...] | None  # see transform/zero.py
    swept: bool  # whether its pullback gives the result (analysis/sweeps.py)
    cleared: tuple[int, ...]  # the arguments whose shadows it clears itself (transform/cleared.py)

    @staticmethod
    def load(content: str) -> Summary | None:
        data = store.load(f"{content}-pair")
        try:
            return None if data is None else Summary(*restore(data))
        except Unknown:
            return None

    def save(self, content: str) -> None:
        with suppress(Unknown):
            parts = tuple(getattr(self, each.name) for each in fields(self))
            store.save(f"{content}-pair", dump(parts))

    def stand_in(self, half: str) -> Any:
        """A function with the signature of a half, which also says as much of ArgumentsOverlap."""
        body = "raise ArgumentsOverlap" if half == "forward" and self.may_refuse else "pass"
        scope: dict[str, Any] = {}
        exec(f"def {self.name}__{half}({self.parameters[half]}): {body}", scope)
        return scope[f"{self.name}__{half}"]


_PULLBACK_OPTIONS = {"fastmath": PULLBACK_FASTMATH, "error_model": "numpy", "nogil": True}
_INNER_PULLBACK_JIT = numba.njit(
    pipeline_class=SeparateCompiler, **_PULLBACK_OPTIONS, **NO_WRAPPERS
)
# The pairs of recursive functions and of replayed bodies, with what their forwards are compiled with; None:
# with the options of a pullback.
_Inner = dict[str, tuple["CompileFlags | None", PairText]]
_MOST_RECURSIVE = 30  # pairs of recursive functions in one module


def _recursive_pairs(pair: PairText, options: Options) -> _Inner:
    """The pairs of the recursive functions that a pair calls, and that those call, by name."""
    found: _Inner = {}
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


def _replays(pair: PairText) -> _Inner:
    """The pairs of the bodies that its pullback runs again.  These raise nothing: the forward did not."""
    exact = CompileFlags(error_model="numpy")
    names = zip(pair.facts.replays, pair.replays, strict=True)
    return {name: (None if each.loose else exact, pair.replays[name]) for each, name in names}


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
        key = f"{pair.summary.name}_{next(self._numbers)}"
        self.compiled[key] = pair
        return dispatcher, key

    def reverse_dispatcher(self, spec_key: str) -> Any:
        return self.compiled[spec_key].reverse

    def zero_dispatcher(self, spec_key: str) -> Any:
        return self.compiled[spec_key].zero

    def plain_zeros(self, spec_key: str) -> PlainZeros | None:
        pair = self.compiled[spec_key]
        if pair.summary.plain is None:
            return None
        shadowed = [
            type
            for type, activity in zip(pair.argtypes, pair.activities, strict=True)
            if activity is act.Activity.Duplicated
        ]
        return PlainZeros(shadowed, pair.summary.plain)

    def content(self, spec_key: str) -> str | None:
        return self.compiled[spec_key].content


def options_of(f: Any, base: Options) -> Options:
    """base, with f's own njit options; UnsupportedError for one that a pair cannot have."""
    why = jit_options.refused(f)
    if why is not None:
        code = f.py_func.__code__
        raise UnsupportedError(
            why[0], Loc(code.co_filename, code.co_firstlineno, f.__name__), why[1]
        )
    return replace(base, **jit_options.taken_over(f))
