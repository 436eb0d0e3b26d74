"""Remove break, continue and early return: a loop then has one exit, a function one return.

    for k in range(n):                      ForLoop go=%go  (k counts; runs while %go)
        if x[k] > 1.0:                          Branch c
            break                                   %go = False
        s += x[k]                               else
    return s                                        s += x[k]
                                            %result = s

Where one side of an `if` certainly leaves, what follows the `if` moves into the other side, so that no flag
is needed.  Flags appear only where both sides may go on, and after loops that contain a return.
It runs on normalised statements *after* typing, keeps these statements as they are (their types are looked
up by statement), and writes the lists of names that are live, from which the lowering knows what to merge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Union

from splitad.frontend import liveness
from splitad.frontend.structured import (
    RETURNED,
    Branch,
    ForLoop,
    Node,
    SetFlag,
    SetResult,
    Simple,
    WhileLoop,
)


def structure(body: list[ast.stmt]) -> list[Node]:
    """The body as a tree without jumps, with what is live noted in it."""
    nodes = _Structurer().run(body)
    liveness.note(nodes)
    return nodes


# ---- where control may go --------------------------------------------------------------------

_FALL, _BREAK, _CONTINUE, _RETURN = "fall", "break", "continue", "return"


@dataclass(eq=False)
class _Marker:
    """A pseudo-statement: `kind` "leave" = a return already under way; "test" = the loop test again."""

    kind: str
    stmt: ast.stmt


@dataclass(eq=False)
class _FlagIf:
    """``if flag: body else: orelse`` on a flag of ours."""

    flag: str
    body: list[_Item]
    orelse: list[_Item]
    stmt: ast.stmt


_Item = Union[ast.stmt, _Marker, _FlagIf]


def _exits(items: list[_Item]) -> set[str]:
    """How the items may be left; empty where they always raise."""
    found = {_FALL}
    for item in items:
        found.discard(_FALL)
        found |= _exits_of(item)
        if _FALL not in found:
            break
    return found


def _exits_of(item: _Item) -> set[str]:
    match item:
        case ast.Break():
            return {_BREAK}
        case ast.Continue():
            return {_CONTINUE}
        case ast.Return() | _Marker(kind="leave"):
            return {_RETURN}
        case ast.Raise():
            return set()
        case ast.If() | _FlagIf():
            return _exits(list(item.body)) | _exits(list(item.orelse))
        case ast.For() | ast.While():
            inner = _exits(list(_loop_body(item)))
            found = _exits(list(item.orelse))
            return found | (inner & {_RETURN}) | ({_FALL} if _BREAK in inner else set())
    return {_FALL}


def _loop_test(loop: ast.While) -> tuple[list[ast.stmt], str | None, list[ast.stmt]]:
    """The statements that make the condition, its name (None for `while True`), and the body proper."""
    for position, stmt in enumerate(loop.body):
        if getattr(stmt, "loop_test", False):
            assert isinstance(stmt, ast.If) and isinstance(stmt.test, ast.Name)
            return loop.body[:position], stmt.test.id, loop.body[position + 1 :]
    return [], None, loop.body


def _loop_body(loop: ast.For | ast.While) -> list[ast.stmt]:
    return loop.body if isinstance(loop, ast.For) else _loop_test(loop)[2]


@dataclass
class _Loop:
    """The loop that is being taken apart."""

    go: str
    broke: str | None  # set by a break, where an `else` must know
    test: tuple[list[ast.stmt], str | None] | None = None
    skips: list[str] = field(default_factory=list)  # flags to set on any way out of the iteration


class _Structurer:
    def __init__(self) -> None:
        self.count = 0
        self.loops: list[_Loop] = []
        self.skips: list[str] = []  # those outside of any loop

    def flag(self, name: str) -> str:
        self.count += 1
        return f"%{name}{self.count}"

    def run(self, items: list[ast.stmt]) -> list[Node]:
        return self.block(list(items))

    def block(self, items: list[_Item]) -> list[Node]:
        out: list[Node] = []
        for position, item in enumerate(items):
            rest = items[position + 1 :]
            match item:
                case ast.Break() | ast.Continue() | ast.Return() | _Marker(kind="leave"):
                    return out + list(self.leave(item))
                case ast.Raise():
                    return [*out, Simple(item)]
                case _Marker(kind="test"):
                    out += self.test_again(item.stmt)
                case ast.If(test=ast.Name(id=name)):
                    nodes, done = self.branch(name, list(item.body), list(item.orelse), rest, item)
                    out += nodes
                    if done:
                        return out
                case _FlagIf():
                    nodes, done = self.branch(item.flag, item.body, item.orelse, rest, item.stmt)
                    out += nodes
                    if done:
                        return out
                case ast.For() | ast.While():
                    nodes, after = self.loop(item)
                    out += nodes
                    if after:
                        return out + self.block(after + rest)
                case ast.Pass():
                    pass
                case _:
                    assert isinstance(item, ast.stmt)
                    out.append(Simple(item))
        return out

    # ---- leaving -------------------------------------------------------------------------------

    def leave(self, item: _Item) -> Iterator[Node]:
        """The flags to set where a statement leaves the block."""
        stmt = item.stmt if isinstance(item, (_Marker, _FlagIf)) else item
        loop = self.loops[-1] if self.loops else None
        if isinstance(item, ast.Return):
            yield SetResult(item.value, item)
            if loop:
                yield SetFlag(RETURNED, True, stmt)
        if loop and not isinstance(item, ast.Continue):
            yield SetFlag(loop.go, False, stmt)
        if loop and loop.broke and isinstance(item, ast.Break):
            yield SetFlag(loop.broke, True, stmt)
        for skip in loop.skips if loop else self.skips:
            yield SetFlag(skip, True, stmt)

    def test_again(self, stmt: ast.stmt) -> list[Node]:
        loop = self.loops[-1]
        assert loop.test is not None
        before, name = loop.test
        return [*self.block(list(before)), SetFlag(loop.go, name or True, stmt)]

    # ---- if ------------------------------------------------------------------------------------

    def branch(
        self, test: str, then: list[_Item], orelse: list[_Item], rest: list[_Item], stmt: ast.stmt
    ) -> tuple[list[Node], bool]:
        """The nodes, and whether they include what follows."""
        left, right = _exits(then), _exits(orelse)
        if (left | right) <= {_FALL}:
            return [Branch(test, self.block(then), self.block(orelse), stmt)], False
        if _FALL not in left:
            return [Branch(test, self.block(then), self.block(orelse + rest), stmt)], True
        if _FALL not in right:
            return [Branch(test, self.block(then + rest), self.block(orelse), stmt)], True
        if not rest:
            return [Branch(test, self.block(then), self.block(orelse), stmt)], True
        skip = self.flag("skip")
        skips = self.loops[-1].skips if self.loops else self.skips
        skips.append(skip)
        both = Branch(test, self.block(then), self.block(orelse), stmt)
        skips.pop()
        return [
            SetFlag(skip, False, stmt),
            both,
            Branch(skip, [], self.block(rest), stmt),
        ], True

    # ---- loops -----------------------------------------------------------------------------------

    def loop(self, stmt: ast.For | ast.While) -> tuple[list[Node], list[_Item]]:
        """The nodes of a loop, and what must be decided after it."""
        body: list[_Item] = list(_loop_body(stmt))
        exits = _exits(body)
        broke = self.flag("broke") if stmt.orelse and _BREAK in exits else None
        loop = _Loop(self.flag("go"), broke)
        out: list[Node] = []
        if broke:
            out.append(SetFlag(broke, False, stmt))
        if _RETURN in exits:
            out.append(SetFlag(RETURNED, False, stmt))
        if isinstance(stmt, ast.For):
            self.loops.append(loop)
            leaves = bool(exits & {_BREAK, _RETURN})
            out.append(ForLoop(stmt, self.block(body), loop.go if leaves else None))
            self.loops.pop()
        else:
            before, name, _ = _loop_test(stmt)
            loop.test = (before, name)
            out += [*self.block(list(before)), SetFlag(loop.go, name or True, stmt)]
            self.loops.append(loop)
            out.append(WhileLoop(loop.go, self.while_body(body, exits, stmt), stmt))
            self.loops.pop()
        after: list[_Item] = []
        if _RETURN in exits:
            after.append(_FlagIf(RETURNED, [_Marker("leave", stmt)], [], stmt))
        if broke:
            after.append(_FlagIf(broke, [], list(stmt.orelse), stmt))
        else:
            after += stmt.orelse
        return out, after

    def while_body(self, body: list[_Item], exits: set[str], stmt: ast.stmt) -> list[Node]:
        """The body, then the loop test, unless the loop was left."""
        again: _Item = _Marker("test", stmt)
        if _CONTINUE not in exits:
            return self.block([*body, again])
        nodes = self.block(body)
        if not exits & {_BREAK, _RETURN}:
            return nodes + self.block([again])
        return [*nodes, Branch(self.loops[-1].go, self.block([again]), [], stmt)]
