"""python: how operands and statements are printed."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from numba import from_dtype, njit, types

from splitad.codegen import python
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from tests.ir_parse import LOC, parse

ARRAY = types.Array(types.float64, 2, "C")


def lit(value: object, type: types.Type) -> str:
    w = Writer({})
    text = python.literal(w, ir.Lit(value, type))
    kind = njit(eval(f"lambda: {text}", dict(w.names)))
    got = kind()
    assert types.unliteral(kind.nopython_signatures[0].return_type) == type
    assert got == value or (got != got and value != value)
    return text


def test_literals_have_their_type() -> None:
    assert lit(2, types.int64) == "2"
    assert lit(2, types.int32) == "int32(2)"
    assert lit(0.1, types.float64) == "0.1"
    assert lit(np.float32(0.1), types.float32) == "float32(0.10000000149011612)"
    assert lit(True, types.boolean) == "True"
    assert lit(1 - 2j, types.complex128) == "complex(1.0, -2.0)"
    assert lit(float("-inf"), types.float64) == "(-math.inf)"
    assert lit(float("nan"), types.float64) == "math.nan"


def test_frozen_arrays_have_names_of_their_own() -> None:
    """Modules of equal text are shared, so the text must tell two arrays apart."""
    a, b = np.ones(2), np.ones(2)
    type = types.Array(types.float64, 1, "C", readonly=True)
    names = [python.literal(Writer({}), ir.Lit(value, type)) for value in (a, b, a)]
    assert names[0] == names[2] != names[1]


@pytest.mark.parametrize(
    "type", [types.boolean, types.int64, types.uint8, types.float32, types.complex64, ARRAY]
)
def test_zeros(type: types.Type) -> None:
    w = Writer({})
    text = python.zero(w, type)
    value = njit(eval(f"lambda: {text}", dict(w.names)))()
    assert np.size(value) == 0 or value == 0


def test_dtypes() -> None:
    w = Writer({})
    assert python.dtype_name(w, types.float32) == "np.float32"
    assert python.dtype_name(w, types.boolean) == "np.bool_"
    one, two = (from_dtype(np.dtype([(name, "f8")])) for name in "ab")
    assert python.dtype_name(w, one) == "record_dtype" == python.dtype_name(w, one)
    assert python.dtype_name(w, two) == "record_dtype_"


PRINTED = """
f(x: float64[::1], m: float64[:,::1], n: int64, b: bool):
  t = x[n]
  t_1 = x[n] nowrap
  u = m[n, 0] nowrap
  x[0] = t
  m[n, 1] nowrap = u
  v = view m[1, 0:n:2]
  w = view m.T
  a = zeros((n, 2,), float64)
  k = x.shape[0]
  c = int64(t)
  d = add(t, u)
  e = neg(d)
  if b:
    raise ValueError("no")
  return
"""


def test_statements() -> None:
    w = Writer({})
    fn = parse(PRINTED)
    for stmt in fn.body.stmts[:-1]:
        python.statement(w, stmt, unchecked=True)
    python.statement(w, fn.body.stmts[-1].then.stmts[0], unchecked=True)  # type: ignore[union-attr]
    assert w.lines == [
        "t = x[n]",
        "t_1 = load_at(x, n)",
        "u = load_at(m, (n, 0))",
        "x[0] = t",
        "store_at(m, (n, 1), u)",
        "v = m[1, 0:n:2]",
        "w = m.T",
        "a = zero_array((n, 2, ), np.float64)",
        "k = x.shape[0]",
        "c = int64(t)",
        "d = t + u",
        "e = -d",
        "raise ValueError('no')",
    ]
    checked = Writer({})
    python.statement(checked, fn.body.stmts[1], unchecked=False)
    assert checked.lines == ["t_1 = x[n]"]


def test_views_of_every_kind() -> None:
    base = ir.Var("z", ARRAY)
    out = ir.Var("v", ARRAY)
    n = ir.Var("n", types.intp)

    def view(kind: str, *index: ir.Index) -> str:
        return python.view_text(Writer({}), ir.View(out, base, kind, index, loc=LOC), "z")

    assert view("real") == "z.real" and view("imag") == "z.imag" and view("T") == "z.T"
    assert view("reshape", n, ir.Lit(2, types.intp)) == "z.reshape((n, 2,))"
    assert view("reshape") == "z.reshape(())"
    assert view("field", ir.Lit("a", types.unicode_type)) == "z['a']"
    assert view("index", ir.Slice(None, n, None), ir.NewAxis(), n) == "z[:n, None, n]"
    assert view("index", ir.Slice(None, None, None)) == "z[:]"


def test_negative_operands_keep_their_sign() -> None:
    w = Writer({})
    args = (ir.Lit(-2.0, types.float64), ir.Lit(2.0, types.float64))
    out = ir.Var("t", types.float64)
    python.statement(w, ir.Prim(out, operator.pow, args, loc=LOC), unchecked=True)
    assert w.lines == ["t = (-2.0) ** 2.0"]
