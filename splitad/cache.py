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
from splitad.codegen.load import load_source
from splitad.errors import InternalError, SplitadError
from splitad.frontend.lower import lower
from splitad.frontend.state import CompileFlags
from splitad.ir import activities as act
from splitad.ir.types import NumbaError
from splitad.pipeline import Options, PairText, build
from splitad.rules import ops, registry

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
        flags = CompileFlags(error_model=options.error_model, boundscheck=options.boundscheck)
        try:
            fn = lower(self.request.py_func, self.argtypes, flags, registry, ops)
            return build(fn, tuple(a.value for a in self.activities), options)
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
        return tuple(found)

    @cached_property
    def _module(self) -> Any:
        text = self.text
        key = f"# {self.argtypes} {[a.name for a in self.activities]} {self.request.options}\n"
        source = f"{key}\n{text.forward}\n\n{text.pullback}\n\n{text.zero}"
        return load_source(text.facts.fn.name, source, text.names)

    @cached_property
    def forward(self) -> Any:
        options = self.request.options
        jit = numba.njit(
            fastmath=options.fastmath,
            error_model=options.error_model,
            boundscheck=options.boundscheck,
            nogil=options.nogil,
        )
        return jit(getattr(self._module, self.text.facts.fn.name + "__forward"))

    @cached_property
    def reverse(self) -> Any:
        jit = numba.njit(fastmath=PULLBACK_FASTMATH, error_model="numpy", nogil=True)
        return jit(getattr(self._module, self.text.facts.fn.name + "__pullback"))

    @cached_property
    def zero(self) -> Any:
        return numba.njit(getattr(self._module, self.text.facts.fn.name + "__zero"))


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


def jit_options(f: Any) -> dict[str, Any]:
    """The njit options of f that matter to its pair; {} for a plain function."""
    if not (hasattr(f, "py_func") and hasattr(f, "targetoptions")):
        return {}
    return dict(f.targetoptions)


def options_of(f: Any, base: Options) -> Options:
    """base, with f's own njit options."""
    given = jit_options(f)
    known = ("fastmath", "error_model", "boundscheck", "nogil")
    return replace(base, **{k: given[k] for k in known if k in given and given[k] is not None})
