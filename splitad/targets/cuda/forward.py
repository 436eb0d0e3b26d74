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

from numba import types

from splitad.analysis.save_plan import Copy
from splitad.analysis.scopes import Scope
from splitad.codegen.python import operand, type_name
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
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
        else:
            super().stmt(stmt, scope)

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


def array_text(w: Writer, stmt: ir.Alloc) -> str:
    """A shared or local array like that of the statement."""
    sizes = [operand(w, n) for n in stmt.shape]
    shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
    space = "local" if stmt.kind == "local" else "shared"
    return f"cuda.{space}.array({shape}, {type_name(w, stmt.out.type.dtype)})"
