"""Random legal IR that runs without an access out of bounds, for checks that a pass keeps its meaning.

The generator knows an interval for every integer and the size of every axis, so that it can pick indices
(negative ones too) that are inside.
"""

from __future__ import annotations

import math
import operator
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types

from splitad.errors import Loc
from splitad.ir import nodes as ir
from splitad.ir.build import Builder

F, I, B = types.float64, types.int64, types.boolean
V, M = types.Array(F, 1, "C"), types.Array(F, 2, "C")
SIZE = 4


def bump(a: Any) -> None:
    """Stands for a function with an array rule that writes its argument."""
    a += 1.0


def total(a: Any) -> float:
    return float(np.sum(a))


@dataclass
class Scope:
    """What may be used: floats, bools, ints with their bounds, arrays with the sizes of their axes."""

    floats: list[ir.Operand] = field(default_factory=list)
    bools: list[ir.Operand] = field(default_factory=list)
    ints: list[tuple[ir.Operand, int, int]] = field(default_factory=list)
    arrays: list[tuple[ir.Var, tuple[int, ...]]] = field(default_factory=list)

    def copy(self) -> Scope:
        return Scope(list(self.floats), list(self.bools), list(self.ints), list(self.arrays))


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.b = Builder(Loc("random_ir.py", seed % 1000 + 1, f"random_{seed}"))

    def function(self) -> ir.Function:
        """f(x, y, m, n, h) -> everything that is in scope at its end."""
        b = self.b
        x, y, m = b.fresh("x", V), b.fresh("y", V), b.fresh("m", M)
        n, h = b.fresh("n", I), b.fresh("h", F)
        scope = Scope([h, ir.Lit(1.5, F)], [ir.Lit(True, B)], [(n, 0, SIZE)], [])
        scope.ints += [(ir.Lit(k, I), k, k) for k in (-1, 0, 1, 2)]
        scope.arrays += [(x, (SIZE,)), (y, (SIZE,)), (m, (SIZE, SIZE))]
        for _ in range(self.random.randint(4, 9)):
            self.statement(scope, 0)
        result = ir.TupleTree(types.none, (*scope.floats, *(v for v, _, _ in scope.ints)))
        leaves = tuple(ir.Leaf((k,), v, v) for k, v in enumerate((x, y, m, n, h)))
        return ir.Function(
            b.loc.function, (x, y, m, n, h), leaves, ir.Block(b.root), result, types.none, b.loc
        )

    def pick(self, items: list[Any]) -> Any:
        """Late items more often, so that programs get deep."""
        return items[max(self.random.randrange(len(items)), self.random.randrange(len(items)))]

    def statement(self, scope: Scope, depth: int) -> None:
        simple = [
            self.float_op, self.float_op, self.int_op, self.int_op, self.load, self.load, self.store,
            self.compare, self.cast, self.view, self.alloc, self.dim, self.repeat, self.call,
            self.reload, self.reload, self.reload, self.overwrite,
        ]  # fmt: skip
        nested = [self.loop, self.loop, self.branch, self.while_loop, self.guard]
        kinds = simple + (nested * 2 if depth < 3 else [])
        self.random.choice(kinds)(scope, depth)

    # ---- simple statements ------------------------------------------------------------------

    def float_op(self, scope: Scope, depth: int) -> None:
        fn = self.random.choice([operator.add, operator.sub, operator.mul, math.atan])
        args = [self.pick(scope.floats) for _ in range(1 if fn is math.atan else 2)]
        scope.floats.append(self.b.prim(fn, *args, type=F))

    def repeat(self, scope: Scope, depth: int) -> None:
        """The same as an operation before: something to be found equal."""
        stmts = [s for s in self.b._blocks[-1] if isinstance(s, ir.Prim) and s.out.type == F]
        if stmts:
            stmt = self.random.choice(stmts)
            scope.floats.append(self.b.prim(stmt.fn, *stmt.args, type=F))

    def loads(self) -> list[ir.Load]:
        """Every load in this block and those around it."""
        return [s for block in self.b._blocks for s in block if isinstance(s, ir.Load)]

    def reload(self, scope: Scope, depth: int) -> None:
        """A load from before, once more; then it has to matter what was written in between."""
        if loads := self.loads():
            load = self.random.choice(loads)
            again = self.b.load(load.array, *load.index)
            scope.floats.append(self.b.prim(operator.add, scope.floats[-1], again, type=F))

    def overwrite(self, scope: Scope, depth: int) -> None:
        """A store where something was loaded from, perhaps under another name."""
        if loads := self.loads():
            load = self.random.choice(loads)
            sizes = [sizes for array, sizes in scope.arrays if array == load.array]
            like = [array for array, other in scope.arrays if [other] == sizes]
            if like:
                self.b.store(self.pick(like), load.index, self.pick(scope.floats))

    def int_op(self, scope: Scope, depth: int) -> None:
        (x, a, b), (y, c, d) = self.pick(scope.ints), self.pick(scope.ints)
        kind = self.random.choice(["add", "sub", "mul", "max", "floordiv"])
        if kind == "add":
            self.integer(scope, operator.add, x, y, a + c, b + d)
        elif kind == "sub":
            self.integer(scope, operator.sub, x, y, a - d, b - c)
        elif kind == "max":
            self.integer(scope, max, x, y, max(a, c), max(b, d))
        elif kind == "mul":
            corners = (a * c, a * d, b * c, b * d)
            self.integer(scope, operator.mul, x, y, min(corners), max(corners))
        elif self.random.random() < 0.5:  # may raise
            self.integer(scope, operator.floordiv, x, y, -max(abs(a), abs(b)), max(abs(a), abs(b)))

    def integer(self, scope: Scope, fn: Any, x: Any, y: Any, low: int, high: int) -> None:
        if max(-low, high) < 1000:
            scope.ints.append((self.b.prim(fn, x, y, type=I, name="k"), low, high))

    def compare(self, scope: Scope, depth: int) -> None:
        if self.random.random() < 0.5:
            args = self.pick(scope.floats), self.pick(scope.floats)
        else:
            args = self.pick(scope.ints)[0], self.pick(scope.ints)[0]
        fn = self.random.choice([operator.lt, operator.eq, operator.ge])
        scope.bools.append(self.b.prim(fn, *args, type=B, name="c"))

    def cast(self, scope: Scope, depth: int) -> None:
        scope.floats.append(self.b.cast(self.pick(scope.ints)[0], F))

    def place(self, scope: Scope) -> tuple[ir.Var, tuple[ir.Operand, ...]] | None:
        array, sizes = self.pick(scope.arrays)
        index = []
        for size in sizes:
            fitting = [v for v, low, high in scope.ints if -size <= low and high < size]
            if not fitting:
                return None
            index.append(self.pick(fitting))
        return array, tuple(index)

    def load(self, scope: Scope, depth: int) -> None:
        if (place := self.place(scope)) is not None:
            scope.floats.append(self.b.load(place[0], *place[1]))

    def store(self, scope: Scope, depth: int) -> None:
        if (place := self.place(scope)) is not None:
            self.b.store(*place, self.pick(scope.floats))

    def view(self, scope: Scope, depth: int) -> None:
        base, sizes = self.pick(scope.arrays)
        if len(sizes) == 2 and self.random.random() < 0.3:
            out = self.b.view(base, "T", (), types.Array(F, 2, "A"))
            scope.arrays.append((out, sizes[::-1]))
            return
        entries: list[Any] = []
        left: list[int] = []
        for size in sizes:
            fitting = [v for v, low, high in scope.ints if -size <= low and high < size]
            kind = self.random.choice(["full", "start", "stop", "step", "back", "int", "new"])
            if kind == "new":
                entries.append(ir.NewAxis())
                left.append(1)
                kind = "full"
            if kind == "int" and fitting and len(entries) + len(left) < 5:
                entries.append(self.pick(fitting))
                continue
            literal = Builder.intp
            step = self.random.choice([1, 2])
            parts = {
                "start": (literal(min(1, size)), None, None),
                "stop": (None, literal(-1 if size > 1 else size), None),
                "step": (literal(0), None, literal(step)),
                "back": (None, None, literal(-1)),
            }.get(kind, (None, None, None))
            entries.append(ir.Slice(*parts))
            values = slice(*(None if p is None else p.value for p in parts))
            left.append(len(range(size)[values]))
        if left and len(left) <= 3:
            out = self.b.view(base, "index", tuple(entries), types.Array(F, len(left), "A"))
            scope.arrays.append((out, tuple(left)))

    def alloc(self, scope: Scope, depth: int) -> None:
        array = self.b.alloc((Builder.intp(SIZE),), F, self.random.choice(["zeros", "empty"]))
        scope.arrays.append((array, (SIZE,)))

    def dim(self, scope: Scope, depth: int) -> None:
        array, sizes = self.pick(scope.arrays)
        axis = self.random.randrange(len(sizes))
        scope.ints.append((self.b.dim(array, axis), sizes[axis], sizes[axis]))

    def call(self, scope: Scope, depth: int) -> None:
        array, _ = self.pick(scope.arrays)
        if self.random.random() < 0.3:
            out = self.b.fresh("sum", F)
            self.b.array_call(total, (array,), (out,))
            scope.floats.append(out)
        elif self.random.random() < 0.3:
            self.b.array_call(bump, (array,), ())

    # ---- control flow -----------------------------------------------------------------------

    def body(self, scope: Scope, depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.statement(scope, depth + 1)

    def carried(self, scope: Scope) -> tuple[list[Any], list[Any]]:
        """Inits and params: floats, a growing integer, and arrays of one shape."""
        inits: list[Any] = [self.pick(scope.floats) for _ in range(self.random.randint(0, 2))]
        inits += [self.pick(scope.ints)[0] for _ in range(self.random.randint(0, 2))]
        vectors = [a for a, sizes in scope.arrays if sizes == (SIZE,)]
        inits += self.random.sample(vectors, min(len(vectors), self.random.choice([0, 0, 2])))
        if any(isinstance(i, ir.Lit) and i.type == B for i in inits):
            inits = []
        return inits, [self.b.fresh("p", self.joined(i.type)) for i in inits]

    @staticmethod
    def joined(type: Any) -> Any:
        return types.Array(F, 1, "A") if isinstance(type, types.Array) else type

    def enter(self, scope: Scope, params: list[ir.Var], far: int) -> Scope:
        inner = scope.copy()
        for p in params:
            if p.type == F:
                inner.floats.append(p)
            elif p.type == I:
                inner.ints.append((p, -far, far))  # too far to be an index
            else:
                inner.arrays.append((p, (SIZE,)))
        return inner

    def yields(self, inner: Scope, params: list[ir.Var]) -> list[ir.Operand]:
        found: list[ir.Operand] = []
        arrays = [p for p in params if isinstance(p.type, types.Array)]
        swapped = arrays[::-1] if self.random.random() < 0.6 else arrays
        for p in params:
            if p.type == F:
                found.append(self.pick([*inner.floats, p]))
            elif p.type == I:
                amounts = [v for v, low, high in inner.ints if max(-low, high) < 20 and v != p]
                fn = self.random.choice([operator.add, operator.sub])
                same = self.random.random() < 0.2
                found.append(p if same else self.b.prim(fn, p, self.pick(amounts), type=I))
            else:
                fresh = [a for a, sizes in inner.arrays if sizes == (SIZE,)]
                choice = swapped[arrays.index(p)]
                found.append(self.pick(fresh) if self.random.random() < 0.2 else choice)
        return found

    def leave(self, scope: Scope, params: list[ir.Var], far: int) -> tuple[ir.Var, ...]:
        outs = [self.b.fresh("o", p.type) for p in params]
        updated = self.enter(scope, outs, far)
        scope.floats, scope.ints, scope.arrays = updated.floats, updated.ints, updated.arrays
        return tuple(outs)

    def loop(self, scope: Scope, depth: int) -> None:
        lit = Builder.intp
        start, stop, step = self.random.choice(
            [(0, None, 1), (0, None, 1), (0, SIZE, 1), (1, 3, 1), (3, -1, -1), (0, 4, 2), (2, 2, 1)]
        )
        if stop is None:
            end, low, high = scope.ints[0][0], 0, SIZE - 1
        else:
            end, low, high = lit(stop), min(start, stop + 1), max(start, stop - 1)
        inits, params = self.carried(scope)
        counter = self.b.fresh("i", I)
        inner = self.enter(scope, params, 500)
        inner.ints.append((counter, low, high))
        with self.b.block() as stmts:
            self.body(inner, depth)
            yields = self.yields(inner, params)
        outs = self.leave(scope, params, 500)
        block = ir.Block(tuple(stmts), tuple(yields))
        self.b.emit(
            ir.For(
                counter, lit(start), end, lit(step), tuple(params), tuple(inits), block, outs,
                loc=self.b.loc,
            )
        )  # fmt: skip

    def while_loop(self, scope: Scope, depth: int) -> None:
        inits, params = self.carried(scope)
        go, left = self.b.fresh("go", B), self.b.fresh("left", I)
        inner = self.enter(scope, params, 500)
        with self.b.block() as stmts:
            self.body(inner, depth)
            fewer = self.b.prim(operator.sub, left, Builder.intp(1), type=I, name="left")
            again = self.b.prim(operator.gt, fewer, Builder.intp(0), type=B, name="go")
            yields = [again, fewer, *self.yields(inner, params)]
        start = (ir.Lit(self.random.random() < 0.8, B), Builder.intp(self.random.randint(1, 3)))
        outs = (self.b.fresh("go", B), self.b.fresh("left", I), *self.leave(scope, params, 500))
        scope.ints.append((outs[1], 0, 3))
        block = ir.Block(tuple(stmts), tuple(yields))
        self.b.emit(ir.While((go, left, *params), (*start, *inits), block, outs, loc=self.b.loc))

    def branch(self, scope: Scope, depth: int) -> None:
        sides = []
        for _ in range(2):
            inner = scope.copy()
            with self.b.block() as stmts:
                if self.random.random() < 0.8:
                    self.body(inner, depth)
            vectors = [a for a, sizes in inner.arrays if sizes == (SIZE,)]
            sides.append(
                (stmts, self.pick(inner.floats), self.pick(inner.ints), self.pick(vectors))
            )
        (then, a, (k, low, high), v), (orelse, b, (j, low2, high2), w) = sides
        outs = (
            self.b.fresh("o", F), self.b.fresh("k", I), self.b.fresh("v", types.Array(F, 1, "A")),
            self.b.fresh("unread", F),
        )  # fmt: skip
        undefined = ir.Lit(ir.UNDEF, F)
        blocks = ir.Block(tuple(then), (a, k, v, a)), ir.Block(tuple(orelse), (b, j, w, undefined))
        self.b.emit(ir.If(self.pick(scope.bools), *blocks, outs, loc=self.b.loc))
        scope.floats.append(outs[0])
        scope.ints.append((outs[1], min(low, low2), max(high, high2)))
        scope.arrays.append((outs[2], (SIZE,)))

    def guard(self, scope: Scope, depth: int) -> None:
        """A raise under a condition."""
        if self.random.random() < 0.1:
            block = ir.Block((ir.Raise(ValueError, (), loc=self.b.loc),))
            cond = self.pick(scope.bools)
            self.b.emit(ir.If(cond, block, ir.Block(()), (), loc=self.b.loc))


def arguments(seed: int) -> tuple[Any, ...]:
    """x, y, m, n, h; sometimes x and y are one array."""
    rng = np.random.default_rng(seed)
    x, y, m = rng.normal(size=SIZE), rng.normal(size=SIZE), rng.normal(size=(SIZE, SIZE))
    if seed % 3 == 0:
        y = x
    if seed % 5 == 0:
        y = m[1]
    return x, y, m, int(rng.integers(0, SIZE + 1)), float(rng.normal())
