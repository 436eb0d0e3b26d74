"""save_plan: what is taped, what is computed again, and what of memory is kept, and where."""

from __future__ import annotations

import numpy as np

from splitad.ir import nodes as ir
from tests.analysis.facts import Found, find


def copies(found: Found) -> list[tuple[str, str, bool]]:
    """(array, behind which loop or call, by reference) for each copy."""
    named = {None: "the end"}
    for stmt in found.where.definition.values():
        if isinstance(stmt, (ir.For, ir.ArrayCall)):
            name = stmt.counter.name if isinstance(stmt, ir.For) else stmt.outs[0].name
            named[id(stmt)] = name
    return [(c.array.name, named[c.after], c.by_reference) for c in found.plan.copies]


def test_cheap_operations_are_repeated() -> None:
    found = find("""
f(x: float64, y: float64):
  a = add(x, y)
  b = mul(a, a)
  c = sin(b)
  d = mul(c, b)
  return d
""")
    assert found.taped() == {"x", "y", "c"} or found.taped() == {"a", "c"}
    assert "b" in found.recomputed()


def test_a_loop_of_loads_costs_a_snapshot() -> None:
    found = find("""
f(x: float64[::1], n: int64):
  for i in 0..n step 1 [s = 0.0] -> s1:
    t = x[i]
    u = sin(t)
    s2 = add(s, u)
    yield s2
  return s1
""")
    assert copies(found) == [("x", "the end", False)]
    assert found.recomputed() == {"t"} and found.taped() == {"n"}


def test_few_loads_are_taped() -> None:
    found = find("""
f(x: float64[::1]):
  t = x[0]
  u = sin(t)
  return u
""")
    assert not copies(found) and found.taped() == {"t"}


READ_THEN_WRITE = """
f(x: float64[::1], y: float64[::1], n: int64):
  for k in 0..n step 1:
    for i in 0..n step 1 [s = 0.0] -> s1:
      t = x[i]
      u = mul(t, t)
      s2 = add(s, u)
      yield s2
    {last}
  return
"""


def test_one_snapshot_at_the_end_of_what_nothing_writes() -> None:
    assert copies(find(READ_THEN_WRITE.format(last="y[k] = s1"))) == [("x", "the end", False)]


def test_the_snapshot_is_taken_behind_the_loop_that_only_reads() -> None:
    text = READ_THEN_WRITE.replace("  for k", "  v = view x[0:2]\n  for k").format(last="v[k] = s1")
    assert copies(find(text)) == [("x", "i", False)]


def test_a_write_through_another_argument_counts() -> None:
    text = READ_THEN_WRITE.format(last="y[k] = s1")
    assert copies(find(text, alias=True)) == [("x", "i", False)]


READ_TWICE = """
f(x: float64[::1], y: float64[::1], n: int64):
  v = view x[0:2]
  for k in 0..n step 1:
    for i in 0..n step 1:
      t = x[i]
      u = mul(t, t)
      y[i] = u
    {between}
    for j in 0..n step 1:
      t2 = x[j]
      u2 = mul(t2, t2)
      y[j] = u2
    v[0] = 1.0
  return
"""


def test_loops_that_read_the_same_share_a_snapshot() -> None:
    assert copies(find(READ_TWICE.format(between="y[0] = 2.0"))) == [("x", "j", False)]


def test_not_where_it_is_written_between() -> None:
    for between in ("v[1] = 2.0", "for l in 0..n step 1:\n      v[1] = 2.0"):
        found = copies(find(READ_TWICE.format(between=between)))
        assert set(found) == {("x", "i", False), ("x", "j", False)}


def test_loads_beside_the_store_are_taped() -> None:
    found = find("""
f(x: float64[::1], n: int64):
  for i in 0..n step 1:
    t = x[i]
    u = mul(t, t)
    x[i] = u
  return
""")
    assert not copies(found) and found.taped() == {"t", "n"}


LOCAL = """
f(x: float64[::1], n: int64):
  a = zeros((n,), float64)
  for i in 0..n step 1:
    t = x[i]
    u = sin(t)
    a[i] = u
  for j in 0..n step 1 [s = 0.0] -> s1:
    v = a[j]
    w = sin(v)
    s2 = add(s, w)
    yield s2
  {last}
  return {result}
"""


def test_an_array_that_only_f_knows_is_kept_by_reference() -> None:
    found = find(LOCAL.format(last="z = add(s1, 1.0)", result="z"))
    assert ("a", "j", True) in copies(found)


def test_not_where_the_caller_gets_it() -> None:
    found = find(LOCAL.format(last="z = add(s1, 1.0)", result="a, z"))
    assert ("a", "j", False) in copies(found)


def test_not_where_it_is_written_later() -> None:
    found = find(LOCAL.format(last="a[0] = s1", result="s1"))
    assert ("a", "j", False) in copies(found)


def test_carried_arrays_are_copied_inside_of_their_loop() -> None:
    found = find("""
f(x: float64[::1], y: float64[::1], n: int64):
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    for i in 0..n step 1:
      t = a[i]
      u = sin(t)
      b[i] = u
    yield b, a
  return
""")
    assert copies(found) == [("a", "i", False)]


def test_what_rounding_decides_is_taped() -> None:
    """The pullback may contract x * 10 + 0.5; what is loaded has the same bits again."""
    found = find("""
f(x: float64[::1], w: float64[::1], n: int64):
  for i in 0..n step 1 [s = 0.0] -> s1:
    t = x[i]
    a = mul(t, 10.0)
    b = add(a, 0.5)
    k = int64(b)
    near = lt(b, 3.0)
    same = lt(t, 3.0)
    if near -> v:
      v1 = w[k]
      yield v1
    else:
      yield t
    if same -> u:
      u1 = mul(v, v)
      yield u1
    else:
      yield v
    s2 = add(s, u)
    yield s2
  return s1
""")
    assert {"k", "near"} <= found.taped()
    assert "same" in found.recomputed()


def test_random_numbers_are_taped() -> None:
    found = find(
        """
f(x: float64, n: int64):
  r = impure draw()
  t = mul(r, 2.0)
  u = mul(t, x)
  return u
""",
        draw=lambda: 0.5,
    )
    assert found.taped() in ({"r"}, {"t"})


def test_a_call_reads_what_the_array_held_then() -> None:
    text = """
f(x: float64[::1], y: float64[::1]):
  t = call dot(x, y)
  {last}
  return t
"""
    later = find(text.format(last="x[0] = t"), dot=np.dot)
    assert set(copies(later)) == {("x", "t", False), ("y", "the end", False)}
    never = find(text.format(last="pass"), dot=np.dot)
    assert set(copies(never)) == {("x", "the end", False), ("y", "the end", False)}
