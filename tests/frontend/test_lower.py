"""What is lowered does what njit does: every program of lower_programs.py, executed as IR."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import pytest

from splitad.errors import NoRuleError, UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.ir.show import show
from tests.frontend.lower_programs import PROGRAMS, Body, body, xs
from tests.frontend.lowering import check, lowered


@pytest.mark.parametrize("fn, cases", PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_it_does_what_njit_does(fn: Callable[..., Any], cases: list[Any]) -> None:
    check(fn, *cases)


# ---- the shape of the IR -------------------------------------------------------------------------


def found(fn: ir.Function, kind: type) -> list[Any]:
    return [stmt for stmt in walk.walk(fn.body) if isinstance(stmt, kind)]


def text(fn: Callable[..., Any], *args: Any) -> str:
    return show(lowered(fn, *args))


def test_only_what_changes_is_carried() -> None:
    def f(x, n):
        scale = 2.0
        s = 0
        for i in range(n):
            t = x[i] * scale
            s += t
        return s

    assert text(f, xs(), 3) == (
        "f(x: array(float64, 1d, C), n: int64) -> float64\n"
        "  leaves x, n\n"
        "  for i in 0..n step 1 [s = 0.0] -> s_2:\n"
        "    t = x[i]\n"
        "    t_1 = mul(t, 2.0)\n"
        "    s_1 = add(s, t_1)\n"
        "    yield s_1\n"
        "  return s_2"
    )


def test_a_loop_with_continue_stays_a_for_and_one_with_break_does_not() -> None:
    def continues(x):
        s = 0.0
        for v in x:
            if v < 0:
                continue
            s += v
        return s

    def breaks(x):
        s = 0.0
        for v in x:
            if v < 0:
                break
            s += v
        return s

    assert found(lowered(continues, xs()), ir.For) and not found(lowered(continues, xs()), ir.While)
    assert found(lowered(breaks, xs()), ir.While) and not found(lowered(breaks, xs()), ir.For)


def test_an_if_merges_only_what_is_read_later() -> None:
    def f(x, y):
        a = b = 0.0
        if x > 0:
            a = y * 2
            b = y * 3
            c = a + b
            b += c
        else:
            a = b + y
        return a

    (branch,) = found(lowered(f, 1.0, 2.0), ir.If)
    assert [out.name for out in branch.outs] == ["a_2"]


def test_leaves_are_every_scalar_and_array_with_their_exits() -> None:
    def f(s, t, k):
        s.mass = s.mass * t[0]
        t[1][0] = 1.0
        return k

    fn = lowered(f, body(), (2.0, xs()), 3)
    paths = {leaf.path: leaf for leaf in fn.leaves}
    assert list(paths) == [(0, "pos"), (0, "mass"), (0, "count"), (1, 0), (1, 1), (2,)]
    assert paths[0, "mass"].exit != paths[0, "mass"].var
    assert paths[0, "pos"].exit == paths[0, "pos"].var
    (written,) = found(fn, ir.SetField)
    assert (written.obj, written.field) == (fn.params[0], "mass")


def test_an_instance_made_inside_leaves_no_trace() -> None:
    def f(x, m):
        b = Body(x, m)
        b.mass += 1
        return b.mass

    fn = lowered(f, xs(), 2.0)
    assert not found(fn, ir.SetField) and not found(fn, ir.GetField)


def test_division_by_python_rules_tests_first() -> None:
    def f(x, y):
        return x / y

    assert len(found(lowered(f, 1.0, 2.0), ir.Raise)) == 1
    assert not found(lowered(f, 1.0, 2.0, error_model="numpy"), ir.Raise)


def test_operands_are_converted_before_they_are_used() -> None:
    def f(x, n):
        return x * n + 1

    fn = lowered(f, 2.0, 3)
    for prim in found(fn, ir.Prim):
        assert {arg.type for arg in prim.args} == {numba.float64}


def test_statements_know_their_line_also_in_callees() -> None:
    from tests.frontend.lower_programs import square

    def f(x):
        return square(x) + 1

    mul, add = found(lowered(f, 2.0), ir.Prim)
    assert (mul.loc.function, add.loc.function.rpartition(".")[2]) == ("square", "f")
    assert mul.loc.line == square.py_func.__code__.co_firstlineno + 2


# ---- what is refused -----------------------------------------------------------------------------


def sometimes_none(n, x):
    y = None
    if n > 2:
        y = x
    if y is None:
        return 0.0
    return y


def returns_object(x):
    return Body(x, 1.0)


def list_of_lists(x):
    a = [[x[0]], [x[1]]]
    return a[0][0]


foreign = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x)


def no_rule(x):
    return foreign(x[0])


REFUSED = [
    (sometimes_none, (3, 1.0), UnsupportedError, "not the same kind"),
    (returns_object, (xs(3),), UnsupportedError, "Returning"),
    (list_of_lists, (xs(),), UnsupportedError, "A list of list"),
    (no_rule, (xs(),), NoRuleError, "has no rule"),
]


@pytest.mark.parametrize("fn, args, error, words", REFUSED, ids=[r[0].__name__ for r in REFUSED])
def test_refusals_say_where_and_why(
    fn: Callable[..., Any], args: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        lowered(fn, *args)
    loc = caught.value.loc  # type: ignore[attr-defined]
    assert loc is not None and loc.file == __file__
