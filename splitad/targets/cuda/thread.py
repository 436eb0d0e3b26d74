"""What a thread of a reverse kernel works on: its part of the tape, and shadows, some of which it makes."""

from __future__ import annotations

from numba import types

from splitad.analysis.memory import is_array
from splitad.analysis.scopes import Scope
from splitad.codegen.python import operand, zero
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.tape.layout import Column
from splitad.targets.cuda.forward import array_text
from splitad.targets.cuda.tape import Slots
from splitad.transform.facts import Facts
from splitad.transform.loops import LoopText
from splitad.transform.restore import Restored
from splitad.transform.shadows import Shadows, shadow_name

_WORD = types.int64


class ThreadTape(Restored):
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


class ThreadShadows(Shadows):
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
