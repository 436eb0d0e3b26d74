"""Types, statement by statement, as Numba gives them."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

from splitad.errors import UnsupportedError
from splitad.frontend.normal import NormalFunction
from splitad.frontend.read import read
from splitad.frontend.render import execute, render
from splitad.frontend.typing import Typing, infer
from tests.frontend.programs import PROGRAMS

f8, f4, i8 = types.float64, types.float32, types.int64
vec, mat = types.float64[::1], types.float64[:, ::1]
FLAG = False
SIZE = 3


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for stmt in body:
        yield stmt
        for part in ("body", "orelse"):
            yield from statements(getattr(stmt, part, []))


def typed(fn: Any, *args: types.Type) -> tuple[NormalFunction, Typing, dict[str, str]]:
    """The types by the text of the statement."""
    normal = read(fn)
    typing = infer(normal, args)
    found = {}
    for stmt in statements(normal.body):
        type_ = typing.type_of(stmt)
        if type_ is not None:
            found[ast.unparse(stmt).splitlines()[0]] = str(types.unliteral(type_))
    return normal, typing, found


def test_scalars_and_versions() -> None:
    """A variable has a type for each assignment."""

    def f(x, n):
        s = 0
        t = s + 1
        for i in range(n):
            s = s + x * i
        s = n
        return t * s

    _, typing, found = typed(f, f4, i8)
    assert found["s = 0"] == "int64"
    assert found["t = s + 1"] == "int64"
    assert found["s = s + _t2"] == "float64"
    assert found["s = n"] == "int64"
    assert typing.return_type == i8 and typing.arg_types == (f4, i8)


def test_versions_of_a_parameter() -> None:
    """Numba names the versions of an assigned parameter otherwise than those of other variables."""

    def f(x, n):
        x = x[:]
        for i in range(n):
            x = x + 1.0
        if n > 2:
            n = n * 2.0
        n = n + 1
        return x

    _, _, found = typed(f, vec, i8)
    assert found["x = x[:]"] == found["x = x + 1.0"] == "array(float64, 1d, C)"
    assert found["n = n * 2.0"] == found["n = n + 1"] == "float64"


def test_arrays_and_calls() -> None:
    def f(a, b):
        c = np.zeros((a.shape[0], 2), dtype=np.float32)
        c[:, 0] += a[:, 1]
        d = [v * 2 for v in b if v > 0]
        return c, np.array(d).sum(), a[0], b[0], math.sqrt(c[0, 0]), c.T

    _, typing, _ = typed(f, mat, vec)
    expected = (
        "Tuple(array(float32, 2d, C), float64, array(float64, 1d, C), float64, float32, "
        "array(float32, 2d, F))"
    )
    assert str(typing.return_type) == expected
    assert all(typing.type_of(s) is not None for s in statements(read(f).body) if is_assign(s))


def plain(fn: Any, args: tuple[types.Type, ...]) -> types.Type:
    """The return type that njit gives."""
    made = numba.njit(fn)
    made.compile(args)
    return made.nopython_signatures[0].return_type


def is_assign(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name)


def test_unpacking() -> None:
    def f(t):
        a, b = t
        return a * b

    normal, typing, _ = typed(f, types.Tuple((f8, i8)))
    assert typing.type_of(normal.body[0], "a") == f8
    assert typing.type_of(normal.body[0], "b") == i8
    assert typing.type_of(normal.body[0]) is None


def test_return_none() -> None:
    def f(x):
        x[0] = 1.0

    assert typed(f, vec)[1].return_type == types.none


def test_same_as_plain_numba() -> None:
    def f(x, n, flag):
        best = x[0] if flag else 0
        k = n and 2
        for i, (a, b) in enumerate(zip(x, x[1:])):  # noqa: B905
            if a < b < 3.0 or i == n:
                best = a
                break
        else:
            best = -1
        while n > 0 and not flag:
            n //= 2
        y = x + k
        return best, k, y, n, [best, 1.0]

    args = (vec, i8, types.boolean)
    assert typed(f, *args)[1].return_type == plain(f, args)


def test_indices() -> None:
    def f(x):
        s = 0.0
        for i in np.ndindex(x.shape):
            s = s * 0.5 + x[i] * i[-1]
        for i, v in np.ndenumerate(x):
            s = s * 0.5 + v * i[0]
        return s

    for ndim in range(1, 5):
        x = np.arange(16.0).reshape((2,) * (ndim - 1) + (-1,))
        normal = read(f)
        made = numba.njit(execute(normal, render(normal)[0], "<normalised>"))
        assert made(x) == f(x)
        assert typed(f, numba.typeof(x))[1].return_type == f8


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_programs(program: Any) -> None:
    """Where plain njit accepts a program, the normalised form has the same return type."""
    fn, cases = program
    args = tuple(map(numba.typeof, cases[0]))
    try:
        expected = plain(fn, args)
    except Exception:  # Numba's own, and assertions
        pytest.skip("njit rejects it")
    assert typed(fn, *args)[1].return_type == expected


def test_types_of_locals() -> None:
    @numba.njit(locals={"s": f4})
    def f(x):
        s = x * 2
        return s

    assert infer(read(f), (f8,)).return_type == f4
    assert infer(read(f.py_func), (f8,)).return_type == f8


# ---- branches decided at compile time --------------------------------------------------------


def ifs(normal: NormalFunction) -> list[ast.If]:
    return [s for s in statements(normal.body) if isinstance(s, ast.If)]


def test_none() -> None:
    def f(x, scale):
        if scale is None:
            return x
        return x * scale

    normal, typing, found = typed(f, f8, types.none)
    assert typing.taken(ifs(normal)[0]) is True
    assert "_t2 = x * scale" not in found
    normal, typing, found = typed(f, f8, f4)
    assert typing.taken(ifs(normal)[0]) is None
    assert found["_t2 = x * scale"] == "float64"
    omitted = infer(normal, (f8, types.Omitted(None)))
    assert omitted.taken(ifs(normal)[0]) is True


def test_none_in_conditions() -> None:
    """In the user's bytecode these are jumps; here they are variables."""

    def a(x, y):
        if y > 1 and x is not None and y > 0:
            return x + y
        return y

    def b(x, y):
        if y > 1 and (y > 2 and y > 3 and x is not None) and (y > 0 or y > 1):
            return x + y
        return y

    def c(x, y):
        if not (x is None or y > 0) and y > 2:
            y += x
        while x is not None and y > 0:
            y -= x
        return y if x is None or y > 0 else x + y

    def d(x, y):
        if not x:
            return y
        return 2 * y

    for fn in (a, b, c, d):
        for args in ((types.none, f8), (f8, f8)):
            assert typed(fn, *args)[1].return_type == plain(fn, args)


def test_globals_and_ndim() -> None:
    def f(x):
        if FLAG:
            return x.nonsense
        if SIZE > 2:
            y = x
        else:
            y = x.nonsense
        if x.ndim == 2:
            return y[0, 0]
        return y[0]

    normal, typing, _ = typed(f, vec)
    assert [typing.taken(s) for s in ifs(normal)] == [False, True, False]
    normal, typing, _ = typed(f, mat)
    assert [typing.taken(s) for s in ifs(normal)] == [False, True, True]


# ---- calls -----------------------------------------------------------------------------------


@numba.njit(inline="always")
def inlined(x):
    y = x + 1.0
    return y * y


def test_inlined_function_stays_a_call() -> None:
    def f(x):
        y = inlined(x)
        return y

    _, _, found = typed(f, f8)
    assert found == {"y = inlined(x)": "float64"}


def test_inner_functions() -> None:
    def f(x, n):
        def g(v):
            return v * n

        s = 0.0
        for v in x:
            s += g(v)
        return s + g(n)

    assert typed(f, vec, i8)[1].return_type == f8


def test_recursion() -> None:
    assert typed(factorial, i8)[1].return_type == i8


@numba.njit
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def test_varargs_and_star() -> None:
    def f(*t):
        return np.hypot(*t) + t[0]

    star = types.StarArgTuple((f8, f8))
    assert typed(f, star)[1].return_type == f8


def test_raise_and_print() -> None:
    def f(x, n):
        if n < 0:
            raise ValueError("n is", n)
        if n > 100:
            raise np.linalg.LinAlgError("too large")
        print("x", x, n)
        return x

    assert typed(f, f8, i8)[1].return_type == f8


# ---- what cannot be typed --------------------------------------------------------------------


def test_fault_that_numba_rejects() -> None:
    """Numba's own message, about the user's own lines."""

    def f(x):
        return x.nonsense

    with pytest.raises(numba.TypingError, match="Unknown attribute 'nonsense'") as error:
        infer(read(f), (vec,))
    assert "test_typing.py" in str(error.value)
    assert "_t1" not in str(error.value)


def test_loop_over_what_is_no_sequence() -> None:
    def f(d):
        s = 0
        for k in d:
            s += k
        return s

    with pytest.raises(UnsupportedError, match="A loop over a DictType") as error:
        infer(read(f), (types.DictType(i8, i8),))
    assert "for k in d:" in str(error.value)
