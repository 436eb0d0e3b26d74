"""Which names are still read after each branch and loop, and where an iteration begins."""

from __future__ import annotations

import ast

from splitad.frontend.structured import (
    RESULT,
    Branch,
    ForLoop,
    Node,
    SetFlag,
    SetResult,
    Simple,
    WhileLoop,
    all_names,
    names_assigned,
    names_read,
)


def note(nodes: list[Node]) -> None:
    """Writes the lists into the nodes."""
    _Liveness().block(nodes, frozenset({RESULT}))


class _Liveness:
    """Notes, backwards, the names that are read after each branch and loop."""

    def block(self, nodes: list[Node], live: frozenset[str]) -> frozenset[str]:
        for node in reversed(nodes):
            live = self.node(node, live)
        return live

    def node(self, node: Node, live: frozenset[str]) -> frozenset[str]:
        match node:
            case Simple(stmt=stmt):
                return (live - names_assigned(stmt)) | names_read(stmt)
            case SetFlag(name=name, value=value):
                return (live - {name}) | ({value} if isinstance(value, str) else frozenset())
            case SetResult(value=value):
                read = all_names(value) if value is not None else set()
                return (live - {RESULT}) | read
            case Branch():
                node.live = live
                then, orelse = self.block(node.then, live), self.block(node.orelse, live)
                return then | orelse | {node.test}
            case ForLoop(stmt=stmt):
                assert isinstance(stmt.target, ast.Name) and isinstance(stmt.iter, ast.Call)
                node.live = live
                self.head(node, live, frozenset({stmt.target.id, node.go or ""}))
                read = {name for arg in stmt.iter.args for name in all_names(arg)}
                return live | node.head | read
            case WhileLoop():
                node.live = live
                self.head(node, live | {node.go}, frozenset())
                return live | node.head | {node.go}
        raise AssertionError(node)

    def head(self, node: ForLoop | WhileLoop, live: frozenset[str], own: frozenset[str]) -> None:
        """Fixed point of what is live where an iteration begins."""
        head = node.head
        flag = frozenset({node.go}) if node.go else frozenset()
        while True:
            found = self.block(node.body, live | head | flag) - own
            if found <= head:
                break
            head |= found
        node.head = head
