"""Loops over anything become loops over a range; list comprehensions become loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np

from splitad.frontend.expressions import Expressions
from splitad.frontend.scopes import bound, comprehension_targets
from splitad.frontend.unravel import count, unravel

_GROW = {"append", "extend", "insert", "pop", "remove", "clear"}


@dataclass(frozen=True, eq=False)
class Items:
    """What a loop runs over: `length` items, of which number k is `item(k)`.

    parts: where an item is a tuple made by zip or enumerate, its parts, so that no tuple need be built.
    direct: the call of range or prange itself, where there is one.
    """

    length: Any
    item: Callable[[ast.Name], ast.expr]
    parts: tuple[Callable[[ast.Name], ast.expr], ...] | None = None
    direct: ast.Call | None = None


_NO_TARGET = ast.Pass()


class Loops(Expressions):
    def assign_target(self, target: ast.expr, value: ast.expr) -> None:
        raise NotImplementedError

    # ---- what is iterated over ------------------------------------------------------------------

    def items(self, expr: ast.expr, body: Sequence[Any], *, outermost: bool = True) -> Items:
        """body: the loop's target (one that fits nothing within zip and enumerate), then its body."""
        with self.located(expr):
            if isinstance(expr, ast.Call):
                made = self.known_iterator(expr, body, outermost)
                if made is not None:
                    return made
            return self.container(expr, body)

    def known_iterator(self, call: ast.Call, body: Sequence[Any], outermost: bool) -> Items | None:
        fn = self.static(call.func)
        if fn is range or fn is numba.prange:
            return self.over_range(call, "range" if fn is range else "prange", outermost)
        if fn is enumerate:
            return self.over_enumerate(call, body)
        if fn is zip:
            return self.over_zip(call, body)
        if fn is reversed:
            return self.over_reversed(call, body)
        if fn is np.ndindex:
            return self.over_ndindex(call, body[0])
        if fn is np.ndenumerate:
            return self.over_ndenumerate(call, body[0])
        if fn is numba.literal_unroll:
            self.refuse(f"A loop over {ast.unparse(call.func)} is not supported.", call)
        return None

    def over_range(self, call: ast.Call, name: str, outermost: bool) -> Items:
        args = self.plain_args(call)
        value = numba.prange if name == "prange" else range
        made = ast.Call(self.helper(name, value), self.atoms(args), [])
        if outermost:
            return Items(None, lambda k: k, direct=made)
        return self.indexed(self.temp(made))

    def over_enumerate(self, call: ast.Call, body: Sequence[Any]) -> Items:
        args = [*call.args, *(k.value for k in call.keywords if k.arg == "start")]
        if not 1 <= len(args) <= 2 or any(k.arg != "start" for k in call.keywords):
            self.refuse("enumerate takes an iterable and a start.", call)
        over = self.items(args[0], [_NO_TARGET, *body], outermost=False)
        if len(args) == 1:
            return self.tuples(over.length, (lambda k: k, over.item))
        start = self.atom(args[1])
        start = self.temp(start) if isinstance(start, ast.Name) else start
        return self.tuples(over.length, (lambda k: ast.BinOp(start, ast.Add(), k), over.item))

    def over_zip(self, call: ast.Call, body: Sequence[Any]) -> Items:
        args = self.plain_args(call)
        if not args:
            self.refuse("zip without arguments is not supported.", call)
        over = [self.items(arg, [_NO_TARGET, *body], outermost=False) for arg in args]
        length = over[0].length
        for other in over[1:]:
            length = self.temp(ast.Call(self.builtin("min"), [length, other.length], []))
        return self.tuples(length, tuple(o.item for o in over))

    def over_reversed(self, call: ast.Call, body: Sequence[Any]) -> Items:
        (arg,) = self.plain_args(call)
        over = self.items(arg, [_NO_TARGET, *body], outermost=False)
        last = self.temp(ast.BinOp(over.length, ast.Sub(), self.const(1)))
        return Items(over.length, lambda k: over.item(self.temp(ast.BinOp(last, ast.Sub(), k))))

    def over_ndindex(self, call: ast.Call, target: ast.expr) -> Items:
        """np.ndindex(n, m) or np.ndindex(x.shape): a counter, taken apart."""
        args = self.plain_args(call)
        if len(args) == 1 and not isinstance(args[0], ast.Tuple):
            return self.indices(self.atom(args[0]), target)
        return self.counters(self.atoms(args[0].elts if isinstance(args[0], ast.Tuple) else args))

    def over_ndenumerate(self, call: ast.Call, target: ast.expr) -> Items:
        (arg,) = self.plain_args(call)
        array = self.temp(self.atom(arg))
        names = target.elts if isinstance(target, ast.Tuple) else []
        shape = self.temp(ast.Attribute(array, "shape", ast.Load()))
        over = self.indices(shape, names[0] if len(names) == 2 else _NO_TARGET)

        def element(k: ast.Name) -> ast.expr:
            parts = [self.as_atom(part(k)) for part in over.parts or ()]
            index = ast.Tuple(parts, ast.Load()) if parts else self.as_atom(over.item(k))
            return ast.Subscript(array, index, ast.Load())

        return self.tuples(over.length, (over.item, element))

    def indices(self, shape: Any, target: Any) -> Items:
        """Over all indices of an array; a target with one variable per dimension needs no tuples."""
        if not isinstance(target, ast.Tuple):
            length = self.temp(ast.Call(self.helper("count", count), [shape], []), "n")
            index = self.helper("unravel", unravel)
            return Items(length, lambda k: ast.Call(index, [k, shape], []))
        names = [self.fresh() for _ in target.elts]
        stores: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        self.emit(ast.Assign([ast.Tuple(stores, ast.Store())], shape))
        return self.counters([self.read(name) for name in names])

    def counters(self, sizes: list[Any]) -> Items:
        if not sizes:
            return Items(self.const(1), lambda k: ast.Tuple([], ast.Load()))
        total, strides = sizes[-1], [self.const(1)]
        for size in reversed(sizes[:-1]):
            strides.insert(0, total)
            total = self.temp(ast.BinOp(size, ast.Mult(), total))

        def part(n: int) -> Callable[[ast.Name], ast.expr]:
            def index(k: ast.Name) -> ast.expr:
                row = (
                    self.temp(ast.BinOp(k, ast.FloorDiv(), strides[n])) if n < len(sizes) - 1 else k
                )
                return ast.BinOp(row, ast.Mod(), sizes[n]) if n > 0 else row

            return index

        return self.tuples(total, tuple(part(n) for n in range(len(sizes))))

    def container(self, expr: ast.expr, body: Sequence[Any]) -> Items:
        """An array, a tuple of equal types, a list: what has a length and an index."""
        rebound = {self.renamed(n) for node in body for n in bound(node)}
        grown = {text for node in body for n in ast.walk(node) if (text := _grows(n))}
        if ast.unparse(expr) in grown:
            self.refuse("The loop changes the length of the list it runs over.", expr)
        value = self.atom(expr)
        if isinstance(value, ast.Constant):
            self.refuse("A loop over a constant is not supported.", expr)
        if value.id in rebound:
            value = self.temp(value)
        return self.indexed(value)

    def indexed(self, value: ast.Name) -> Items:
        call = ast.Call(self.builtin("len"), [value], [])
        call.iter_len = True  # type: ignore[attr-defined]
        length = self.temp(call, "n")

        def item(k: ast.Name) -> ast.expr:
            got = ast.Subscript(value, k, ast.Load())
            got.iterates = True  # type: ignore[attr-defined]
            return got

        return Items(length, item)

    def tuples(self, length: Any, parts: tuple[Callable[[ast.Name], ast.expr], ...]) -> Items:
        def item(k: ast.Name) -> ast.expr:
            return ast.Tuple([self.as_atom(part(k)) for part in parts], ast.Load())

        return Items(length, item, parts)

    def as_atom(self, flat: ast.expr) -> Any:
        return flat if isinstance(flat, ast.Name | ast.Constant) else self.temp(flat)

    def plain_args(self, call: ast.Call) -> list[ast.expr]:
        name = ast.unparse(call.func)
        if call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            self.refuse(f"{name} takes positional arguments only.", call)
        return call.args

    # ---- the loop itself ------------------------------------------------------------------------

    def loop(
        self,
        target: ast.expr,
        items: Items,
        body: Callable[[], None],
        orelse: Callable[[], None] | None = None,
    ) -> None:
        at = self.at
        counter = self.fresh(target.id if isinstance(target, ast.Name) else "k")
        call = items.direct or ast.Call(self.builtin("range"), [items.length], [])
        with self.block() as stmts:
            with self.located(target):
                self.bind(target, items, self.read(counter))
            body()
        with self.block() as other:
            if orelse is not None:
                orelse()
        self.at = at
        self.emit(ast.For(ast.Name(counter, ast.Store()), call, stmts, other))

    def bind(self, target: ast.expr, items: Items, counter: ast.Name) -> None:
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        parts = items.parts or ()
        if len(names) == len(parts) > 0 and all(_simple(n) for n in names):
            # i, x = k, xs[k] one after the other: the targets are other names than the counter
            for name, part in zip(names, parts, strict=True):
                self.assign_target(name, part(counter))
        else:
            self.assign_target(target, items.item(counter))

    # ---- lists --------------------------------------------------------------------------------------

    def list_display(self, expr: ast.List) -> ast.expr:
        if not any(isinstance(e, ast.Starred) for e in expr.elts):
            return ast.List(self.atoms(expr.elts), ast.Load())
        result = self.temp(ast.List([], ast.Load()))
        for item in expr.elts:
            if isinstance(item, ast.Starred):
                items = self.items(item.value, [_NO_TARGET])
                name = self.fresh("item")
                target = ast.copy_location(ast.Name(name, ast.Store()), item)
                self.loop(target, items, partial(self.append, result, self.read(name)))
            else:
                self.append(result, self.atom(item))
        return result

    def append(self, result: ast.Name, value: Any) -> None:
        method = self.temp(ast.Attribute(result, "append", ast.Load()))
        self.emit(ast.Expr(ast.Call(method, [value], [])))

    def listcomp(self, expr: ast.ListComp) -> ast.expr:
        result = self.temp(ast.List([], ast.Load()))

        def append() -> None:
            self.append(result, self.atom(expr.elt))

        # the first iterable is evaluated in the scope around
        first = self.items(expr.generators[0].iter, [expr.generators[0].target])
        with self.scope(comprehension_targets(expr)):
            self.generators(expr.generators, first, append)
        return result

    def generators(
        self, generators: list[ast.comprehension], items: Items, innermost: Callable[[], None]
    ) -> None:
        this, *more = generators

        def body() -> None:
            self.filtered(this.ifs, inside)

        def inside() -> None:
            if more:
                self.generators(more, self.items(more[0].iter, [more[0].target]), innermost)
            else:
                innermost()

        with self.located(this.target):
            self.loop(this.target, items, body)

    def filtered(self, conditions: list[ast.expr], inside: Callable[[], None]) -> None:
        if not conditions:
            inside()
            return
        test = self.test(conditions[0])
        with self.block() as stmts:
            self.filtered(conditions[1:], inside)
        test = test if isinstance(test, ast.Name) else self.temp(test)
        self.emit(ast.If(test, stmts, []))


def _simple(target: ast.expr) -> bool:
    return isinstance(target, ast.Name | ast.Tuple | ast.List)


def _grows(node: ast.AST) -> str:
    """The list whose length this changes, as text."""
    if isinstance(node, ast.Attribute) and node.attr in _GROW:
        return ast.unparse(node.value)
    return ""
