"""memory: what may share memory, and who writes it."""

from __future__ import annotations

from tests.analysis.facts import Found, find


def aliases(found: Found, *names: str) -> bool:
    a, b = (found[name] for name in names)
    assert found.memory.may_alias(a, b) == found.memory.may_alias(b, a)
    return found.memory.may_alias(a, b)


def test_arguments_allocations_views() -> None:
    found = find("""
f(x: float64[::1], y: float64[::1], n: int64):
  v = view x[1:n]
  w = view v[0:2]
  a = empty((n,), float64)
  b = view a[:]
  return
""")
    assert aliases(found, "x", "w") and aliases(found, "v", "w") and aliases(found, "a", "b")
    assert not aliases(found, "x", "y") and not aliases(found, "x", "b")


def test_arguments_that_may_overlap() -> None:
    text = """
f(x: float64[::1], y: float64[::1]):
  a = empty((3,), float64)
  return
"""
    assert aliases(find(text, alias=True), "x", "y")
    assert not aliases(find(text, alias=True), "x", "a")


SWAP = """
f(x: float64[::1], y: float64[::1], n: int64):
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    t = a[0]
    b[1] = t
    {inside}
    yield b, a
  return
"""


def test_swapped_arrays_are_apart_inside_of_the_loop() -> None:
    found = find(SWAP.format(inside="u = b[0]"))
    assert not aliases(found, "a", "b")
    assert aliases(found, "a", "x") and aliases(found, "a", "y")  # seen from outside
    assert aliases(found, "p", "q") and aliases(found, "p", "x") and aliases(found, "p", "y")
    body = found.memory.scopes.of[found["a"]]
    assert not list(found.memory.writes_to(found["a"], body))
    assert list(found.memory.writes_to(found["b"], body))
    assert list(found.memory.writes_to(found["x"], found.memory.scopes.root))


def test_not_if_the_loop_uses_one_of_them_by_its_outer_name() -> None:
    assert aliases(find(SWAP.format(inside="u = x[0]")), "a", "b")


def test_not_through_a_view_either() -> None:
    inside = SWAP.replace("  for k", "  v = view x[1:2]\n  for k").format(inside="u = v[0]")
    assert aliases(find(inside), "a", "b")


def test_not_if_they_may_overlap_from_the_start() -> None:
    assert aliases(find(SWAP.format(inside="u = b[0]"), alias=True), "a", "b")


def test_not_if_one_is_carried_twice() -> None:
    found = find("""
f(x: float64[::1], y: float64[::1], n: int64):
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    yield b, b
  return
""")
    assert aliases(found, "a", "b")


def test_a_new_array_each_time_and_the_last_one() -> None:
    found = find("""
f(x: float64[::1], n: int64):
  y = zeros((3,), float64)
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    c = zeros((3,), float64)
    t = a[0]
    c[0] = t
    yield c, a
  return
""")
    assert not aliases(found, "a", "b") and not aliases(found, "a", "c")
    assert aliases(found, "p", "q")  # both were made in the loop


def test_a_branch_that_picks_an_array() -> None:
    found = find("""
f(x: float64[::1], y: float64[::1], z: float64[::1], b: bool):
  if b -> a:
    yield x
  else:
    yield y
  a[0] = 1.0
  return
""")
    assert aliases(found, "a", "x") and aliases(found, "a", "y") and not aliases(found, "a", "z")
    root = found.memory.scopes.root
    assert list(found.memory.writes_to(found["y"], root))
    assert not list(found.memory.writes_to(found["z"], root))


def test_swapped_in_an_inner_loop() -> None:
    found = find("""
f(x: float64[::1], y: float64[::1], n: int64):
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    for j in 0..n step 1 [c = a, d = b] -> e, g:
      t = c[0]
      d[0] = t
      yield d, c
    yield e, g
  return
""")
    assert aliases(found, "e", "g") and aliases(found, "a", "b")
    assert aliases(found, "c", "d")  # coarse: they are apart, but their inits are not known to be


def test_what_the_caller_can_reach() -> None:
    found = find("""
f(x: float64[::1], n: int64):
  a = zeros((n,), float64)
  b = zeros((n,), float64)
  return a
""")
    names = {getattr(root[1], "name", None) for root in found.memory.escaping}
    assert names == {"x", "a"}
