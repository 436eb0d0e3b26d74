"""Jumps are gone, and flags appear only where they must."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from splitad.frontend.pending import shape_of
from splitad.frontend.read import read
from splitad.frontend.structured import (
    Branch,
    ForLoop,
    Node,
    SetFlag,
    SetResult,
    Simple,
    WhileLoop,
)


def shown(fn: Callable[..., Any]) -> str:
    return "\n".join(_lines(shape_of(read(fn)).nodes, 0))


def _lines(nodes: list[Node], depth: int) -> list[str]:
    pad = "    " * depth
    found: list[str] = []
    for node in nodes:
        match node:
            case Simple(stmt=stmt):
                found.append(pad + ast.unparse(stmt))
            case SetFlag(name=name, value=value):
                found.append(f"{pad}{name} = {value}")
            case SetResult(value=value):
                found.append(f"{pad}%result = {ast.unparse(value) if value else None}")
            case Branch(test=test, then=then, orelse=orelse):
                found += [f"{pad}if {test}:", *_lines(then, depth + 1)]
                if orelse:
                    found += [f"{pad}else:", *_lines(orelse, depth + 1)]
            case ForLoop(stmt=stmt, body=body, go=go):
                head = f"for {ast.unparse(stmt.target)} in {ast.unparse(stmt.iter)}"
                found += [pad + head + (f" while {go}:" if go else ":"), *_lines(body, depth + 1)]
            case WhileLoop(go=go, body=body):
                found += [f"{pad}while {go}:", *_lines(body, depth + 1)]
    return found


def early_return(a, b):
    if a:
        return 1
    if b:
        return 2
    return 3


def continues(n, a):
    s = 0
    for i in range(n):
        if a:
            continue
        s += i
    return s


def breaks(n, a):
    s = 0
    for i in range(n):
        if a:
            break
        s += i
    return s


def returns_from_loop(n, a):
    for i in range(n):
        if a:
            return i
    return n


def loop_else(n, a):
    for i in range(n):
        if a:
            break
    else:
        n = 0
    return n


def both_may_go_on(n, a, b):
    for i in range(n):
        if a:
            if b:
                break
            n = 1
        else:
            n = 2
        n = 3
    return n


def while_with_continue(n, a, b):
    while n:
        if a:
            continue
        if b:
            break
        n = 1
    return n


CASES = [
    (
        early_return,
        """
        if a:
            %result = 1
        else:
            if b:
                %result = 2
            else:
                %result = 3
        """,
    ),
    (
        continues,
        """
        s = 0
        for _t1_i in range(n):
            i = _t1_i
            if a:
            else:
                s += i
        %result = s
        """,
    ),
    (
        breaks,
        """
        s = 0
        for _t1_i in range(n) while %go1:
            i = _t1_i
            if a:
                %go1 = False
            else:
                s += i
        %result = s
        """,
    ),
    (
        returns_from_loop,
        """
        %returned = False
        for _t1_i in range(n) while %go1:
            i = _t1_i
            if a:
                %result = i
                %returned = True
                %go1 = False
        if %returned:
        else:
            %result = n
        """,
    ),
    (
        loop_else,
        """
        %broke1 = False
        for _t1_i in range(n) while %go2:
            i = _t1_i
            if a:
                %go2 = False
                %broke1 = True
        if %broke1:
        else:
            n = 0
        %result = n
        """,
    ),
    (
        both_may_go_on,
        """
        for _t1_i in range(n) while %go1:
            i = _t1_i
            %skip2 = False
            if a:
                if b:
                    %go1 = False
                    %skip2 = True
                else:
                    n = 1
            else:
                n = 2
            if %skip2:
            else:
                n = 3
        %result = n
        """,
    ),
    (
        while_with_continue,
        """
        %go1 = n
        while %go1:
            if a:
            else:
                if b:
                    %go1 = False
                else:
                    n = 1
            if %go1:
                %go1 = n
        %result = n
        """,
    ),
]


@pytest.mark.parametrize("fn, expected", CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_structure(fn: Callable[..., Any], expected: str) -> None:
    assert shown(fn) == textwrap.dedent(expected).strip("\n").rstrip()


def test_live_names() -> None:
    def f(n, x):
        s = 0
        t = 1
        for i in range(n):
            u = t
            s += u
            t = i
        return s

    (loop,) = [node for node in shape_of(read(f)).nodes if isinstance(node, ForLoop)]
    assert {"s", "t"} <= loop.head and not {"u", "i"} & loop.head
    assert "s" in loop.live and not {"t", "u"} & loop.live
