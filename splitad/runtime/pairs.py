"""The pairs of this process and the Numba types of their values.

A `Pair` is what one call of `split` made, a `Specialisation` its two compiled functions for one tuple of
argument types.  Their types are named by strings through a registry and never hold a dispatcher in their
key: a pickled type comes back as the same type, with the same dispatchers.

A `Resolver` compiles the functions of a pair; it has

    forward_dispatcher(argtypes) -> (dispatcher, spec_key)   forward_impl(tape, *args) -> (result, refs)
    reverse_dispatcher(spec_key) -> dispatcher               reverse_impl(tape, refs, result_bar, *shadows)
    zero_dispatcher(spec_key) -> dispatcher                  zero_impl(tape, refs) -> tuple of zero shadows
    plain_zeros(spec_key) -> PlainZeros | None               what does the same where that suffices
    content(spec_key) -> str | None                          what they are, in any process; or None

argtypes has no literals; defaults and keywords are folded in, *args are one tuple.  spec_key is a string, the
name of the specialisation within the pair.  The functions for the reverse and the zeros are asked for when
they are needed, not before.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numba import types
from numba.core.typing.templates import Signature, fold_arguments
from numba.misc.special import typeof

from splitad.errors import Loc, SplitadError
from splitad.runtime import overlapping
from splitad.runtime.addresses import give_name
from splitad.runtime.content import Unknown, name_of, named, number_of
from splitad.runtime.late import Late
from splitad.runtime.linking import compiled
from splitad.runtime.pullback_zeros import PlainZeros
from splitad.runtime.result_bar import bar_caster, cotangent_type
from splitad.runtime.stored import name_boxes
from splitad.tape.ops import TAPE

NO_LIMIT = 1 << 62
MOST_ALIKE = 32  # a program that makes equal pairs for ever must not fill the disk


class Resolver(Protocol):
    """What compiles the functions of a pair; see above."""

    def forward_dispatcher(self, argtypes: tuple[types.Type, ...]) -> tuple[Any, str]: ...
    def reverse_dispatcher(self, spec_key: str) -> Any: ...
    def zero_dispatcher(self, spec_key: str) -> Any: ...
    def plain_zeros(self, spec_key: str) -> PlainZeros | None: ...
    def content(self, spec_key: str) -> str | None: ...


class Specialisation:
    """The forward and the reverse for one tuple of argument types.

    content: see Resolver.  Where there is one, code that calls the two can be kept on disk: what it refers to
    has names, which are the same in another process that makes the same pairs.
    """

    def __init__(
        self,
        pair: Pair,
        key: str,
        forward: Any,
        argtypes: tuple[types.Type, ...],
        content: str | None = None,
    ) -> None:
        self.pair, self.key, self.forward, self.argtypes = pair, key, forward, argtypes
        # [0] bytes that the last tape used, [1] set by every call of a pullback; compiled code writes it
        self.counters = np.zeros(2, np.int64)
        self._overlapping: dict[Any, Any] = {}  # functions of the next part, by what they are given
        self.name: str | None = None
        if content is not None and number_of(content) < MOST_ALIKE:
            self.name = name_of(self, lambda: content)
            give_name(int(self.counters.ctypes.data), f"splitad.{self.name}.counters", self)
            give_name(id(self), f"splitad.{self.name}.object", self)
            with suppress(Unknown):
                name_boxes(argtypes)

    def symbol(self, part: str) -> str | None:
        """The name of the address of a part of this, or of it; None where there is none."""
        return None if self.name is None else f"splitad.{self.name}.{part}"

    def content_name(self) -> str:
        """See content.py."""
        if self.name is None:
            raise Unknown(self.pair.name)
        return self.name

    @staticmethod
    def of_content_name(name: str) -> Specialisation:
        return named(name)  # type: ignore[no-any-return]

    @cached_property
    def forward_result(self) -> Any:
        """Numba's compile result of forward_impl."""
        return compiled(self.forward, (TAPE, *self.argtypes))

    @property
    def result_type(self) -> types.Type:
        return self.forward_result.signature.return_type.types[0]

    @property
    def refs_type(self) -> types.Type:
        return self.forward_result.signature.return_type.types[1]

    @cached_property
    def pullback_type(self) -> PullbackType:
        return PullbackType(self)

    @cached_property
    def reverse(self) -> Any:
        """The dispatcher of reverse_impl."""
        return self.pair.resolver.reverse_dispatcher(self.key)

    @cached_property
    def zero(self) -> Any:
        """The dispatcher of zero_impl."""
        return self.pair.resolver.zero_dispatcher(self.key)

    @cached_property
    def plain_zeros(self) -> PlainZeros | None:
        """What makes the zeros instead of zero_impl; None where that is needed."""
        return self.pair.resolver.plain_zeros(self.key)

    @property
    def zeros_type(self) -> types.Type:
        """The type of the tuple of zero shadows."""
        if self.plain_zeros is not None:
            return self.plain_zeros.type
        return compiled(self.zero, (TAPE, self.refs_type)).signature.return_type

    # ---- arguments that overlap: see overlapping.py

    @cached_property
    def overlapping(self) -> Specialisation:
        """The one for arguments that overlap, of another pair."""
        pair = self.pair.overlapping
        assert pair is not None
        return pair.specialise(self.argtypes)

    @cached_property
    def forward_overlapping(self) -> Late | None:
        """None where this forward takes arguments that overlap, or has none of which one is written."""
        if self.pair.make_overlapping is None or not overlapping.may_refuse(self.forward):
            return None
        return overlapping.forward_function(self)

    @cached_property
    def zero_overlapping(self) -> Late:
        return overlapping.zero_function(self, self.zeros_type)

    def reverse_overlapping(self, given: tuple[types.Type, ...], cotangents: types.Type) -> Late:
        """given: the types of result_bar and the shadows."""
        return self._once(overlapping.reverse_function, given, cotangents)  # type: ignore[no-any-return]

    def call_overlapping(self, tape: Any, *given: Any) -> Any:
        """From Python: the reverse, for result_bar and the shadows."""
        kinds = tuple(types.unliteral(typeof(value)) for value in given)
        return self._once(overlapping.reverse_dispatcher, kinds)(tape, *given)

    def make_zero_overlapping(self, tape: Any) -> Any:
        """From Python: the zero shadows."""
        return self._once(overlapping.zero_dispatcher)(tape)

    def _once(self, make: Callable[..., Any], *key: Any) -> Any:
        if (make, key) not in self._overlapping:
            self._overlapping[make, key] = make(self, *key)
        return self._overlapping[make, key]

    @cached_property
    def shadow_count(self) -> int:
        return len(inspect.signature(self.reverse.py_func).parameters) - 3

    @cached_property
    def cast_bar(self) -> Callable[[Any], Any]:
        """Brings a Python result_bar to the result's dtype."""
        return bar_caster(self.result_type)

    def check_count(self, given: int) -> None:
        """given: how many arguments a pullback was called with."""
        if given != self.shadow_count + 1:
            shadows = f"{self.shadow_count} shadow{'s' * (self.shadow_count != 1)}"
            raise TypeError(
                f"the pullback of {self.pair.name} takes result_bar and {shadows}, "
                f"but {given} argument{'s were' if given != 1 else ' was'} given"
            )


class Pair:
    """What one call of `split` made."""

    def __init__(
        self, key: str, resolver: Resolver, signature: inspect.Signature, name: str, limit: int
    ) -> None:
        self.key, self.resolver, self.signature = key, resolver, signature
        self.name, self.limit = name, limit
        self.forward: Callable[[], Any] = lambda: None  # a weak reference to the Forward
        self.definition: Callable[[], Loc | None] = lambda: None  # where the function is defined
        # makes the pair for arguments that overlap in memory; None where this is it
        self.make_overlapping: Callable[[], Pair] | None = None
        self._by_types: dict[tuple[types.Type, ...], Specialisation] = {}
        self._by_key: dict[str, Specialisation] = {}

    @cached_property
    def overlapping(self) -> Pair | None:
        return self.make_overlapping() if self.make_overlapping is not None else None

    @cached_property
    def entry_type(self) -> EntryType:
        return EntryType(self)

    def forward_object(self) -> Any:
        """The Forward of this pair."""
        return self.forward()

    @cached_property
    def forward_type(self) -> ForwardType:
        return ForwardType(self)

    def fold(self, args: Sequence[Any], kws: Any) -> tuple[types.Type, ...]:
        """The argument types of a call, in the order of f's parameters."""
        folded = fold_arguments(
            self.signature,
            args,
            kws,
            lambda index, param, given: types.unliteral(given),
            lambda index, param, default: typeof(default),
            lambda index, param, given: types.Tuple([types.unliteral(t) for t in given]),
        )
        return tuple(folded)

    def specialise(self, argtypes: tuple[types.Type, ...]) -> Specialisation:
        """The compiled forward for these types; compiles it at the first time."""
        spec = self._by_types.get(argtypes)
        if spec is None:
            forward, key = self.resolver.forward_dispatcher(argtypes)
            spec = self._by_key.get(key)
            if spec is None:
                content = self.resolver.content(key)
                made = Specialisation(self, key, forward, argtypes, content)
                spec = self._by_key[key] = made
            self._by_types[argtypes] = spec
        return spec

    def specialisation(self, key: str) -> Specialisation:
        return self._by_key[key]


# A pair lives as long as a Forward, a pullback, or compiled code that mentions its types.
_pairs: weakref.WeakValueDictionary[str, Pair] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def tape_limit(max_tape_bytes: int | None) -> int:
    """The option max_tape_bytes as compiled code wants it."""
    if max_tape_bytes is None:
        return NO_LIMIT
    if isinstance(max_tape_bytes, bool) or not isinstance(max_tape_bytes, (int, np.integer)):
        raise TypeError(f"max_tape_bytes is a number of bytes, an int, not {max_tape_bytes!r}")
    if max_tape_bytes < 0:
        raise ValueError(f"max_tape_bytes is a number of bytes, not {max_tape_bytes}")
    return int(max_tape_bytes)


def register_pair(
    key: str,
    resolver: Resolver,
    signature: inspect.Signature,
    name: str = "f",
    max_tape_bytes: int | None = None,
) -> Pair:
    """Make a pair known under `key`, which must not be in use."""
    limit = tape_limit(max_tape_bytes)
    with _lock:
        if key in _pairs:
            raise ValueError(f"there is a pair named {key!r} already")
        pair = _pairs[key] = Pair(key, resolver, signature, name, limit)
    return pair


def find_pair(key: str) -> Pair:
    """The pair of that name."""
    pair = _pairs.get(key)
    if pair is None:
        raise SplitadError(
            "this is a value of a pair of another process",
            None,
            "a forward and its pullbacks cannot be pickled; call split in each process",
        )
    return pair


# ---- the types -----------------------------------------------------------------------------------------


class ForwardType(types.Callable, types.Opaque):
    """The type of a `forward`; all it needs to know is which pair it belongs to."""

    is_derivative = True

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        super().__init__(f"forward[{pair.name}, {pair.key}]")

    @property
    def key(self) -> str:
        return self.pair.key

    def __reduce__(self) -> Any:
        return _forward_type, (self.pair.key,)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        argtypes = self.pair.fold(args, kws)
        spec = self.pair.specialise(argtypes)
        result = types.Tuple((spec.result_type, spec.pullback_type))
        return Signature(result, spec.argtypes, self, self.pair.signature)

    def get_call_signatures(self) -> tuple[list[Signature], bool]:
        return [], True

    def get_impl_key(self, sig: Signature) -> str:
        return "splitad forward call"


class EntryType(ForwardType):
    """The forward within its own trampoline: one positional argument per parameter."""

    def __reduce__(self) -> Any:
        return _entry_type, (self.pair.key,)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        spec = self.pair.specialise(tuple(types.unliteral(t) for t in args))
        result = types.Tuple((spec.result_type, spec.pullback_type))
        return Signature(result, spec.argtypes, self)


class PullbackType(types.Callable):
    """The type of a pullback: which specialisation, and what it keeps alive beside the tape."""

    is_derivative = True

    def __init__(self, spec: Specialisation) -> None:
        self.spec = spec
        super().__init__(
            f"pullback[{spec.pair.name}, {spec.pair.key}, {spec.key}, {spec.refs_type}]"
        )

    @property
    def key(self) -> tuple[str, str, types.Type]:
        return self.spec.pair.key, self.spec.key, self.spec.refs_type

    def __reduce__(self) -> Any:
        return _pullback_type, (self.spec.pair.key, self.spec.key)

    def content_name(self) -> str:
        """See content.py."""
        return self.spec.content_name()

    @staticmethod
    def of_content_name(name: str) -> PullbackType:
        return Specialisation.of_content_name(name).pullback_type

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        if kws:
            raise TypeError("a pullback takes no keyword arguments")
        spec = self.spec
        spec.check_count(len(args))
        bar = cotangent_type(spec.result_type, types.unliteral(args[0]))
        given = (bar, *(types.unliteral(t) for t in args[1:]))
        reverse = types.Dispatcher(spec.reverse)
        called = reverse.get_call_type(context, (TAPE, spec.refs_type, *given), {})
        return Signature(called.return_type, given, self)

    def get_call_signatures(self) -> tuple[list[Signature], bool]:
        return [], True

    def get_impl_key(self, sig: Signature) -> str:
        return "splitad pullback call"


def _forward_type(key: str) -> ForwardType:
    return find_pair(key).forward_type


def _entry_type(key: str) -> EntryType:
    return find_pair(key).entry_type


def _pullback_type(key: str, spec_key: str) -> PullbackType:
    return find_pair(key).specialisation(spec_key).pullback_type
