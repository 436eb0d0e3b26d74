"""What loops run over: ranges, containers, zip, enumerate, reversed, and NumPy's indices."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from splitad.frontend.expressions import Expressions
from splitad.frontend.scopes import bound
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


NO_TARGET = ast.Pass()


class Iterables(Expressions):
    """What a loop runs over, as a length and an item by number."""

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
        atoms = self.atoms(self.plain_args(call))
        value = numba.prange if name == "prange" else range
        made = ast.Call(self.helper(name, value), atoms, [])
        if outermost:
            return Items(None, lambda k: k, direct=made)
        # within zip and the like: item k is start + k * step
        length = self.temp(ast.Call(self.builtin("len"), [self.temp(made)], []), "n")
        if len(atoms) == 1:
            return Items(length, lambda k: k)
        start, *more = [self.copied(atom) for atom in atoms]
        step = more[1] if len(more) == 2 else None

        def item(k: ast.Name) -> ast.expr:
            offset = k if step is None else self.temp(ast.BinOp(k, ast.Mult(), step))
            return ast.BinOp(start, ast.Add(), offset)

        return Items(length, item)

    def over_enumerate(self, call: ast.Call, body: Sequence[Any]) -> Items:
        args = [*call.args, *(k.value for k in call.keywords if k.arg == "start")]
        if not 1 <= len(args) <= 2 or any(k.arg != "start" for k in call.keywords):
            self.refuse("enumerate takes an iterable and a start.", call)
        over = self.items(args[0], [NO_TARGET, *body], outermost=False)
        if len(args) == 1:
            return self.tuples(over.length, (lambda k: k, over.item))
        start = self.copied(self.atom(args[1]))
        return self.tuples(over.length, (lambda k: ast.BinOp(start, ast.Add(), k), over.item))

    def over_zip(self, call: ast.Call, body: Sequence[Any]) -> Items:
        args = self.plain_args(call)
        if not args:
            self.refuse("zip without arguments is not supported.", call)
        over = [self.items(arg, [NO_TARGET, *body], outermost=False) for arg in args]
        length = over[0].length
        for other in over[1:]:
            length = self.temp(ast.Call(self.builtin("min"), [length, other.length], []))
        return self.tuples(length, tuple(o.item for o in over))

    def over_reversed(self, call: ast.Call, body: Sequence[Any]) -> Items:
        (arg,) = self.plain_args(call)
        over = self.items(arg, [NO_TARGET, *body], outermost=False)
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
        over = self.indices(shape, names[0] if len(names) == 2 else NO_TARGET)

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
        return self.indexed(value, ast.unparse(expr))

    def indexed(self, value: ast.Name, text: str) -> Items:
        """text: what the user calls it."""
        call = ast.Call(self.builtin("len"), [value], [])
        call.iter_len = text  # type: ignore[attr-defined]
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

    def copied(self, atom: Any) -> Any:
        """The atom's value now: the loop's body may rebind a variable."""
        return self.temp(atom) if isinstance(atom, ast.Name) else atom

    def as_atom(self, flat: ast.expr) -> Any:
        return flat if isinstance(flat, ast.Name | ast.Constant) else self.temp(flat)

    def plain_args(self, call: ast.Call) -> list[ast.expr]:
        name = ast.unparse(call.func)
        if call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            self.refuse(f"{name} takes positional arguments only.", call)
        return call.args


def _grows(node: ast.AST) -> str:
    """The list whose length this changes, as text."""
    if isinstance(node, ast.Attribute) and node.attr in _GROW:
        return ast.unparse(node.value)
    return ""
