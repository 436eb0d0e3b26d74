"""`grad` and `value_and_grad` from Python: values, what wrt names, types, and arguments put back."""

from __future__ import annotations

import re
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import splitad as ad
from splitad import gradients
from splitad.codegen.load import load_source
from tests.api import programs as p
from tests.api.numeric import central
from tests.leaks import no_leak

both = ad.value_and_grad(p.advance, wrt=("u", "nu"))


def want(u: np.ndarray, nu: float, steps: int = 2, gain: float = 1.0) -> tuple[float, Any, float]:
    return (
        p.advance_njit(u.copy(), nu, steps, gain),
        central(lambda v: p.advance_njit(v.copy(), nu, steps, gain), u),
        central(lambda v: p.advance_njit(u.copy(), v, steps, gain), nu),
    )


@pytest.mark.parametrize("call", [
    lambda u: both(u, -0.1, 3, 2.0), lambda u: both(u, gain=2.0, steps=3, nu=-0.1),
    lambda u: both(nu=-0.1, u=u, steps=3, gain=2.0),
])  # fmt: skip
def test_value_and_gradients(call: Callable[..., Any]) -> None:
    u = p.U.copy()
    value, u_bar, nu_bar = want(u, -0.1, 3, 2.0)
    got, (got_u, got_nu) = call(u)
    assert got == value
    assert np.allclose(got_u, u_bar, rtol=1e-8) and np.isclose(got_nu, nu_bar, rtol=1e-8)
    assert np.array_equal(u, p.U)  # put back


def test_defaults() -> None:
    value, u_bar, _ = want(p.U, -0.1)
    got, (got_u, _) = both(p.U.copy(), -0.1)
    assert got == value and np.allclose(got_u, u_bar, rtol=1e-8)


dot_x = ad.grad(p.dot)
dot_one = ad.grad(p.dot, wrt=("y",))


def test_one_gradient_or_a_tuple() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert np.array_equal(dot_x(x, y), y**2)
    (got,) = dot_one(x, y)
    assert np.array_equal(got, 2 * x * y)
    _, got = ad.value_and_grad(p.dot, wrt=-1)(x, y)
    assert np.array_equal(got, 2 * x * y)


def test_a_step_of_descent_means_what_it_says() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x -= 0.1 * ad.grad(p.dot)(x, y)
    assert np.allclose(x, [0.1, 0.4])
    assert ad.grad(p.dot) is dot_x  # made once


def test_arguments_are_put_back_after_an_exception() -> None:
    u = np.array([-0.5, 0.7])
    with pytest.raises(ValueError, match="negative"):
        both(u, -0.1)
    with no_leak(), pytest.raises(ValueError):
        both(u, -0.1)
    assert u.tolist() == [-0.5, 0.7]


def test_restore_false_leaves_them_as_f_does() -> None:
    u, v = p.U.copy(), p.U.copy()
    got = ad.grad(p.advance, restore=False)(u, -0.1)
    p.advance_njit(v, -0.1)
    assert np.array_equal(u, v) and np.array_equal(got, both(p.U.copy(), -0.1)[1][0])


grow_grad = ad.value_and_grad(p.grow, wrt=(0, 1))


def test_structs() -> None:
    """The gradient is a struct, and fields that f assigned are what they were, the very array."""
    h = np.array([1.0, 2.0])
    s = p.State(h, 0.5)
    with no_leak():
        for _ in range(2):
            value, (s_bar, a_bar) = grow_grad(s, 3.0)
            assert np.isclose(value, 3.0 * 3.0 * 0.5)
            assert isinstance(s_bar, p.State) and np.allclose(s_bar.h, 1.5)
            assert np.isclose(s_bar.t, 9.0) and np.isclose(a_bar, 1.5)
            assert s.t == 0.5 and s.n == 0 and np.shares_memory(s.h, h)
            assert h.tolist() == [1.0, 2.0]
        del s_bar


shift_grad = ad.value_and_grad(p.shift, wrt=(0, 1))


def test_a_struct_given_twice() -> None:
    """Its array's cotangent is one; each position has its part of the number's."""
    s = p.State(np.array([1.0, 2.0, 3.0]), 0.5)

    @njit
    def from_njit(s):
        return shift_grad(s, s)

    for call in (lambda s: shift_grad(s, s), from_njit):
        value, (s_bar, r_bar) = call(s)
        assert np.isclose(value, (1.0 + 0.5 + 0.25) * 0.5 + 0.5)
        assert np.isclose(s_bar.t, 1.75) and np.isclose(r_bar.t, 0.5 * (1.0 + 2 * 0.5) + 1.0)
        assert np.allclose(s_bar.h, [0.5 * 1.75, 0.0, 0.0])
        assert np.shares_memory(s_bar.h, r_bar.h)
    _, pullback = ad.vjp(p.shift, s, s)
    s_bar, r_bar = pullback()
    assert np.isclose(s_bar.t, 1.75) and np.isclose(r_bar.t, 2.0)


def test_tuples_of_arrays_and_scalars() -> None:
    q = p.Flow(np.array([1.0, 2.0]), 3.0, 2)
    q_bar = ad.grad(p.flow)(q, 5.0)
    assert isinstance(q_bar, p.Flow)
    assert np.allclose(q_bar.u, 30.0) and np.isclose(q_bar.speed, 30.0)
    assert q.u.tolist() == [1.0, 2.0]


def scalars_in_a_tuple(c, x):
    return c[0] * c[1] * x


def test_tuples_of_scalars() -> None:
    assert ad.grad(scalars_in_a_tuple)((2.0, 3.0), 5.0) == (15.0, 10.0)


def write_all(a, b, r):
    """A matrix, a 0-d array, records."""
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * b[()]
            s += a[i, j]
    b[()] = 0.0
    r[0].x = r[0].x * s
    return r[0].x


def test_every_kind_of_array_is_put_back() -> None:
    g = ad.grad(write_all, wrt=(0, 1, 2))
    records = np.ones(2, [("x", "f8"), ("k", "i8")])
    a, b, r = np.ones((4, 6))[::2, ::2], np.array(2.0), records.copy()
    for _ in range(2):
        a_bar, b_bar, r_bar = g(a, b, r)
        assert np.all(a_bar == 2.0) and b_bar == 6.0 and r_bar["x"].tolist() == [12.0, 0.0]
        assert np.all(a == 1.0) and b == 2.0 and np.array_equal(r, records)


def test_float32() -> None:
    u = p.U.astype(np.float32)
    _, (u_bar, nu_bar) = both(u, np.float32(-0.1), 2, np.float32(1.0))
    assert u_bar.dtype == np.float32 and np.float32(nu_bar) == nu_bar


def test_overlapping_arguments() -> None:
    x = np.array([2.0, 5.0])
    first = ad.grad(p.closed_in)(x, x)  # 9 x0^2
    assert np.allclose(first, [36.0, 0.0])
    assert x.tolist() == [2.0, 5.0]


@njit
def parts_in_njit(x):
    return dot_parts(x, x)


dot_parts = ad.grad(p.dot, wrt=(0, 1))


def test_overlapping_arguments_that_are_only_read_have_each_its_part() -> None:
    x = np.array([2.0, 3.0])
    for x_bar, y_bar in (dot_parts(x, x), parts_in_njit(x), ad.vjp(p.dot, x, x)[1]()):
        assert np.allclose(x_bar, x**2) and np.allclose(y_bar, 2 * x**2)


@njit
def dot_into(x, y, z):
    z[0] = 0.0
    for i in range(x.shape[0]):
        z[0] += x[i] * x[i] * y[i]
    return z[0]


into_parts = ad.grad(dot_into, wrt=("x", "y"))


@njit
def into_in_njit(x, z):
    return into_parts(x, x, z)


def test_each_has_its_part_unless_what_they_share_is_written() -> None:
    x, z = np.array([2.0, 3.0]), np.zeros(2)
    found = [into_parts(x, x, z), into_in_njit(x, z), ad.vjp(dot_into, x, x, z)[1]()[:2]]
    for x_bar, y_bar in found:
        assert np.allclose(x_bar, 2 * x**2) and np.allclose(y_bar, x**2)
    m = np.array([2.0, 3.0, 0.0])
    x_bar, y_bar = into_parts(m[:2], m[:2], m[2:])  # these do not overlap z
    assert np.allclose(x_bar, 2 * x**2) and np.allclose(y_bar, x**2)
    # y[0] is 0 when it is read: z is y
    x_bar, y_bar = ad.grad(dot_into, wrt=("x", "y"))(x, m[:2], m[:2])
    assert np.allclose(x_bar, central(lambda v: dot_into(v, *[np.array([2.0, 3.0])] * 2), x))


def always(x):
    raise ValueError("never a value")


def test_a_function_that_always_raises() -> None:
    for gradient in (ad.grad(always), ad.value_and_grad(always)):
        with pytest.raises(ValueError, match="never a value"):
            gradient(np.ones(2))


def of_dispatcher(x):
    return x * x


def test_a_dispatcher() -> None:
    g = ad.grad(njit(of_dispatcher))
    assert g(3.0) == 6.0 and g.__name__ == "of_dispatcher"


# ---- stop_gradient -----------------------------------------------------------------------------------


def cut(x, a):
    y = ad.stop_gradient(x)
    y[0] = 5.0  # a copy: x is as it was
    s = 0.0
    for i in range(len(x)):
        s += x[i] * y[i]
    return s * ad.stop_gradient(a) * a


def test_stop_gradient() -> None:
    x = np.array([1.0, 2.0])
    value, (x_bar, a_bar) = ad.value_and_grad(cut, wrt=(0, 1))(x, 3.0)
    assert value == 81.0 and a_bar == 27.0 and np.array_equal(x_bar, [45.0, 18.0])
    assert njit(cut)(x, 3.0) == 81.0
    assert ad.stop_gradient(2.0) == 2.0 and ad.stop_gradient(x) is not x


# ---- faults ------------------------------------------------------------------------------------------


def test_what_wrt_names() -> None:
    with pytest.raises(TypeError, match="advance has no argument 'v'"):
        ad.grad(p.advance, wrt="v")
    with pytest.raises(TypeError, match="has 4 arguments; wrt=4"):
        ad.grad(p.advance, wrt=4)
    with pytest.raises(ad.NotDifferentiableError, match="'steps' of advance, which is int64"):
        ad.grad(p.advance, wrt="steps")(p.U, -0.1)
    with pytest.raises(ad.NotDifferentiableError, match="1.0, not 1"):
        ad.grad(of_dispatcher)(3)


@pytest.mark.parametrize("f", [p.pair_of, p.multiply])
def test_a_result_that_is_not_a_scalar(f: Callable[..., Any]) -> None:
    with pytest.raises(ad.NotDifferentiableError, match=f"{f.__name__} returns"):
        ad.grad(f)(np.ones(2), np.ones(2) if f is p.multiply else 1.0)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'nu'"):
        both(p.U)
    with pytest.raises(TypeError, match="too many positional"):
        both(p.U, -0.1, 2, 1.0, 5)


def unknown_attribute(x):
    return x.foo


def test_errors_are_short() -> None:
    for fault, error in ((lambda: ad.grad(of_dispatcher)(3), ad.NotDifferentiableError),
                         (lambda: ad.grad(unknown_attribute)(p.U), TypingError)):  # fmt: skip
        with pytest.raises(error) as caught:
            fault()
        assert len(caught.traceback) <= 3 and caught.value.__cause__ is None
    assert "Unknown attribute 'foo'" in str(caught.value)
    assert "splitad" not in str(
        caught.value
    )  # Numba's message about the user's lines, nothing of ours


def test_a_call_takes_microseconds() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    dot_x(x, y)
    u = p.U.copy()
    both(u, -0.1)
    for call in (lambda: dot_x(x, y), lambda: both(u, -0.1, 1, 1.0)):
        best = min(timeit.repeat(call, number=300, repeat=20)) / 300
        assert best < 2e-5  # some two of them, on an idle machine


def grown(s, a):
    """No other test makes its gradient, nor that of `times`: they are compiled here."""
    s.h = a * s.h
    return s.h[0] * s.t


def times(x, y):
    return x[0] * y[1]


@pytest.mark.parametrize("f, args", [
    (grown, (p.State(p.U.copy(), 0.3), 0.5)), (times, (p.U, p.U[::-1].copy())),
])  # fmt: skip
def test_the_generated_text_names_what_it_uses(
    f: Callable[..., Any], args: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def load(name: str, source: str, names: dict[str, object]) -> Any:
        seen.append((source, names))
        return load_source(name, source, names)

    monkeypatch.setattr(gradients, "load_source", load)
    ad.grad(f)(*args)
    ((source, names),) = seen
    assert [name for name in names if not re.search(rf"\b{name}\b", source)] == []
