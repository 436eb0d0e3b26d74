"""Everything that the analyses found about one function, as the two transforms read it."""

from __future__ import annotations

from dataclasses import dataclass

from splitad.analysis.activity import Activity
from splitad.analysis.identity import Identity
from splitad.analysis.neighbours import Neighbour
from splitad.analysis.offsets import unit_loop
from splitad.analysis.reverse import Replay, Reverse
from splitad.analysis.save_plan import Plan
from splitad.analysis.scopes import Scope, Scopes
from splitad.analysis.sweeps import Sweep
from splitad.analysis.threads import Kernel
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction
from splitad.tape.layout import Layout


class Callees:
    """The recursive functions that a module calls, each with the name of its pair."""

    def __init__(self) -> None:
        self.names: dict[RecursiveFunction, str] = {}

    def name(self, fn: RecursiveFunction) -> str:
        return self.names.setdefault(fn, f"{fn.__name__}_rec{len(self.names)}")


@dataclass(frozen=True, eq=False)
class Facts:
    """activities: "active", "duplicated" or "const" for each argument."""

    fn: ir.Function
    where: Scopes
    active: Activity
    identity: Identity
    needs: Reverse
    plan: Plan
    layout: Layout
    activities: tuple[str, ...]
    old: dict[int, ir.Var]  # store -> the value that it overwrites, where the array has an undo log
    strong_zero: bool
    args_alias: bool
    limit_message: str
    limited: bool  # whether there is a limit to the tape
    inner: bool  # a recursive function's own pair: it appends to the tape of its caller
    callees: Callees
    vector_math: str  # where elementary functions may be vectorised: "none", "pullback", "all"
    kernel: Kernel | None = None  # of a CUDA kernel
    partials: bool = True  # whether analysis/partials.py has its way
    adjoint_loops: bool = True  # whether loops are reversed as analysis/adjoint_loops.py plans it
    ring_ends: bool = True  # and its inner iterations by themselves (analysis/ring_ends.py)
    apart: bool = True  # whether LLVM is told what does not overlap (transform/memories.py)
    handed_on: bool = True  # whether analysis/handed_on.py has its way
    neighbours: tuple[Neighbour, ...] = ()  # of a CUDA kernel
    replays: tuple[Replay, ...] = ()  # the loops of which the pullback runs the iterations again
    sums: frozenset[ir.Var] = frozenset()  # what may be added in any order (analysis/sums.py)
    sweep: Sweep | None = None  # the loops that only the pullback runs
    # the arguments whose shadows the pullback clears, each with the loop that does so (transform/cleared.py)
    cleared: tuple[tuple[ir.Var, ir.For], ...] = ()
    replayed: bool = False  # whether this is the body of one: its arguments are the pullback's own

    def is_swept(self, stmt: ir.Stmt) -> bool:
        """Whether a statement at the top of the function is left to the pullback."""
        return self.sweep is not None and self.sweep.has(stmt)

    def replay(self, loop: ir.Stmt | None) -> Replay | None:
        """Of a loop that is replayed."""
        return next((each for each in self.replays if each.loop is loop), None)

    def is_replayed(self, scope: Scope) -> bool:
        """Whether it is in the body of a loop that is replayed."""
        return any(scope.inside(each.body) for each in self.replays)


def activity_of(facts: Facts, leaf: ir.Leaf) -> str:
    """The activity of the argument that a leaf is a part of."""
    argument = leaf.path[0]
    assert isinstance(argument, int)
    return facts.activities[argument]


def shape_of(array: ir.Var, facts: Facts) -> tuple[ir.Operand, ...]:
    """The sizes of an array whose shadow the pullback makes."""
    made = facts.where.definition.get(array)
    return made.shape if isinstance(made, ir.Alloc) else facts.identity.dims[array]


def zero_based(loop: ir.For) -> bool:
    return unit_loop(loop) and isinstance(loop.start, ir.Lit) and loop.start.value == 0


def path_name(facts: Facts, path: tuple[int | str, ...]) -> str:
    """What the user calls a part of an argument: x, cell.h, pair[0]."""
    first, *steps = path
    assert isinstance(first, int)
    text = facts.fn.params[first].name
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text
