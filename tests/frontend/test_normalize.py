"""The normalised function does what the original does: both are run as plain Python and compared."""

from __future__ import annotations

import ast
import copy
from typing import Any

import numpy as np
import pytest

from splitad.frontend.normal import NormalFunction, is_temp, remembered
from splitad.frontend.read import read
from splitad.frontend.render import execute, render
from tests.frontend import programs


def executable(normal: NormalFunction) -> Any:
    """The normalised function as plain Python (inner dispatchers too)."""
    text, _ = render(normal)
    scope = normal.namespace()
    for name, value in normal.helpers.items():
        inner = remembered(getattr(value, "py_func", None))
        if inner is not None:
            scope[name] = executable(inner)
            scope[name].__defaults__ = inner.pyfunc.__defaults__
    made = execute(normal, text, "<normalised>")
    made.__globals__.update(scope)
    kwonly = normal.pyfunc.__kwdefaults__ or {}
    made.__defaults__ = ((normal.pyfunc.__defaults__ or ()) + tuple(kwonly.values())) or None
    return made


def outcome(fn: Any, args: tuple[Any, ...]) -> tuple[Any, Any, list[Any]]:
    """Result or exception, the arguments afterwards, and the order of evaluation."""
    args = copy.deepcopy(args)
    programs.LOG.clear()
    try:
        result: Any = fn(*args)
    except Exception as error:
        result = (type(error), error.args)
    return result, args, list(programs.LOG)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return type(other) is type(one) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


CASES = [
    pytest.param(fn, args, id=f"{fn.__name__}-{k}")
    for fn, cases in programs.PROGRAMS
    for k, args in enumerate(cases)
]


@pytest.mark.parametrize(("fn", "args"), CASES)
def test_same_behaviour(fn: Any, args: Any, capsys: pytest.CaptureFixture[str]) -> None:
    expected = outcome(fn, args)
    printed = capsys.readouterr().out
    normal = read(fn)
    got = outcome(executable(normal), args)
    assert same(expected, got), f"{expected}\n{got}\n{render(normal)[0]}"
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("fn", [p[0] for p in programs.PROGRAMS], ids=lambda fn: fn.__name__)
def test_form(fn: Any) -> None:
    """Only what normal.py says occurs, and every node has a place in the user's source."""
    normal = read(fn)
    code = normal.pyfunc.__code__
    for stmt in normal.body:
        check_stmt(stmt)
        for node in ast.walk(stmt):
            if hasattr(node, "lineno"):
                assert node.lineno >= code.co_firstlineno


def atom(node: Any) -> bool:
    return isinstance(node, ast.Name | ast.Constant)


def check_stmt(stmt: ast.stmt) -> None:
    match stmt:
        case ast.Assign([ast.Name()], value):
            assert check_expr(value), ast.unparse(stmt)
        case ast.Assign([ast.Subscript(base, index)], value):
            assert atom(base) and check_index(index) and atom(value)
        case ast.Assign([ast.Attribute(base)], value):
            assert atom(base) and atom(value)
        case ast.Assign([ast.Tuple(names)], value):
            assert all(isinstance(n, ast.Name) for n in names) and atom(value)
        case ast.AugAssign(ast.Name(), _, value):
            assert atom(value)
        case ast.If(ast.Name(), body, orelse):
            assert body
            for s in [*body, *orelse]:
                check_stmt(s)
        case ast.For(ast.Name(id=target), ast.Call(ast.Name(), args, []), body, orelse):
            assert is_temp(target) and all(map(atom, args)) and body
            for s in [*body, *orelse]:
                check_stmt(s)
        case ast.While(ast.Constant(True), body, orelse):
            for s in [*body, *orelse]:
                check_stmt(s)
        case ast.Return(value) | ast.Raise(ast.Name() as value):
            assert value is None or atom(value)
        case ast.Raise(ast.Call(ast.Name(), args, [])):
            assert all(map(atom, args))
        case ast.Expr(ast.Call() as call):
            assert check_expr(call)
        case ast.Break() | ast.Continue() | ast.Pass():
            pass
        case _:
            raise AssertionError(ast.unparse(stmt))


def check_expr(expr: ast.expr) -> bool:
    match expr:
        case ast.Name() | ast.Constant():
            return True
        case ast.BinOp(left, _, right) | ast.Compare(left, [_], [right]):
            return atom(left) and atom(right)
        case ast.UnaryOp(_, value) | ast.Attribute(value):
            return atom(value)
        case ast.Subscript(value, index):
            return atom(value) and check_index(index)
        case ast.Tuple(items) | ast.List(items):
            return all(map(atom, items))
        case ast.Call(func, args, keywords):
            values = [a.value if isinstance(a, ast.Starred) else a for a in args]
            return atom(func) and all(map(atom, [*values, *(k.value for k in keywords)]))
    return False


def check_index(index: ast.expr) -> bool:
    if isinstance(index, ast.Tuple):
        return bool(index.elts) and all(map(check_entry, index.elts))
    return check_entry(index)


def check_entry(entry: ast.expr) -> bool:
    if isinstance(entry, ast.Slice):
        return all(b is None or atom(b) for b in (entry.lower, entry.upper, entry.step))
    return atom(entry)


def test_text() -> None:
    def f(y, x, a):
        for i in range(len(x)):
            y[i] += np.sin(x[i]) * -a

    assert render(read(f))[0] == (
        "def f(y, x, a):\n"
        " _t1 = len(x)\n"
        " for _t2_i in range(_t1):\n"
        "  i = _t2_i\n"
        "  _t3 = y[i]\n"
        "  _t4 = np.sin\n"
        "  _t5 = x[i]\n"
        "  _t6 = _t4(_t5)\n"
        "  _t7 = -a\n"
        "  _t8 = _t6 * _t7\n"
        "  _t3 += _t8\n"
        "  y[i] = _t3\n"
    )


def test_marks() -> None:
    """The attributes by which lowering tells a write-back and a loop's test."""

    def f(x):
        while x[0] > 0:
            x[0] -= 1.0

    (loop,) = read(f).body
    assert isinstance(loop, ast.While)
    assert getattr(loop.body[2], "loop_test", False)
    assert getattr(loop.body[-1], "writeback", False)


def test_places() -> None:
    # fmt: off
    def f(x):
        y = x[0]
        y = (y *
             np.cos(
            x[1]))
        return y
    # fmt: on

    normal = read(f)
    first = f.__code__.co_firstlineno
    lines = {ast.unparse(s): s.lineno - first for s in normal.body}
    assert lines == {
        "y = x[0]": 1,
        "_t1 = np.cos": 3,
        "_t2 = x[1]": 4,
        "_t3 = _t1(_t2)": 3,
        "y = y * _t3": 2,
        "return y": 5,
    }
    assert normal.loc_of(normal.body[0]).text() == "        y = x[0]"


def test_read_once() -> None:
    def f(x):
        return x

    assert read(f) is read(f)
