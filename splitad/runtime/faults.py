"""All checks of one call at once, over notes (boundary.py), whatever the types of the arrays.

    arguments_fault(notes, count, written, fixed, rebound, doubles, singles) -> code   0: no fault
    shadows_fault(notes, count, shadows, which, written) -> code

`notes` is the address of `count` notes one behind the other, of all arrays in the arguments; `shadows` that
of the notes of the shadows.  The rest are sets of arguments as bits: `written` those that f writes, `fixed`
those that cannot have a shadow that overlaps another, `rebound` fields to which f assigns another array,
`doubles` and `singles` those made of 64-bit and of 32-bit floats (complex numbers are; records count as
both), `which` those that have a shadow.  A code holds a kind and two
arguments; `raise_fault(code, names)` raises the ShadowError or AliasingError that puts it into words:
compiled code passes numbers, and builds no strings.

Compiled once for all pairs, and called through a symbol: checks that are compiled, or linked and optimised
anew, for each pair cost more than the pullback itself.  `register()` makes the symbols.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from splitad import errors
from splitad.runtime import boundary
from splitad.runtime.boundary import (
    DATA,
    NDIM,
    SHAPE,
    note_lies_in,
    note_overlaps_itself,
    note_words,
    notes_overlap,
)
from splitad.runtime.linking import NO_WRAPPERS, call, compiled
from splitad.runtime.stored import Keeper, keeping_jit, key_of, need
from splitad.tape import columns
from splitad.tape.columns import column

# what may be wrong; all from SEPARATE on is an AliasingError
WRONG_SHAPE, ON_PRIMAL, TOUCHING, SEPARATE, ON_ITSELF, OVERLAPPING, CONSTANT, OTHER_TYPE = range(
    1, 9
)
MOST = 60  # arrays in the arguments of one function: they are bits of an integer
_INT = np.int64

NO_SHADOW = "const "  # in front of the name of an argument that overlaps none, since it is Const


@njit
def _next(note: int) -> int:
    """The address of the note behind this one."""
    return note + 8 * note_words(column(note, 0, _INT)[NDIM])


@njit
def _code(kind: int, one: int, other: int) -> int:
    return (kind * 64 + one) * 64 + other


@njit
def _same_type(k: int, j: int, doubles: int, singles: int) -> bool:
    for kind in (doubles, singles, ~(doubles | singles)):
        if (kind >> k) & (kind >> j) & 1:
            return True
    return False


@njit
def _arguments_fault(
    notes: int, count: int, written: int, fixed: int, rebound: int, doubles: int, singles: int
) -> int:
    """A written argument that overlaps itself; then two that overlap, one of them written: OTHER_TYPE where
    one's elements are no elements of the other's type, CONSTANT where one of them is in `fixed`, or a rebound
    field is no part of the other."""
    note = notes
    for k in range(count):
        if (written >> k) & 1 and note_overlaps_itself(note):
            return _code(ON_ITSELF, k, k)
        note = _next(note)
    note, first = notes, 0
    for k in range(count):
        other = notes
        for j in range(k):
            if ((written >> k) | (written >> j)) & 1 and notes_overlap(note, other):
                if not _same_type(k, j, doubles, singles):
                    return _code(OTHER_TYPE, k, j)
                kind = OVERLAPPING
                if ((fixed >> k) | (fixed >> j)) & 1:
                    kind = CONSTANT
                elif (rebound >> k) & 1:
                    kind = OVERLAPPING if note_lies_in(note, other) else CONSTANT
                elif (rebound >> j) & 1:
                    kind = OVERLAPPING if note_lies_in(other, note) else CONSTANT
                if kind == CONSTANT or first == 0:
                    first = _code(kind, k, j)
            other = _next(other)
        note = _next(note)
    return first


@njit
def _same_shape(note: int, other: int) -> bool:
    a, b = column(note, 0, _INT), column(other, 0, _INT)
    for k in range(SHAPE, SHAPE + a[NDIM]):
        if a[k] != b[k]:
            return False
    return True


@njit
def _same_strides(note: int, other: int) -> bool:
    a, b = column(note, 0, _INT), column(other, 0, _INT)
    ndim = a[NDIM]
    for k in range(SHAPE, SHAPE + ndim):
        if a[k] > 1 and a[k + ndim] != b[k + ndim]:
            return False
    return True


@njit
def pair_fault(primal: int, shadow: int, other_primal: int, other: int, written: bool) -> int:
    """Whether two shadows overlap as their primals do: TOUCHING where the primals do not, or at other byte
    offsets; SEPARATE where the primals do and one of them is written."""
    primals = notes_overlap(primal, other_primal)
    shadows = notes_overlap(shadow, other)
    if not primals:
        return TOUCHING if shadows else 0
    if not shadows:
        return SEPARATE if written else 0
    p, s = column(primal, 0, _INT), column(shadow, 0, _INT)
    q, t = column(other_primal, 0, _INT), column(other, 0, _INT)
    same = p[DATA] - q[DATA] == s[DATA] - t[DATA]
    if same and _same_strides(primal, shadow) and _same_strides(other_primal, other):
        return 0
    return SEPARATE if written else TOUCHING


@njit
def _shadows_fault(notes: int, count: int, shadows: int, which: int, written: int) -> int:
    """The first thing that is wrong with the shadows."""
    note, shadow = notes, shadows
    for k in range(count):
        if (which >> k) & 1:
            if not _same_shape(note, shadow):
                return _code(WRONG_SHAPE, k, k)
            primal = notes
            for j in range(count):
                if notes_overlap(primal, shadow):
                    return _code(ON_PRIMAL, k, j)
                primal = _next(primal)
            other_note, other_shadow = notes, shadows
            for j in range(k):
                if (which >> j) & 1:
                    on = ((written >> k) | (written >> j)) & 1
                    kind = pair_fault(note, shadow, other_note, other_shadow, on == 1)
                    if kind:
                        return _code(kind, k, j)
                    other_shadow = _next(other_shadow)
                other_note = _next(other_note)
            shadow = _next(shadow)
        note = _next(note)
    return 0


def _entry_points(sources: str) -> dict[str, tuple[Any, int]]:
    """What the symbols stand for, and how many arguments they take.

    Numba's disk cache takes a function for unchanged if this file is, and what it closes over: `sources`
    stands for the other files.
    """

    def arguments(
        notes: int, count: int, written: int, fixed: int, rebound: int, doubles: int, singles: int
    ) -> int:
        _ = sources
        return _arguments_fault(notes, count, written, fixed, rebound, doubles, singles)

    def shadows(notes: int, count: int, shadows: int, which: int, written: int) -> int:
        _ = sources
        return _shadows_fault(notes, count, shadows, which, written)

    return {"splitad_arguments_fault": (arguments, 7), "splitad_shadows_fault": (shadows, 5)}


def _sources() -> str:
    """A hash of the files that the checks are made of, this one apart."""
    text = "".join(inspect.getsource(module) for module in (boundary, columns))
    return hashlib.sha256(text.encode()).hexdigest()


def _compiled(signature: str, function: Any) -> Any:
    try:
        return cfunc(signature, cache=True)(function)
    except Exception:  # no folder for the cache, or a damaged file in it
        return cfunc(signature)(function)


@cache
def register() -> tuple[Any, ...]:
    """Compile the checks and make them known by name; before any pair is compiled or loaded."""
    made = []
    try:
        sources = _sources()
    except OSError:  # installed without sources: what is there does not change
        sources = ""
    for symbol, (function, count) in _entry_points(sources).items():
        compiled = _compiled(f"int64({', '.join(['int64'] * count)})", function)
        llvm.add_symbol(symbol, compiled.address)
        made.append(compiled)
    return tuple(made)


def _by_symbol(symbol: str, context: Any, builder: Any, args: Any) -> Any:
    register()
    need(context, register)
    kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), args)


@intrinsic
def arguments_fault(
    typingctx: Any,
    notes: Any,
    count: Any,
    written: Any,
    fixed: Any,
    rebound: Any,
    doubles: Any,
    singles: Any,
) -> Any:
    """See _arguments_fault."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _by_symbol("splitad_arguments_fault", context, builder, args)

    return types.int64(*[types.int64] * 7), codegen


@intrinsic
def shadows_fault(
    typingctx: Any, notes: Any, count: Any, shadows: Any, which: Any, written: Any
) -> Any:
    """See _shadows_fault."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _by_symbol("splitad_shadows_fault", context, builder, args)

    return types.int64(*[types.int64] * 5), codegen


def first_code(kind: int) -> int:
    """The codes of this kind are those from here to first_code(kind + 1)."""
    return kind * 4096


def in_words(code: int, names: str, shapes: str = "") -> str:
    """names: the function's and the arguments', separated by |, some with a mark in front.  shapes: which,
    where that is known."""
    function, *arguments = names.split("|")
    kind, marked = code // 4096, (arguments[code // 64 % 64], arguments[code % 64])
    one, other = (name.removeprefix(NO_SHADOW) for name in marked)
    if kind == WRONG_SHAPE:
        return f"the shadow of '{one}' has another shape than '{one}' had{shapes}"
    if kind == ON_PRIMAL:
        return f"the shadow of '{one}' overlaps '{other}' in memory"
    if kind == TOUCHING:
        return (
            f"the shadows of '{one}' and '{other}' overlap in memory, but '{one}' and '{other}' "
            "did not, or not at the same byte offsets"
        )
    if kind == SEPARATE:
        return (
            f"'{one}' and '{other}' overlapped in memory and one of them is written, so their shadows "
            "must overlap at the same byte offsets: make_zero() gives such shadows"
        )
    if kind == ON_ITSELF:
        return f"the argument '{one}' of {function} overlaps itself in memory and is written"
    assert kind in (OVERLAPPING, CONSTANT, OTHER_TYPE)
    text = f"'{other}' and '{one}' of {function} overlap in memory and one of them is changed"
    const = [name.removeprefix(NO_SHADOW) for name in marked if name.startswith(NO_SHADOW)]
    if kind == CONSTANT and const:
        # an argument is Duplicated or Const as a whole, with its fields
        whole = sorted({re.split(r"[.\[]", name)[0] for name in const})
        text += (
            f", and {' and '.join(const)} {'are' if len(const) > 1 else 'is'} Const: "
            f"make {' and '.join(whole)} Duplicated, or copy one of the two first"
        )
    elif kind == CONSTANT:
        text += (
            ", so a field that is assigned must be the other array, or lie in a C-contiguous one"
        )
    if kind == OTHER_TYPE:
        text += ", but their elements are of different types: numbers are not taken apart into bits"
    return text


_ALIASING = first_code(SEPARATE)


_OWN = "pullback.make_zero() makes shadows that fit, in memory of their own."


class ShadowError(errors.ShadowError):
    """A ShadowError that compiled code raises with a code."""

    def __init__(
        self, code: int, names: str, loc: errors.Loc | None = None, shapes: str = ""
    ) -> None:
        self.code, self.names, self.shapes = code, names, shapes
        super().__init__(in_words(code, names, shapes), loc, _OWN)

    @property
    def misshapen(self) -> str | None:
        """The argument whose shadow has the wrong shape."""
        if self.code // 4096 != WRONG_SHAPE:
            return None
        return self.names.split("|")[1:][self.code // 64 % 64]

    def with_shapes(self, given: tuple[int, ...], needed: tuple[int, ...]) -> ShadowError:
        """The same, with the shapes."""
        return type(self)(self.code, self.names, self.loc, f": {given}, not {needed}")

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.names, self.loc, self.shapes)


class AliasingError(errors.AliasingError):
    """An AliasingError that compiled code raises with a code."""

    def __init__(self, code: int, names: str, loc: errors.Loc | None = None) -> None:
        self.code, self.names = code, names
        super().__init__(in_words(code, names), loc)

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.names, self.loc)


def _raise(code: int, names: str) -> None:
    if code >= _ALIASING:
        raise AliasingError(code, names)
    raise ShadowError(code, names)


_keeper = Keeper(lambda argtypes: key_of("raise_fault", *argtypes))


@cache
def _raise_fault() -> Any:
    return keeping_jit(_raise, _keeper, **NO_WRAPPERS)


def ready_raise_fault(argtypes: tuple[types.Type, ...]) -> Any:
    """The compiled function."""
    return compiled(_raise_fault(), argtypes)


@intrinsic
def raise_fault(typingctx: Any, code: Any, names: Any) -> Any:
    """Raise the error of a code."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        need(context, ready_raise_fault, sig.args)
        call(context, builder, ready_raise_fault(sig.args), list(args))
        return context.get_dummy_value()

    return types.none(types.int64, types.unicode_type), codegen


class ArgumentsOverlap(errors.ArgumentsOverlap):
    """The pair for distinct arguments does not apply; its caller goes on with the other one.

    It is seen only where that cannot be compiled.  Its text is known when it is compiled: what an exception
    is given at run time would leak where nobody sees it.
    """

    def __init__(self, names: str) -> None:
        self.names = names
        super().__init__(
            f"arguments of {names.split('|')[0]} overlap in memory and one of them is changed, and the "
            "pair for that cannot be compiled",
            None,
            "Call it from Python with such arguments, to see why; or copy one of them first.",
        )

    def __reduce__(self) -> Any:
        return type(self), (self.names,)
