"""The reverse kernel: what each thread did, backwards, on the shadows.

    def saxpy__pullback(tape_float64, ..., tape_bytes, tape_need, kept_x, n, x_n0, bar_a, d_x, d_y):
        tape_thread = cuda.grid(1)
        ...
        cuda.atomic.add(bar_a, tape_thread & 1023, d_a)     the cotangent of a scalar: a sum over all threads

A scalar's sum is spread over many places, lest all threads wait for one; the launch adds these up.

A barrier is reversed to a barrier.  A shared array's shadow is a shared array, which all threads fill with
zeros before anything else.  How elements of shadows are added to: analysis/threads.py.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array
from splitad.analysis.scopes import Scope
from splitad.analysis.threads import ops_of
from splitad.codegen.python import operand, zero
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.ir import threads
from splitad.tape.layout import Column
from splitad.targets.cuda.forward import array_text
from splitad.targets.cuda.tape import Slots, write_thread
from splitad.transform import reversed_blocks
from splitad.transform.facts import Facts
from splitad.transform.loops import LoopText
from splitad.transform.restore import Restored
from splitad.transform.reversal import Reversal
from splitad.transform.shadows import Shadows, shadow_name

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
    """

    kept: tuple[Path, ...]
    ends: tuple[Path, ...]
    scalars: tuple[Path, ...]
    sizes: tuple[tuple[Path, int], ...]
    bars: tuple[Path, ...]
    inner: tuple[Path, ...]
    shadows: tuple[int, ...]
    active: tuple[int, ...]


def run(facts: Facts, name: str, names: dict[str, object], slots: Slots) -> tuple[str, Parameters]:
    """The function's text, and what it is given."""
    w = Writer(names)
    r = Reversal.of(facts, w)
    r = replace(r, shadows=_Shadows(facts, w), tape=_Restored(facts, w, slots))
    paths = {leaf.var: leaf.path for leaf in facts.fn.leaves}
    bars, inner = _active_scalars(facts), _inner(r)
    shadows = [k for k, a in enumerate(facts.activities) if a == "duplicated"]
    given = [_bar_name(leaf) for leaf in bars] + [shadow_name(leaf.var) for leaf in inner]
    given += [shadow_name(facts.fn.params[k]) for k in shadows]
    with w.indented("def header():"):
        _body(r, slots)
    used = {v for s in _texts(w) for v in s}
    kept = [c.array for c in facts.plan.copies]
    assert facts.kernel is not None
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
    w.lines[0] = f"def {name}({', '.join(params)}):"
    return w.text(), Parameters(
        tuple(paths[v] for v in kept),
        tuple(paths[v] for v in ends),
        tuple(paths[v] for v in scalars),
        tuple((paths[s.array], s.axis) for s in sizes),
        tuple(leaf.path for leaf in bars),
        tuple(leaf.path for leaf in inner),
        tuple(shadows),
        tuple(k for k, a in enumerate(facts.activities) if a == "active"),
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


def _inner(r: Reversal) -> list[ir.Leaf]:
    return [
        leaf
        for leaf in r.facts.fn.leaves
        if is_array(leaf.var)
        and r.facts.activities[leaf.path[0]] == "const"  # type: ignore[index]
        and leaf.var in r.shadows.shadowed
        and r.facts.active(leaf.var)
    ]


def _offered_to(facts: Facts) -> list[ir.Var]:
    """The arrays of the arguments whose final state decides who won (extremes.py)."""
    paths = {leaf.var for leaf in facts.fn.leaves}
    calls = (stmt for stmt, op in ops_of(facts.fn) if op.winner)
    return list(dict.fromkeys(stmt.args[0] for stmt in calls if stmt.args[0] in paths))  # type: ignore[arg-type, misc]


def _bar_name(leaf: ir.Leaf) -> str:
    return f"bar_{leaf.var.name}"


def _body(r: Reversal, slots: Slots) -> None:
    w, facts = r.w, r.facts
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
    reversed_blocks.adjoints(r, root)
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


class _Restored(Restored):
    def __init__(self, facts: Facts, w: Writer, slots: Slots) -> None:
        super().__init__(facts, w)
        self.slots = slots

    def enter_function(self, root: Scope) -> None:
        self.slot[root] = lambda c: self._at(str(c.offset), c)

    def pop(self, stmt: ir.Stmt | None) -> None:
        pass

    def enter_for(self, text: LoopText, body: Scope) -> None:
        if self.record[body].size:
            self.find_iterations(text, self.record[body])
            self.slot[body] = lambda c: self.slots.of(c, text.offset(self.w, c), text.index)

    def enter_iteration(self, name: str, body: Scope) -> None:
        record = self.record[body]
        self.slot[body] = lambda c: self._at(name + (f" + {c.offset}" if c.offset else ""), c)
        if record.size and record.pushes:
            self.pop_word(name)
        elif record.size:
            self.w.line(f"cur -= {record.size}")
            self.w.line(f"{name} = cur")

    def pop_word(self, name: str) -> None:
        self.w.line("cur -= 8")
        self.w.line(f"{name} = {self.slots.place(_WORD, 'cur')}")

    def _at(self, offset: str, c: Column) -> str:
        return self.slots.of(c, offset)


class _Shadows(Shadows):
    def of_arguments(self) -> None:
        """Name the shadow of each array in a tuple; make those of shared arrays."""
        for leaf in self.fn.leaves:
            if is_array(leaf.var) and leaf.var in self.shadowed and self.is_duplicated(leaf):
                if self.path(leaf.path) != shadow_name(leaf.var):
                    self.w.line(f"{shadow_name(leaf.var)} = {self.path(leaf.path)}")
        made = [s for s in self.fn.body.stmts if self._is_shadowed(s, "shared", "dynamic")]
        for stmt in made:
            assert isinstance(stmt, ir.Alloc)
            self._shared(stmt)
        if made:
            self.w.line("cuda.syncthreads()")

    def _is_shadowed(self, stmt: ir.Stmt, *kinds: str) -> bool:
        return isinstance(stmt, ir.Alloc) and stmt.kind in kinds and stmt.out in self.shadowed

    def _shared(self, stmt: ir.Alloc) -> None:
        """Zeros, written by all threads of the block together."""
        w, name = self.w, shadow_name(stmt.out)
        w.line(f"{name} = {array_text(w, stmt)}")
        at, size = "cuda.threadIdx", "cuda.blockDim"
        thread = f"{at}.x + {size}.x * ({at}.y + {size}.y * {at}.z)"
        count = f"{size}.x * {size}.y * {size}.z"
        sizes = [operand(w, n) for n in stmt.shape]
        if stmt.kind == "dynamic":
            sizes = [f"{name}.shape[0]"]
        with w.indented(f"for at in range({thread}, {' * '.join(sizes)}, {count}):"):
            index, rest = [], "at"
            for size in reversed(sizes[1:]):
                index.append(f"{rest} % {size}")
                rest = f"({rest} // {size})"
            index.append(rest)
            w.line(f"{name}[{', '.join(reversed(index))}] = {zero(w, stmt.out.type.dtype)}")

    def bind(self, scope: Scope) -> None:
        for stmt in scope.block.stmts:
            if self._is_shadowed(stmt, "local"):
                assert isinstance(stmt, ir.Alloc)
                self._local(stmt)
        super().bind(scope)

    def _zeros(self, array: ir.Var) -> None:
        """Shared and local arrays have theirs already."""

    def _local(self, stmt: ir.Alloc) -> None:
        w, name = self.w, shadow_name(stmt.out)
        w.line(f"{name} = {array_text(w, stmt)}")
        index = [f"iter_{k}" for k in range(len(stmt.shape))]
        for k, size in zip(index, stmt.shape, strict=True):
            w.line(f"for {k} in range({operand(w, size)}):")
            w._indent += 1
        w.line(f"{name}[{', '.join(index)}] = {zero(w, stmt.out.type.dtype)}")
        w._indent -= len(index)
