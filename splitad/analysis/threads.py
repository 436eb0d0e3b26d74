"""What is known of a CUDA kernel's threads: which values differ between them, and who touches which element.

The forward must be free of races: between two barriers (or anywhere, for threads of different blocks) no
thread writes an element that another one reads or writes, except by atomics.  Plain kernels need that too.
Its reverse then has one kind of conflict, two threads that read the same element and so add to the same
element of the shadow.  Such additions are atomic, unless every access to the array, in the whole kernel, is
at an index that is the thread's own: `x[i]` with ``i = cuda.grid(1)``.  Those at a constant distance from it
are gathered (analysis/neighbours.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from numba import types

from splitad.analysis.activity import Activity
from splitad.analysis.memory import Memory, is_array
from splitad.analysis.reverse import has_reverse
from splitad.analysis.scopes import Scopes
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir import threads
from splitad.ir.walk import blocks, operands, outs, walk


@dataclass(frozen=True, eq=False)
class Kernel:
    """dims: of the grid and its blocks that may be larger than 1.
    free: scalars that the pullback is given as arguments, and so are not taped: the kernel's own scalar
    arguments, and the sizes of its arrays.
    snapshots: argument arrays that no thread writes and that the pullback reads again, from a copy.
    atomic: the loads, by identity, whose adjoint must be an atomic addition.
    """

    dims: int
    free: frozenset[ir.Var]
    snapshots: frozenset[ir.Var]
    atomic: frozenset[int]


# ---- which values depend on what ---------------------------------------------------------------------


def tainted(
    fn: ir.Function,
    source: Callable[[ir.Stmt], bool] = lambda stmt: False,
    first: Iterable[ir.Var] = (),
) -> frozenset[ir.Var]:
    """The values that depend on `first`, or on the results of the statements that `source` says yes to, by
    computation or by the choice of what is executed."""
    found: set[ir.Var] = set(first)

    def visit(block: ir.Block) -> None:
        for stmt in block.stmts:
            if isinstance(stmt, (ir.For, ir.While)):
                visit_loop(stmt)
            elif isinstance(stmt, ir.If):
                visit(stmt.then)
                visit(stmt.orelse)
                chosen = stmt.cond in found
                for k, out in enumerate(stmt.outs):
                    sides = [b.yields[k] for b in (stmt.then, stmt.orelse) if k < len(b.yields)]
                    if chosen or any(y in found for y in sides):
                        found.add(out)
            elif source(stmt) or any(o in found for o in operands(stmt)):
                found.update(outs(stmt))

    def visit_loop(loop: ir.For | ir.While) -> None:
        while True:
            before = len(found)
            if isinstance(loop, ir.For):
                whole = any(b in found for b in (loop.start, loop.stop, loop.step))
                if whole:
                    found.add(loop.counter)
            else:
                whole = loop.params[0] in found
            for k, (param, out) in enumerate(zip(loop.params, loop.outs, strict=True)):
                if whole or loop.inits[k] in found or loop.body.yields[k] in found:
                    found.update((param, out))
            visit(loop.body)
            if len(found) == before:
                return

    visit(fn.body)
    return frozenset(found)


def bounds_of(stmt: ir.Stmt) -> tuple[ir.Operand, ...]:
    """What decides which blocks of a statement run, and how often."""
    if isinstance(stmt, ir.For):
        return (stmt.start, stmt.stop, stmt.step)
    if isinstance(stmt, ir.While):
        return (stmt.params[0],)
    return (stmt.cond,) if isinstance(stmt, ir.If) else ()


_OWN = {*threads.THREAD, *threads.GRID, threads.LANE}


def check(fn: ir.Function, where: Scopes, active: Activity) -> None:
    """Refuse what has no reverse in a kernel."""
    check_barriers(fn, where, active.memory)
    for stmt, op in ops_of(fn):
        if op.kind == "barrier" or not active(stmt.args[0]):
            continue
        if any(active(out) for out in stmt.outs):
            raise UnsupportedError(
                f"The value that {op.__name__} returns is used, and carries a derivative: it depends on the "
                "order in which the threads come.",
                stmt.loc,
                "Count in an integer array instead, or add up in one kernel and read it in the next.",
            )


def check_barriers(fn: ir.Function, where: Scopes, memory: Memory) -> None:
    """Refuse a barrier that not every thread of a block passes, or not equally often."""
    barriers = [
        (stmt, scope)
        for scope in where.all
        for stmt in scope.block.stmts
        if isinstance(stmt, ir.ArrayCall) and is_barrier(stmt)
    ]
    if not barriers:
        return
    written = written_roots(memory)

    def differs(stmt: ir.Stmt) -> bool:
        if isinstance(stmt, ir.Prim):
            return stmt.fn in _OWN
        if isinstance(stmt, ir.Load):
            return bool(_roots(memory, stmt.array) & written) or not _is_argument(stmt.array, fn)
        return isinstance(stmt, (ir.ArrayCall, ir.Impure, ir.Deref))

    varying = tainted(fn, differs)
    for stmt, scope in barriers:
        for around in scope.chain():
            if around.owner is None:
                continue
            if any(b in varying for b in bounds_of(around.owner)):
                raise UnsupportedError(
                    "Not every thread of a block comes to this cuda.syncthreads(), or not equally often: "
                    f"what line {around.owner.loc.line} decides may differ between threads.",
                    stmt.loc,
                    "Let all threads pass it: instead of an early return, put what comes before and "
                    "behind it under `if i < n:`, each by itself.",
                )


def is_barrier(stmt: ir.Stmt) -> bool:
    return (
        isinstance(stmt, ir.ArrayCall)
        and isinstance(stmt.fn, threads.ArrayOp)
        and stmt.fn.kind == "barrier"
    )


def _is_argument(array: ir.Operand, fn: ir.Function) -> bool:
    return isinstance(array, ir.Lit) or any(leaf.var == array for leaf in fn.leaves)


def _roots(memory: Memory, array: ir.Operand) -> frozenset[object]:
    return frozenset(memory.base_roots(array))


def written_roots(memory: Memory) -> frozenset[object]:
    """The memory that some thread writes."""
    found: set[object] = set()
    for write in memory.writes:
        if not is_barrier(write.stmt):
            found |= memory.base_roots(write.array)
    return frozenset(found)


def counted_by(fn: ir.Function, active: Activity) -> frozenset[ir.Var] | None:
    """The scalar arguments on which depends how much a thread puts on its tape, beside the launch and the
    shapes; None where it depends on other things, on what arrays hold."""
    deciding = [
        bound
        for stmt in walk(fn.body)
        if isinstance(stmt, (ir.For, ir.While, ir.If))
        and has_reverse(stmt, active)
        and _has_loop(stmt)
        for bound in bounds_of(stmt)
    ]
    unsteady = tainted(
        fn, lambda stmt: isinstance(stmt, (ir.Load, ir.ArrayCall, ir.Impure, ir.Deref))
    )
    if any(bound in unsteady for bound in deciding):
        return None
    scalars = [leaf.var for leaf in fn.leaves if not is_array(leaf.var)]
    return frozenset(var for var in scalars if any(b in tainted(fn, first=[var]) for b in deciding))


def _has_loop(stmt: ir.Stmt) -> bool:
    if isinstance(stmt, (ir.For, ir.While)):
        return True
    return any(isinstance(s, (ir.For, ir.While)) for b in blocks(stmt) for s in walk(b))


# ---- whose elements these are ------------------------------------------------------------------------


def kernel(
    fn: ir.Function, where: Scopes, active: Activity, dims: int, stable: frozenset[ir.Var]
) -> Kernel:
    """dims: how many dimensions of the launch are larger than 1, at most.
    stable: argument arrays that nobody writes between forward and pullback: they are read again wherever
    that helps, since it costs no copy."""
    memory = active.memory
    arrays = frozenset(leaf.var for leaf in fn.leaves if is_array(leaf.var))
    free = {leaf.var for leaf in fn.leaves if not is_array(leaf.var)}
    free |= {s.out for s in fn.body.stmts if isinstance(s, ir.Dim) and s.array in arrays}
    written = written_roots(memory)
    unwritten = {a for a in arrays if not memory.base_roots(a) & written}
    snapshots = {a for a in unwritten if a in stable or _read_often(a, where)}
    return Kernel(dims, frozenset(free), frozenset(snapshots), _atomic(fn, where, active, dims))


def _read_often(array: ir.Var, where: Scopes) -> bool:
    """Whether a copy of the array is surely not much larger than what would be taped of it."""
    depths = [
        scope.depth
        for scope in where.all
        for stmt in scope.block.stmts
        if isinstance(stmt, ir.Load) and stmt.array == array
    ]
    return len(depths) > 1 or any(depths)


def _atomic(fn: ir.Function, where: Scopes, active: Activity, dims: int) -> frozenset[int]:
    memory = active.memory
    accesses: dict[object, list[ir.Stmt]] = {}
    for stmt in walk(fn.body):
        if isinstance(stmt, (ir.Load, ir.Store)) or (
            isinstance(stmt, ir.ArrayCall) and not is_barrier(stmt)
        ):
            if has_reverse(stmt, active):
                array = stmt.args[0] if isinstance(stmt, ir.ArrayCall) else stmt.array
                for root in memory.base_roots(array):
                    accesses.setdefault(root, []).append(stmt)
    owned = Owned(fn, dims)
    private = {
        root
        for root, stmts in accesses.items()
        if _is_local(root, where) or owned.is_private(root, stmts, where)
    }
    return frozenset(
        id(stmt)
        for stmt in walk(fn.body)
        if isinstance(stmt, ir.Load) and not set(memory.base_roots(stmt.array)) <= private
    )


def _is_local(root: object, where: Scopes) -> bool:
    made = _made(root, where)
    return made is not None and made.kind == "local"


def _made(root: object, where: Scopes) -> ir.Alloc | None:
    assert isinstance(root, tuple)
    stmt = where.definition.get(root[1]) if root[0] == "new" else None
    return stmt if isinstance(stmt, ir.Alloc) else None


class Owned:
    """The integers that no two threads share: for each, the axis of the launch that it goes along, in the
    grid and in the block."""

    def __init__(self, fn: ir.Function, dims: int) -> None:
        self.dims = dims
        self.by: dict[ir.Var, ir.Stmt] = {}
        for stmt in walk(fn.body):
            for out in outs(stmt):
                self.by[out] = stmt
            if isinstance(stmt, (ir.For, ir.While)):
                for var in (*stmt.params, *([stmt.counter] if isinstance(stmt, ir.For) else [])):
                    self.by[var] = stmt

    def is_private(self, root: object, stmts: list[ir.Stmt], where: Scopes) -> bool:
        """Whether all accesses have, in the same places, indices that make them the thread's own."""
        made = _made(root, where)
        if made is not None:
            if made.kind not in ("shared", "dynamic"):
                return False
            axis, whole = self.in_block, made.out
        elif root[0] == "arg" and isinstance(root[1], ir.Var):  # type: ignore[index]
            axis, whole = self.in_grid, root[1]  # type: ignore[index]
        else:
            return False
        found: set[tuple[int | None, ...]] = set()
        for stmt in stmts:
            array, index = _place(stmt)
            if array != whole:
                return False  # a view: its indices are other ones
            found.add(tuple(axis(entry) for entry in index))
        columns = list(zip(*found, strict=True))
        same = {column[0] for column in columns if len(set(column)) == 1}
        return set(range(self.dims)) <= same

    def in_grid(self, value: ir.Operand) -> int | None:
        """The axis along which value is the thread's number in the grid, up to a multiple of the grid's
        size; None where it is nothing of that kind."""
        stmt = self.by.get(value) if isinstance(value, ir.Var) else None
        if widens(stmt):
            return self.in_grid(stmt.arg)  # type: ignore[union-attr]
        if isinstance(stmt, ir.Prim):
            if stmt.fn in threads.GRID:
                return threads.GRID.index(stmt.fn)
            if stmt.fn in (operator.add, operator.iadd):
                return self._by_hand(*stmt.args)
            return None
        if isinstance(stmt, ir.For) and value == stmt.counter:
            axis = self.in_grid(stmt.start)
            return axis if axis is not None and self._size(stmt.step, axis) else None
        if isinstance(stmt, (ir.For, ir.While)) and value in stmt.params:
            k = stmt.params.index(value)  # type: ignore[arg-type]
            axis = self.in_grid(stmt.inits[k])
            step = self.by.get(stmt.body.yields[k])  # type: ignore[arg-type]
            while widens(step):
                step = self.by.get(step.arg)  # type: ignore[union-attr, arg-type]
            if axis is None or not isinstance(step, ir.Prim) or len(step.args) != 2:
                return None
            if step.fn in (operator.add, operator.iadd) and value in step.args:
                other = step.args[1 - step.args.index(value)]
                return axis if self._size(other, axis) else None
        return None

    def _by_hand(self, one: ir.Operand, other: ir.Operand) -> int | None:
        """threadIdx.x + blockIdx.x * blockDim.x, and such a number + any number * the grid's size"""
        for a, b in ((one, other), (other, one)):
            axis = self.in_grid(a)
            if axis is not None and self._is_multiple(b, axis):
                return axis
            axis = self.of_parts(a, b)
            if axis is not None:
                return axis
        return None

    def of_parts(self, thread: ir.Operand, product: ir.Operand) -> int | None:
        """The axis of threadIdx.x and blockIdx.x * blockDim.x"""
        stmt = self.plain(thread)
        if not isinstance(stmt, ir.Prim) or stmt.fn not in threads.THREAD:
            return None
        axis = threads.THREAD.index(stmt.fn)
        whole = self.is_product(self.plain(product), threads.BLOCK[axis], threads.BLOCK_DIM[axis])
        return axis if whole else None

    def is_product(self, stmt: ir.Stmt | None, one: threads.Fn, other: threads.Fn) -> bool:
        if not isinstance(stmt, ir.Prim) or stmt.fn is not operator.mul:
            return False
        factors = [self.plain(a) for a in stmt.args]
        return {getattr(f, "fn", None) for f in factors} == {one, other}

    def _is_multiple(self, value: ir.Operand, axis: int) -> bool:
        stmt = self.plain(value)
        return (
            isinstance(stmt, ir.Prim)
            and stmt.fn is operator.mul
            and any(self._size(factor, axis) for factor in stmt.args)
        )

    def _size(self, value: ir.Operand, axis: int) -> bool:
        """Whether value is the size of the grid along an axis."""
        stmt = self.plain(value)
        if isinstance(stmt, ir.Prim) and stmt.fn is threads.GRIDSIZE[axis]:
            return True
        return self.is_product(stmt, threads.GRID_DIM[axis], threads.BLOCK_DIM[axis])

    def in_block(self, value: ir.Operand) -> int | None:
        stmt = self.plain(value)
        if isinstance(stmt, ir.Prim) and stmt.fn in threads.THREAD:
            return threads.THREAD.index(stmt.fn)
        return None

    def plain(self, value: ir.Operand) -> ir.Stmt | None:
        stmt = self.by.get(value) if isinstance(value, ir.Var) else None
        while widens(stmt):
            stmt = self.by.get(stmt.arg)  # type: ignore[union-attr, arg-type]
        return stmt


def widens(stmt: ir.Stmt | None) -> bool:
    """Whether it converts an integer to one that holds all its values."""
    if not isinstance(stmt, ir.Cast):
        return False
    given, wanted = types.unliteral(stmt.arg.type), types.unliteral(stmt.out.type)
    return (
        isinstance(given, types.Integer)
        and isinstance(wanted, types.Integer)
        and wanted.bitwidth >= given.bitwidth
    )


def _place(stmt: ir.Stmt) -> tuple[ir.Operand, tuple[ir.Operand, ...]]:
    if isinstance(stmt, ir.ArrayCall):
        return stmt.args[0], stmt.args[1:-1]
    assert isinstance(stmt, (ir.Load, ir.Store))
    return stmt.array, stmt.index


def ops_of(fn: ir.Function) -> Iterator[tuple[ir.ArrayCall, threads.ArrayOp]]:
    """The atomic operations and barriers."""
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, threads.ArrayOp):
            yield stmt, stmt.fn
