"""Digests of functions, types and constants: equal for equal content, different for any other."""

from __future__ import annotations

import enum
import statistics
import types as python_types
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, int64, njit, types
from numba.experimental import jitclass
from numba.extending import overload

from splitad.runtime.content import Content, Unknown, dump, restore


def digest(*things: Any) -> str:
    content = Content()
    content.add(*things)
    return content.digest()


def define(text: str, **scope: Any) -> Any:
    exec(compile(text, "<test>", "exec"), scope)
    return scope["f"]


SOURCE = "def f(x, n=1):\n    return g(x) * K + m.c * n\n"
HELPER = "def f(x):\n    return x * K\n"


def scope(**changed: Any) -> dict[str, Any]:
    module = python_types.ModuleType("of_the_user")
    vars(module).update(c=changed.pop("c", 2.0), unused=changed.pop("unused", 1))
    inner = define(changed.pop("helper", HELPER), K=changed.pop("inner_K", 3.0))
    return {"g": njit(**changed.pop("options", {}))(inner), "K": 1.0, "m": module, **changed}


CHANGES: list[dict[str, Any]] = [
    dict(K=1),
    dict(K=-1.0),
    dict(K=np.float32(1.0)),
    dict(K=np.array([1.0])),
    dict(c=2.5),
    dict(inner_K=3.5),
    dict(helper=HELPER.replace("*", "+")),
    dict(options={"fastmath": True}),
    dict(options={"error_model": "numpy"}),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_all_that_a_function_reads_counts(change: dict[str, Any]) -> None:
    assert digest(define(SOURCE, **scope())) == digest(define(SOURCE, **scope()))
    assert digest(define(SOURCE, **scope())) != digest(define(SOURCE, **scope(**change)))


def test_what_it_does_not_read_does_not() -> None:
    moved = "\n\n# a comment\n" + SOURCE
    assert digest(define(SOURCE, **scope())) == digest(define(moved, **scope(unused=2, other=3)))
    for changed in (SOURCE.replace("n=1", "n=2"), SOURCE.replace("+", "-")):
        assert digest(define(SOURCE, **scope())) != digest(define(changed, **scope()))


def test_zero_has_a_sign_and_arrays_a_layout() -> None:
    assert digest(0.0) != digest(-0.0) and digest(1) != digest(True) != digest(1.0)
    a = np.arange(4.0)
    assert digest(a) == digest(a.copy()) != digest(a.reshape(2, 2)) != digest(a.reshape(2, 2).T)
    assert digest(a) != digest(a.astype(np.float32)) and digest((1, 2)) != digest((1, (2,)))


def test_closures_recursion_and_inner_functions() -> None:
    def make(k: float) -> Any:
        def f(x: float) -> float:
            return f(x) * (lambda y: y * k)(x)

        return f

    assert digest(make(2.0)) == digest(make(2.0)) != digest(make(3.0))
    content = Content()
    content.add(function := make(2.0))
    assert content.saw(function.__code__) and content.saw(np.sum.__wrapped__.__code__)
    assert not content.saw(test_zero_has_a_sign_and_arrays_a_layout.__code__)


def test_an_overload_belongs_to_what_it_implements() -> None:
    def with_overload(k: float) -> Any:
        def stub(x: float) -> float:
            raise NotImplementedError

        @overload(stub)
        def _stub(x: float) -> Any:
            return lambda x: k * x

        return define("def f(x): return stub(x)", stub=stub)

    assert digest(with_overload(2.0)) == digest(with_overload(2.0)) != digest(with_overload(3.0))


def test_overloads_of_functions_that_go_by_name() -> None:
    function = define("def f(x): return x")
    before = digest(function)

    @overload(statistics.correlation)  # which anything may call
    def _correlation(x: Any, y: Any) -> Any:
        return None

    assert digest(function) != before


def test_what_such_an_overload_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    function = define("def f(x): return x")
    module = python_types.ModuleType("of_the_user")

    @overload(statistics.harmonic_mean)
    def _harmonic_mean(x: Any) -> Any:
        return lambda x: x * module.k

    found = set()
    for k in (1.0, 2.0):
        vars(module)["k"] = k
        found.add(digest(function))
    assert len(found) == 2


def test_what_is_put_into_the_module_of_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    function = define(
        "def f(x): return x * m.sub.of_the_user", m=(m := python_types.ModuleType("m"))
    )
    vars(m)["sub"] = statistics
    found = set()
    helpers = (njit(define(HELPER, K=k)) for k in (1.0, 2.0))
    for value in (1.0, 2.0, (1.0,), *helpers):
        monkeypatch.setattr(statistics, "of_the_user", value, raising=False)
        found.add(digest(function))
    assert len(found) == 5
    vars(m)["sub"] = type("Lazy", (python_types.ModuleType,), {"of_the_user": 1.0})("lazy")
    with pytest.raises(Unknown):
        digest(function)


def test_classes_and_enums() -> None:
    def constants(k: float) -> Any:
        return define("def f(x): return x * C.k", C=type("C", (), {"k": k}))

    assert digest(constants(1.0)) == digest(constants(1.0)) != digest(constants(2.0))
    colour = enum.IntEnum("colour", "red green")
    assert digest(colour.red) != digest(colour.green)
    assert digest(namedtuple("P", "x y")) != digest(namedtuple("P", "x z"))
    one, other = ({"a": 1, "b": 2, "c": c} for c in (1, 2))  # c: another name of a or b
    assert digest(enum.IntEnum("E", one)) != digest(enum.IntEnum("E", other))


def test_types() -> None:
    kinds = [
        float64, float32, int64, float64[:], float64[::1], float64[:, ::1], float32[:],
        types.Array(float64, 1, "C", readonly=True), types.Array(float64, 1, "C", aligned=False),
        types.UniTuple(float64, 2), types.Tuple((float64, float32)), types.List(float64),
        types.ListType(float64), types.unicode_type, types.none, types.literal(1), types.literal(2),
    ]  # fmt: skip
    assert len({digest(kind) for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert restore(dump(kind)) == kind


def struct(factor: float) -> Any:
    @jitclass([("x", float64)])
    class S:
        def __init__(self, x: float) -> None:
            self.x = x

        def scaled(self) -> float:
            return factor * self.x

    return S.class_type.instance_type


def test_two_classes_of_equal_content_are_two_types() -> None:
    one, two, other = struct(2.0), struct(2.0), struct(3.0)
    assert len({digest(one), digest(two), digest(other)}) == 3
    assert digest(one) == digest(one)
    for kind in (one, types.Tuple((one, float64))):
        assert restore(dump(kind)) == kind
    with pytest.raises(Unknown):
        dump(types.ListType(one))  # its name, which is its identity, holds an address


@pytest.mark.parametrize("value", [object(), {"a": object()}, np.zeros(200_000), iter(())])
def test_what_cannot_be_told(value: Any) -> None:
    with pytest.raises(Unknown):
        digest(define("def f(x): return K", K=value))
