"""What the lowering knows at a point: names, the fields of objects, the place in the source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from numba.core import types

from splitad.errors import InternalError, SplitadError, UnsupportedError
from splitad.frontend.array_context import ArrayContext
from splitad.frontend.normal import NormalFunction
from splitad.frontend.values import (
    NONE,
    GrowVal,
    ListVal,
    OpaqueVal,
    PyVal,
    StructVal,
    TupleVal,
    Value,
)
from splitad.ir import nodes as ir
from splitad.ir.types import NumbaError, type_of

HeapKey = tuple[int, str]
Key = str | HeapKey


@dataclass(frozen=True)
class CompileFlags:
    """The options of njit that change what the code means."""

    error_model: str = "python"
    parallel: bool = False
    boundscheck: bool = False
    kernel: bool = False  # a CUDA kernel, or a device function in one


@dataclass(eq=False)
class Frame:
    """One activation of a function: its names, and the types that Numba gave its statements."""

    normal: NormalFunction
    typing: Any
    flags: CompileFlags
    names: dict[str, Value] = field(default_factory=dict)
    path: tuple[
        int, ...
    ] = ()  # the calls that led here: one inlined function is lowered once per call
    assigned: frozenset[str] = frozenset()  # its locals
    known: int = 0  # objects with a smaller number may be known outside of it


@dataclass
class LoopMemo:
    """What lowering a loop once found out, so that it is not found out again in every enclosing trial."""

    types: dict[tuple[Key, int], types.Type] = field(default_factory=dict)
    heap: list[HeapKey] = field(default_factory=list)
    constant: set[tuple[Key, int]] = field(default_factory=set)
    varying: set[tuple[Key, int]] = field(default_factory=set)


Activate = Callable[["Context", Frame, list[Value]], Value]


class Context:
    """The state of one lowering; the functions in control, calls, scalars, ... take it as `c`."""

    def __init__(self, frame: Frame, arrays: ArrayContext, activate: Activate) -> None:
        self.activate = activate  # runs a function's statements with these arguments
        self.arrays = arrays
        self.frame = frame
        self.b, self.rules, self.ops = arrays.b, arrays.rules, arrays.ops
        self.heap: dict[HeapKey, Value] = {}
        self.objects: list[types.Type] = []  # type of object number oid
        self.roots: dict[int, ir.Var] = {}  # oid -> the variable, for objects that are arguments
        self.listed: dict[str, ir.Operand] = {}  # the number of an array that came out of a list
        self.iterated: dict[
            int, Value
        ] = {}  # oid of a list -> its length where a loop over it began
        self.frozen: dict[ir.Var, ir.Lit] = {}  # what global arrays are called while lowering
        self.hints: dict[str, str] = {}  # better names for variables: the user's
        self.has_opaque = False  # an argument has a part that splitad does not look into
        self.dead = False  # nothing after this point is executed
        self.memo: dict[tuple[Any, ...], LoopMemo] = {}
        self.active_calls: list[Any] = []  # functions being inlined, to notice recursion

    @property
    def frame(self) -> Frame:
        """The activation that is being lowered."""
        return self._frame

    @frame.setter
    def frame(self, frame: Frame) -> None:
        self._frame = frame
        self.arrays.error_model = frame.flags.error_model

    # ---- errors --------------------------------------------------------------------------------

    def refuse(self, reason: str, hint: str = "") -> NoReturn:
        raise UnsupportedError(reason, self.b.loc, hint)

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """What is emitted inside comes from this place of the user's code."""
        before = self.b.loc
        loc = self.b.loc = self.frame.normal.loc_of(node)
        try:
            yield
        except (SplitadError, NumbaError):
            raise
        except Exception as error:  # a fault of the lowering: say at least where
            raise InternalError(
                f"splitad failed here: {type(error).__name__}: {error}",
                loc,
                "This is a fault of splitad; please report it together with the function.",
            ) from error
        finally:
            self.b.loc = before

    # ---- names and fields ------------------------------------------------------------------------

    def get(self, key: Key) -> Value | None:
        return self.frame.names.get(key) if isinstance(key, str) else self.heap.get(key)

    def set(self, key: Key, value: Value) -> None:
        if isinstance(key, str):
            self.frame.names[key] = value
        else:
            self.heap[key] = value

    def save(self) -> State:
        return dict(self.frame.names), dict(self.heap)

    def restore(self, state: State) -> None:
        self.frame.names, self.heap = dict(state[0]), dict(state[1])

    def new_object(self, type: types.Type) -> StructVal:
        self.objects.append(type)
        return StructVal(len(self.objects) - 1, type)

    def new_list(self, type: types.Type) -> GrowVal:
        self.objects.append(type)
        return GrowVal(len(self.objects) - 1, type)

    @contextmanager
    def within(self, frame: Frame) -> Iterator[None]:
        before, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = before

    def freeze(self, value: Value) -> Value:
        """A constant; in it arrays are variables, which become literals again in the end."""
        if isinstance(value, TupleVal):
            return TupleVal(tuple(map(self.freeze, value.items)), value.type)
        if not isinstance(value, ir.Lit) or not isinstance(value.type, types.Array):
            return value
        for known, lit in self.frozen.items():
            if lit == value:
                return known
        var = self.b.fresh("g", value.type)
        self.frozen[var] = value
        self.arrays.origins.frozen(var)
        self.arrays.shapes.define(var, [("lit", int(n)) for n in value.value.shape])
        return var

    # ---- casts -----------------------------------------------------------------------------------

    def cast(self, operand: ir.Operand, type: types.Type, name: str = "t") -> ir.Operand:
        """operand as `type`; a literal that fits is rewritten instead."""
        type = types.unliteral(type)
        if isinstance(operand, ir.Lit) and operand.value is not ir.UNDEF:
            folded = cast_literal(operand.value, type)
            if folded is not None:
                return ir.Lit(folded, type)
        if isinstance(type, types.Array):
            return operand  # only the layout may differ; verify knows
        return self.b.cast(operand, type, name)

    def conform(self, value: Value, type: types.Type | None, name: str = "t") -> Value:
        """value as what Numba says its type is."""
        if type is None or isinstance(type, types.Omitted):
            return value
        type = types.unliteral(type)
        if isinstance(type, types.Optional) and isinstance(
            getattr(value, "type", None), types.Array
        ):
            return value  # of a function whose source in Numba ends without a return, which it never reaches
        if isinstance(value, TupleVal) and isinstance(type, types.BaseTuple):
            if value.type == type:
                return value
            items = tuple(
                self.conform(item, kind, name)
                for item, kind in zip(value.items, tuple_types(type), strict=True)
            )
            return TupleVal(items, type)
        if isinstance(value, (ir.Var, ir.Lit)):
            if isinstance(type, types.Optional) or (value.type == types.none) != (
                type == types.none
            ):
                self.refuse(
                    "A value that may be None or a number is not supported yet.",
                    "Use a number with a flag beside it.",
                )
            if isinstance(type, (types.Number, types.Boolean)):
                return self.cast(value, type, name)
        return value

    # ---- types -----------------------------------------------------------------------------------

    def type_of(self, value: Value) -> types.Type:
        """The type by which Numba would know the value as an argument."""
        match value:
            case ir.Lit(value=int() | str() as constant, type=kind) if kind in _LITERAL:
                return types.literal(constant)
            case ir.Lit() | ir.Var() | StructVal() | GrowVal() | OpaqueVal() | TupleVal():
                return value.type
            case ListVal() if value.type is not None:
                return value.type
            case PyVal():
                try:
                    return type_of(value.value)
                except Exception:
                    pass
        self.refuse(f"{describe(value)} cannot be an argument here.")

    def undefined(self, type: types.Type) -> Value | None:
        """What a variable of this type holds before it is assigned; None where that cannot be said."""
        type = types.unliteral(type)
        if isinstance(type, types.BaseTuple):
            items = [self.undefined(kind) for kind in tuple_types(type)]
            if any(item is None for item in items):
                return None
            return TupleVal(tuple(item for item in items if item is not None), type)
        if type == types.none:
            return NONE
        if isinstance(type, (types.Number, types.Boolean, types.Array)):
            return ir.Lit(ir.UNDEF, type)
        return None


State = tuple[dict[str, Value], dict[HeapKey, Value]]


def lookup(state: State, key: Key) -> Value | None:
    """What a name or field is in a saved state."""
    return state[0].get(key) if isinstance(key, str) else state[1].get(key)


_LITERAL = (types.intp, types.unicode_type, types.boolean)


def cast_literal(value: Any, type: types.Type) -> Any:
    """The constant as a value of `type`, or None where that would change it."""
    if isinstance(value, bool) and isinstance(type, types.Boolean):
        return value
    if not isinstance(value, (int, float, complex)):
        return None
    if isinstance(type, types.Integer) and isinstance(value, int):
        return int(value) if type.minval <= value <= type.maxval else None
    if isinstance(value, int) and abs(value) > 2**24:
        return None if type.bitwidth < 64 else float(value) if abs(value) <= 2**53 else None  # type: ignore[attr-defined]
    if type == types.float64 and isinstance(value, (int, float)):
        return float(value)
    if type == types.float32 and isinstance(value, int):
        return float(value)
    if type in (types.complex64, types.complex128) and not isinstance(value, complex):
        return complex(value) if type == types.complex128 or isinstance(value, int) else None
    return value if type == types.complex128 and isinstance(value, complex) else None


def tuple_types(type: types.Type) -> tuple[types.Type, ...]:
    return tuple(type)  # type: ignore[arg-type]


def describe(value: Value) -> str:
    """A value in words, for messages."""
    match value:
        case PyVal():
            named = (getattr(value.value, key, None) for key in ("__qualname__", "__name__"))
            name = next(filter(None, named), None)
            if name is None:  # its repr would be an address
                return f"An object of type {type(value.value).__name__}"
            module = getattr(value.value, "__module__", None) or ""
            return f"{module.replace('numpy', 'np')}.{name}" if module.startswith("numpy") else name
        case ir.Var() | ir.Lit() | TupleVal() | StructVal() | OpaqueVal():
            return f"A value of type {value.type}"
        case ListVal() | GrowVal():
            return "A list"
    return f"A {type(value).__name__.removesuffix('Val').lower()}"


def parameters(
    normal: NormalFunction, argtypes: tuple[types.Type, ...]
) -> list[tuple[str, types.Type]]:
    """Names and types of a function's parameters, *args being one."""
    names = [*normal.args, *([normal.vararg] if normal.vararg else [])]
    return list(zip(names, argtypes, strict=True))
