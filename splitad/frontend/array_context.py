"""What the lowering of array operations shares: the builder, the rules, and facts about arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn, Protocol

from numba.core import types

from splitad.errors import InternalError, UnsupportedError
from splitad.frontend.origins import Origins
from splitad.frontend.reduced import Reduced
from splitad.frontend.shapes import ONE, Shapes
from splitad.ir import nodes as ir
from splitad.ir.build import Builder
from splitad.ir.types import scalar_result

Index = tuple[ir.Operand, ...]
COUNTERS = ("i", "j", "k", "l", "m")


class Rules(Protocol):
    """What is used of splitad.rules.registry."""

    def scalar_rule(self, fn: Callable[..., Any]) -> Any: ...

    def array_rule(self, fn: Callable[..., Any]) -> Any: ...

    def jitted_forward(self, rule: Any) -> Any: ...

    def refusal(self, fn: Callable[..., Any]) -> str | None: ...


class ArrayContext:
    """The state of the lowering of array operations in one function.

    rules: splitad.rules.registry; ops: splitad.rules.ops (fdiv, select, ...).
    args_alias: whether the arrays in the arguments may overlap each other.
    """

    def __init__(self, b: Builder, rules: Rules, ops: Any, args_alias: bool = True) -> None:
        self.b, self.rules, self.ops = b, rules, ops
        self.shapes = Shapes(b)
        self.origins = Origins(args_alias)
        self.reduced = Reduced(b, self.origins)
        self.error_model = "python"  # of the function that is being lowered

    def refuse(self, reason: str, hint: str = "") -> NoReturn:
        raise UnsupportedError(reason, self.b.loc, hint)

    # ---- memory ------------------------------------------------------------------------------

    def alloc(
        self, sizes: Sequence[ir.Operand], type: types.Array, kind: str = "empty", name: str = "a"
    ) -> ir.Var:
        """A new array of this type; Fortran order is the transpose of a new array in C order."""
        sizes = tuple(self.shapes.intp(size) for size in sizes)
        if type.layout == "F" and type.ndim > 1:
            base = self.b.alloc(sizes[::-1], type.dtype, kind, name + "_base")
            self._new(base, sizes[::-1])
            return self.view(base, "T", (), types.Array(type.dtype, type.ndim, "F"), name)
        out = self.b.alloc(sizes, type.dtype, kind, name)
        self._new(out, sizes)
        return out

    def _new(self, array: ir.Var, sizes: Sequence[ir.Operand]) -> None:
        self.origins.fresh(array)
        self.shapes.define_by_sizes(array, sizes)

    def view(
        self,
        base: ir.Var,
        kind: str,
        index: tuple[ir.Index, ...],
        type: types.Array,
        name: str = "",
    ) -> ir.Var:
        """A View node, and what is known of its shape and memory."""
        out = self.b.view(base, kind, index, type, name)
        keys = self.shapes.keys(base)
        if kind == "index":
            self.shapes.define(out, self._indexed(keys, index))
        elif kind == "T":
            order = [entry.value for entry in index] or range(len(keys))[::-1]  # type: ignore[union-attr]
            self.shapes.define(out, [keys[axis] for axis in order])
        elif kind in ("reshape", "broadcast"):
            self.shapes.define_by_sizes(out, index)  # type: ignore[arg-type]
        elif type.ndim == len(keys):
            self.shapes.define(out, keys)
        self.origins.view(out, base, (kind, tuple(_path(entry) for entry in index)))
        return out

    def _indexed(self, keys: Sequence[Any], index: Sequence[ir.Index]) -> list[Any]:
        found: list[Any] = []
        axes = iter(keys)
        for entry in index:
            if isinstance(entry, ir.NewAxis):
                found.append(ONE)
            elif isinstance(entry, ir.Slice):
                found.append(self.shapes.sliced(next(axes), entry))
            else:
                next(axes)
        return found

    # ---- scalars -----------------------------------------------------------------------------

    def prim(
        self,
        fn: Callable[..., Any],
        *args: ir.Operand,
        type: types.Type | None = None,
        name: str = "t",
    ) -> ir.Var:
        """``fn(*args)``, of the type that Numba gives it."""
        if type is None:
            type = scalar_result(fn, tuple(types.unliteral(arg.type) for arg in args))
            if type is None:
                raise InternalError(f"{fn!r} has no type for {[a.type for a in args]}", self.b.loc)
        return self.b.prim(fn, *args, type=type, name=name)

    def select(self, cond: ir.Operand, a: ir.Operand, b: ir.Operand, name: str = "t") -> ir.Var:
        """``a if cond else b``; a and b have one type."""
        return self.b.prim(self.ops.select, cond, a, b, type=types.unliteral(a.type), name=name)

    def raise_if(self, cond: ir.Operand, exc: type[BaseException], message: str) -> None:
        b = self.b
        with b.block() as stmts:
            text = ir.Lit(message, types.unicode_type)
            b.emit(ir.Raise(exc, (text,), loc=b.loc))
        b.emit(ir.If(cond, ir.Block(tuple(stmts)), ir.Block(()), (), loc=b.loc))

    # ---- loops -------------------------------------------------------------------------------

    @contextmanager
    def nest(self, sizes: Sequence[ir.Operand], order: str = "C") -> Iterator[Index]:
        """Loops over all indices of an array with these sizes; the first is outermost in order C."""
        counters: list[ir.Operand] = [self.b.intp(0)] * len(sizes)
        with ExitStack() as loops:
            for axis in axes_in(order, len(sizes)):
                counters[axis] = loops.enter_context(self.b.loop(sizes[axis], COUNTERS[axis % 5]))
            yield tuple(counters)

    def fold(
        self,
        sizes: Sequence[ir.Operand],
        inits: Sequence[ir.Operand],
        body: Callable[[Index, tuple[ir.Operand, ...]], Sequence[ir.Operand]],
        order: str = "C",
        name: str = "acc",
    ) -> tuple[ir.Operand, ...]:
        """The same with carried values: body takes an index and the values, and returns the next ones."""
        axes = axes_in(order, len(sizes))
        counters: list[ir.Operand] = [self.b.intp(0)] * len(sizes)
        kinds = [types.unliteral(value.type) for value in inits]

        def level(depth: int, values: tuple[ir.Operand, ...]) -> tuple[ir.Operand, ...]:
            if depth == len(axes):
                return tuple(body(tuple(counters), values))
            b, axis = self.b, axes[depth]
            counter = counters[axis] = b.fresh(COUNTERS[axis % 5], types.intp)
            params = tuple(b.fresh(name, kind) for kind in kinds)
            with b.block() as stmts:
                yields = level(depth + 1, params)
            outs = tuple(b.fresh(name, kind) for kind in kinds)
            zero, one = b.intp(0), b.intp(1)
            b.emit(
                ir.For(
                    counter, zero, sizes[axis], one, params, values,
                    ir.Block(tuple(stmts), yields), outs, loc=b.loc,
                )
            )  # fmt: skip
            return outs

        return level(0, tuple(inits))


def axes_in(order: str, ndim: int) -> list[int]:
    """The axes from the outermost loop to the innermost."""
    return list(range(ndim))[:: -1 if order == "F" else 1]


def is_array(value: object) -> bool:
    return isinstance(value, ir.Var) and isinstance(value.type, types.Array)


def is_scalar(value: object) -> bool:
    return isinstance(value, (ir.Var, ir.Lit)) and isinstance(
        types.unliteral(value.type), (types.Number, types.Boolean)
    )


def _path(entry: ir.Index) -> Any:
    """An entry of an index as something to compare."""
    if isinstance(entry, ir.Slice):
        parts = (entry.start, entry.stop, entry.step)
        return tuple(None if part is None else _path(part) for part in parts)
    if isinstance(entry, ir.NewAxis):
        return "newaxis"
    return entry.name if isinstance(entry, ir.Var) else ("lit", entry.key)
