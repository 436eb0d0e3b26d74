"""A builder that appends nodes to the block being written; the only way by which the front end makes IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import types

from splitad.errors import Loc
from splitad.ir import nodes as ir


class Builder:
    """Appends nodes, with fresh unique names and the current location."""

    def __init__(self, loc: Loc) -> None:
        self.loc = loc
        self._blocks: list[list[ir.Stmt]] = [[]]
        self._used: dict[str, int] = {}
        self.bases: dict[str, str] = {}  # what each variable was asked to be called

    # ---- names and blocks ------------------------------------------------------------------

    def fresh(self, name: str, type: types.Type) -> ir.Var:
        """A new variable; the first `x` is called x, later ones x_1, x_2, ..."""
        base = name.strip("_").replace(".", "_") or "t"
        while True:
            count = self._used.get(base, 0)
            self._used[base] = count + 1
            candidate = base if count == 0 else f"{base}_{count}"
            if count == 0 or candidate not in self._used:
                self._used.setdefault(candidate, 1)
                self.bases[candidate] = base
                return ir.Var(candidate, type)

    def emit(self, node: ir.Stmt) -> None:
        self._blocks[-1].append(node)

    @contextmanager
    def block(self) -> Iterator[list[ir.Stmt]]:
        """Statements emitted inside go to a new list, which is what `as` names."""
        stmts: list[ir.Stmt] = []
        self._blocks.append(stmts)
        try:
            yield stmts
        finally:
            self._blocks.pop()

    def scope(self) -> object:
        """The block being written, as something to ask `in_scope` about later."""
        return self._blocks[-1]

    def in_scope(self, scope: object) -> bool:
        """Whether values defined in that block can be used here."""
        return any(block is scope for block in self._blocks)

    @property
    def root(self) -> tuple[ir.Stmt, ...]:
        return tuple(self._blocks[0])

    # ---- values ------------------------------------------------------------------------------

    @staticmethod
    def intp(value: int) -> ir.Lit:
        return ir.Lit(value, types.intp)

    def prim(
        self, fn: Callable[..., Any], *args: ir.Operand, type: types.Type, name: str = "t"
    ) -> ir.Var:
        out = self.fresh(name, type)
        self.emit(ir.Prim(out, fn, args, loc=self.loc))
        return out

    def cast(self, arg: ir.Operand, type: types.Type, name: str = "t") -> ir.Operand:
        """arg as `type`; no node where it is that already."""
        if types.unliteral(arg.type) == types.unliteral(type):
            return arg
        if isinstance(arg, ir.Lit) and arg.value is ir.UNDEF:
            return ir.Lit(ir.UNDEF, type)
        out = self.fresh(name, types.unliteral(type))
        self.emit(ir.Cast(out, arg, loc=self.loc))
        return out

    def dim(self, array: ir.Var, axis: int) -> ir.Var:
        out = self.fresh(f"{array.name}_n{axis}", types.intp)
        self.emit(ir.Dim(out, array, axis, loc=self.loc))
        return out

    def stride(self, array: ir.Var, axis: int) -> ir.Var:
        out = self.fresh(f"{array.name}_s{axis}", types.intp)
        self.emit(ir.Stride(out, array, axis, loc=self.loc))
        return out

    def load(
        self, array: ir.Var, *index: ir.Operand, wraps: bool = True, name: str = "t"
    ) -> ir.Var:
        out = self.fresh(name, array.type.dtype)
        self.emit(ir.Load(out, array, index, wraps, loc=self.loc))
        return out

    def store(
        self, array: ir.Var, index: tuple[ir.Operand, ...], value: ir.Operand, wraps: bool = True
    ) -> None:
        value = self.cast(value, array.type.dtype)
        self.emit(ir.Store(array, index, value, wraps, loc=self.loc))

    def view(
        self, base: ir.Var, kind: str, index: tuple[ir.Index, ...], type: types.Type, name: str = ""
    ) -> ir.Var:
        out = self.fresh(name or base.name + "_v", type)
        self.emit(ir.View(out, base, kind, index, loc=self.loc))
        return out

    def alloc(
        self, shape: tuple[ir.Operand, ...], dtype: types.Type, kind: str = "empty", name: str = "a"
    ) -> ir.Var:
        out = self.fresh(name, types.Array(dtype, len(shape), "C"))
        self.emit(ir.Alloc(out, kind, shape, loc=self.loc))
        return out

    def array_call(
        self,
        fn: Callable[..., Any],
        args: tuple[ir.Operand, ...],
        outs: tuple[ir.Var, ...],
        static: tuple[tuple[str, ir.Operand], ...] = (),
    ) -> None:
        self.emit(ir.ArrayCall(outs, fn, args, static, loc=self.loc))

    # ---- loops over index spaces (no carried values) -----------------------------------------------

    @contextmanager
    def loop(self, stop: ir.Operand, name: str = "k") -> Iterator[ir.Var]:
        """``for k in range(stop)`` around what is emitted inside."""
        counter = self.fresh(name, types.intp)
        with self.block() as stmts:
            yield counter
        self.emit(
            ir.For(
                counter, self.intp(0), stop, self.intp(1), (), (), ir.Block(tuple(stmts)), (),
                loc=self.loc,
            )
        )  # fmt: skip
