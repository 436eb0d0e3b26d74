"""The pipeline of generated code compiles what Numba's does, and does less."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numba import float64, literal_unroll, njit, vectorize
from numba.core.typed_passes import NopythonRewrites
from numba.core.typing.context import BaseContext
from numba.core.untyped_passes import InlineClosureLikes, LiteralUnroll

from splitad.runtime.stored import Keeper, keeping_jit


def generated(function: Any) -> Any:
    return keeping_jit(function, Keeper(lambda args: None))


@vectorize([float64(float64)])
def cube(x):
    return x * x * x


@njit
def halve(x):
    return x / 2


def loops(a, b):
    s = 0.0
    for i in range(a.size):
        t = a[i] * b[i]
        for j in range(a.size):
            s = s + t * a[j]
            if s > 100.0:
                s = halve(s)
        a[i] = s
    return s


def whole_arrays(a, b):
    return a * b + np.sin(a) - cube(b)


def closures(a, b):
    return sum([x * 2.0 for x in a]) + (lambda x: x + 1.0)(b[0])


def unrolled(a, b):
    s = 0.0
    for x in literal_unroll((1, 2.5, a[0])):
        s += x
    return s


def lists(a, b):
    xs = []
    for x in a:
        xs.append(x * b[0])
    return np.array(xs), np.array([a[0], b[0]])


def tuples(a, b):
    both = (a, 3, b[0])
    return both[0][both[1] - 3] + both[2]


def recursive(a, b):
    return a[0] if a.size < 2 else a[0] + recursive(a[1:], b)


def raising(a, b):
    if a[0] > 0.5:
        raise ValueError("too large", a.size)
    return a[0]


FUNCTIONS = [loops, whole_arrays, closures, unrolled, lists, tuples]


def arguments() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(0.1, 2.0, 5), np.linspace(1.0, 3.0, 5)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_numba(function: Any) -> None:
    ours, theirs = arguments(), arguments()
    got, wanted = generated(function)(*ours), njit(function)(*theirs)
    for g, w in zip((got, *ours), (wanted, *theirs), strict=True):
        if isinstance(w, tuple):
            assert all(np.array_equal(x, y) for x, y in zip(g, w, strict=True))
        else:
            assert np.array_equal(g, w)


def test_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = arguments()
    monkeypatch.setitem(globals(), "recursive", generated(recursive))
    assert recursive(a, b) == pytest.approx(a.sum())


def test_exceptions() -> None:
    compiled = generated(raising)
    assert compiled(np.zeros(2), np.zeros(2)) == 0.0
    with pytest.raises(ValueError, match="too large"):
        compiled(np.ones(2), np.zeros(2))


def test_fields_of_records() -> None:
    def fields(rows):
        s = 0.0
        for name in literal_unroll(("a", "k")):
            s += rows[1][name]
        return s + rows[0]["a"]

    rows = np.array([(1.5, 2), (2.5, 3)], [("a", float), ("k", int)])
    assert generated(fields)(rows) == njit(fields)(rows) == 7.0


def passes(monkeypatch: pytest.MonkeyPatch, function: Any) -> Counter[str]:
    """How often which of the passes ran that are left out where they are not needed."""
    ran: Counter[str] = Counter()
    for each in (NopythonRewrites, InlineClosureLikes, LiteralUnroll):

        def run(
            self: Any, state: Any, usual: Any = each.run_pass, name: str = each.__name__
        ) -> Any:
            ran[name] += state.func_id.func is function
            return usual(self, state)

        monkeypatch.setattr(each, "run_pass", run)
    generated(function)(*arguments())
    return ran


def test_passes_run_where_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        assert not +passes(patch, tuples)
    with monkeypatch.context() as patch:
        assert +passes(patch, whole_arrays) == {"NopythonRewrites": 1}
    with monkeypatch.context() as patch:
        assert passes(patch, closures)["InlineClosureLikes"] > 0
    with monkeypatch.context() as patch:
        assert passes(patch, unrolled)["LiteralUnroll"] == 1


def test_a_question_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[Any] = Counter()
    usual = BaseContext.resolve_function_type

    def resolve(self: Any, func: Any, args: Any, kws: Any) -> Any:
        asked[func, tuple(args)] += 1
        return usual(self, func, args, kws)

    def products(a, b):
        s = 0.0
        for i in range(a.size):
            for j in range(b.size):
                s = s + a[i] * b[j] * a[j]
        return s

    monkeypatch.setattr(BaseContext, "resolve_function_type", resolve)
    njit(products)(*arguments())
    times = max(asked.values())
    asked.clear()
    generated(products)(*arguments())
    assert times > 1 and set(asked.values()) == {1}
