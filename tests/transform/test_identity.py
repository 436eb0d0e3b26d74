"""identity: an integer beside each array that control flow chooses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array, memory
from splitad.analysis.scopes import scopes
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from splitad.transform import identity
from tests.ir_parse import parse


class _Active:
    """Everything but what is named `still...` is active."""

    def __init__(self, fn: ir.Function) -> None:
        self.memory = memory(fn, scopes(fn), {}, args_alias=False)

    def __call__(self, operand: ir.Operand) -> bool:
        named = isinstance(operand, ir.Var) and operand.name.startswith("still")
        return is_array(operand) and is_differentiable(operand.type) and not named


def run(text: str) -> tuple[str, identity.Identity]:
    fn = parse(text)
    wanted = frozenset(leaf.var for leaf in fn.leaves)
    changed, ids = identity.run(fn, _Active(fn), wanted)  # type: ignore[arg-type]
    verify(changed)
    return "\n".join(show(changed).splitlines()[2:]), ids


def test_swapped_arguments_are_numbered_by_position() -> None:
    text, ids = run("""
f(n: int64, x: float64[::1], y: float64[::1]):
  for k in 0..n step 1 [a = x, b = y] -> p, q:
    yield b, a
  return
""")
    assert (
        text
        == """\
  x_n0 = x.shape[0]
  y_n0 = y.shape[0]
  for k in 0..n step 1 [a = x, b = y, id_a = 1, id_b = 2] -> p, q, id_p, id_q:
    a_n0 = a.shape[0]
    b_n0 = b.shape[0]
    yield b, a, id_b, id_a
  p_n0 = p.shape[0]
  q_n0 = q.shape[0]
  return None"""
    )
    assert {v.name: k for v, k in ids.leaf_ids.items()} == {"x": 1, "y": 2}


def test_a_new_array_draws_a_number_each_time() -> None:
    text, _ = run("""
f(n: int64, x: float64[::1], b: bool):
  for k in 0..n step 1 [a = x] -> p:
    if b -> c:
      new = empty((n,), float64)
      yield new
    else:
      yield a
    yield c
  return
""")
    assert (
        text
        == """\
  x_n0 = x.shape[0]
  for k in 0..n step 1 [a = x, id_a = 1] -> p, id_p:
    a_n0 = a.shape[0]
    if b -> c, id_c:
      new = empty((n), float64)
      id_new = impure fresh_id()
      yield new, id_new
    else:
      yield a, id_a
    c_n0 = c.shape[0]
    yield c, id_c
  p_n0 = p.shape[0]
  return None"""
    )


def test_arrays_that_nothing_chooses_have_none() -> None:
    text, ids = run("""
f(n: int64, x: float64[::1]):
  a = empty((n,), float64)
  v = view x[0:2]
  return a
""")
    assert not ids.id and "id_" not in text


def test_inactive_arrays_have_one_where_they_flow_into_an_active_one() -> None:
    """np.ones() in one branch and an argument in the other."""
    text, ids = run("""
f(n: int64, x: float64[::1], b: bool):
  still = zeros((n,), float64)
  still_2 = zeros((n,), float64)
  for k in 0..n step 1 [still_3 = still] -> still_4:
    yield still_3
  if b -> a:
    yield still_4
  else:
    yield x
  return
""")
    assert {v.name for v in ids.id} == {"still", "still_3", "still_4", "a"}
    assert "still_2_" not in text


def test_a_view_that_is_chosen_has_a_place_in_its_root() -> None:
    """The only root is x: only the place is carried."""
    text, ids = run("""
f(n: int64, x: float64[::1]):
  v = view x[0:2]
  for k in 0..n step 1 [a = v] -> p:
    w = view a[1:2]
    yield w
  return
""")
    assert (
        text
        == """\
  x_n0 = x.shape[0]
  v = view x[0:2]
  at_v = distance v from x
  for k in 0..n step 1 [a = v, at_a = at_v] -> p, at_p:
    a_n0 = a.shape[0]
    a_s0 = a.strides[0]
    w = view a[1:2]
    at_w = distance w from a
    at_w_1 = add(at_a, at_w)
    yield w, at_w_1
  p_n0 = p.shape[0]
  p_s0 = p.strides[0]
  return None"""
    )
    assert {v.name for v in ids.place} == {"x", "a", "p"}


def test_views_of_several_roots_carry_the_root_and_its_size() -> None:
    text, _ = run("""
f(n: int64, x: float64[::1], b: bool):
  new = empty((n,), float64)
  v = view new[1:2]
  if b -> a:
    yield v
  else:
    yield x
  return
""")
    assert (
        text
        == """\
  x_n0 = x.shape[0]
  new = empty((n), float64)
  id_new = impure fresh_id()
  size_new = mul(8, n)
  v = view new[1:2]
  at_v = distance v from new
  if b -> a, id_a, at_a, size_a:
    yield v, id_new, at_v, size_new
  else:
    yield x, 1, 0, 0
  a_n0 = a.shape[0]
  a_s0 = a.strides[0]
  return None"""
    )


def test_a_field_cannot_be_rebound_to_a_view() -> None:
    fn = parse("""
f(x: float64[::1]):
  v = view x[0:2]
  return
""")
    (leaf,) = fn.leaves
    (view,) = fn.body.stmts
    assert isinstance(view, ir.View)
    field = ir.Leaf((0, "h"), leaf.var, view.out)
    fn = replace(fn, leaves=(field,))
    with pytest.raises(UnsupportedError, match="'v' is a view here, and the field 'h'") as error:
        identity.run(fn, _Active(fn), frozenset([leaf.var]))  # type: ignore[arg-type]
    assert "copy" in str(error.value)


def test_undefined_on_one_path() -> None:
    text, _ = run("""
f(n: int64, x: float64[::1], b: bool):
  if b -> a:
    yield x
  else:
    yield undef
  return
""")
    assert "yield undef, -1" in text
