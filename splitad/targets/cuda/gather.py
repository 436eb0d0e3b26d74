"""The gather kernel, which comes before the reverse kernel: what threads load around their own place.

Each thread adds to its own elements of shadows what the threads around have for them, so no addition needs to
be atomic (analysis/neighbours.py).

    def stencil__gather(tape_size_0, tape_bool, ..., kept_u, c, bar_c, d_u, d_v):
        tape_own_0 = cuda.grid(1)
        added_0 = 0.0
        tape_at_0 = tape_own_0 - 1                      whose u[i + 1] is this thread's element
        if tape_at_0 >= 0 and tape_at_0 < tape_size_0:  tape_size_0: how many threads there were
            tape_thread = tape_at_0
            i = tape_at_0
            ...                                         that thread's adjoints, as far as they lead there;
            added_0 += d_t_11                           they change no shadow
        ...                                             the same for the other shifts
        if added_0 != 0.0:
            d_u[tape_own_0] += added_0

Where nothing is added, no thread may have loaded the element, and it need not exist.  The reverse kernel does
the rest: the cotangents of what was stored are only used up there.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from numba import types

from splitad.analysis.adjoint_loops import LoopPlan
from splitad.analysis.neighbours import Neighbour, Places
from splitad.codegen.python import operand, type_name, zero
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.ir import threads
from splitad.ir.walk import walk
from splitad.targets.cuda.parts import needed, of_sources
from splitad.targets.cuda.tape import Slots, thread_number
from splitad.targets.cuda.thread import ThreadShadows, ThreadTape
from splitad.transform import reversed_blocks
from splitad.transform.additions import Additions
from splitad.transform.facts import Facts
from splitad.transform.reversal import Reversal
from splitad.transform.shadows import shadow_name

Path = tuple[int | str, ...]
_Place = tuple[Hashable, ...]


def write(facts: Facts, w: Writer, slots: Slots) -> None:
    """The kernel's body."""
    assert facts.kernel is not None
    for axis in range(facts.kernel.dims):
        w.line(f"tape_own_{axis} = {threads.TEXTS[threads.GRID[axis]]}")
    ThreadShadows(facts, w).of_arguments()
    sums: dict[_Place, tuple[str, Neighbour]] = {}
    groups: dict[tuple[int, ...], list[Neighbour]] = {}
    for one in facts.neighbours:
        groups.setdefault(one.shift, []).append(one)
        sums.setdefault(_place(one), (f"added_{len(sums)}", one))
    for name, one in sums.values():
        w.line(f"{name} = {zero(w, one.load.out.type)}")
    for shift, loads in groups.items():
        _shifted(facts, w, slots, shift, {id(one.load): sums[_place(one)][0] for one in loads})
    for name, one in sums.values():
        pairs = zip(one.load.index, one.axes, strict=True)
        index = [operand(w, entry) if a is None else f"tape_own_{a}" for entry, a in pairs]
        with w.indented(f"if {name} != {zero(w, one.load.out.type)}:"):
            w.line(f"{shadow_name(one.load.array)}[{', '.join(index)}] += {name}")


def reach(facts: Facts) -> tuple[tuple[Path, tuple[tuple[int, int], ...]], ...]:
    """Which elements there are something to gather for; see Parameters."""
    paths = {leaf.var: leaf.path for leaf in facts.fn.leaves}
    found = []
    for array in dict.fromkeys(one.load.array for one in facts.neighbours):
        loads = [one for one in facts.neighbours if one.load.array == array]
        shifts = zip(*(one.shift for one in loads), strict=True)
        axes = loads[0].axes
        found.append(
            (paths[array], tuple((axes.index(k), max(0, *by)) for k, by in enumerate(shifts)))
        )
    return tuple(found)


def _place(one: Neighbour) -> _Place:
    """What is the same for all loads that a thread gathers into the same element."""
    pairs = zip(one.load.index, one.axes, strict=True)
    return one.load.array, *(entry if axis is None else axis for entry, axis in pairs)


def _shifted(
    facts: Facts, w: Writer, slots: Slots, shift: tuple[int, ...], sums: dict[int, str]
) -> None:
    """What the thread that is a shift away has for this thread's elements.
    sums: of these loads, by identity, the variables with the sums."""
    assert facts.kernel is not None
    dims = range(facts.kernel.dims)
    facts = _leading_to(facts, [one.load for one in facts.neighbours if id(one.load) in sums])
    tests = []
    for axis, by in enumerate(shift):
        away = f" {'-' if by > 0 else '+'} {abs(by)}" if by else ""
        w.line(f"tape_at_{axis} = tape_own_{axis}{away}")
        tests += [f"tape_at_{axis} >= 0"] if by > 0 else []
        tests.append(f"tape_at_{axis} < tape_size_{axis}")
    with w.indented(f"if {' and '.join(tests)}:"):
        number = thread_number([f"tape_at_{k}" for k in dims], [f"tape_size_{k}" for k in dims])
        w.line(f"tape_thread = {number}")
        tape, shadows = _Tape(facts, w, slots), ThreadShadows(facts, w)
        r = replace(Reversal.of(facts, w), shadows=shadows, tape=tape)
        # no store zeroes its element, as if it were an accumulation
        stores = {id(stmt) for stmt in walk(facts.fn.body) if isinstance(stmt, ir.Store)}
        r = replace(r, accumulated=r.accumulated | stores)
        root = facts.where.root
        tape.enter_function(root)
        reversed_blocks.enter(r, root)
        reversed_blocks.adjoints(r, root, _Sums(r, sums))


def _leading_to(facts: Facts, loads: list[ir.Load]) -> Facts:
    """The facts, as if there were no derivatives but with respect to what these load."""
    memory = facts.active.memory
    facts = of_sources(facts, [load.out for load in loads])
    arrays = [load.array for load in loads]
    for stmt in walk(facts.fn.body):
        if isinstance(stmt, ir.Store) and facts.active(stmt.value):
            arrays.append(stmt.array)
        elif isinstance(stmt, ir.ArrayCall) and any(map(facts.active, stmt.args[1:])):
            arrays.append(stmt.args[0])  # type: ignore[arg-type]
    roots = frozenset().union(*map(memory.base_roots, arrays))
    facts = replace(facts, active=replace(facts.active, roots=roots))
    assert facts.kernel is not None
    places = Places(facts.fn, facts.kernel.dims)
    return needed(facts, known=lambda var: places.axis(var) is not None)


class _Sums(Additions):
    """Additions to variables."""

    def __init__(self, r: Reversal, sums: dict[int, str]) -> None:
        super().__init__(r.w, r.buffers, LoopPlan(), r.facts.kernel)
        self.sums = sums

    def now(self, load: ir.Load, value: str) -> None:
        if id(load) in self.sums:
            self.w.line(f"{self.sums[id(load)]} += {value}")


class _Tape(ThreadTape):
    """The tape as it was written by the thread with the number `tape_at`."""

    def __init__(self, facts: Facts, w: Writer, slots: Slots) -> None:
        super().__init__(facts, w, slots)
        assert facts.kernel is not None
        self.dims = facts.kernel.dims
        self.places = Places(facts.fn, self.dims)

    def again(self, stmt: ir.Stmt) -> None:
        text = self._of_thread(stmt)
        if text is None:
            super().again(stmt)
        else:
            assert isinstance(stmt, (ir.Prim, ir.Cast))
            name, kind = identifier(stmt.out.name), types.unliteral(stmt.out.type)
            whole = text if kind == types.int64 else f"{type_name(self.w, kind)}({text})"
            self.w.line(f"{name} = {whole}")

    def _of_thread(self, stmt: ir.Stmt) -> str | None:
        """What the thread knew of itself; None where that is no other thing here."""
        if not isinstance(stmt, (ir.Prim, ir.Cast)):
            return None
        at = self.places.axis(stmt.out)
        if at is not None:
            return f"tape_at_{at}"
        for axis in range(self.dims):
            block = threads.TEXTS[threads.BLOCK_DIM[axis]]
            texts = {
                threads.THREAD[axis]: f"tape_at_{axis} % {block}",
                threads.BLOCK[axis]: f"tape_at_{axis} // {block}",
                threads.GRIDSIZE[axis]: f"tape_size_{axis}",
                threads.GRID_DIM[axis]: f"tape_size_{axis} // {block}",
            }
            if isinstance(stmt, ir.Prim) and stmt.fn in texts:
                return texts[stmt.fn]
        return None


# ---- what is left to the reverse kernel ----------------------------------------------------------------


def rest(facts: Facts) -> Facts:
    """The facts, as if what is gathered carried no derivative."""
    gathered = {one.load.out for one in facts.neighbours if not one.negative}
    sources = [
        var
        for var in facts.active.scalars
        if var not in gathered
        and not isinstance(facts.where.definition[var], (ir.Prim, ir.Cast, ir.If))
    ]
    return needed(of_sources(facts, sources))


class Rest(Additions):
    """Of a gathered load, only what it adds to an element at the other end of the array."""

    def __init__(self, r: Reversal) -> None:
        super().__init__(r.w, r.buffers, LoopPlan(), r.facts.kernel)
        self.negative = {id(one.load): one.negative for one in r.facts.neighbours}

    def now(self, load: ir.Load, value: str) -> None:
        if id(load) not in self.negative:
            super().now(load, value)
            return
        tests = (f"{operand(self.w, entry)} < 0" for entry in self.negative[id(load)])
        with self.w.indented(f"if {' or '.join(tests)}:"):
            super().now(load, value)
