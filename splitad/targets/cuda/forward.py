"""The augmented kernel: the kernel itself, statement by statement, and what each thread puts on its tape.

def saxpy__forward(tape_float64, ..., tape_bytes, tape_need, x, y, a, n):
    tape_thread = cuda.grid(1)
    i = cuda.grid(1)
    if i < n:
        t = x[i]
        tape_float64[0, tape_thread] = t
        ...
"""

from __future__ import annotations

from dataclasses import replace

from numba import types

from splitad.analysis import threads
from splitad.analysis.save_plan import Copy
from splitad.analysis.scopes import Scope
from splitad.codegen.python import access, index_text, operand, statement, type_name
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.ir.threads import ArrayOp
from splitad.tape.layout import Column
from splitad.targets.cuda.tape import Slots, last, write_thread
from splitad.transform.augment import Augment
from splitad.transform.facts import Facts
from splitad.transform.loops import LoopText

_SIZES = (8, 4, 2, 1)
_WORD = types.int64


def run(facts: Facts, name: str, names: dict[str, object]) -> tuple[str, Slots]:
    """The function's text, ``name(*tape, tape_bytes, tape_need, *args)``, and what it puts on the tape."""
    body = Writer(names)
    work = _Forward(facts, body)
    with body.indented("def header():"):
        work.kernel()
    params = ", ".join(
        [*sorted(work.slots.used), "tape_bytes", "tape_need"]
        + [identifier(p.name) for p in facts.fn.params]
    )
    body.lines[0] = f"def {name}({params}):"
    return body.text(), work.slots


class _Forward(Augment):
    def __init__(self, facts: Facts, w: Writer) -> None:
        super().__init__(facts, w)
        self.slots = Slots(facts)
        self.checked = True  # by the launch
        claims = (stmt for stmt, op in threads.ops_of(facts.fn) if op.kind == "claim")
        self.claimed = {stmt.args[0] for stmt in claims}

    def kernel(self) -> None:
        w, root = self.w, self.where.root
        assert self.facts.kernel is not None
        write_thread(w, self.facts.kernel.dims)
        if self.slots.dynamic:
            for size in _SIZES:
                w.line(f"{last(size)} = tape_bytes // {size}")
            w.line(f"cur = {self.slots.start}")
        self.slot[root] = lambda c: self.place(str(c.offset), c)
        self.block(root)
        if self.slots.dynamic:
            end = self.slots.place(_WORD, str(self.slots.header), writing=True)
            w.line(f"{end} = cur")
            with w.indented("if cur > tape_bytes:"):
                w.line("cuda.atomic.max(tape_need, 0, cur)")

    def stmt(self, stmt: ir.Stmt, scope: Scope) -> None:
        if isinstance(stmt, ir.Alloc):
            self.w.line(f"{identifier(stmt.out.name)} = {array_text(self.w, stmt)}")
            if stmt.out in self.claimed:
                claim = array_text(self.w, stmt, types.int64)
                self.w.line(f"tape_claim_{stmt.out.name} = {claim}")
        elif isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, ArrayOp) and stmt.outs:
            self.thread_op(stmt, stmt.fn)
            for out in stmt.outs:
                self.save(out, scope)
        else:
            super().stmt(stmt, scope)

    def thread_op(self, stmt: ir.ArrayCall, op: ArrayOp) -> None:
        """An atomic operation with results, and what extremes.py puts behind barriers."""
        w, (array, *index, value) = self.w, stmt.args
        assert isinstance(array, ir.Var)
        out, given = identifier(stmt.outs[-1].name), operand(w, value)
        name, at = array.name, index_text(w, tuple(index[-op.count :]))
        if op.kind == "claim":
            w.line(f"{out} = False")
            with w.indented(f"if {operand(w, index[0])}:"):
                w.line(f"{out} = {identifier(name)}[{at}] == {given}")
            with w.indented(f"if {out}:"):
                place = f"tape_claim_{name}, {access(at, op.count)}"
                w.line(f"cuda.atomic.exch({place}, tape_thread)")
        elif op.kind == "confirm":
            w.line(f"{out} = False")
            with w.indented(f"if {given}:"):
                w.line(f"{out} = tape_claim_{name}[{at}] == tape_thread")
        elif not op.winner:
            statement(w, stmt, unchecked=False)
        else:
            old, offers = (identifier(made.name) for made in stmt.outs[:2])
            statement(w, replace(stmt, outs=stmt.outs[:1]), unchecked=False)
            w.line(f"{offers} = {given} {'>' if op.kind == 'max' else '<'} {old}")
            w.line(f"{out} = {given}")

    # ---- the tape: it is there already ------------------------------------------------------------

    def reserve(self, nbytes: str) -> None:
        pass

    def keep(self, copy: Copy) -> None:
        assert copy.by_reference, "a thread copies no arrays"

    def place(self, offset: str, c: Column) -> str:
        return self.slots.of(c, offset, writing=True)

    def columns(self, text: LoopText, body: Scope) -> None:
        self.slot[body] = lambda c: self.slots.of(
            c, text.offset(self.w, c), text.index, writing=True
        )

    def push_word(self, name: str) -> None:
        self.w.line(f"{self.slots.place(_WORD, 'cur', writing=True)} = {name}")
        self.w.line("cur += 8")


def array_text(w: Writer, stmt: ir.Alloc, dtype: types.Type | None = None) -> str:
    """A shared or local array like that of the statement, of its dtype or another one."""
    sizes = [operand(w, n) for n in stmt.shape]
    shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
    space = "local" if stmt.kind == "local" else "shared"
    return f"cuda.{space}.array({shape}, {type_name(w, dtype or stmt.out.type.dtype)})"
