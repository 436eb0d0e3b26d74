"""augment: what the forward records, and when."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import splitad as ad
from splitad.errors import TapeLimitError
from splitad.tape.ops import live_tapes
from tests.leaks import no_leak
from tests.transform.golden_programs import rounding
from tests.transform.pair_text import pair_text
from tests.transform.programs import ramp


def straight(x: float) -> float:
    return x * 2.0


def power(x, n):
    for k in range(n):
        for i in range(x.size):
            x[i] = x[i] * x[i]
    return x[0]


def raising(x, n):
    s = 1.0
    for i in range(n):
        s = s * x[i]
        if s > 10.0:
            raise ValueError("too large")
    return s


def one_of_two(x, n):
    for i in range(x.shape[0]):
        x[i] *= 2.0
    if n > 0:
        raise ValueError("a")
    else:
        raise KeyError("b")


def forever(x, n):
    while True:
        x[0] = x[0] * 2.0
        n -= 1
        if n < 0:
            raise ValueError("a")


def in_a_callee(x, n):
    jitted_forever(x, n)
    return x[0], x.copy()


jitted_forever = numba.njit(forever)


def test_a_linear_function_records_nothing() -> None:
    text = pair_text(straight, 1.0)
    assert text.facts.layout.header == 0
    assert "column" not in text.forward and "tape_grow" not in text.forward


def test_a_branch_costs_a_byte() -> None:
    text = pair_text(rounding, ramp(), ramp())
    loop = text.facts.where.all[1]
    assert [(c.var.name, c.size) for c in text.facts.layout.record[loop].columns] == [("above", 1)]


def test_a_loop_reserves_once() -> None:
    text = pair_text(power, ramp(), 3)
    lines = text.forward.splitlines()
    inner = next(k for k, line in enumerate(lines) if line.strip().startswith("for i in"))
    body = [line for line in lines[inner + 1 :] if line.startswith(" " * 12)]
    assert body and not any("tape_grow" in line or "cap" in line for line in body)


def test_an_exception_gives_the_tape_back() -> None:
    forward = ad.split(raising)
    before = live_tapes()
    with no_leak(), pytest.raises(ValueError, match="too large"):
        forward(10.0 * ramp(), 5)
    assert live_tapes() == before
    result, pullback = forward(ramp(), 5)
    assert result == pytest.approx(np.prod(ramp()))
    assert np.all(np.isfinite(ad.grad(raising)(ramp(), 5)))


@pytest.mark.parametrize("fn", [one_of_two, forever, in_a_callee])
def test_a_function_that_always_raises(fn) -> None:
    """Numba has no type for what it returns."""
    plain, forward = numba.njit(fn), ad.split(fn)

    @numba.njit
    def call(x, n):
        result, pullback = forward(x, n)
        return pullback.make_zero()

    def check(called) -> None:
        x, y = ramp(), ramp()
        with pytest.raises(ValueError):
            plain(x, 1)
        with pytest.raises(ValueError):
            called(y, 1)
        assert np.array_equal(x, y)

    check(call)
    check(forward)
    with no_leak():  # of itself Numba leaks what a function holds that calls another, which raises
        x = ramp()
        with pytest.raises(ValueError):
            forward(x, 1)
        del x


def test_the_limit() -> None:
    forward = ad.split(power, max_tape_bytes=4096)
    forward(ramp(), 3)
    with pytest.raises(TapeLimitError, match="power would outgrow max_tape_bytes=4096"):
        forward(ramp(), 1000)
