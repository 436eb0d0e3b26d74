"""What a user calls the values, arrays and loops of a function, and the reasons of the analyses in words."""

from __future__ import annotations

import linecache
import operator
import re
from collections.abc import Callable
from typing import Any

from splitad.analysis.memory import is_array
from splitad.analysis.reasons import Reason, Why, is_random
from splitad.analysis.scopes import Scope
from splitad.errors import Loc
from splitad.ir import nodes as ir
from splitad.rules import ops
from splitad.rules.spelling import spell
from splitad.transform.facts import Facts, path_name

_LONGEST = (
    30  # of an expression that stands for a value; a longer one has the name in the generated code
)
_TEMPORARY = re.compile(r"t(_\d+)*")
_NUMBERED = re.compile(r"(_go\d+)?(_\d+)*$")  # a counter has the former where its loop has a break
_FLAG = re.compile(r"(go|skip|broke)\d+(_\d+)*")
_FLAGS = {
    "go": "whether the loop goes on",
    "skip": "whether the rest is left out",
    "broke": "whether there was a break",
}

_WHAT: dict[type, str] = {
    ir.For: "a loop",
    ir.While: "a loop",
    ir.If: "a branch",
    ir.ArrayCall: "a call",
    ir.Impure: "a random number",
    ir.View: "a view",
}


class Words:
    """The words for one function."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._definition = facts.where.definition
        self._old = set(facts.old.values())
        self._which = {v: array for array, v in facts.identity.id.items() if isinstance(v, ir.Var)}
        self._where = {
            v: array
            for array, place in facts.identity.place.items()
            for v in (place.at, place.size, *place.strides)
            if isinstance(v, ir.Var)
        }
        files = {stmt.loc.file for stmt in self._definition.values() if stmt is not None}
        source = "\n".join(
            line for f in files | {facts.fn.loc.file} for line in linecache.getlines(f)
        )
        self._names = set(re.findall(r"\w+", source))
        paths = ((leaf.var, leaf.path) for leaf in facts.fn.leaves if len(leaf.path) > 1)
        self._parts = {var: path_name(facts, path) for var, path in paths}

    # ---- values and arrays -------------------------------------------------------------------

    def value(self, var: ir.Var) -> str:
        """A scalar: the user's name, or the expression, where it is short."""
        stmt = self._definition[var]
        if var in self._old and isinstance(stmt, ir.Load):
            return f"{self.array(stmt.array)}'s old value"
        if var in self._which:
            return f"which array {self.array(self._which[var])} is"
        if var in self._where:
            return f"where {self.array(self._where[var])} lies"
        if isinstance(stmt, ir.For) and stmt.counter == var:
            return self.loop(stmt)
        if isinstance(stmt, ir.Load):  # also where it has a name: that is how the line loads it
            return self._short(stmt, var)
        if isinstance(stmt, (ir.Dim, ir.Stride)) or _TEMPORARY.fullmatch(var.name):
            return self._short(stmt, var)
        return self.name(var)

    def array(self, array: ir.Operand) -> str:
        """An array, a view that has no name by what it is a view of."""
        if isinstance(array, ir.Lit):
            return "a global array"
        stmt = self._definition[array]
        name = self.name(array)
        if isinstance(stmt, ir.View) and (_TEMPORARY.fullmatch(name) or name not in self._names):
            return self._view(stmt)
        return name

    def _view(self, view: ir.View) -> str:
        base = self.array(view.base)
        if view.kind != "index":
            return base
        text = f"{base}[{', '.join(map(self._entry, view.index))}]"
        return text if len(text) <= _LONGEST else base

    def _entry(self, entry: ir.Index) -> str:
        if isinstance(entry, ir.Slice):
            bounds = [self._entry(p) if p is not None else "" for p in (entry.start, entry.stop)]
            return ":".join(bounds)
        return "None" if isinstance(entry, ir.NewAxis) else self._expression(entry, 2)

    def name(self, var: ir.Var) -> str:
        """A variable without the number that tells it from others of the name."""
        name = self._parts.get(var, var.name)
        if name in self._names or var in self._parts:
            return name
        flag = _FLAG.fullmatch(name)
        if flag is not None:
            return _FLAGS[flag.group(1)]
        shorter = _NUMBERED.sub("", name)
        return shorter if shorter in self._names else shorter.lstrip("_") or name

    def _short(self, stmt: ir.Stmt | None, var: ir.Var) -> str:
        text = self._expression(var, 3)
        hidden = set(re.findall(r"[A-Za-z_]\w*", text)) - self._names - {"shape"}
        if len(text) <= _LONGEST and not (hidden and isinstance(stmt, ir.Load)):
            return text
        if isinstance(stmt, ir.Load):
            return f"{self.array(stmt.array)}[...]"
        return var.name

    def _expression(self, operand: ir.Operand, depth: int) -> str:
        if isinstance(operand, ir.Lit):
            return f"{operand.value}"
        stmt = self._definition[operand]
        if isinstance(stmt, ir.For) and stmt.counter == operand:
            return self.loop(stmt)
        if isinstance(stmt, (ir.Dim, ir.Stride)):
            kind = "shape" if isinstance(stmt, ir.Dim) else "strides"
            return f"{self.array(stmt.array)}.{kind}[{stmt.axis}]"
        if is_random(stmt):
            return "a random number"
        temporary = _TEMPORARY.fullmatch(operand.name)
        if not isinstance(stmt, (ir.Load, ir.Prim, ir.Cast)) or not (
            isinstance(stmt, ir.Load) or temporary
        ):
            return self.name(operand)
        if depth == 0:
            return operand.name if temporary else self.name(operand)
        if isinstance(stmt, ir.Load):
            index = ", ".join(self._expression(entry, depth - 1) for entry in stmt.index)
            return f"{self.array(stmt.array)}[{index}]"
        if isinstance(stmt, ir.Cast):
            return self._expression(stmt.arg, depth)
        assert isinstance(stmt, ir.Prim)
        return _spelled(stmt.fn, [self._expression(arg, depth - 1) for arg in stmt.args])

    # ---- places ------------------------------------------------------------------------------

    def loop(self, loop: ir.Stmt) -> str:
        """A loop's variable."""
        text = loop.loc.text()
        written = re.search(r"\bfor (\w+) in", text)
        if isinstance(loop, ir.For):
            name = self.name(loop.counter)
            if written is None or re.search(rf"\b{re.escape(name)}\b", text):
                return name
        return written.group(1) if written else "the while loop"

    def often(self, scope: Scope) -> str:
        """How often something in a scope is done."""
        loops = [self.loop(s.owner) for s in scope.chain() if s.is_loop and s.owner is not None]
        thread = self.facts.kernel is not None
        if not loops:
            return "once per thread" if thread else "once"
        return f"per {'thread and ' if thread else ''}iteration of {', '.join(reversed(loops))}"

    def line(self, loc: Loc) -> str:
        """The number of a line, with the function where that is another one."""
        own = loc.function == self.facts.fn.loc.function
        return f"{loc.line}" if own else f"{loc.line} of {loc.function}"

    # ---- reasons -----------------------------------------------------------------------------

    def reason(self, reason: Reason, of: ir.Var | None = None) -> str:
        """A reason in words; of: the value or array that it is about."""
        stmt = self._definition[of] if of is not None else None
        array: object = of
        if not is_array(of):
            array = getattr(stmt if stmt is not None else reason.by, "array", None)
        called = self.array(array) if isinstance(array, (ir.Var, ir.Lit)) else ""
        written = reason.by.array if isinstance(reason.by, ir.Store) else array
        if written != array and isinstance(written, ir.Var) and self.array(written) != called:
            called += f" (as {self.array(written)})"
        about = [self.value(v) for v in reason.about]
        return reason.why.value.format(
            function=_function(stmt) if reason.why in (Why.DEAR, Why.NO_RULE) else "",
            array=called,
            value=about[0] if about else "",
            operands=", ".join(dict.fromkeys(about)),
            line=self.line(reason.by.loc) if reason.by is not None else "",
            what=_WHAT.get(type(reason.by), "an array"),
        )


def _spelled(fn: Callable[..., Any], args: list[str]) -> str:
    fn = operator.truediv if fn is ops.fdiv else fn
    if not _in_one(spell(fn, args)[0]):
        args = [arg if _in_one(arg) else f"({arg})" for arg in args]
    return spell(fn, args)[0]


def _in_one(text: str) -> bool:
    """Whether an expression needs no brackets around it: a name, a call, an element."""
    depth = 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == " " and depth == 0:
            return False
    return True


def _function(stmt: ir.Stmt | None) -> str:
    """What an operation is called, or how it is written."""
    assert isinstance(stmt, ir.Prim)
    text = _spelled(stmt.fn, list("xyzuvw"[: len(stmt.args)]))
    return text.split("(")[0] if _in_one(text) else text
