"""What is refused before anything else, with reason, place and hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from splitad.errors import UnsupportedError
from splitad.frontend.read import read

COUNT = 0


def refusal(fn: Any) -> str:
    with pytest.raises(UnsupportedError) as error:
        read(fn)
    return str(error.value)


def lines(fn: Any, *expected: str) -> None:
    """The message: reason, place, line, caret, hint.  The place is at the line that holds `# here`."""
    got = refusal(fn).splitlines()
    code = fn.__code__
    assert got[0] == expected[0]
    file, _, line = got[1].strip().partition(", in ")[0].rpartition(":")
    assert file == code.co_filename
    assert got[1].endswith(f", in {code.co_qualname}")
    assert "# here" in Path(file).read_text().splitlines()[int(line) - 1]
    assert got[3].strip() == "^"
    assert [g.strip() for g in got[4:]] == list(expected[1:])


def test_try() -> None:
    def f(x):
        y = x + 1
        try:  # here
            y = y / x
        except Exception:
            y = 0.0
        return y

    lines(f, "try is not supported.", "Test for the condition with if, and raise outside.")


def test_whole_message() -> None:
    def f(x):
        return sum(v for v in x)

    first = f.__code__.co_firstlineno
    assert refusal(f) == (
        "A generator expression is not supported.\n"
        f"  {__file__}:{first + 1}, in test_whole_message.<locals>.f\n"
        "    return sum(v for v in x)\n"
        "              ^\n"
        "  Write a loop, or a list comprehension."
    )


def test_with() -> None:
    def f(x):
        with numba.objmode():  # here
            print(x)

    lines(
        f,
        "with is not supported.",
        "Do what needs object mode before the call, and pass the result as an argument.",
    )


def test_generators() -> None:
    def f(x):
        for v in x:
            yield v + 1  # here

    def g(x):
        yield from x  # here

    for fn in (f, g):
        lines(fn, "A generator is not supported.", "Fill an array or a list, and return it.")


def test_async() -> None:
    async def f(x):  # here
        return x

    lines(f, "async is not supported.")


def test_dicts_and_sets() -> None:
    def a(x):
        return {"a": x}  # here

    def b(x):
        return {i: x for i in range(3)}  # here

    def c(x):
        return {1, x}  # here

    def d(x):
        return {i for i in x}  # here

    for fn in (a, b):
        lines(fn, "A dict is not supported.", "Use arrays, tuples, or a jitclass.")
    for fn in (c, d):
        lines(fn, "A set is not supported.", "Use an array or a list.")


def test_definitions_inside() -> None:
    def a(x):
        class C:  # here
            pass

        return C

    def b(x):
        import math  # here

        return math.sin(x)

    def c(x):
        @numba.njit  # here
        def g(y):
            return y

        return g(x)

    lines(a, "A class inside a function is not supported.", "Define it outside, as a jitclass.")
    lines(b, "An import inside a function is not supported.", "Import at the top of the file.")
    lines(
        c,
        "A decorated function inside a function is not supported.",
        "Leave out the decorator (Numba compiles inner functions by itself), or define it outside.",
    )


def test_scopes() -> None:
    def a(x):
        global COUNT  # here
        COUNT = x

    def b(x):
        def g():
            nonlocal x  # here
            x = 1

        g()
        return x

    lines(
        a,
        "Assigning a global variable is not supported.",
        "Globals are constants to Numba: pass the variable as an argument.",
    )
    lines(
        b,
        "nonlocal is not supported.",
        "Pass the variable as an argument, and return its new value.",
    )


def test_match() -> None:
    def f(x):
        match x:  # here
            case 1:
                return 2
        return 3

    lines(f, "match is not supported.", "Use if and elif.")


def test_delete() -> None:
    def f(x):
        y = x
        del y
        del x[0:1]  # here

    lines(
        f,
        "del is supported for names and for items of lists only.",
        "Make a new list or array without it.",
    )


def test_stars() -> None:
    def a(x):
        return np.sum(**x)  # here

    def b(x):
        p, *q = x  # here
        return p, q

    def c(x, **k):  # here
        return x

    lines(a, "** in a call is not supported.", "Name the arguments.")
    lines(b, "A starred target is not supported.", "Unpack by slices: a, b = x[0], x[1:].")
    lines(c, "** in the parameters is not supported.", "Name the parameters.")


def test_strings() -> None:
    def a(x):
        return f"x = {x}"  # here

    def b(x):
        raise ValueError(f"{x:.3f}")  # here

    lines(a, "An f-string is supported only in raise, assert and print.")
    lines(b, "Formats in f-strings are not supported.", "Numba does not support them either.")


def test_raise() -> None:
    def a(x):
        raise ValueError("a") from None  # here

    def b(x):
        raise  # here

    def c(x):
        e = ValueError("a")
        raise e  # here

    lines(a, "raise ... from is not supported.", "Leave out the cause.")
    lines(b, "A raise without an exception is not supported.")
    lines(c, "e is not known to be an exception class.", "Write the class itself after raise.")


def test_loops() -> None:
    def a(x):
        t = (1, 2.0)
        for v in numba.literal_unroll(t):  # here
            x += v
        return x

    def b(x):
        y = [x]
        for v in y:  # here
            y.append(v)

    lines(
        a,
        "A loop over numba.literal_unroll of anything but (a, b, ...) is not supported.",
        "Write the tuple out, or call a function for each item.",
    )
    lines(b, "The loop changes the length of the list it runs over.")


def test_inner_functions() -> None:
    def a(x):
        def g(y):  # here
            return g(y) + x

        return g(x)

    def b(x):
        if x:
            g = lambda y: y + 1  # here
        else:
            g = lambda y: y + 2
        return g(x)

    def c(x, apply):
        g = lambda y: y + x
        return apply(g, x)  # here

    def d(x):
        def g(*y):  # here
            return y

        return g(x)

    lines(a, "The inner function g calls itself.", "Move it out.")
    lines(b, "g is bound more than once, once to an inner function.", "Use two names.")
    lines(
        c,
        "The inner function g is used as a value, and uses the local variables x.",
        "Only call it, or pass these variables to it as arguments.",
    )
    lines(d, "An inner function may have plain parameters only.")


def test_inside_an_inner_function() -> None:
    def f(x):
        def g(y):
            return {y}  # here

        return g(x)

    lines(f, "A set is not supported.", "Use an array or a list.")
