"""Brings a function into the normalised form (see normal.py): statements.

Expressions are in expressions.py, loops and comprehensions in loops.py, inner functions in closures.py.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

import numba

from splitad.frontend.closures import Closures, assigned_literals, binding_counts
from splitad.frontend.emit import mangled
from splitad.frontend.normal import NormalFunction
from splitad.frontend.scopes import Function, local_names, parameters
from splitad.frontend.source import Source


def normalize(
    source: Source,
    pyfunc: Callable[..., Any],
    types: dict[str, Any] | None = None,
    helpers: dict[str, Any] | None = None,
) -> NormalFunction:
    """The normalised form of a function whose syntax has passed the fence.

    helpers: names that the source uses beside those of the function itself."""
    node = source.node
    assert not isinstance(node, ast.AsyncFunctionDef)  # the fence is in front of it
    locals_ = {mangled(n, source.class_name) for n in local_names(node)}
    made = Statements(pyfunc.__qualname__, source.file, pyfunc, locals_, source.class_name)
    made.inner = {}
    made.helpers.update(helpers or {})
    return made.function(node, parameters(node.args), types or {})


class Statements(Closures):
    """One function being normalised."""

    def function(self, node: Function, params: list[str], types: Any) -> NormalFunction:
        self.counts = binding_counts(node)
        self.literals = assigned_literals(node)
        body = (
            node.body
            if isinstance(node.body, list)
            else [ast.copy_location(ast.Return(node.body), node.body)]
        )
        self.at = node
        with self.block() as stmts:
            self.run(body)
        vararg = node.args.vararg
        names = [self.renamed(p) for p in params if vararg is None or p != vararg.arg]
        return NormalFunction(
            name=self.name,
            args=names,
            body=stmts,
            globals=self.pyfunc.__globals__,
            pyfunc=self.pyfunc,
            file=self.file,
            vararg=None if vararg is None else self.renamed(vararg.arg),
            helpers=self.helpers,
            locals=types,
        )

    def run(self, stmts: Sequence[ast.stmt]) -> None:
        for stmt in stmts:
            handler = _STATEMENTS.get(type(stmt))
            if handler is None:
                self.refuse(f"{type(stmt).__name__} statements are not supported.", stmt)
            with self.located(stmt):
                handler(self, stmt)

    # ---- assignments ---------------------------------------------------------------------------

    def assignment(self, stmt: ast.Assign) -> None:
        if isinstance(stmt.value, ast.Lambda) and self.names_lambda(stmt):
            return
        value = self.flat(stmt.value)
        if len(stmt.targets) > 1 or not isinstance(stmt.targets[0], ast.Name):
            value = self.as_atom(value)
        for k, target in enumerate(stmt.targets):
            self.assign_target(target, self.stable(value, stmt.targets[k:]))

    def annotated(self, stmt: ast.AnnAssign) -> None:
        if stmt.value is not None:
            self.assign_target(stmt.target, self.flat(stmt.value))

    def assign_target(self, target: ast.expr, value: ast.expr) -> None:
        """target = value, where value is a one-operation expression."""
        if isinstance(target, ast.Name):
            self.assign(self.renamed(target.id), value)
        elif isinstance(target, ast.Subscript):
            value = self.as_atom(value)
            base, index = self.place_of(target, [])
            self.emit(ast.Assign([ast.Subscript(base, index, ast.Store())], value))
        elif isinstance(target, ast.Attribute):
            value = self.as_atom(value)
            field = self.attribute_name(target.attr)
            self.emit(
                ast.Assign([ast.Attribute(self.atom(target.value), field, ast.Store())], value)
            )
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target.elts, self.as_atom(value))
        else:
            self.refuse("This target of an assignment is not supported.", target)

    def unpack(self, targets: list[ast.expr], value: Any) -> None:
        if all(isinstance(t, ast.Name) for t in targets):
            names = [self.renamed(t.id) for t in targets if isinstance(t, ast.Name)]
        else:
            names = [self.fresh() for _ in targets]
        stores: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
        self.emit(ast.Assign([ast.Tuple(stores, ast.Store())], value))
        for target, name in zip(targets, names, strict=True):
            if not (isinstance(target, ast.Name) and self.renamed(target.id) == name):
                self.assign_target(target, self.read(name))

    def place_of(
        self, target: ast.Subscript, later: Sequence[ast.AST]
    ) -> tuple[ast.expr, ast.expr]:
        base = self.stable(self.atom(target.value), [target.slice, *later])
        return base, self.index(target.slice)

    def augmented(self, stmt: ast.AugAssign) -> None:
        target = stmt.target
        if isinstance(target, ast.Name):
            if self.stable(name := self.read(self.renamed(target.id)), [stmt.value]) is not name:
                self.refuse("The value rebinds the variable that is being added to.", stmt.value)
            value = self.atom(stmt.value)
            self.emit(ast.AugAssign(ast.Name(name.id, ast.Store()), stmt.op, value))
            return
        # the place and its old value come first, then the right-hand side
        store: ast.expr
        if isinstance(target, ast.Subscript):
            base, index = self.place_of(target, [stmt.value])
            old = self.temp(ast.Subscript(base, index, ast.Load()))
            store = ast.Subscript(base, index, ast.Store())
        else:
            field = self.attribute_name(target.attr)
            base = self.stable(self.atom(target.value), [stmt.value])
            old = self.temp(ast.Attribute(base, field, ast.Load()))
            store = ast.Attribute(base, field, ast.Store())
        value = self.atom(stmt.value)
        self.emit(ast.AugAssign(ast.Name(old.id, ast.Store()), stmt.op, value))
        back = ast.Assign([store], old)
        back.writeback = True  # type: ignore[attr-defined]
        self.emit(back)

    # ---- control flow --------------------------------------------------------------------------

    def if_(self, stmt: ast.If) -> None:
        condition, first, second = stmt.test, stmt.body, stmt.orelse
        while isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
            condition, first, second = condition.operand, second, first
        test = self.test(condition)
        if isinstance(test, ast.Constant):
            self.run(first if test.value else second)
            return
        with self.block() as body:
            self.run(first)
        with self.block() as orelse:
            self.run(second)
        self.emit(ast.If(test, body or [self.place(ast.Pass())], orelse))

    def while_(self, stmt: ast.While) -> None:
        at = self.at
        with self.block() as body:
            test = self.test(stmt.test)
            if isinstance(test, ast.Constant) and not test.value:
                test = self.temp(test)
            if not isinstance(test, ast.Constant):
                check = ast.If(test, [ast.Pass()], [ast.Break()])
                check.loop_test = True  # type: ignore[attr-defined]
                self.emit(check)
            self.run(stmt.body)
        with self.block() as orelse:
            if not isinstance(test, ast.Constant):
                self.run(stmt.orelse)
        self.at = at
        self.emit(ast.While(ast.Constant(True), body, orelse))

    def for_(self, stmt: ast.For) -> None:
        if isinstance(stmt.iter, ast.Call) and self.static(stmt.iter.func) is numba.literal_unroll:
            self.unrolled(stmt, stmt.iter)
            return
        items = self.items(stmt.iter, [stmt.target, *stmt.body])
        orelse = (lambda: self.run(stmt.orelse)) if stmt.orelse else None
        self.loop(stmt.target, items, lambda: self.run(stmt.body), orelse)

    def unrolled(self, stmt: ast.For, call: ast.Call) -> None:
        """``for v in literal_unroll((a, 2, x))``: the body once for each item, whatever its type."""
        display = call.args[0] if len(call.args) == 1 else None
        if not isinstance(display, ast.Tuple) or any(
            isinstance(e, ast.Starred) for e in display.elts
        ):
            self.refuse(
                f"A loop over {ast.unparse(call.func)} of anything but (a, b, ...) is not supported.",
                call,
                "Write the tuple out, or call a function for each item.",
            )
        jumps = (ast.Break, ast.Continue)
        if stmt.orelse or any(isinstance(n, jumps) for part in stmt.body for n in ast.walk(part)):
            self.refuse(
                f"break, continue and else in a loop over {ast.unparse(call.func)} are not supported.",
                stmt,
            )
        for item in self.atoms(display.elts):
            with self.located(stmt.target):
                self.assign_target(stmt.target, item)
            self.run(copy.deepcopy(stmt.body))

    def return_(self, stmt: ast.Return) -> None:
        if stmt.value is None:
            self.emit(ast.Return(None))
            return
        value = self.atom(stmt.value)
        is_none = isinstance(value, ast.Constant) and value.value is None
        self.emit(ast.Return(None if is_none else value))

    def jump(self, stmt: ast.stmt) -> None:
        self.emit(type(stmt)())

    def raise_(self, stmt: ast.Raise) -> None:
        if stmt.exc is None or stmt.cause is not None:
            self.refuse("raise ... from and a bare raise are not supported.", stmt)
        call = stmt.exc if isinstance(stmt.exc, ast.Call) else None
        cls = call.func if call is not None else stmt.exc
        known = self.static(cls)
        if not (isinstance(known, type) and issubclass(known, BaseException)):
            self.refuse(
                f"{ast.unparse(cls)} is not known to be an exception class.",
                cls,
                "Write the class itself after raise.",
            )
        name: ast.expr = self.helper(ast.unparse(cls).rpartition(".")[2], known)
        if call is None:
            self.emit(ast.Raise(name, None))
            return
        if call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            self.refuse("An exception takes positional arguments only.", call)
        self.emit(ast.Raise(ast.Call(name, self.atoms(call.args), []), None))

    def assert_(self, stmt: ast.Assert) -> None:
        if not __debug__:  # python -O: the compiler drops them, so must we
            return
        test = self.test(stmt.test)
        if isinstance(test, ast.Constant):
            if test.value:
                return
            test = self.temp(test)
        with self.block() as failed:
            exc: ast.expr = self.builtin("AssertionError")
            if stmt.msg is not None:
                exc = ast.Call(exc, [self.atom(stmt.msg)], [])
            self.emit(ast.Raise(exc, None))
        self.emit(ast.If(test, [self.place(ast.Pass())], failed))

    # ---- the rest ------------------------------------------------------------------------------

    def expression(self, stmt: ast.Expr) -> None:
        if isinstance(stmt.value, ast.Constant):
            return
        flat = self.flat(stmt.value)
        if isinstance(flat, ast.Call):
            self.emit(ast.Expr(flat))
        else:
            self.as_atom(flat)

    def delete(self, stmt: ast.Delete) -> None:
        for target in stmt.targets:
            if isinstance(target, ast.Subscript):  # of a list: the same as pop
                pop = ast.Attribute(target.value, "pop", ast.Load())
                call = ast.copy_location(ast.Call(pop, [target.slice], []), target)
                self.emit(
                    ast.Expr(self.flat(ast.copy_location(ast.fix_missing_locations(call), target)))
                )
            elif not isinstance(target, ast.Name):
                self.refuse("del is supported for names and for items of lists only.", target)

    def nothing(self, stmt: ast.stmt) -> None:
        pass


_STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.If: Statements.if_,
    ast.While: Statements.while_,
    ast.For: Statements.for_,
    ast.Return: Statements.return_,
    ast.Break: Statements.jump,
    ast.Continue: Statements.jump,
    ast.Raise: Statements.raise_,
    ast.Assert: Statements.assert_,
    ast.Expr: Statements.expression,
    ast.Delete: Statements.delete,
    ast.Pass: Statements.nothing,
    ast.Global: Statements.nothing,
    ast.FunctionDef: Statements.define,
}
