"""The rules that IR must obey before and after every pass, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from splitad.errors import InternalError
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.ir.show import show, show_stmt


def verify(fn: ir.Function) -> None:
    """Raise InternalError, listing every fault and the function, where fn breaks a rule."""
    found = faults(fn)
    if found:
        listed = "\n".join(f"  - {fault}" for fault in found)
        raise InternalError(f"illegal IR in {fn.name}:\n{listed}\n{_shown(fn)}", fn.loc)


def faults(fn: ir.Function) -> list[str]:
    """Every fault, in words, each with the statement it was found in."""
    checker = _Checker()
    for param in fn.params:
        checker.define(param, f"parameter {param.name}")
    scope = frozenset(fn.params)
    scope = checker.block(fn.body, scope, yields=None)
    for operand in walk.exits(fn):
        checker.use(operand, scope, "the function's result or leaves")
    return checker.found


def _shown(fn: ir.Function) -> str:
    try:
        return show(fn)
    except Exception as error:  # a fault so bad that it cannot be printed must still be reported
        return f"(cannot be shown: {error!r})"


def same_type(have: types.Type, want: types.Type) -> bool:
    """Whether a value of type `have` may be bound to a variable of type `want`.

    An array may lose what is known of its layout, and its writability, but nothing else.
    """
    have, want = types.unliteral(have), types.unliteral(want)
    if have == want:
        return True
    if isinstance(have, types.Array) and isinstance(want, types.Array):
        layout = have.layout == want.layout or want.layout == "A" or have.ndim == 0
        return have.dtype == want.dtype and have.ndim == want.ndim and layout
    return False


def _is_integer(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), types.Integer)


def _is_boolean(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), types.Boolean)


def _undef(operand: Any) -> bool:
    return isinstance(operand, ir.Lit) and operand.value is ir.UNDEF


class _Checker:
    """Collects the faults of one function."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.names: set[str] = set()

    def fault(self, text: str, where: ir.Stmt | str) -> None:
        place = where if isinstance(where, str) else f"`{_shown_stmt(where)}`"
        self.found.append(f"{text}, in {place}")

    # ---- names and scopes ------------------------------------------------------------------

    def define(self, var: Any, where: ir.Stmt | str) -> None:
        if not isinstance(var, ir.Var):
            self.fault(f"{var!r} is defined but is not a variable", where)
        elif var.name in self.names:
            self.fault(f"{var.name} is defined twice", where)
        else:
            self.names.add(var.name)

    def use(self, operand: Any, scope: frozenset[ir.Var], where: ir.Stmt | str) -> None:
        if isinstance(operand, ir.Var) and operand not in scope:
            self.fault(f"{operand.name} is not defined here", where)
        elif not isinstance(operand, (ir.Var, ir.Lit)):
            self.fault(f"{operand!r} is not an operand", where)

    # ---- blocks ----------------------------------------------------------------------------

    def block(
        self,
        block: ir.Block,
        scope: frozenset[ir.Var],
        yields: Sequence[ir.Var] | None,
        owner: ir.Stmt | str = "the body",
    ) -> frozenset[ir.Var]:
        """Check a block whose yields are bound to `yields`; what is in scope at its end."""
        for position, stmt in enumerate(block.stmts):
            for operand in walk.operands(stmt):
                self.use(operand, scope, stmt)
            for var in walk.outs(stmt) + walk.inner_defs(stmt):
                self.define(var, stmt)
            self.statement(stmt)
            inner = scope | frozenset(walk.inner_defs(stmt))
            bound = stmt.params if isinstance(stmt, (ir.For, ir.While)) else walk.outs(stmt)
            for nested in walk.blocks(stmt):
                self.block(nested, inner, bound, stmt)
            scope = scope | frozenset(walk.outs(stmt))
            if isinstance(stmt, ir.Raise):
                if position != len(block.stmts) - 1:
                    self.fault("a raise is not the last statement of its block", stmt)
                if not all(_undef(operand) for operand in block.yields):
                    self.fault("a block that raises yields something", stmt)
        for operand in block.yields:
            self.use(operand, scope, owner)
        self.match(block.yields, yields or (), "yields", owner)
        return scope

    def match(
        self, have: Sequence[ir.Operand], want: Sequence[ir.Var], what: str, where: ir.Stmt | str
    ) -> None:
        if len(have) != len(want):
            self.fault(f"{len(have)} {what} for {len(want)} variables", where)
        for operand, var in zip(have, want, strict=False):
            self.bound(operand, var.type, f"{what} of {var.name}", where)

    def bound(self, operand: ir.Operand, want: types.Type, what: str, where: ir.Stmt | str) -> None:
        if not _undef(operand) and not same_type(operand.type, want):
            self.fault(f"{what}: {_name(operand)} is {operand.type}, not {want}", where)

    # ---- statements ------------------------------------------------------------------------

    def integers(self, operands: Sequence[Any], what: str, where: ir.Stmt) -> None:
        for operand in operands:
            if not _is_integer(operand.type):
                self.fault(f"{what} {_name(operand)} is {operand.type}, not an integer", where)

    def array(self, operand: ir.Operand, where: ir.Stmt) -> types.Array | None:
        type = types.unliteral(operand.type)
        if isinstance(type, types.Array):
            return type
        self.fault(f"{_name(operand)} is {operand.type}, not an array", where)
        return None

    def statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Load() | ir.Store():
                self.element(stmt)
            case ir.Dim() | ir.Stride():
                array = self.array(stmt.array, stmt)
                if array is not None and not 0 <= stmt.axis < array.ndim:
                    self.fault(f"axis {stmt.axis} of {array.ndim} dimensions", stmt)
                self.integers((stmt.out,), "size", stmt)
            case ir.Distance():
                self.array(stmt.array, stmt)
                self.array(stmt.base, stmt)
                self.integers((stmt.out,), "distance", stmt)
            case ir.View():
                self.view(stmt)
            case ir.Alloc():
                array = self.array(stmt.out, stmt)
                self.integers(stmt.shape, "size", stmt)
                if array is not None and array.ndim != len(stmt.shape):
                    self.fault(f"{len(stmt.shape)} sizes for {array.ndim} dimensions", stmt)
                if array is not None and array.layout != "C":
                    self.fault(f"a new array of layout {array.layout}", stmt)
                if stmt.kind not in ("empty", "zeros", "shared", "dynamic", "local"):
                    self.fault(f"unknown kind {stmt.kind!r}", stmt)
            case ir.For():
                self.integers((stmt.counter, stmt.start, stmt.stop, stmt.step), "bound", stmt)
                self.loop(stmt)
            case ir.While():
                if not stmt.params or not _is_boolean(stmt.params[0].type):
                    self.fault("params[0] is not a boolean", stmt)
                self.loop(stmt)
            case ir.If():
                if not _is_boolean(stmt.cond.type):
                    self.fault(f"condition {_name(stmt.cond)} is {stmt.cond.type}", stmt)
            case ir.Raise():
                if not (isinstance(stmt.exc, type) and issubclass(stmt.exc, BaseException)):
                    self.fault(f"{stmt.exc!r} is not an exception class", stmt)

    def loop(self, stmt: ir.For | ir.While) -> None:
        self.match(stmt.inits, stmt.params, "inits", stmt)
        self.match(stmt.params, stmt.outs, "params", stmt)

    def element(self, stmt: ir.Load | ir.Store) -> None:
        array = self.array(stmt.array, stmt)
        if array is None:
            return
        if len(stmt.index) != array.ndim:
            self.fault(f"{len(stmt.index)} indices for {array.ndim} dimensions", stmt)
        self.integers(stmt.index, "index", stmt)
        if isinstance(stmt, ir.Store):
            self.bound(stmt.value, array.dtype, "stored value", stmt)
        elif not same_type(array.dtype, stmt.out.type):
            self.fault(f"{stmt.out.name} is {stmt.out.type}, not {array.dtype}", stmt)

    def view(self, stmt: ir.View) -> None:
        base, out = self.array(stmt.base, stmt), self.array(stmt.out, stmt)
        if base is None or out is None:
            return
        index, ndim = stmt.index, base.ndim
        if stmt.kind == "index":
            entries = [entry for entry in index if not isinstance(entry, ir.NewAxis)]
            if len(entries) != base.ndim:
                self.fault(f"{len(entries)} entries for {base.ndim} dimensions", stmt)
            self.integers([e for e in entries if not isinstance(e, ir.Slice)], "index", stmt)
            ndim = sum(isinstance(entry, (ir.Slice, ir.NewAxis)) for entry in index)
        elif stmt.kind in ("reshape", "broadcast"):
            self.integers(index, "size", stmt)  # type: ignore[arg-type]
            ndim = len(index)
        elif stmt.kind not in ("T", "real", "imag", "field", "contiguous"):
            self.fault(f"unknown kind {stmt.kind!r}", stmt)
        if stmt.kind != "field" and out.ndim != ndim:
            self.fault(f"{stmt.out.name} has {out.ndim} dimensions, not {ndim}", stmt)


def _name(operand: Any) -> str:
    return operand.name if isinstance(operand, ir.Var) else repr(getattr(operand, "value", operand))


def _shown_stmt(stmt: ir.Stmt) -> str:
    try:
        return show_stmt(stmt)
    except Exception:  # see _shown
        return type(stmt).__name__
