"""walk: everything is found, by field names alone."""

from __future__ import annotations

import dataclasses

from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.ir.show import show
from tests.ir_parse import parse

FN = parse(
    """
    f(x: float64[:,::1], n: int64):
      v = view x[n, None, 1:n:2]
      for i in 0..n step 1 [s = 0.0] -> s_1:
        t = v[0, i]
        if True -> r:
          x[i, 0] = t
          yield t
        else:
          yield s
        yield r
      return s_1
    """
)


def names(operands: object) -> list[str]:
    return [o.name if isinstance(o, ir.Var) else repr(o.value) for o in operands]  # type: ignore


def test_operands_and_definitions() -> None:
    view, loop = FN.body.stmts
    assert names(walk.operands(view)) == ["x", "n", "1", "n", "2"]
    assert names(walk.operands(loop)) == ["0", "n", "1", "0.0"]
    assert names(walk.outs(loop)) == ["s_1"]
    assert names(walk.inner_defs(loop)) == ["i", "s"]
    assert [type(s).__name__ for s in walk.walk(FN.body)] == ["View", "For", "Load", "If", "Store"]
    assert walk.names(FN) == {"x", "n", "v", "i", "s", "s_1", "t", "r"}


def test_every_node_keeps_to_the_field_names() -> None:
    """A field that is a Var, or some, and is not an operand has one of the names that walk knows."""
    known = {"out", "outs", "counter", "params"}
    for node in ir.Stmt.__args__:  # type: ignore[attr-defined]
        for field in dataclasses.fields(node):
            if field.type in ("Var", "tuple[Var, ...]"):
                assert field.name in known | {"array", "base", "obj"}, (node, field.name)


def test_substitute_replaces_uses_and_rename_definitions() -> None:
    n, s = FN.params[1], next(v for v in walk.defs(FN) if v.name == "s")
    changed = walk.substitute(FN, {n: ir.Lit(4, n.type)})
    assert "x[4, None, 1:4:2]" in show(changed) and "in 0..4 step" in show(changed)
    renamed = walk.rename(FN.body, {s: ir.Var("q", s.type)})
    assert "[q = 0.0]" in show(dataclasses.replace(FN, body=renamed))
    assert walk.substitute(FN, {}) is FN


def test_show_and_parse_agree() -> None:
    header = "f(x: float64[:,::1], n: int64):"
    text = show(FN).splitlines()
    assert show(parse("\n".join([header, *text[2:]]))) == show(FN)
