"""undo: for which arrays an undo log is kept, and which loads can be repeated with one."""

from __future__ import annotations

import numpy as np
import pytest

from splitad.analysis.undo import undo_arrays
from tests.analysis.facts import Found, find

DEEP = """
f(x: float64[::1], y: float64[::1], n: int64):
  {before}
  for k in 0..n step 1:
    for i in 0..n step 1 [s = 0.0] -> s1:
      t = x[i]
      u = mul(t, t)
      s2 = add(s, u)
      yield s2
    x[k] = s1
    {after}
  {end}
  return
"""


def text(before: str = "pass", after: str = "pass", end: str = "pass") -> str:
    return DEEP.format(before=before, after=after, end=end)


def logged(found: Found) -> set[str]:
    return {v.name for v in undo_arrays(found.where, found.memory, found.active)}


def test_loaded_deeper_than_stored() -> None:
    found = find(text())
    assert logged(found) == {"x"}
    assert [c.undo for c in found.plan.copies] == [True]
    assert "t" in found.recomputed()


@pytest.mark.parametrize(
    "changes",
    [
        {"before": "v = view x[0:2]"},
        {"after": "z = call dot(x, y)"},
        {"after": "for j in 0..n step 1:\n      x[j] = s1"},
        {"before": "if True -> c:\n    yield x\n  else:\n    yield y"},
    ],
    ids=["view", "call", "stored as deep", "chosen"],
)
def test_not_where_anything_else_happens_to_it(changes: dict[str, str]) -> None:
    assert not logged(find(text(**changes), dot=np.dot))


def test_not_where_another_argument_may_be_the_same_array() -> None:
    assert not logged(find(text(), alias=True))


def test_a_load_before_a_store_in_its_block_is_taped() -> None:
    found = find("""
f(x: float64[::1], n: int64):
  for k in 0..n step 1:
    old = x[k]
    sq = mul(old, old)
    for i in 0..n step 1 [s = sq] -> s1:
      t = x[i]
      u = mul(t, t)
      s2 = add(s, u)
      yield s2
    x[k] = s1
    new = x[k]
    sq2 = mul(new, new)
    x[0] = sq2
  return
""")
    assert logged(found) == {"x"}
    assert {"old", "new"} <= found.taped() and "t" in found.recomputed()


def test_the_last_load_of_a_block_is_not() -> None:
    found = find("""
f(x: float64[::1], y: float64[::1], n: int64):
  for k in 0..n step 1:
    for i in 0..n step 1 [s = 1.0] -> s1:
      t = x[i]
      u = mul(t, t)
      s2 = add(s, u)
      yield s2
    x[k] = s1
    new = x[0]
    sq = mul(new, new)
    y[k] = sq
  return
""")
    assert {"new", "t"} <= found.recomputed()
