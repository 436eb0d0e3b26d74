"""activity: what carries a derivative."""

from __future__ import annotations

import numpy as np
import pytest

from splitad.errors import UnsupportedError
from tests.analysis.facts import Found, find


def active(found: Found) -> set[str]:
    return {v.name for v in found.where.of if found.active(v)}


def test_from_an_input_and_to_an_output() -> None:
    found = find("""
f(x: float64, y: float64, n: int64):
  a = mul(x, 2.0)
  c = mul(1.5, 2.0)
  unused = mul(a, y)
  k = int64(a)
  back = float64(k)
  d = add(a, back)
  e = add(d, c)
  return e
""")
    assert active(found) == {"x", "y", "a", "d", "e"}  # y: what it holds at exit is an output too


def test_const_arguments() -> None:
    text = """
f(x: float64, y: float64):
  a = mul(x, y)
  return a
"""
    assert active(find(text, const=("y",))) == {"x", "a"}
    assert not active(find(text, const=("x", "y")))


def test_through_memory_whatever_the_order() -> None:
    found = find("""
f(x: float64[::1], n: int64):
  a = zeros((n,), float64)
  z = zeros((n,), float64)
  for i in 0..n step 1 [s = 0.0] -> s_out:
    t = a[i]
    c = z[i]
    p = mul(t, c)
    u = x[i]
    a[0] = u
    q = add(s, p)
    yield q
  return s_out
""")
    assert {"x", "a", "t", "u", "p", "q", "s", "s_out"} == active(found)


def test_a_const_array_that_takes_part() -> None:
    found = find(
        """
f(x: float64[::1], w: float64[::1]):
  t = x[0]
  w[0] = t
  u = w[1]
  return u
""",
        const=("w",),
    )
    assert active(found) == {"x", "w", "t", "u"}


def test_carried_values_and_branches() -> None:
    found = find("""
f(x: float64, b: bool, n: int64):
  for i in 0..n step 1 [p = x, q = 1.0, k = 0] -> p1, q1, k1:
    r = mul(q, 2.0)
    k2 = add(k, 1)
    yield q, r, k2
  if b -> z:
    yield p1
  else:
    yield q1
  return z
""")
    assert active(found) == {"x", "p", "p1", "z"}


def test_a_random_number_of_an_active_parameter() -> None:
    text = """
f(x: float64):
  t = impure draw(x)
  return t
"""
    with pytest.raises(UnsupportedError, match="parameter that carries a derivative"):
        find(text, draw=np.random.normal)
    find(text, const=("x",), draw=np.random.normal)
