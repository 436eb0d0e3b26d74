"""names: no variable is called like something that the generated code defines."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from splitad.codegen.writer import identifier, is_reserved
from splitad.ir.show import show
from splitad.transform import names
from tests.ir_parse import parse
from tests.transform import programs
from tests.transform.pair_text import pair_text


def test_renamed() -> None:
    fn = parse("""
f(x: float64[::1], d_x: float64):
  need = mul(d_x, 2.0)
  tape = x[0]
  for k in 0..3 step 1 [rec_k = need] -> s:
    yield tape
  n_k = add(s, need)
  return n_k
""")
    assert (
        show(names.run(fn))
        == """\
f(x: array(float64, 1d, C), _d_x: float64) -> float64
  leaves x, _d_x
  _need = mul(_d_x, 2.0)
  _tape = x[0]
  for k in 0..3 step 1 [_rec_k = _need] -> s:
    yield _tape
  n_k = add(s, _need)
  return n_k"""
    )


def test_with_a_number() -> None:
    fn = parse("""
f(x: float64):
  fdiv_1 = mul(x, 2.0)
  fdiv = mul(x, fdiv_1)
  return fdiv
""")
    assert "_fdiv = mul(x, _fdiv_1)" in show(names.run(fn, frozenset({"fdiv"})))
    assert names.run(fn) is fn


def clashing(x: np.ndarray, d_x: float) -> float:
    math_ = d_x
    int64 = math_ * x[0]
    np_ = int64 / d_x
    for i in range(x.size):
        fdiv = np_ * x[i]
        np_ = fdiv / d_x
    return np_ * int64


def test_names_of_globals_that_the_text_uses() -> None:
    text = pair_text(clashing, np.ones(3), 1.0)
    variables = {identifier(v.name) for v in names.variables(text.facts.fn)}
    assert "_int64" in variables and "int64" in text.names
    assert not variables & set(text.names)


@pytest.mark.parametrize("case", programs.CASES, ids=lambda case: case.fn.__name__)
def test_the_lists_are_complete(case: programs.Case) -> None:
    """What a generated function assigns is a variable of the IR, or known to be its own."""
    text = pair_text(case.fn, *case.args(), const=case.const)
    variables = {identifier(v.name) for v in names.variables(text.facts.fn)}
    for source in (text.forward, text.pullback):
        stored = {
            node.id
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        assert {name for name in stored - variables if not is_reserved(name)} == set()
