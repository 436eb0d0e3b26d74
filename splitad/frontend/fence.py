"""The fence: constructs that splitad does not differentiate are refused here, with the line and a hint.

One walk over the syntax, before anything is done with it.  What needs types to be refused is refused
later; what Numba itself rejects is left to Numba's own message.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from splitad.errors import Loc, UnsupportedError
from splitad.frontend.scopes import own_nodes
from splitad.frontend.source import Source

_LOOP = "Write a loop, or a list comprehension."
_DICT = "Use arrays, tuples, or a jitclass."

# construct: (what it is called, what to do instead)
_REFUSED: dict[str, tuple[str, str]] = {
    "Try": ("try", "Test for the condition with if, and raise outside."),
    "TryStar": ("try", "Test for the condition with if, and raise outside."),
    "With": (
        "with",
        "Do what needs object mode before the call, and pass the result as an argument.",
    ),
    "AsyncWith": ("async", ""),
    "AsyncFor": ("async", ""),
    "Await": ("async", ""),
    "AsyncFunctionDef": ("async", ""),
    "Yield": ("A generator", "Fill an array or a list, and return it."),
    "YieldFrom": ("A generator", "Fill an array or a list, and return it."),
    "GeneratorExp": ("A generator expression", _LOOP),
    "DictComp": ("A dict", _DICT),
    "Dict": ("A dict", _DICT),
    "SetComp": ("A set", "Use an array or a list."),
    "Set": ("A set", "Use an array or a list."),
    "ClassDef": ("A class inside a function", "Define it outside, as a jitclass."),
    "Match": ("match", "Use if and elif."),
    "Nonlocal": ("nonlocal", "Pass the variable as an argument, and return its new value."),
    "Import": ("An import inside a function", "Import at the top of the file."),
    "ImportFrom": ("An import inside a function", "Import at the top of the file."),
    "TypeAlias": ("A type alias inside a function", "Define it outside."),
    "TemplateStr": ("A template string", ""),
}


def check(source: Source, pyfunc: Callable[..., Any]) -> None:
    """Refuses, at the first place where there is something to refuse."""
    for node, reason, hint in sorted(_faults(source.node), key=lambda fault: _place(fault[0])):
        line, column = _place(node)
        raise UnsupportedError(reason, Loc(source.file, line, pyfunc.__qualname__, column), hint)


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


Fault = tuple[ast.AST, str, str]


def _faults(function: Any) -> Iterator[Fault]:
    yield from _header(function)
    body = function.body if isinstance(function.body, list) else [function.body]
    texts = {id(s) for part in body for s in _message_strings(part)}
    for part in body:
        for node in ast.walk(part):
            known = _REFUSED.get(type(node).__name__)
            if known is not None:
                yield node, f"{known[0]} is not supported.", known[1]
            special = _SPECIAL.get(type(node))
            if special is not None:
                yield from special(node)
            if isinstance(node, ast.JoinedStr) and id(node) not in texts:
                yield node, "An f-string is supported only in raise, assert and print.", ""
            if isinstance(node, ast.FunctionDef):
                yield from _globals(node)
    yield from _globals(function)


def _header(function: Any) -> Iterator[Fault]:
    if isinstance(function, ast.AsyncFunctionDef):
        yield function, "async is not supported.", ""
    if function.args.kwarg is not None:
        yield function.args.kwarg, "** in the parameters is not supported.", "Name the parameters."
    if function.args.kwonlyargs and function.args.vararg is not None:
        yield function.args.kwonlyargs[0], "Parameters after *args are not supported.", ""


def _message_strings(part: ast.AST) -> Iterator[ast.AST]:
    """f-strings of exceptions and print."""
    for node in ast.walk(part):
        is_print = isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
        if isinstance(node, ast.Raise | ast.Assert) or is_print:
            yield from (n for n in ast.walk(node) if isinstance(n, ast.JoinedStr))


def _globals(function: Any) -> Iterator[Fault]:
    """`global x` is harmless as long as x is only read."""
    if isinstance(function, ast.Lambda):
        return
    nodes = [n for stmt in function.body for n in own_nodes(stmt)]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Global) and stored & set(node.names):
            yield (
                node,
                "Assigning a global variable is not supported.",
                "Globals are constants to Numba: pass the variable as an argument.",
            )


def _delete(node: ast.Delete) -> Iterator[Fault]:
    for target in node.targets:
        item = isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)
        if not isinstance(target, ast.Name) and not item:
            yield (
                target,
                "del is supported for names and for items of lists only.",
                "Make a new list or array without it.",
            )


def _call(node: ast.Call) -> Iterator[Fault]:
    for keyword in node.keywords:
        if keyword.arg is None:
            yield keyword.value, "** in a call is not supported.", "Name the arguments."


def _starred_target(node: ast.Assign | ast.For) -> Iterator[Fault]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Starred) and isinstance(part.ctx, ast.Store):
                yield (
                    part,
                    "A starred target is not supported.",
                    "Unpack by slices: a, b = x[0], x[1:].",
                )


def _formatted(node: ast.FormattedValue) -> Iterator[Fault]:
    if node.format_spec is not None or node.conversion != -1:
        yield node, "Formats in f-strings are not supported.", "Numba does not support them either."


def _raise(node: ast.Raise) -> Iterator[Fault]:
    if node.cause is not None:
        yield node, "raise ... from is not supported.", "Leave out the cause."
    elif node.exc is None:
        yield node, "A raise without an exception is not supported.", ""


def _inner(node: ast.FunctionDef) -> Iterator[Fault]:
    if node.decorator_list:
        yield (
            node.decorator_list[0],
            "A decorated function inside a function is not supported.",
            "Leave out the decorator (Numba compiles inner functions by itself), or define it outside.",
        )


_SPECIAL: dict[type, Callable[[Any], Iterator[Fault]]] = {
    ast.Delete: _delete,
    ast.Call: _call,
    ast.Assign: _starred_target,
    ast.For: _starred_target,
    ast.FormattedValue: _formatted,
    ast.Raise: _raise,
    ast.FunctionDef: _inner,
}
