"""Cotangents of scalars: a variable each, which starts where something is first added to it.

    d_t = 2.0 * d_s           the first addition in the block where t is defined
    d_t += d_u                the others; of t = u + v there is none, if u is used nowhere else: d_t is d_u
    d_p = 0.0                 before a nested block that may add to it

A loop's carried scalar p is one variable d_p: at the top of a reversed iteration it holds the cotangent of
what was yielded for p, at its end the cotangent of p.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from numba import types

from splitad.analysis.memory import is_array, tree_leaves
from splitad.analysis.scopes import Scope
from splitad.codegen.python import type_name, zero
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.ir.walk import blocks, operands, walk
from splitad.transform.facts import Facts
from splitad.transform.shadows import shadow_name

ONE = "1.0"  # what stands for a cotangent while a partial is computed


class Cotangents:
    """begun: the scalars whose cotangent has a value. unread: those that need none. same: the name of another
    variable, for those that are the cotangent of another value as well. uses: how often a value is used."""

    def __init__(self, facts: Facts, w: Writer, unread: set[ir.Var]) -> None:
        self.w, self.where, self.active, self.unread = w, facts.where, facts.active, unread
        self.begun: set[ir.Var] = set()
        self.same: dict[ir.Var, str] = {}
        self.uses = _uses(facts.fn)

    def name(self, var: ir.Operand) -> str:
        """The variable with the cotangent of one that is begun."""
        same = self.same.get(var) if isinstance(var, ir.Var) else None
        return same or shadow_name(var)

    def text(self, var: ir.Operand) -> str:
        return self.name(var) if var in self.begun else zero(self.w, var.type)

    @contextmanager
    def twice(self) -> Iterator[None]:
        """For a body that is written once more afterwards: what begins in it begins again then."""
        begun, same = set(self.begun), dict(self.same)
        yield
        self.begun, self.same = begun, same

    @contextmanager
    def as_one(self, var: ir.Var) -> Iterator[str]:
        """For a while, 1 stands for the cotangent of var, which is given."""
        before = self.same.get(var)
        given = self.name(var)
        self.same[var] = ONE
        yield given
        del self.same[var]
        if before is not None:
            self.same[var] = before

    def pass_on(self, target: ir.Operand, source: ir.Var, scope: Scope) -> None:
        """``d_target += d_source``, where nothing is added to d_source any more."""
        if (
            isinstance(target, ir.Var)
            and self.active(target)
            and target not in self.begun
            and target not in self.unread
            and types.unliteral(target.type) == types.unliteral(source.type)
            and self.uses[target] == 1
        ):
            self.begun.add(target)
            self.same[target] = self.name(source)
        else:
            self.add(target, self.name(source), scope, source=source)

    def add(
        self,
        target: ir.Operand,
        text: str,
        scope: Scope,
        source: ir.Var | None = None,
        converted: bool = False,
    ) -> None:
        """``d_target += text``; the first time in its own block, ``=``.

        source: what was cast to it.  converted: whether the text may be of another type than its own.
        """
        if not isinstance(target, ir.Var) or not self.active(target) or target in self.unread:
            return
        name, type = shadow_name(target), types.unliteral(target.type)
        is_complex = isinstance(type, types.Complex)
        if source is not None and isinstance(source.type, types.Complex) and not is_complex:
            text = f"({text}).real"
        if type == types.float32:
            text = _in_single(self.w, text)
        if type not in (types.float64, types.complex128) or converted:
            text = f"{type_name(self.w, type)}({text})"
        assert target not in self.same, f"something is added to {target.name} after its only use"
        if target in self.begun:
            self.w.line(f"{name} += {text}")
            return
        assert self.where.of[target] is scope, f"{target.name} begun in an inner block"
        if is_complex and not converted:  # what is added may be real
            text = f"{type_name(self.w, type)}({text})"
        self.begun.add(target)
        self.w.line(f"{name} = {text}")

    def clear(self, var: ir.Var) -> None:
        self.w.line(f"{shadow_name(var)} = {zero(self.w, var.type)}")

    def begin_outer(self, stmt: ir.Stmt) -> None:
        """Cotangents of outer values that the nested blocks may add to start here, at zero."""
        used: dict[ir.Operand, None] = {}
        for inner in (s for block in blocks(stmt) for s in walk(block)):
            used.update(dict.fromkeys(operands(inner)))
            for block in blocks(inner):
                used.update(dict.fromkeys(block.yields))
        for block in blocks(stmt):
            used.update(dict.fromkeys(block.yields))
        own = [self.where.at(block) for block in blocks(stmt)]
        for value in used:
            if (
                isinstance(value, ir.Var)
                and not is_array(value)
                and self.active(value)
                and value not in self.begun
                and not any(self.where.of[value].inside(scope) for scope in own)
            ):
                self.begun.add(value)
                self.clear(value)


# (what is converted already is left alone)
_LITERAL = re.compile(r"float32\([^()]*\)|(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?")


def _in_single(w: Writer, text: str) -> str:
    """Its literals as floats of 32 bits: with doubles in it, all of it would be computed in these, half as
    many at a time."""
    name = type_name(w, types.float32)
    return _LITERAL.sub(lambda m: m[0] if m[0][0] == "f" else f"{name}({m[0]})", text)


def _uses(fn: ir.Function) -> Counter[ir.Operand]:
    """How often each value is an operand, is yielded, or returned."""
    found: Counter[ir.Operand] = Counter(tree_leaves(fn.result))
    for stmt in walk(fn.body):
        found.update(operands(stmt))
        for block in blocks(stmt):
            found.update(block.yields)
    return found


@dataclass(frozen=True, eq=False)
class Carried:
    """The cotangents that a reversed loop carries. at: which of its params have one."""

    loop: ir.For | ir.While
    cotangents: Cotangents
    at: tuple[int, ...]

    @staticmethod
    def start(loop: ir.For | ir.While, cotangents: Cotangents) -> Carried:
        """Each starts as that of the loop's result."""
        at = []
        for k, (param, out) in enumerate(zip(loop.params, loop.outs, strict=True)):
            if not is_array(param) and cotangents.active(param):
                at.append(k)
                cotangents.begun.add(param)
                value = cotangents.name(out) if out in cotangents.begun else None
                w = cotangents.w
                w.line(f"{shadow_name(param)} = {value or zero(w, param.type)}")
        return Carried(loop, cotangents, tuple(at))

    def yielded(self, body: Scope) -> None:
        """At the top of an iteration: hand them to what it yielded."""
        w, params, yields = self.cotangents.w, self.loop.params, self.loop.body.yields
        # a param that is yielded unchanged keeps its cotangent
        moves = [(params[k], yields[k]) for k in self.at if yields[k] != params[k]]
        given = {y for _, y in moves}
        swapped = any(param in given for param, _ in moves) or any(y in params for y in given)
        names = {param: shadow_name(param) for param, _ in moves}
        if swapped:
            for param, _ in moves:
                names[param] = f"bar_{param.name}"
                w.line(f"{names[param]} = {shadow_name(param)}")
            for param, _ in moves:
                self.cotangents.clear(param)
        for param, y in moves:
            self.cotangents.add(y, names[param], body)
            if not swapped:
                self.cotangents.clear(param)

    def finish(self, scope: Scope) -> None:
        """Behind the loop: hand them to what the params were at first."""
        for k in self.at:
            self.cotangents.add(self.loop.inits[k], shadow_name(self.loop.params[k]), scope)
