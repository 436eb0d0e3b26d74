"""The reverse kernel: what each thread did, backwards, on the shadows.

    def saxpy__pullback(tape_float64, ..., tape_bytes, tape_need, kept_x, n, x_n0, bar_a, d_x, d_y):
        tape_thread = cuda.grid(1)
        ...
        cuda.atomic.add(bar_a, tape_thread & 1023, d_a)     the cotangent of a scalar: a sum over all threads

A scalar's sum is spread over many places, lest all threads wait for one; the launch adds these up.

A barrier is reversed to a barrier.  A shared array's shadow is a shared array, which all threads fill with
zeros before anything else.  How elements of shadows are added to: analysis/threads.py, gather.py.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array
from splitad.analysis.threads import ops_of
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.ir import threads
from splitad.targets.cuda import gather
from splitad.targets.cuda.tape import Slots, write_thread
from splitad.targets.cuda.thread import ThreadShadows, ThreadTape
from splitad.transform import reversed_blocks
from splitad.transform.facts import Facts
from splitad.transform.reversal import Reversal
from splitad.transform.shadows import shadow_name

_WORD = types.int64
SPREAD = 1024  # in how many places a scalar's cotangent is added up: a power of two
Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Parameters:
    """What the reverse kernel is given behind the tape, in this order.

    kept: arrays of the arguments (or copies of them), by their paths.  ends: those of which it is given what
    they held at the end, and then an integer array of the same shape for each (extremes.py).
    scalars: scalar arguments.
    sizes: the size of an axis of an array.  bars: the scalars whose cotangents it adds up.
    inner: arrays of Const arguments that need a shadow all the same.  shadows: positions of the arguments
    with a shadow of the caller's.  active: positions of the Active arguments.
    reach: the arrays that the gather kernel adds to; for each axis of the launch, which axis of the array
    goes along it, and how far behind the last thread the elements may be.
    """

    kept: tuple[Path, ...]
    ends: tuple[Path, ...]
    scalars: tuple[Path, ...]
    sizes: tuple[tuple[Path, int], ...]
    bars: tuple[Path, ...]
    inner: tuple[Path, ...]
    shadows: tuple[int, ...]
    active: tuple[int, ...]
    reach: tuple[tuple[Path, tuple[tuple[int, int], ...]], ...]


def run(
    facts: Facts, name: str, names: dict[str, object], slots: Slots
) -> tuple[str, str, Parameters]:
    """The texts of the reverse kernel and of the gather kernel, ``name__pullback`` and ``name__gather``, and
    what both are given; the latter gets the sizes of the launch first.  It is empty where there is none."""
    assert facts.kernel is not None
    w, gathering = Writer(names), Writer(names)
    paths = {leaf.var: leaf.path for leaf in facts.fn.leaves}
    bars, inner = _active_scalars(facts), _inner(facts)
    shadows = [k for k, a in enumerate(facts.activities) if a == "duplicated"]
    given = [_bar_name(leaf) for leaf in bars] + [shadow_name(leaf.var) for leaf in inner]
    given += [shadow_name(facts.fn.params[k]) for k in shadows]
    with w.indented("def header():"):
        _body(gather.rest(facts) if facts.neighbours else facts, w, slots)
    if facts.neighbours:
        with gathering.indented("def header():"):
            gather.write(facts, gathering, slots)
    used = {v for s in (*_texts(w), *_texts(gathering)) for v in s}
    kept = [c.array for c in facts.plan.copies]
    scalars = [v for v in paths if v in facts.kernel.free and identifier(v.name) in used]
    sizes = [
        s
        for s in facts.fn.body.stmts
        if isinstance(s, ir.Dim) and s.out in facts.kernel.free and identifier(s.out.name) in used
    ]
    params = [*sorted(slots.used), "tape_bytes", "tape_need"]
    ends = _offered_to(facts)
    params += [f"kept_{v.name}" for v in kept]
    params += [f"tape_end_{v.name}" for v in ends] + [f"tape_claim_{v.name}" for v in ends]
    params += [identifier(v.name) for v in scalars] + [identifier(s.out.name) for s in sizes]
    params += given
    w.lines[0] = f"def {name}__pullback({', '.join(params)}):"
    if facts.neighbours:
        own = [f"tape_size_{axis}" for axis in range(facts.kernel.dims)]
        gathering.lines[0] = f"def {name}__gather({', '.join([*own, *params])}):"
    return (
        w.text(),
        gathering.text() if facts.neighbours else "",
        Parameters(
            tuple(paths[v] for v in kept),
            tuple(paths[v] for v in ends),
            tuple(paths[v] for v in scalars),
            tuple((paths[s.array], s.axis) for s in sizes),
            tuple(leaf.path for leaf in bars),
            tuple(leaf.path for leaf in inner),
            tuple(shadows),
            tuple(k for k, a in enumerate(facts.activities) if a == "active"),
            gather.reach(facts),
        ),
    )


def _texts(w: Writer) -> list[set[str]]:
    """The names in each line."""
    return [set(re.findall(r"[A-Za-z_]\w*", line.split("#")[0])) for line in w.lines]


def _active_scalars(facts: Facts) -> list[ir.Leaf]:
    """Those whose cotangents are returned, whether or not they have any influence."""
    return [
        leaf
        for leaf in facts.fn.leaves
        if not is_array(leaf.var)
        and is_differentiable(leaf.var.type)
        and facts.activities[leaf.path[0]] == "active"  # type: ignore[index]
    ]


def _inner(facts: Facts) -> list[ir.Leaf]:
    return [
        leaf
        for leaf in facts.fn.leaves
        if is_array(leaf.var)
        and facts.activities[leaf.path[0]] == "const"  # type: ignore[index]
        and leaf.var in facts.needs.shadowed
        and facts.active(leaf.var)
    ]


def _offered_to(facts: Facts) -> list[ir.Var]:
    """The arrays of the arguments whose final state decides who won (extremes.py)."""
    paths = {leaf.var for leaf in facts.fn.leaves}
    calls = (stmt for stmt, op in ops_of(facts.fn) if op.winner)
    return list(dict.fromkeys(stmt.args[0] for stmt in calls if stmt.args[0] in paths))  # type: ignore[arg-type, misc]


def _bar_name(leaf: ir.Leaf) -> str:
    return f"bar_{leaf.var.name}"


def _body(facts: Facts, w: Writer, slots: Slots) -> None:
    r = Reversal.of(facts, w)
    r = replace(r, shadows=ThreadShadows(facts, w), tape=ThreadTape(facts, w, slots))
    root = facts.where.root
    assert facts.kernel is not None
    write_thread(w, facts.kernel.dims)
    if slots.dynamic:
        with w.indented("if tape_need[0] > tape_bytes:"):  # the tape is not complete: see `check`
            _spoil(r)
            w.line("return")
        w.line(f"cur = {slots.place(_WORD, str(slots.header))}")
    r.tape.enter_function(root)
    r.tape.values(root)
    r.shadows.of_arguments()
    r.shadows.bind(root)
    reversed_blocks.adjoints(r, root, gather.Rest(r) if facts.neighbours else None)
    for leaf in _active_scalars(facts):
        if leaf.var in r.cotangents.begun:
            place = f"{_bar_name(leaf)}, tape_thread & {SPREAD - 1}"
            w.line(f"cuda.atomic.add({place}, {r.cotangents.text(leaf.var)})")


def _spoil(r: Reversal) -> None:
    """NaN in all that the caller may look at."""
    w, facts = r.w, r.facts
    assert facts.kernel is not None
    w.use("math", math)
    for leaf in _active_scalars(facts):
        w.line(f"{_bar_name(leaf)}[tape_thread & {SPREAD - 1}] = math.nan")
    count = " * ".join(threads.TEXTS[fn] for fn in threads.GRIDSIZE[: facts.kernel.dims])
    for leaf in facts.fn.leaves:
        if not (is_array(leaf.var) and r.shadows.is_duplicated(leaf)):
            continue
        if not is_differentiable(leaf.var.type):
            continue
        name = r.shadows.path(leaf.path)
        index = [f"iter_{k}" for k in range(leaf.var.type.ndim)]
        before = w._indent
        for k, at in enumerate(index):
            span = f"tape_thread, {name}.shape[0], {count}" if k == 0 else f"{name}.shape[{k}]"
            w.line(f"for {at} in range({span}):")
            w._indent += 1
        dtype, fields = leaf.var.type.dtype, [""]
        if isinstance(dtype, types.Record):
            fields = [f"[{f!r}]" for f in dtype.fields if is_differentiable(dtype.typeof(f))]
        for field in fields:
            w.line(f"{name}{field}[{', '.join(index)}] = math.nan")
        w._indent = before
