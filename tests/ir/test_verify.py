"""verify: every fault is found and named."""

from __future__ import annotations

import dataclasses

import pytest

from splitad.errors import InternalError
from splitad.ir import nodes as ir
from splitad.ir.verify import faults, verify
from tests.ir_parse import parse

HEADER = "f(x: float64[::1], m: float64[:,:], n: int64, h: float64, b: bool):\n"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("t = add(h, h)\n  t = add(h, h)", "t is defined twice"),
        ("if b:\n    t = add(h, h)\n  u = add(t, h)", "t is not defined here"),
        (
            "for i in 0..n step 1 [s = h] -> s_1:\n    yield n",
            "yields of s: n is int64, not float64",
        ),
        ("for i in 0..n step 1 [s = h] -> s_1:\n    pass", "0 yields for 1 variables"),
        ("for i in h..n step 1:\n    pass", "bound h is float64, not an integer"),
        ("while [s = h] -> s_1:\n    yield s", "params[0] is not a boolean"),
        ("if n:\n    pass", "condition n is int64"),
        ("t = m[n]", "1 indices for 2 dimensions"),
        ("t = x[h]", "index h is float64"),
        ("x[0] = n", "stored value: n is int64, not float64"),
        ("t = view m[:]", "1 entries for 2 dimensions"),
        ("t = x.shape[1]", "axis 1 of 1 dimensions"),
        ("if b:\n    raise ValueError()\n    x[0] = h", "a raise is not the last statement"),
        (
            "if b -> t:\n    raise ValueError()\n    yield h\n  else:\n    yield h",
            "yields something",
        ),
    ],
)
def test_faults(body: str, fault: str) -> None:
    fn = parse(HEADER + "  " + body + "\n  return")
    assert fault in "\n".join(faults(fn))
    with pytest.raises(InternalError) as error:
        verify(fn)
    assert fault in str(error.value) and "f(x: array" in str(error.value)


def test_the_result_must_be_in_scope() -> None:
    fn = parse(HEADER + "  if b:\n    t = add(h, h)\n  return")
    (branch,) = fn.body.stmts
    t = branch.then.stmts[0].out  # type: ignore[union-attr]
    assert faults(dataclasses.replace(fn, result=t))


def test_undefined_matches_anything() -> None:
    verify(parse(HEADER + "  if b -> t:\n    yield n\n  else:\n    yield undef\n  return t"))


def test_literals_count_as_what_they_are_literals_of() -> None:
    from numba import types

    fn = parse(HEADER + "  for i in 0..n step 1 [s = n] -> s_1:\n    yield s\n  return s_1")
    (loop,) = fn.body.stmts
    zero = ir.Lit(0, types.literal(0))
    loop = dataclasses.replace(loop, start=zero, inits=(zero,))  # type: ignore[call-arg]
    verify(dataclasses.replace(fn, body=ir.Block((loop,))))
