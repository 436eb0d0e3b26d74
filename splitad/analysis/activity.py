"""Which values carry a derivative: those that depend on an active input and that an output depends on.

Scalars are followed one by one; an array by the roots of its memory, all of its elements together and
whatever the order of the statements, which is coarse and safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from numba import types

from splitad.analysis.memory import Memory, Root, changed_lists, is_array, kind_of, tree_leaves
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.walk import walk


def is_differentiable(type: types.Type) -> bool:
    """Float or complex, or an array of those, or of records that hold some."""
    element = type.dtype if isinstance(type, types.Array) else types.unliteral(type)
    if isinstance(element, types.Record):
        return any(is_differentiable(element.typeof(field)) for field in element.fields)
    return isinstance(element, (types.Float, types.Complex))


@dataclass(frozen=True, eq=False)
class Activity:
    """The active scalars, and the roots of memory that holds active values."""

    scalars: frozenset[ir.Var]
    roots: frozenset[Root]
    memory: Memory

    def __call__(self, operand: ir.Operand) -> bool:
        """Whether a scalar or array is active."""
        if is_array(operand):
            return is_differentiable(operand.type) and bool(
                self.memory.base_roots(operand) & self.roots
            )
        return operand in self.scalars


@dataclass(frozen=True)
class Flow:
    """Scalars and roots that a property flows from (sources) and to (targets) through one statement."""

    sources: tuple[ir.Operand, ...]
    targets: tuple[ir.Operand, ...]


Depends = Callable[[ir.Prim | ir.ArrayCall], tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...]]]


def activity(
    fn: ir.Function, memory: Memory, wanted: frozenset[ir.Var], differentiable_args: Depends
) -> Activity:
    """wanted: the leaves whose derivative is asked for (all but those of Const arguments).

    differentiable_args: for a Prim or ArrayCall, the operands that its results have a derivative in and
    the values (outs and written arrays) that receive one; from its rule.
    """
    flows = [f for stmt in walk(fn.body) for f in _flows(stmt, differentiable_args)]
    varied = _Marks(memory)
    for var in wanted:
        varied.add(var)
    for each in fn.lists:
        if each.param in wanted:
            varied.roots |= _root_of(each, memory)
    _fixpoint(flows, varied, forward=True)
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.Impure) and any(arg in varied for arg in stmt.args):
            name = getattr(stmt.fn, "__name__", stmt.fn)
            raise UnsupportedError(
                f"{name} is drawn with a parameter that carries a derivative",
                stmt.loc,
                "Derivatives go through location and scale only: pass ad.stop_gradient(...) of this "
                "parameter, or draw a standard number and transform it.",
            )

    useful = _Marks(memory)
    for operand in tree_leaves(fn.result):
        useful.add(operand)
    for leaf in fn.leaves:
        if leaf.var in wanted:
            useful.add(leaf.exit)
            if is_array(leaf.var):
                useful.add(leaf.var)
    for each in fn.lists:
        if each.var in wanted:
            useful.add(each.exit)
        elif each.param in wanted:
            useful.roots |= _root_of(each, memory)
    kinds = {each.kind for each in changed_lists(fn) if each.param in wanted}
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.Refer) and kind_of(stmt) in kinds:
            useful.add(stmt.array)  # it may be in the caller's list in the end
    _fixpoint(flows, useful, forward=False)
    return Activity(
        frozenset(varied.scalars & useful.scalars), frozenset(varied.roots & useful.roots), memory
    )


def _root_of(each: ir.ListArg, memory: Memory) -> frozenset[Root]:
    """The memory of the arrays in a list argument."""
    return frozenset(
        root for root in memory.escaping if root in (("arg", None), ("arg", each.param))
    )


class _Marks:
    """A growing set of scalars and roots."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.scalars: set[ir.Var] = set()
        self.roots: set[Root] = set()

    def __contains__(self, operand: ir.Operand) -> bool:
        if is_array(operand):
            return bool(self.memory.base_roots(operand) & self.roots)
        return operand in self.scalars

    def add(self, operand: ir.Operand) -> bool:
        """Marks it; whether that was news. Literals and integers carry no derivative."""
        if isinstance(operand, ir.Lit) or not is_differentiable(operand.type):
            return False
        if is_array(operand):
            news = self.memory.base_roots(operand) - self.roots
            self.roots |= news
            return bool(news)
        if operand in self.scalars:
            return False
        self.scalars.add(operand)
        return True


def _fixpoint(flows: list[Flow], marks: _Marks, forward: bool) -> None:
    changed = True
    while changed:
        changed = False
        for flow in flows if forward else reversed(flows):
            origin, reached = flow.sources, flow.targets
            if not forward:
                origin, reached = reached, origin
            if any(operand in marks for operand in origin):
                for operand in reached:
                    changed |= marks.add(operand)


def _flows(stmt: ir.Stmt, differentiable_args: Depends) -> Iterator[Flow]:
    if isinstance(stmt, (ir.Prim, ir.ArrayCall)):
        yield Flow(*differentiable_args(stmt))
    elif isinstance(stmt, ir.Cast):
        yield Flow((stmt.arg,), (stmt.out,))
    elif isinstance(stmt, ir.Load):
        yield Flow((stmt.array,), (stmt.out,))
    elif isinstance(stmt, ir.Store):
        yield Flow((stmt.value,), (stmt.array,))
    elif isinstance(stmt, (ir.For, ir.While)):
        for init, param, y, out in zip(
            stmt.inits, stmt.params, stmt.body.yields, stmt.outs, strict=True
        ):
            if not is_array(param):
                yield Flow((init, y), (param, out))
                yield Flow((param,), (out,))
    elif isinstance(stmt, ir.If):
        for branch in (stmt.then, stmt.orelse):
            for y, out in zip(branch.yields, stmt.outs, strict=False):
                if not is_array(out):
                    yield Flow((y,), (out,))
