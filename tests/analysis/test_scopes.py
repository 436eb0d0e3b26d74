"""scopes: where values are defined."""

from __future__ import annotations

from splitad.analysis.scopes import scopes
from splitad.ir import nodes as ir
from tests.ir_parse import parse

FN = parse(
    """
f(x: float64[::1], n: int64, b: bool):
  a = x[0]
  for i in 0..n step 1 [s = a] -> s_out:
    if b -> c:
      t = x[i]
      yield t
    else:
      yield s
    while [go = b] -> done:
      u = add(s, c)
      yield b
    yield c
  return s_out
"""
)
WHERE = scopes(FN)
VARS = {v.name: v for v in WHERE.of}


def test_where_values_are_visible() -> None:
    depth = {name: WHERE.of[v].depth for name, v in VARS.items()}
    assert [name for name, d in depth.items() if d == 0] == ["a", "s_out", "x", "n", "b"]
    assert {name for name, d in depth.items() if d == 1} == {"i", "s", "c", "t", "done"}
    assert {name for name, d in depth.items() if d == 2} == {"go", "u"}
    assert WHERE.definition[VARS["x"]] is None
    assert isinstance(WHERE.definition[VARS["s"]], ir.For)


def test_a_branch_shares_the_record_of_its_loop() -> None:
    branch, body = WHERE.of[VARS["t"]], WHERE.of[VARS["s"]]
    assert branch is not body and branch.inside(body) and not body.inside(branch)
    assert branch.record is body and body.record is body
    assert WHERE.of[VARS["u"]].record is WHERE.of[VARS["u"]]
    assert WHERE.of[VARS["a"]].record is WHERE.root
    assert [s.depth for s in WHERE.of[VARS["u"]].chain()] == [2, 1, 0]


def test_statements_are_numbered_as_they_appear() -> None:
    numbers = {name: WHERE.position.get(id(WHERE.definition[v])) for name, v in VARS.items()}
    names = ["a", "s_out", "c", "t", "done", "u"]
    assert sorted(names, key=numbers.__getitem__) == names  # type: ignore[arg-type]
