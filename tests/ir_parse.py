"""Reads what ``show`` prints, so that a test of a pass can be written as text: ``parse(text)``.

Only what tests need.  Types are inferred: literals are int64, float64 or bool; an operation has the widest
type of its operands, a comparison is a bool; arrays are given in the header, allocations are float64 or
what the text says.  A function is looked up in operator, math, builtins and `functions`.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from numba import types

from splitad.errors import Loc
from splitad.ir import nodes as ir
from splitad.rules import ops

LOC = Loc("test.py", 1, "f")
_TYPES: dict[str, types.Type] = {
    "float64": types.float64, "float32": types.float32, "int64": types.int64, "int32": types.int32,
    "bool": types.boolean, "complex128": types.complex128, "none": types.none,
}  # fmt: skip
_BOOLEAN = {"lt", "le", "gt", "ge", "eq", "ne", "not_"}


def parse(text: str, functions: Mapping[str, Any] | None = None) -> ir.Function:
    """The function that `show` shows as text (its leaves are its parameters)."""
    lines = [line for line in textwrap.dedent(text).splitlines() if line.strip()]
    return _Parser(lines, functions or {}).function()


def parse_type(text: str) -> types.Type:
    """``float64``, ``float64[:]``, ``float64[::1]`` (C-contiguous), ``float64[:,:]``."""
    match = re.fullmatch(r"(\w+)\[([:,1]+)\]", text)
    if match is None:
        return _TYPES[text]
    layout = "C" if "::1" in match[2] else "A"
    return types.Array(_TYPES[match[1]], match[2].count(",") + 1, layout)


class _Parser:
    def __init__(self, lines: list[str], functions: Mapping[str, Any]) -> None:
        self.lines, self.at, self.functions = lines, 0, functions
        self.vars: dict[str, ir.Var] = {}

    def function(self) -> ir.Function:
        header = re.fullmatch(r"(\w+)\((.*)\):", self.lines[0])
        assert header, self.lines[0]
        params = []
        for part in filter(None, re.split(r", (?=\w+: )", header[2])):
            name, type = part.split(": ")
            params.append(self.define(name, parse_type(type)))
        self.at = 1
        stmts, result = self.block(_indent(self.lines[1]), "return")
        tree: ir.Tree = None
        if result:
            tree = result[0] if len(result) == 1 else ir.TupleTree(types.none, tuple(result))
        kind = result[0].type if len(result) == 1 else types.none
        leaves = tuple(ir.Leaf((k,), p, p) for k, p in enumerate(params))
        return ir.Function(header[1], tuple(params), leaves, ir.Block(stmts), tree, kind, LOC)

    def define(self, name: str, type: types.Type) -> ir.Var:
        self.vars[name] = var = ir.Var(name, type)
        return var

    def block(self, indent: int, last: str) -> tuple[tuple[ir.Stmt, ...], list[Any]]:
        """The statements at this indent, and what the line that starts with `last` names."""
        stmts: list[ir.Stmt] = []
        while self.at < len(self.lines) and _indent(self.lines[self.at]) == indent:
            line = self.lines[self.at].strip()
            if line == "else:":
                break
            self.at += 1
            if line.split()[0] == last:
                return tuple(stmts), self.operands(line[len(last) :])
            if line != "pass":
                stmts.append(self.statement(line, indent))
        return tuple(stmts), []

    # ---- operands ---------------------------------------------------------------------------

    def operands(self, text: str) -> list[Any]:
        return [self.operand(item) for item in text.split(",") if item.strip()]

    def operand(self, text: str) -> Any:
        text = text.strip()
        if text in self.vars:
            return self.vars[text]
        if text == "undef":
            return ir.Lit(ir.UNDEF, types.float64)
        if text == "None":
            return ir.NewAxis()
        if ":" in text:
            parts = [self.operand(p) if p.strip() else None for p in text.split(":")]
            return ir.Slice(*parts, *[None] * (3 - len(parts)))
        value = ast.literal_eval(text)
        kinds = {
            bool: types.boolean,
            int: types.int64,
            float: types.float64,
            str: types.unicode_type,
        }
        return ir.Lit(value, kinds[type(value)])

    def callable(self, name: str) -> Any:
        for place in (operator, ops, math, builtins):
            if hasattr(place, name):
                return getattr(place, name)
        return self.functions[name]

    # ---- statements -------------------------------------------------------------------------

    def statement(self, line: str, indent: int) -> ir.Stmt:
        if match := re.fullmatch(
            r"for (\w+) in (\S+?)\.\.(\S+) step (\S+?)(?: \[(.*)\] -> (.*))?:", line
        ):
            counter, *bounds = match.groups()[:4]
            start, stop, step = map(self.operand, bounds)
            params, inits = self.carried(match[5])
            var = self.define(counter, types.int64)
            body = self.nested(indent, params)
            outs = self.outs(match[6], [p.type for p in params])
            return ir.For(var, start, stop, step, params, inits, body, outs, loc=LOC)
        if match := re.fullmatch(r"while \[(.*)\] -> (.*):", line):
            params, inits = self.carried(match[1])
            body = self.nested(indent, params)
            outs = self.outs(match[2], [p.type for p in params])
            return ir.While(params, inits, body, outs, loc=LOC)
        if match := re.fullmatch(r"if (\S+?)(?: -> (.*))?:", line):
            cond = self.operand(match[1])
            then, orelse = self.nested(indent), ir.Block(())
            if self.at < len(self.lines) and self.lines[self.at].strip() == "else:":
                if _indent(self.lines[self.at]) == indent:
                    self.at += 1
                    orelse = self.nested(indent)
            pairs = zip(then.yields, orelse.yields, strict=True)
            kinds = [(a if _defined(a) else b).type for a, b in pairs]
            return ir.If(cond, then, orelse, self.outs(match[2], kinds), loc=LOC)
        if match := re.fullmatch(r"raise (\w+)\((.*)\)", line):
            return ir.Raise(getattr(builtins, match[1]), tuple(self.operands(match[2])), loc=LOC)
        if match := re.fullmatch(r"print\((.*)\)", line):
            return ir.Print(tuple(self.operands(match[1])), loc=LOC)
        if match := re.fullmatch(r"call (\w+)\((.*)\)", line):
            args = tuple(self.operands(match[2]))
            return ir.ArrayCall((), self.callable(match[1]), args, loc=LOC)
        if match := re.fullmatch(r"(\w+)\[(.*)\]( nowrap)? = (.*)", line):
            index = tuple(self.operands(match[2]))
            return ir.Store(
                self.operand(match[1]), index, self.operand(match[4]), match[3] is None, loc=LOC
            )
        name, right = line.split(" = ", 1)
        return self.assignment(name, right)

    def assignment(self, name: str, right: str) -> ir.Stmt:
        if match := re.fullmatch(r"(\w+)\.shape\[(\d+)\]", right):
            array, axis = self.operand(match[1]), int(match[2])
            return ir.Dim(self.define(name, types.int64), array, axis, loc=LOC)
        if match := re.fullmatch(r"view (\w+)\.T", right):
            base = self.operand(match[1])
            kind = types.Array(base.type.dtype, base.type.ndim, "A")
            return ir.View(self.define(name, kind), base, "T", loc=LOC)
        if match := re.fullmatch(r"view (\w+)\[(.*)\]", right):
            base, index = self.operand(match[1]), tuple(self.operands(match[2]))
            ndim = sum(isinstance(entry, (ir.Slice, ir.NewAxis)) for entry in index)
            kind = types.Array(base.type.dtype, ndim, "A")
            return ir.View(self.define(name, kind), base, "index", index, loc=LOC)
        if match := re.fullmatch(r"(empty|zeros)\(\((.*)\), (\w+)\)", right):
            shape = tuple(self.operands(match[2]))
            kind = types.Array(_TYPES[match[3]], len(shape), "C")
            return ir.Alloc(self.define(name, kind), match[1], shape, loc=LOC)
        if match := re.fullmatch(r"(\w+)\[(.*)\]( nowrap)?", right):
            array, index = self.operand(match[1]), tuple(self.operands(match[2]))
            out = self.define(name, array.type.dtype)
            return ir.Load(out, array, index, match[3] is None, loc=LOC)
        match = re.fullmatch(r"((?:impure|call) )?(\w+)\((.*)\)", right)
        assert match, right
        args = tuple(self.operands(match[3]))
        if match[2] in _TYPES:
            return ir.Cast(self.define(name, _TYPES[match[2]]), args[0], loc=LOC)
        fn = self.callable(match[2])
        if match[1] == "call ":
            return ir.ArrayCall((self.define(name, types.float64),), fn, args, loc=LOC)
        kinds = [a.type for a in args]
        widest = next((t for t in (types.float64, types.int64) if t in kinds), types.float64)
        if set(kinds) == {types.boolean}:
            widest = types.boolean
        if fn in vars(math).values() and match[2] not in ("gcd",):
            widest = types.float64
        out = self.define(name, types.boolean if match[2] in _BOOLEAN else widest)
        node = ir.Impure if match[1] == "impure " else ir.Prim
        return node(out, fn, args, loc=LOC)

    def carried(self, text: str | None) -> tuple[tuple[ir.Var, ...], tuple[ir.Operand, ...]]:
        pairs = [item.split(" = ") for item in (text or "").split(", ") if item]
        inits = tuple(self.operand(init) for _, init in pairs)
        kinds = zip(pairs, inits, strict=True)
        return tuple(self.define(name, init.type) for (name, _), init in kinds), inits

    def outs(self, text: str | None, kinds: list[types.Type]) -> tuple[ir.Var, ...]:
        names = (text or "").split(", ") if text else []
        return tuple(self.define(n, t) for n, t in zip(names, kinds, strict=True))

    def nested(self, indent: int, params: tuple[ir.Var, ...] = ()) -> ir.Block:
        stmts, yields = self.block(indent + 2, "yield")
        return ir.Block(stmts, tuple(yields))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _defined(operand: Any) -> bool:
    return not (isinstance(operand, ir.Lit) and operand.value is ir.UNDEF)
