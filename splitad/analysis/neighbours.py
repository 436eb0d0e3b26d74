"""Loads of a CUDA kernel whose adjoints need no atomics: what neighbouring threads load of an array.

    i = cuda.grid(1)
    if 0 < i and i < n - 1:
        v[i] = u[i + 1] - u[i - 1]

Thread `at` loads the element of thread ``at + 1``, whoever that is.  So a kernel of its own, which comes
first, can add to each element of the shadow what the threads around have for it (targets/cuda/gather.py):
thread `own` finds out what thread ``own - 1`` has for ``u[i + 1]``, and thread ``own + 1`` for ``u[i - 1]``.
It is computed again there, from what these threads have on their tapes and from the shadows.

That is right where

- the array is an argument that no thread writes, so that no adjoint reads its shadow;
- each index goes along one axis of the launch, a constant away from the thread's number, or is the same
  for all threads: then each element is one thread's own;
- the adjoints that lead to the load find all shadows that they read as they are at the start.  No kernel
  with a loop, a barrier or an array of its own in its reverse is looked at, and what is stored is neither
  loaded nor overwritten later.

An index that may be negative means an element at the other end of the array: what is added there remains
to the thread that loads it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass

from numba import types

from splitad.analysis.activity import Activity
from splitad.analysis.memory import Root, is_array
from splitad.analysis.reverse import has_reverse
from splitad.analysis.scopes import Scope, Scopes
from splitad.analysis.threads import Kernel, Owned, is_barrier, widens, written_roots
from splitad.ir import nodes as ir
from splitad.ir import threads
from splitad.ir.walk import walk

MOST = (
    27  # shifts in one kernel: for each, a thread computes what another one has (3 x 3 x 3 points)
)


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A load whose adjoint is gathered.

    shift: by axis of the launch; thread `at` loads the element of thread `at + shift`.
    axes: for each index, the axis of the launch that it goes along; None where it is the same everywhere.
    negative: the indices that may be negative.
    """

    load: ir.Load
    shift: tuple[int, ...]
    axes: tuple[int | None, ...]
    negative: tuple[ir.Operand, ...]


def neighbours(
    fn: ir.Function, where: Scopes, active: Activity, kernel: Kernel
) -> tuple[Neighbour, ...]:
    """The loads of one kernel whose adjoints are to be gathered."""
    if not _reads_first(fn, where, active):
        return ()
    places = Places(fn, kernel.dims)
    written = written_roots(active.memory)
    arguments = {leaf.var for leaf in fn.leaves}
    found: dict[ir.Var, list[Neighbour]] = {}
    for scope in where.all:
        for stmt in scope.block.stmts:
            if isinstance(stmt, ir.Load) and id(stmt) in kernel.atomic and active(stmt.out):
                fits = (
                    stmt.array in arguments and not active.memory.base_roots(stmt.array) & written
                )
                one = _neighbour(stmt, scope, places, kernel) if fits else None
                if one is not None:
                    found.setdefault(stmt.array, []).append(one)
    kept: list[Neighbour] = []
    for loads in found.values():
        # along other axes, another thread's own is the same element
        same = [one for one in loads if one.axes == loads[0].axes]
        if any(any(one.shift) for one in same):  # else there is as much to do, in two kernels
            kept += same
    return tuple(kept) if len({one.shift for one in kept}) <= MOST else ()


def _neighbour(load: ir.Load, scope: Scope, places: Places, kernel: Kernel) -> Neighbour | None:
    axes: list[int | None] = []
    shift = [0] * kernel.dims
    negative: list[ir.Operand] = []
    for entry in load.index:
        place = places.of(entry)
        if place is not None:
            axis, by = place
            axes.append(axis)
            shift[axis] = by
            if places.least(axis, scope) + by < 0:
                negative.append(entry)
        elif isinstance(entry, ir.Lit) or entry in kernel.free:
            axes.append(None)
        else:
            return None
    if sorted(a for a in axes if a is not None) != list(range(kernel.dims)):
        return None
    return Neighbour(load, tuple(shift), tuple(axes), tuple(negative))


# ---- what adjoints read --------------------------------------------------------------------------------


def _reads_first(fn: ir.Function, where: Scopes, active: Activity) -> bool:
    """Whether all adjoints find the shadows that they read as they are at the start."""
    accesses: dict[Root, list[ir.Load | ir.Store | ir.ArrayCall]] = {}
    for stmt in walk(fn.body):
        if isinstance(stmt, ir.ArrayCall) and is_barrier(stmt):
            return False
        if isinstance(stmt, ir.Prim) and stmt.fn is threads.LANE:
            return False  # it says nothing of another thread
        if not has_reverse(stmt, active):
            continue
        if isinstance(stmt, ir.ArrayCall) and getattr(stmt.fn, "kind", "") not in ("add", "sub"):
            return False
        if isinstance(stmt, (ir.Load, ir.Store, ir.ArrayCall)):
            array = stmt.args[0] if isinstance(stmt, ir.ArrayCall) else stmt.array
            for root in active.memory.base_roots(array):
                accesses.setdefault(root, []).append(stmt)
        elif not isinstance(stmt, (ir.Prim, ir.Cast, ir.If)):
            return False
    home = {id(stmt): scope for scope in where.all for stmt in scope.block.stmts}
    for root, stmts in accesses.items():
        atomic = [stmt for stmt in stmts if isinstance(stmt, ir.ArrayCall)]
        stores = [stmt for stmt in stmts if isinstance(stmt, ir.Store)]
        if (atomic or stores) and root[0] != "arg":
            return False  # an array of the kernel's own
        if atomic and len(atomic) < len(stmts):
            return False
        for k, one in enumerate(stmts):
            for later in stmts[k + 1 :] if isinstance(one, ir.Store) else ():
                if not (_exclude(home[id(one)], home[id(later)]) or _apart(one, later)):
                    return False
    return True


def _exclude(one: Scope, other: Scope) -> bool:
    """Whether a thread runs one of two blocks at most."""
    return any(
        a is not b and a.owner is not None and a.owner is b.owner
        for a in one.chain()
        for b in other.chain()
    )


def _apart(one: ir.Stmt, other: ir.Stmt) -> bool:
    """Whether two accesses are to different elements, since a constant index differs."""
    assert isinstance(one, (ir.Load, ir.Store)) and isinstance(other, (ir.Load, ir.Store))
    return one.array == other.array and any(
        isinstance(a, ir.Lit) and isinstance(b, ir.Lit) and 0 <= a.value != b.value >= 0
        for a, b in zip(one.index, other.index, strict=True)
    )


# ---- places --------------------------------------------------------------------------------------------


class Places:
    """Integers that are a thread's number in the grid and a constant, and what guards say of that number.
    dims: of the launch, as many as are larger than 1."""

    def __init__(self, fn: ir.Function, dims: int) -> None:
        self.dims = dims
        self.owned = Owned(fn, dims)

    def axis(self, value: ir.Operand) -> int | None:
        """The axis along which value is the thread's number."""
        place = self.of(value)
        return place[0] if place is not None and place[1] == 0 else None

    def of(self, value: ir.Operand) -> tuple[int, int] | None:
        """(axis, by) of a value that is the thread's number along the axis, plus by."""
        stmt = self.owned.by.get(value) if isinstance(value, ir.Var) else None
        if widens(stmt):
            return self.of(stmt.arg) if _is_signed(stmt.arg) else None  # type: ignore[union-attr]
        if not isinstance(stmt, ir.Prim) or not _is_signed(stmt.out):
            return None
        if stmt.fn in threads.GRID[: self.dims]:
            return threads.GRID.index(stmt.fn), 0
        if stmt.fn not in (operator.add, operator.iadd, operator.sub, operator.isub):
            return None
        left, right = stmt.args
        if stmt.fn in (operator.sub, operator.isub):
            return _moved(self.of(left), right, -1)
        for one, other in ((left, right), (right, left)):
            axis = self.owned.of_parts(one, other)
            if axis is not None:
                return (axis, 0) if axis < self.dims else None
            found = _moved(self.of(one), other, 1)
            if found is not None:
                return found
        return None

    def least(self, axis: int, scope: Scope) -> int:
        """The smallest number along an axis of a thread that runs a block, for all that is known."""
        found = 0
        for inner in scope.chain():
            if isinstance(inner.owner, ir.If):
                taken = inner.block is inner.owner.then
                for stmt, holds in self._implied(inner.owner.cond, taken):
                    found = max(found, self._bound(stmt, holds, axis))
        return found

    def _implied(self, cond: ir.Operand, holds: bool) -> Iterator[tuple[ir.Prim, bool]]:
        """The comparisons that are true, or that are false, where cond is so."""
        stmt = self.owned.by.get(cond) if isinstance(cond, ir.Var) else None
        if isinstance(stmt, ir.If):  # `and`, `or`: a side that decides is a constant
            k = stmt.outs.index(cond)  # type: ignore[arg-type]
            sides = ((stmt.then.yields[k], True), (stmt.orelse.yields[k], False))
            for (value, taken), (other, _) in (sides, sides[::-1]):
                if isinstance(other, ir.Lit) and other.value is (not holds):
                    yield from self._implied(stmt.cond, taken)
                    yield from self._implied(value, holds)
        elif isinstance(stmt, ir.Prim) and stmt.fn is operator.not_:
            yield from self._implied(stmt.args[0], not holds)
        elif isinstance(stmt, ir.Prim) and stmt.fn is (operator.and_ if holds else operator.or_):
            for arg in stmt.args:
                yield from self._implied(arg, holds)
        elif isinstance(stmt, ir.Prim):
            yield stmt, holds

    def _bound(self, stmt: ir.Prim, holds: bool, axis: int) -> int:
        """What a comparison says of the thread's number along the axis: that it is not smaller."""
        fn = stmt.fn if holds else _NEGATED.get(stmt.fn)
        if fn is operator.ne:
            pairs = (stmt.args, stmt.args[::-1])
            return int(any(self.of(a) == (axis, 0) and _is_zero(b) for a, b in pairs))
        if fn not in _LARGER:
            return 0
        by, (small, large) = _LARGER[fn], stmt.args
        if fn in (operator.gt, operator.ge):
            small, large = large, small
        place = self.of(large)
        if place is None or place[0] != axis or not _is_whole(small):
            return 0
        return int(small.value) + by - place[1]  # type: ignore[union-attr]


_LARGER = {operator.lt: 1, operator.le: 0, operator.gt: 1, operator.ge: 0}  # by how much, at least
_NEGATED = {
    operator.lt: operator.ge, operator.le: operator.gt, operator.gt: operator.le,
    operator.ge: operator.lt, operator.eq: operator.ne,
}  # fmt: skip


def _moved(place: tuple[int, int] | None, by: ir.Operand, sign: int) -> tuple[int, int] | None:
    if place is None or not _is_whole(by):
        return None
    return place[0], place[1] + sign * int(by.value)  # type: ignore[union-attr]


def _is_whole(value: ir.Operand) -> bool:
    return isinstance(value, ir.Lit) and isinstance(value.value, int)


def _is_zero(value: ir.Operand) -> bool:
    return _is_whole(value) and value.value == 0  # type: ignore[union-attr]


def _is_signed(value: ir.Operand) -> bool:
    kind = types.unliteral(value.type)
    return isinstance(kind, types.Integer) and kind.signed and not is_array(value)
