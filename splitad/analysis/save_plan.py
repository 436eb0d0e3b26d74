"""For every primal value that the reverse pass reads: tape it, recompute it, or load it again.

The choice is a minimum cut of the graph of values: what cannot be computed again is joined to the
source, what is needed to the sink, cheap pure operations join their operands to their result, and a value
costs its bytes times how often its block runs.  A load may be repeated in the reverse where the array's
contents are still known there, from one of

- a frozen global, which never changes;
- a snapshot: L is the outermost loop around the load in which nothing may write the array; its contents
  are copied once, behind L, instead of once per load.  L may be the whole function; statements of one block
  between which nothing writes the array share the copy behind the last of them;
- an undo log (analysis/undo.py);
- a reference: an array made in f, out of the caller's reach, that nothing writes after L (or an argument
  that is only read, where the caller promises not to write it in between): it is kept, not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from numba import types

from splitad.analysis.activity import Activity, is_differentiable
from splitad.analysis.maxflow import INFINITE, FlowGraph
from splitad.analysis.memory import Memory, Write
from splitad.analysis.reasons import Reason, Why, origin
from splitad.analysis.reverse import Reverse
from splitad.analysis.scopes import Scope, Scopes
from splitad.analysis.threads import Kernel
from splitad.analysis.undo import stored_behind
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, operands, walk
from splitad.rules import registry
from splitad.rules.spelling import cheap

RUNS_PER_LOOP = 30.0  # how often a loop's body is assumed to run
_NEVER = 8  # a depth that makes a value dearer than all others


@dataclass(frozen=True)
class Copy:
    """An array whose contents are kept: behind `after` (a statement), or at the function's end (None).

    by_reference: the array itself is kept alive, nothing is copied.
    undo: the contents at the end, which the reverse takes back store by store (analysis/undo.py).
    because: why it is copied, or why it need not be.
    """

    array: ir.Var
    after: int | None  # identity of the statement
    by_reference: bool
    because: Reason = field(compare=False)
    undo: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """taped: values stored, in the scope that defines them.
    recomputed: statements repeated at the start of each reversed block, in forward order.
    copies: whose contents are kept, and where.
    source: for each load that is repeated, and for each (call, array) that a pullback reads, its Copy
    (absent: a frozen global).
    why: for each value, the reason for what is done."""

    taped: dict[Scope, tuple[ir.Var, ...]]
    recomputed: dict[Scope, tuple[ir.Stmt, ...]]
    copies: tuple[Copy, ...]
    source: dict[object, Copy]
    why: dict[ir.Var, Reason]

    def behind(self, stmt: ir.Stmt | None) -> tuple[Copy, ...]:
        """The copies made directly after stmt, or at the end of the function."""
        return tuple(c for c in self.copies if c.after == (id(stmt) if stmt is not None else None))


@dataclass(frozen=True, eq=False)
class _Finder:
    """Finds where an array's contents can be kept."""

    fn: ir.Function
    where: Scopes
    memory: Memory
    stable: frozenset[ir.Var]  # argument arrays that nobody writes between forward and pullback
    undo: frozenset[ir.Var]
    keeps: bool  # whether arrays can be kept by reference
    kernel: Kernel | None
    without: tuple[str, ...]
    private: bool

    def copy_for_load(self, load: ir.Load, scope: Scope) -> Copy | Reason:
        """The copy that lets a load in `scope` be repeated; or why it should be taped instead."""
        array = load.array
        if self.kernel is not None:
            # no thread can copy an array: the launch can, or a load is taped
            if array in self.kernel.snapshots:
                return Copy(array, None, True, Reason(Why.LAUNCH))
            write = next(self.memory.writes_to(array, self.where.root), None)
            if write is not None:
                return Reason(Why.THREADS, write.stmt)
            whole = any(leaf.var == array for leaf in self.fn.leaves)
            return Reason(Why.LARGER if whole else Why.PART)
        if array in self.undo:
            behind = stored_behind(array, load, scope, self.memory, self.where)
            if behind is not None:
                return Reason(Why.STORED_BEHIND, behind)
            return Copy(array, None, False, Reason(Why.UNDONE), undo=True)
        if "snapshots" in self.without:
            return Reason(Why.LEFT_OUT)
        loop = self._read_only_around(array, scope)
        if isinstance(loop, Reason):
            return loop
        owner, outer_depth = loop
        if scope.depth - outer_depth < array.type.ndim:
            if not (array in self.stable and owner is None):
                return Reason(Why.LARGER)  # than the loaded values
        return self._copy(array, owner)

    def copy_for_call(self, array: ir.Var, call: ir.ArrayCall | ir.For, scope: Scope) -> Copy:
        """The copy of what `call` read from array."""
        loop = self._read_only_around(array, scope)
        return self._copy(array, call if isinstance(loop, Reason) else loop[0])

    def _copy(self, array: ir.Var, owner: ir.Stmt | None) -> Copy:
        by_reference, because = self._by_reference(array, owner)
        return Copy(array, id(owner) if owner else None, by_reference, because)

    def _read_only_around(self, array: ir.Var, scope: Scope) -> tuple[ir.Stmt | None, int] | Reason:
        """The outermost loop around scope (None: the function) that does not write array, and the
        number of loops around it; or why there is none."""
        best: tuple[ir.Stmt | None, int] | None = None
        reason = Reason(Why.LOCAL)
        home = self.where.of[array]
        for s in scope.chain():
            if s is home and s.parent is not None:
                break  # array is not visible outside of s
            if s.parent is None and home is not s:
                break
            write = next(self.memory.writes_to(array, s), None)
            if write is not None:
                reason = Reason(Why.WRITTEN, write.stmt)
                break
            if s.parent is None:
                best = (None, 0)
            elif s.is_loop:
                best = (s.owner, s.parent.depth)
        return reason if best is None else best

    def shared(self, copies: set[Copy]) -> dict[Copy, Copy]:
        """For each of them the one that serves, which is made behind it or later in the same block."""
        found = {copy: copy for copy in copies}
        owners = {(copy.array, copy.after) for copy in copies if not copy.by_reference}
        for copy in copies:
            if copy.after is None or copy.by_reference:
                continue
            written = {id(w.stmt) for w in self.memory.writes_to(copy.array, self.where.root)}
            block = self.where.holding(copy.after).block
            first = next(k for k, s in enumerate(block.stmts) if id(s) == copy.after)
            for stmt in block.stmts[first + 1 :]:
                if written & {id(stmt), *(id(s) for s in _nested(stmt))}:
                    break
                if (copy.array, id(stmt)) in owners:
                    found[copy] = replace(copy, after=id(stmt))
        return found

    def _by_reference(self, array: ir.Var, after: ir.Stmt | None) -> tuple[bool, Reason]:
        if not self.keeps:
            return False, Reason(Why.RECURSIVE)
        if "references" in self.without:
            return False, Reason(Why.LEFT_OUT)
        if self.where.of[array] is not self.where.root:
            return False, Reason(Why.INNER)
        roots = self.memory.base_roots(array)
        if array in self.stable and after is None:
            return True, Reason(Why.PROMISED)
        arguments = any(root[0] == "arg" for root in roots) and not self.private
        callers = not self.private and (arguments or bool(roots & self.memory.escaping))
        if after is None and arguments:
            return False, Reason(Why.ARGUMENTS)
        if after is None:
            return not callers, Reason(Why.CALLERS if callers else Why.OWN)
        position = self.where.position
        writes = list(self.memory.writes_to(array, self.where.root))
        later = (w for w in writes if position[id(w.stmt)] > position[id(after)])
        written = self._written_after(after, later)
        if written is None and not any(s is after for s in self.where.root.block.stmts):
            written = writes[0].stmt if writes else after  # in the next iteration
        if written is not None:
            return False, Reason(Why.LATER, written)
        return not callers, Reason(Why.CALLERS if callers else Why.OWN)

    def _written_after(self, after: ir.Stmt, later: Iterable[Write]) -> ir.Stmt | None:
        inner = {id(s) for s in _nested(after)}
        return next((w.stmt for w in later if id(w.stmt) not in inner), None)


def _nested(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
    for block in blocks(stmt):
        yield from walk(block)


def save_plan(
    fn: ir.Function,
    where: Scopes,
    memory: Memory,
    active: Activity,
    needs: Reverse,
    stable: frozenset[ir.Var] = frozenset(),
    undo: frozenset[ir.Var] = frozenset(),
    old: frozenset[ir.Var] = frozenset(),
    keeps: bool = True,
    kernel: Kernel | None = None,
    without: tuple[str, ...] = (),
    private: bool = False,
    exactly: frozenset[ir.Var] = frozenset(),
    anew: frozenset[ir.Var] = frozenset(),
) -> Plan:
    """stable: argument arrays that the caller promises to leave as they are (and f does not write).
    undo: arrays with an undo log.  old: the values that their stores overwrite.
    without: of snapshots, references and recomputation, what is not to be used.
    private: whether nobody but fn writes its arguments before its pullback is called.
    exactly: values that must have the same bits again.
    anew: values that only the pullback computes; those that it cannot come out as taped."""
    finder = _Finder(fn, where, memory, stable, undo, keeps, kernel, without, private)
    free = kernel.free if kernel is not None else frozenset()
    reload: dict[ir.Var, Copy] = {}
    why: dict[ir.Var, Reason] = {}

    def inputs(var: ir.Var) -> tuple[ir.Operand, ...] | None:
        """The operands that var can be computed again from; None where it cannot."""
        found = operands_or_reason(var)
        if isinstance(found, Reason):
            why[var] = found
            return None
        return found

    def operands_or_reason(var: ir.Var) -> tuple[ir.Operand, ...] | Reason:
        if var in old:
            return Reason(Why.OLD)
        stmt = where.definition[var]
        if var in anew and isinstance(stmt, (ir.Prim, ir.Cast)):
            why[var] = Reason(Why.SWEPT)
            return tuple(operands(stmt))
        if isinstance(stmt, (ir.Prim, ir.Cast)) and "recomputation" in without:
            return Reason(Why.LEFT_OUT)
        if isinstance(stmt, ir.Prim):
            rule = registry.scalar_rule(stmt.fn)
            if rule is None:
                return Reason(Why.NO_RULE)
            # (a kernel's tape is in global memory, so any arithmetic of integers is cheaper)
            index = kernel is not None and not is_differentiable(var.type)
            if not index and not cheap(rule, stmt.args):
                return Reason(Why.DEAR)
            if rule.kind == "zero" and not all(map(exact, stmt.args)):
                return Reason(Why.INEXACT)
            if var in exactly and is_differentiable(var.type):
                return Reason(Why.INEXACT)
            why[var] = Reason(Why.INTEGER if index else Why.CHEAP)
            return stmt.args
        if isinstance(stmt, ir.Cast):
            whole = not isinstance(types.unliteral(var.type), (types.Float, types.Complex))
            if (whole or var in exactly) and not exact(stmt.arg):
                return Reason(Why.INEXACT)
            why[var] = Reason(Why.CHEAP)
            return (stmt.arg,)
        if isinstance(stmt, ir.Load):
            if isinstance(stmt.array, ir.Lit):
                why[var] = Reason(Why.CONSTANT)
                return stmt.index
            copy = finder.copy_for_load(stmt, where.of[var])
            if isinstance(copy, Reason):
                return copy
            reload[var], why[var] = copy, copy.because
            return stmt.index
        return Reason(origin(var, stmt))

    @cache
    def exact(operand: ir.Operand) -> bool:
        """Whether computing a float again gives the same bits.

        Without fastmath of f's own they are the same (runtime/light_lowering.py), with it they need not be.
        A comparison, a rounding or a conversion to an integer that depends on them is taped, so that which
        way the reverse goes is never computed twice.
        """
        if isinstance(operand, ir.Lit) or not is_differentiable(operand.type):
            return True
        stmt = where.definition[operand]
        if isinstance(stmt, ir.Cast):
            return exact(stmt.arg)
        return not isinstance(stmt, ir.Prim) or inputs(operand) is None

    def is_free(var: ir.Var) -> bool:
        stmt = where.definition[var]
        return (isinstance(stmt, ir.For) and stmt.counter == var) or var in free

    # ---- the graph, from what is needed upwards ------------------------------------------------------
    graph = FlowGraph()
    known: dict[ir.Var, tuple[ir.Operand, ...] | None] = {}
    values = tuple(dict.fromkeys([*needs.values, *sorted(old, key=lambda v: v.name)]))
    pending = list(values)
    for var in values:
        graph.edge(("out", var), "sink", INFINITE)
    while pending:
        var = pending.pop()
        if var in known or is_free(var):
            continue
        known[var] = inputs(var)
        often = where.of[var].depth if var not in anew else _NEVER
        graph.edge(("in", var), ("out", var), _cost(var, often))
        if known[var] is None:
            graph.edge("source", ("in", var), INFINITE)
            continue
        for operand in known[var] or ():
            if isinstance(operand, ir.Var) and not is_free(operand):
                graph.edge(("out", operand), ("in", var), INFINITE)
                pending.append(operand)
    sink_side = graph.sink_side("source", "sink")
    cut = {v for v in known if ("out", v) in sink_side and ("in", v) not in sink_side}

    # ---- what that leaves to be recomputed -------------------------------------------------------------
    taped: dict[Scope, list[ir.Var]] = {}
    repeated: dict[Scope, list[ir.Stmt]] = {}
    source: dict[object, Copy] = {}
    done: dict[ir.Var, None] = {}

    def provide(var: ir.Var) -> None:
        if var in done:
            return
        done[var] = None
        if is_free(var):
            why[var] = Reason(Why.GIVEN if var in free else Why.COUNTED)
            return
        scope = where.of[var]
        if var in cut or known[var] is None:
            taped.setdefault(scope, []).append(var)
            needed = known[var]
            if needed is not None:  # it could be computed again, but not from less
                apart = (v for v in needed if isinstance(v, ir.Var) and not is_free(v))
                why[var] = Reason(Why.FEWEST, about=tuple(dict.fromkeys(apart)))
            return
        stmt = where.definition[var]
        assert stmt is not None
        for operand in known[var] or ():
            if isinstance(operand, ir.Var):
                provide(operand)
        repeated.setdefault(scope, []).append(stmt)
        if var in reload:
            source[var] = reload[var]

    for var in needs.values:
        provide(var)
    undone = {copy.array for copy in source.values() if copy.undo}
    for var in sorted(old, key=lambda v: v.name):
        if where.definition[var].array in undone:  # type: ignore[union-attr, operator]
            provide(var)
    for call, array in needs.contents:
        copy = finder.copy_for_call(array, call, where.holding(id(call)))
        source[(id(call), array)] = copy
    order = where.position
    merged = finder.shared(set(source.values()))
    source = {key: merged[copy] for key, copy in source.items()}
    return Plan(
        {s: tuple(v) for s, v in taped.items()},
        {s: tuple(sorted(v, key=lambda stmt: order[id(stmt)])) for s, v in repeated.items()},
        tuple(dict.fromkeys(source.values())),
        source,
        {var: why[var] for var in done},
    )


def _cost(var: ir.Var, depth: int) -> float:
    return size_of(var.type) * RUNS_PER_LOOP**depth


def size_of(type: types.Type) -> int:
    """Bytes of a scalar on the tape."""
    type = types.unliteral(type)
    if isinstance(type, types.Boolean):
        return 1
    if isinstance(type, types.Complex):
        return 2 * int(type.underlying_float.bitwidth) // 8
    return int(type.bitwidth) // 8
