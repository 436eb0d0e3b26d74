"""apart: what lies in memory of its own, and what is together with other arrays."""

from __future__ import annotations

from splitad.analysis.apart import Apart
from tests.analysis.facts import find
from tests.analysis.test_memory import SWAP


def together(text: str, *more: str, alias: bool = False) -> set[str]:
    """The groups of arrays, each as their names.  more: arguments that count as one."""
    found = find(text, alias=alias)
    roots = [root for name in more for root in found.memory.base_roots(found[name])]
    apart = Apart(found.fn, found.memory, alias, roots)
    groups: dict[object, list[str]] = {}
    for array in found.memory.roots:
        groups.setdefault(apart.memory_of(array), []).append(array.name)
    return {" ".join(sorted(names)) for names in groups.values()}


VIEWS = """
f(x: float64[::1], y: float64[::1], n: int64):
  v = view x[1:n]
  a = empty((n,), float64)
  b = view a[:]
  return
"""


def test_views_are_where_their_root_is() -> None:
    assert together(VIEWS) == {"v x", "y", "a b"}
    assert together(VIEWS, alias=True) == {"v x y", "a b"}
    assert together(VIEWS, "x", "y") == {"v x y", "a b"}


def test_arrays_that_a_loop_exchanges_are_together_in_it_too() -> None:
    # apart in each iteration, but one reads what another one wrote under the other name
    assert together(SWAP.format(inside="u = b[0]")) == {"a b p q x y"}


def test_what_an_iteration_makes_and_a_later_one_reads() -> None:
    assert together("""
f(x: float64[::1], n: int64):
  y = zeros((3,), float64)
  z = zeros((3,), float64)
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    c = zeros((3,), float64)
    t = a[0]
    c[0] = t
    yield c, a
  return
""") == {"a b c p q x y", "z"}


def test_a_branch_joins_what_it_chooses_from() -> None:
    assert together("""
f(x: float64[::1], y: float64[::1], z: float64[::1], b: bool):
  if b -> a:
    yield x
  else:
    yield y
  if b -> c:
    yield y
  else:
    yield y
  return
""") == {"a c x y", "z"}
