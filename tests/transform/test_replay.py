"""Loops whose iterations the pullback runs again: which these are, and that nothing else changes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import splitad as ad
from splitad.ir.activities import default
from splitad.tape.ops import live_tapes
from splitad.testing import check_vjp
from tests.fuzz.interpreted import Interpreted, check_in_python
from tests.leaks import no_leak
from tests.transform.pair_text import pair_text

ROOT = Path(__file__).resolve().parent.parent.parent


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, n)


LIMIT = 1 << 30  # a limit to the tape: what must be exact is replayed too


def replayed(
    f: Callable[..., Any], *args: Any, max_tape_bytes: int | None = LIMIT, **options: Any
) -> list[str]:
    """The counters of the loops that are."""
    options["max_tape_bytes"] = max_tape_bytes
    return [each.loop.counter.name for each in pair_text(f, *args, **options).facts.replays]


# ---- all pairs, in every form ----------------------------------------------------------------------------


def verlet(x, v, m, dt, steps):
    """Positions and velocities in place, a workspace for the forces, a branch inside, an energy carried."""
    n = x.shape[0]
    f = np.empty(n)
    energy = 0.0
    for _ in range(steps):
        for i in range(n):
            f[i] = 0.0
        for i in range(n):
            for j in range(n):
                if i != j:
                    d = x[i] - x[j]
                    r2 = d * d + 0.1
                    if r2 < 1.5:
                        y = m[j] * math.exp(-math.sqrt(r2))
                        f[i] += y * d / r2
                        energy += 0.5 * y
        for i in range(n):
            v[i] += dt * f[i]
            x[i] += dt * v[i]
    return energy


def three_axes(x, v, dt, steps):
    """Positions with an axis of length 3, on which the loops are short."""
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                if j != i:
                    r2 = 0.1
                    for k in range(3):
                        r2 += (x[i, k] - x[j, k]) ** 2
                    w = math.exp(-r2)
                    for k in range(3):
                        v[i, k] += dt * w * (x[j, k] - x[i, k])
        for i in range(n):
            for k in range(3):
                x[i, k] += dt * v[i, k]


def pairs_of_rows(x, dt, steps):
    """Rows as views, an array made in each iteration, a while."""
    n = x.shape[0]
    for _ in range(steps):
        rates = np.zeros(x.shape)
        for i in range(n):
            mine = x[i]
            for j in range(n):
                other = x[j]
                r2 = 0.1
                for k in range(x.shape[1]):
                    r2 += (mine[k] - other[k]) ** 2
                w = math.tanh(r2)
                while w > 0.3:
                    w = w * w * math.cos(w)
                for k in range(x.shape[1]):
                    rates[i, k] += w * (other[k] - mine[k])
        for i in range(n):
            for k in range(x.shape[1]):
                x[i, k] += dt * rates[i, k]


def scalars(x, c, steps):
    """Carried scalars that change places, one of them of the loop around only at first, steps of two."""
    a, b, k = c, 2.0, 0
    for t in range(2 * steps, 0, -2):
        for i in range(x.size):
            for j in range(x.size):
                x[i] += 0.1 * math.sin(x[j] * a + t) * b
        a, b = b, a + 0.1 * x[k]
        k = (k + 1) % x.size
        c = c * 0.9
    return a * b + c


def between(x, w, steps):
    """What it only reads is made before the loop and overwritten after it; x is overwritten after it too."""
    n = x.size
    u = w * w
    s = 0.0
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                s += math.exp(x[i] * u[j] - s)
            x[i] = x[i] * 0.5 + u[i] + 0.1 * s
    for i in range(n):
        u[i] = x[i] * s
        x[i] = u[i] * u[i]
    return u[0] + s


PROGRAMS = {
    "verlet": (verlet, lambda: (points(5), points(5, 1), points(5, 2), 0.1, 4)),
    "verlet_no_steps": (verlet, lambda: (points(5), points(5, 1), points(5, 2), 0.1, 0)),
    "verlet_nothing": (verlet, lambda: (points(0), points(0, 1), points(0, 2), 0.1, 3)),
    "three_axes": (
        three_axes,
        lambda: (points(12).reshape(4, 3), points(12, 1).reshape(4, 3), 0.1, 3),
    ),
    "pairs_of_rows": (pairs_of_rows, lambda: (points(8).reshape(4, 2), 0.1, 3)),
    "scalars": (scalars, lambda: (points(3), 0.7, 3)),
    "between": (between, lambda: (points(3), points(3, 1), 3)),
}


COMPILED = ["verlet", "three_axes", "pairs_of_rows", "between"]


@pytest.mark.parametrize("name", COMPILED)
def test_gradients(name: str) -> None:
    f, make = PROGRAMS[name]
    assert replayed(f, *make()), "not replayed"
    check_vjp(f, *make(), max_tape_bytes=LIMIT)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in COMPILED])
def test_gradients_in_python(name: str, monkeypatch) -> None:
    monkeypatch.setenv("SPLITAD_ALWAYS", "replay")
    f, make = PROGRAMS[name]
    assert replayed(f, *make()), "not replayed"
    check_in_python(f, *make())


@pytest.mark.parametrize("name", PROGRAMS)
def test_to_rounding_as_without(name: str, monkeypatch) -> None:
    f, make = PROGRAMS[name]
    kinds = tuple(default(numba.typeof(arg)) for arg in make())
    found = []
    for always, without in (("replay", ""), ("", "replay")):
        monkeypatch.setenv("SPLITAD_ALWAYS", always)
        monkeypatch.setenv("SPLITAD_WITHOUT", without)
        result, pullback = Interpreted(numba.njit(f), kinds, make(), {})(*make())
        shadows = pullback.make_zero()
        for shadow in shadows:
            shadow += 1.0
        bars = pullback(None if result is None else 1.0, *shadows)
        found.append([result or 0.0, *bars, *shadows])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_single_precision() -> None:
    args = tuple(points(5, k).astype(np.float32) for k in range(3))

    def f(x, v, m, steps):
        n = x.size
        e = np.float32(0.0)
        for _ in range(steps):
            for i in range(n):
                for j in range(n):
                    y = m[j] * math.exp(x[i] - x[j])
                    v[i] += np.float32(0.1) * y
                    e += y
            for i in range(n):
                x[i] -= np.float32(0.1) * v[i]
        return e

    assert replayed(f, *args, 3)
    check_vjp(f, *args, 3)


def test_complex_numbers() -> None:
    def f(z, steps):
        for _ in range(steps):
            for i in range(z.size):
                for j in range(z.size):
                    z[i] += 0.1 * np.exp(1j * z[j]) * z[i]
        return z[0]

    z = points(4) + 1j * points(4, 1)
    assert replayed(f, z, 3)
    check_vjp(f, z, 3)


def test_arrays_of_any_layout() -> None:
    x, v = points(24).reshape(3, 8)[:, ::2].T, np.asfortranarray(points(12, 1).reshape(4, 3))
    assert replayed(three_axes, x, v, 0.1, 3)
    check_vjp(three_axes, x, v, 0.1, 3, max_tape_bytes=LIMIT)


def test_a_workspace_that_is_const() -> None:
    args = PROGRAMS["verlet"][1]()
    kinds = (ad.Duplicated, ad.Const, ad.Const, ad.Active, ad.Const)
    check_vjp(verlet, *args, activities=kinds, max_tape_bytes=LIMIT)


def test_two_loops_one_after_the_other_and_one_around() -> None:
    def f(x, steps):
        s = 0.0
        for _ in range(steps):
            for i in range(x.size):
                for j in range(x.size):
                    x[i] += 0.1 * math.sin(x[j])
        for _ in range(steps):
            for _ in range(2):
                for i in range(x.size):
                    for j in range(x.size):
                        s += 0.01 * math.exp(-x[i] * x[j])
                x[0] += 0.1 * s
        return s

    assert len(replayed(f, points(3), 2)) == 2
    check_in_python(f, points(3), 2)


# ---- what it is for ----------------------------------------------------------------------------------------


def test_the_tape_holds_the_state_only(monkeypatch) -> None:
    n, steps = 40, 10
    taken = {}
    for without in ("", "replay"):
        monkeypatch.setenv("SPLITAD_WITHOUT", without)
        args = points(n), points(n, 1), points(n, 2), 0.1, steps
        _, pullback = ad.split(numba.njit(verlet), max_tape_bytes=LIMIT)(*args)
        taken[without] = pullback.tape_nbytes
    assert taken["replay"] > steps * n * n * 8
    state = steps * (3 * (n * 8 + 8) + 8)  # x, v and f with their lengths, and the energy
    assert state < taken[""] < 1.3 * state


@pytest.fixture(scope="module")
def forward() -> Any:
    return ad.split(numba.njit(verlet), max_tape_bytes=20_000)


def test_pullbacks_in_several_threads(forward) -> None:
    result, pullback = forward(*PROGRAMS["verlet"][1]())
    found: list[list[np.ndarray]] = [[] for _ in range(4)]

    def work(k: int) -> None:
        for _ in range(20):
            shadows = pullback.make_zero()
            found[k] = [*pullback(1.0, *shadows), *shadows]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.array_equal(one, two)


def test_nothing_leaks(forward) -> None:
    before = live_tapes()

    def once() -> None:
        _, pullback = forward(*PROGRAMS["verlet"][1]())
        pullback(1.0, *pullback.make_zero())
        assert live_tapes() == before + 1  # the small one is gone

    once()
    with no_leak():
        once()
    assert live_tapes() == before


WITHOUT_MEMORY = """
import resource
import numpy as np, pytest
import splitad as ad
from splitad.tape.ops import live_bytes, live_tapes
from tests.transform.test_replay import plain

forward = ad.split(plain, ad.Duplicated, ad.Duplicated, ad.Const, max_tape_bytes=1 << 30)
_, pullback = forward(np.ones(9), np.ones(9), 2)
pullback(None, *pullback.make_zero())

n = 8000  # what an iteration tapes takes half a GB
_, pullback = forward(np.zeros(n), np.zeros(n), 1)
shadows = pullback.make_zero()
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), resource.RLIM_INFINITY))

before = live_tapes(), live_bytes()
with pytest.raises(MemoryError, match="no memory for the tape"):
    pullback(None, *shadows)
assert (live_tapes(), live_bytes()) == before
print("no tape lost")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_no_tape_is_lost_where_there_is_no_memory() -> None:
    """Arrays are, here as in any function that Numba compiles: what raises keeps what it refers to."""
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_MEMORY], cwd=ROOT, capture_output=True, text=True
    )
    assert run.stdout == "no tape lost\n", run.stderr


def test_in_njit_code(forward) -> None:
    @numba.njit
    def both(x, v, m, dt, steps):
        _, pullback = forward(x, v, m, dt, steps)
        dx, dv, dm = np.zeros_like(x), np.zeros_like(v), np.zeros_like(m)
        bars = pullback(1.0, dx, dv, dm)
        return dx, dv, dm, bars[0]

    args = PROGRAMS["verlet"][1]()
    _, pullback = forward(*PROGRAMS["verlet"][1]())
    shadows = pullback.make_zero()
    bars = pullback(1.0, *shadows)
    for one, other in zip(both(*args), (*shadows, *bars), strict=True):
        assert np.array_equal(one, other)


def test_the_forward_is_bounded_by_what_it_tapes(forward) -> None:
    n, steps = 60, 5
    args = points(n), points(n, 1), points(n, 2), 0.1
    _, pullback = forward(*args, steps)
    pullback(1.0, *pullback.make_zero())  # whose own tape is larger

    def refused() -> None:
        with pytest.raises(ad.TapeLimitError):
            forward(*args, 4 * steps)

    refused()
    with no_leak():
        refused()


def plain(x, v, steps):
    """No branch hangs on what is computed."""
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                if i != j:
                    v[i] += 0.1 * math.exp(x[i] - x[j])
        for i in range(x.size):
            x[i] -= 0.1 * v[i]


def test_what_must_be_exact_is_replayed_where_the_tape_has_a_limit() -> None:
    args = PROGRAMS["verlet"][1]()
    assert replayed(verlet, *args) and not replayed(verlet, *args, max_tape_bytes=None)
    assert replayed(plain, points(3), points(3), 2, max_tape_bytes=None)
    check_vjp(plain, points(4), points(4, 1), 3)
    found = pair_text(verlet, *args, max_tape_bytes=LIMIT).facts.replays
    assert [each.loose for each in found] == [False]


# ---- which loops -------------------------------------------------------------------------------------------


def taped_per_row(x, a, steps):
    """A value for each row of a product of matrices: no more than the state."""
    for _ in range(steps):
        y = np.zeros(x.size)
        for i in range(x.size):
            for j in range(x.size):
                y[i] += a[i, j] * x[j]
        for i in range(x.size):
            x[i] = math.tanh(y[i])


def trajectory(xs):
    """A row of the state for each step: all of it would be saved each time."""
    for t in range(xs.shape[0] - 1):
        for i in range(xs.shape[1]):
            for j in range(xs.shape[1]):
                xs[t + 1, i] += math.exp(-xs[t, j] * xs[t, i])


def computed_deeper(x, steps):
    """Products of three would be computed again for what is taped for pairs."""
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                s = 0.0
                for k in range(x.size):
                    s += x[i] * x[k] + x[j]
                x[i] += 0.1 * math.exp(-s)


def no_state(x):
    s = 0.0
    for i in range(x.size):
        for j in range(x.size):
            for k in range(x.size):
                s += math.exp(x[i] * x[j] * x[k])
    return s


def one_element(x, total, c):
    """A loop over time changes an array."""
    s = 0.0
    for i in range(x.size):
        for j in range(x.size):
            s += math.sin(s * c + x[j])
        total[0] += s * x[i]


def test_where_it_does_not_pay(monkeypatch) -> None:
    square = points(9).reshape(3, 3)
    cases = [
        (taped_per_row, (points(3), square, 2)), (trajectory, (square,)), (computed_deeper, (points(3), 2)),
        (no_state, (points(3),)), (one_element, (points(3), points(1), 0.3)),
    ]  # fmt: skip
    for f, args in cases:
        assert not replayed(f, *args), f.__name__
    monkeypatch.setenv("SPLITAD_ALWAYS", "replay")
    for f, args in cases:
        assert replayed(f, *args), f.__name__
        check_in_python(f, *args)


def swapped(x, y, steps):
    """Which array is which, the loop carries on."""
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                y[i] = y[i] + math.exp(x[j] * x[i])
        x, y = y, x
    return x[0]


def through_a_view(x, steps):
    y = x[1:]
    for _ in range(steps):
        for i in range(y.size):
            for j in range(y.size):
                x[i] += math.exp(-y[j] * x[i])


def counted_in_unsigned(x, n):
    """Such a counter would be a signed one in the reversed loop."""
    for t in range(np.uint64(n)):
        for i in range(x.size):
            for j in range(x.size):
                x[i] += math.exp(-x[j]) * float(t - np.uint64(1))


def names_the_fault(x, steps, name):
    for _ in range(steps):
        if x[0] > 9.0:
            raise ValueError(name)
        x[0] += math.sin(x[1])


def drawn(x, steps):
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                x[i] += math.exp(x[j]) * np.random.random()


def test_where_it_cannot_be_done(monkeypatch) -> None:
    monkeypatch.setenv("SPLITAD_ALWAYS", "replay")
    assert not replayed(swapped, points(3), points(3), 2)
    assert not replayed(drawn, points(3), 2)
    assert not replayed(counted_in_unsigned, points(3), 2)
    assert not replayed(names_the_fault, points(3), 2, "far")
    assert replayed(through_a_view, points(3), 2)  # there is no view left
    monkeypatch.setenv("SPLITAD_WITHOUT", "forward_views")
    assert not replayed(through_a_view, points(3), 2)


def test_arguments_that_overlap() -> None:
    """One of them is written: what is read of it through the other is not known before the iteration."""

    def f(x, m, steps):
        for _ in range(steps):
            for i in range(x.size):
                for j in range(x.size):
                    x[i] += 0.1 * math.sin(x[j] * m[i])

    x = points(5)
    assert replayed(f, x, x.copy(), 2)
    assert not replayed(f, x, x, 2, args_alias=True)
    check_vjp(f, x[1:], x[:-1], 2)


def test_what_is_only_read_may_overlap() -> None:
    """So do the shadows of it, in one variable or two."""

    def f(x, a, b, steps):
        c = a[::2]
        for _ in range(steps):
            for i in range(x.size):
                for j in range(x.size):
                    x[i] += 0.1 * math.exp(-a[j] * b[i]) * c[j // 2] * x[j]
                    x[i] += a[j + 1] * b[j]

    a = points(6, 1)
    assert replayed(f, points(4), a[1:], a[:-1], 2)
    check_vjp(f, points(4), a[1:], a[:-1], 2)


# ---- the same branches -------------------------------------------------------------------------------------


def cut_off(x, steps):
    """What is in reach is told by the positions."""
    for _ in range(steps):
        for i in range(x.size):
            s = 0.0
            for j in range(x.size):
                if abs(x[j] - x[i]) < 0.7:
                    s += math.exp(x[j])
            x[i] += 0.1 * s


def until_small(x, steps):
    """How often is told by what exp gives."""
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                y = math.exp(x[i] - x[j])
                while y > 0.5:
                    y *= 0.5
                    x[i] += 0.01 * y * y


def positions_first(x, v, steps):
    """Of the positions as the step begins, exp tells nothing."""
    n = x.size
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                if x[j] > x[i]:
                    v[i] += math.exp(x[j] - x[i])
        for i in range(n):
            x[i] += 0.1 * v[i]


def test_branches_on_what_may_come_out_otherwise() -> None:
    fast = {"fastmath": True}
    vector = {"vector_math": "all"}
    x, v = points(4), points(4, 1)
    for options in ({}, {"vector_math": "pullback"}):
        assert replayed(cut_off, x, 2, **options)
        assert replayed(until_small, x, 2, **options)
        assert replayed(positions_first, x, v, 2, **options)
    # with vector forms, what exp added to the positions may differ; those that the step began with do not
    assert not replayed(cut_off, x, 2, **vector)
    assert not replayed(until_small, x, 2, **vector)
    assert replayed(positions_first, x, v, 2, **vector)
    # with fastmath even a difference may
    assert not replayed(cut_off, x, 2, **fast)
    assert not replayed(until_small, x, 2, **fast)
    assert replayed(positions_first, x, v, 2, **fast)


def test_what_branches_compare_with_is_not_computed_again() -> None:
    """The pullback has fastmath: a product outside of the loop could differ from the forward's."""

    def f(x, c, steps):
        cut = c * c + 0.1 * c
        for _ in range(steps):
            for i in range(x.size):
                for j in range(x.size):
                    if x[j] < cut:
                        x[i] += 0.1 * math.exp(-x[j]) * cut

    def taped(f: Callable[..., Any]) -> set[str]:
        facts = pair_text(f, points(3), 0.7, 2, max_tape_bytes=LIMIT).facts
        assert facts.replays
        return {v.name for v in facts.plan.taped[facts.where.root]}

    def g(x, c, steps):
        cut = c * c + 0.1 * c
        for _ in range(steps):
            for i in range(x.size):
                for j in range(x.size):
                    x[i] += 0.1 * math.exp(-x[j]) * cut

    assert "cut" in taped(f)
    assert "cut" not in taped(g)  # no branch there
    check_in_python(f, points(3), 0.7, 2)


def test_names_that_the_generated_code_could_use_itself() -> None:
    def f(bars_t, tape_t, rec_t, out_t, again_out_t, steps):
        for t in range(steps):
            for i in range(out_t.size):
                for j in range(out_t.size):
                    out_t[i] += 0.1 * math.exp(-again_out_t[j] * bars_t[i]) * tape_t[j] + t
                again_out_t[i] += 0.1 * rec_t[i]
                rec_t[i] *= 0.9
                tape_t[i] += out_t[i]
                bars_t[i] += tape_t[i]

    args = [points(3, k) for k in range(5)]
    assert replayed(f, *args, 2)
    check_in_python(f, *args, 2)


def test_rounding_is_a_branch() -> None:
    def f(x, steps):
        for _ in range(steps):
            for i in range(x.size):
                for j in range(x.size):
                    y = math.exp(x[i] - x[j])
                    x[i] += 0.1 * (y - math.floor(y))

    assert replayed(f, points(3), 2)
    assert not replayed(f, points(3), 2, vector_math="all")
    assert not replayed(f, points(3), 2, fastmath=True)


def test_what_only_others_see_is_not_done_again(capfd) -> None:
    def f(x, steps):
        for t in range(steps):
            print("step", t)
            for i in range(x.size):
                for j in range(x.size):
                    x[i] += math.exp(-x[j])

    assert replayed(f, points(3), 2)
    _, pullback = ad.split(numba.njit(f))(points(3), 2)
    pullback(None, *pullback.make_zero())
    assert capfd.readouterr().out.count("step") == 2


def test_a_step_that_could_raise() -> None:
    def f(x, steps):
        for _ in range(steps):
            for i in range(x.size):
                if x[i] > 5.0:
                    raise ValueError("too far")
                for j in range(x.size):
                    x[i] += 0.1 * math.exp(-x[j]) / (x[i] * x[i] + 1.0)

    assert replayed(f, points(3), 2)
    check_vjp(f, points(3), 2, max_tape_bytes=LIMIT)
    with pytest.raises(ValueError, match="too far"):
        ad.split(numba.njit(f), max_tape_bytes=LIMIT)(points(3) + 9.0, 2)
