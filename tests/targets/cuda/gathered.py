"""What neighbours load is gathered (analysis/neighbours.py): where, where not, and what that changes.

Run by test_simulated.py, in a process with numba's simulator.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numba import cuda, float64, types

import splitad as ad
from splitad.targets.cuda.launch import Launch
from tests.targets.cuda.checking import check, to_device
from tests.targets.cuda.kernels import CASES, N
from tests.targets.cuda.random_kernels import function


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).random(shape)


@cuda.jit
def product(a, b, v):
    i = cuda.grid(1)
    if i < v.shape[0] - 1:
        v[i] = a[i + 1] * b[i] - b[i + 1]


def test_one_array_given_twice() -> None:
    """Each of the two has a shadow of its own."""
    x = cuda.to_device(random(N))
    pullback = ad.cuda.split(product)[2, 8](x, x, cuda.to_device(np.zeros(N)))
    assert pullback._spec.gather is not None
    bars = [cuda.to_device(b) for b in (np.zeros(N), np.zeros(N), np.ones(N))]
    pullback(*bars)
    a_bar, b_bar, v_bar = (b.copy_to_host() for b in bars)
    h, ends = x.copy_to_host(), (np.arange(N) > 0, np.arange(N) < N - 1)
    np.testing.assert_allclose(a_bar, np.where(ends[0], np.roll(h, 1), 0.0))
    np.testing.assert_allclose(b_bar, np.where(ends[1], np.roll(h, -1), 0.0) - ends[0])
    np.testing.assert_array_equal(v_bar, ~ends[1])


def test_an_array_that_is_written_is_no_other_one() -> None:
    x = cuda.to_device(random(N))
    with pytest.raises(ad.AliasingError):
        ad.cuda.split(product)[2, 8](x, cuda.to_device(random(N)), x)
    y = random(2 * N)
    on_device = cuda.to_device(y)
    args = (on_device[:N], cuda.to_device(random(N)), on_device[N - 1 : 2 * N - 1])
    with pytest.raises(ad.AliasingError):
        ad.cuda.split(product)[2, 8](*args)


def test_two_arrays_change_places() -> None:
    """As the states of a simulation do: a launch reads what the one before it wrote."""
    stepper = ad.cuda.split(CASES["wave"].kernel)
    launch = CASES["wave"].launch
    first = random(7, 6)
    loss = random(7, 6)

    def final(start: np.ndarray) -> Any:
        states = [cuda.to_device(x) for x in (start, start)]
        pullbacks = []
        for _ in range(3):
            pullbacks.append(stepper[launch](*states, 0.4))
            states.reverse()
        return states[1], pullbacks

    state, pullbacks = final(first)
    bars = [cuda.to_device(np.zeros((7, 6))), cuda.to_device(loss)]
    for pullback in reversed(pullbacks):
        bars.reverse()
        pullback(*bars)
    found = sum(b.copy_to_host() for b in bars)
    g, h = random(7, 6) - 0.5, 1e-5
    ahead, behind = (np.sum(loss * final(first + t * g)[0].copy_to_host()) for t in (h, -h))
    assert np.sum(found * g) == pytest.approx((ahead - behind) / (2 * h), rel=1e-8)


def test_a_workspace() -> None:
    """What is stored carries a derivative for the kernel only: there is nothing to gather."""
    kernel, launch = CASES["stencil"].kernel, CASES["stencil"].launch
    forward = ad.cuda.split(kernel, ad.Duplicated, ad.Const, ad.Active, ad.Const)
    pullback = forward[launch](*to_device((random(N), np.zeros(N))), 0.1, N)
    bar = cuda.to_device(random(N))
    assert pullback(bar) == (0.0,)
    np.testing.assert_array_equal(bar.copy_to_host(), random(N))


def test_bitwise_the_same() -> None:
    case = CASES["heat"]
    args = case.make(np.random.default_rng(1))
    pullback = ad.cuda.split(case.kernel)[case.launch](*to_device(args))
    found = []
    for _ in range(2):
        bars = [cuda.to_device(random(7, 6)), cuda.to_device(random(7, 6) - 0.5)]
        pullback(*bars)
        found.append(bars[0].copy_to_host())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8, 9, 20])
@pytest.mark.parametrize("name", ["slope", "short_launch", "ring"])
def test_sizes(name: str, size: int) -> None:
    """Of the arrays: from none to more than there are threads."""
    case = CASES[name]
    args = [x for x in case.make(np.random.default_rng(1)) if not isinstance(x, int)]
    args = [np.resize(x, size).astype(x.dtype) for x in args]
    args += [size] if name != "slope" else []
    check(case.kernel, (2, 4), tuple(args))


def test_the_launch_that_gathers() -> None:
    launch = Launch.of((3, 4))
    assert launch.reaching([[(100, 2)]]).blocks == (4, 1, 1)  # two elements behind the last thread
    assert launch.reaching([[(12, 2)]]).blocks == (3, 1, 1)  # which are not there
    assert launch.reaching([[(5, 0)], [(9, 0)]]).blocks == (3, 1, 1)
    assert launch.reaching([[(5, 0)]]).blocks == (2, 1, 1)
    assert launch.reaching([[(0, 1)]]) is None
    assert launch.reaching([]) is None
    two = Launch.of(((2, 2), (4, 8)))
    assert two.reaching([[(9, 1), (17, 1)]]).blocks == (3, 3, 1)


# ---- negative indices ----------------------------------------------------------------------------------

AT_LEAST_ONE = [
    "0 < i", "i > 0", "i >= 1", "1 <= i", "i - 1 >= 0", "i + 2 > 2", "i != 0", "not i == 0", "not i < 1",
    "i > 0 and n > 3", "n > 3 and (n < 9 or i < 9) and i > 2", "not (i == 0 or n < 3)", "(i > 0) & (n > 3)",
    "not ((i < 1) | (n < 3))",
]  # fmt: skip
MAYBE_ZERO = [
    "i >= 0", "n > 3", "i > 0 or n > 3", "i != 1", "i == 0", "not (i == 0 and n < 3)", "i < 5", "n > i",
    "(i > 0) | (n > 3)", "not i > 0", "i > -1", "0 < n - i",
]  # fmt: skip


@pytest.mark.parametrize("guard", [*AT_LEAST_ONE, *MAYBE_ZERO])
def test_what_a_guard_says(guard: str) -> None:
    """Where the index may be negative, the thread adds to the other end by itself."""
    text = f"def kernel(u, v, n):\n i = cuda.grid(1)\n if i < n and ({guard}):\n  v[i] = u[i - 1] * u[i]\n"
    kernel = cuda.jit(function(text, "kernel", [*AT_LEAST_ONE, *MAYBE_ZERO].index(guard)))
    spec = check(kernel, (2, 5), (random(7), np.zeros(7), 7))._spec
    assert spec.gather is not None
    added = inspect.getsource(spec.reverse.fn).count("cuda.atomic.add(d_u")
    assert added == (guard in MAYBE_ZERO)


# ---- where not -----------------------------------------------------------------------------------------


@cuda.jit
def every_other(u, v):
    i = cuda.grid(1)
    if i < v.shape[0] // 2:
        v[i] = u[2 * i + 1] * u[2 * i]


@cuda.jit
def at_run_time(u, v, by):
    i = cuda.grid(1)
    if i < v.shape[0] - by:
        v[i] = u[i + by] * u[i]


@cuda.jit
def overwritten(u, v):
    i = cuda.grid(1)
    if i < v.shape[0] - 1:
        v[i] = u[i + 1] * u[i]
        if i % 2 == 0:
            v[i] = u[i] * 0.5


@cuda.jit
def read_again(u, v, z):
    i = cuda.grid(1)
    if i < v.shape[0] - 1:
        k = (i + 1) % 2 + i // 2 * 2
        v[i] = u[i + 1] * u[i]
        z[i] = v[i // 1] * u[i + 1] + k


@cuda.jit
def strided(u, v):
    for i in range(cuda.grid(1), v.shape[0] - 1, cuda.gridsize(1)):
        v[i] = u[i + 1] * u[i]


@cuda.jit
def written_too(u, v):
    i = cuda.grid(1)
    if i < v.shape[0] - 1:
        v[i] = u[i + 1] * u[i]
    if i == 0:
        u[v.shape[0] + 2] = 0.0


@cuda.jit
def through_shared(u, v):
    s = cuda.shared.array(8, float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    s[t] = u[i] * u[i + 1]
    cuda.syncthreads()
    v[i] = s[7 - t]


@cuda.jit
def through_local(u, v):
    i = cuda.grid(1)
    if i < v.shape[0] - 1:
        a = cuda.local.array(2, float64)
        a[0] = u[i]
        a[1] = u[i + 1]
        v[i] = a[i % 2] * a[0]


@cuda.jit
def by_lane(u, v):
    i = cuda.grid(1)
    if i < v.shape[0] - 1 and cuda.laneid >= 0:
        v[i] = u[i + 1] * u[i]


@cuda.jit
def of_one_row(u, v):
    """Every row of threads reads the same."""
    i, j = cuda.grid(2)
    if i < 3:
        v[i, j] = u[i + 1] * u[i]


@cuda.jit
def narrow(u, v):
    i = np.int8(cuda.grid(1))
    if i < v.shape[0] - 1:
        v[i] = u[i + 1] * u[i]


WHERE_NOT: list[tuple[Any, tuple[Any, ...], Any]] = [
    (every_other, (random(N), np.zeros(N)), (2, 8)),
    (at_run_time, (random(N), np.zeros(N), 2), (2, 8)),
    (overwritten, (random(N), np.zeros(N)), (2, 8)),
    (read_again, (random(N), np.zeros(N), np.zeros(N)), (2, 8)),
    (strided, (random(N), np.zeros(N)), (1, 4)),
    (written_too, (random(N + 3), np.zeros(N)), (2, 8)),
    (through_shared, (random(17), np.zeros(16)), (2, 8)),
    (through_local, (random(N), np.zeros(N)), (2, 8)),
    (of_one_row, (random(5), np.zeros((4, 3))), ((2, 3), (2, 1))),
    (narrow, (random(N), np.zeros(N)), (2, 8)),
]


@pytest.mark.parametrize(("kernel", "args", "launch"), WHERE_NOT)
def test_not_where_it_is_not_proven(kernel: Any, args: Any, launch: Any) -> None:
    assert check(kernel, launch, args)._spec.gather is None


def test_not_with_a_lane() -> None:
    """(The simulator does not run it.)"""
    kind = types.Array(types.float64, 1, "C")
    assert ad.cuda.split(by_lane).compiled((kind, kind)).gather is None


@pytest.mark.parametrize("count", [27, 28])
def test_not_from_too_many_places(count: int) -> None:
    terms = " + ".join(f"u[i + {k}]" for k in range(count))
    text = f"def kernel(u, v):\n i = cuda.grid(1)\n if i < v.shape[0]:\n  v[i] = {terms}\n"
    kernel = cuda.jit(function(text, "kernel", count))
    pullback = check(kernel, (1, 8), (random(8 + count), np.zeros(7)))
    assert (pullback._spec.gather is not None) == (count == 27)
