"""What is refused, and the boundary; run by test_simulated.py in a process with numba's simulator."""

from __future__ import annotations

import linecache
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import cuda, float64, njit

import splitad as ad
from tests.targets.cuda.checking import check, run, to_device
from tests.targets.cuda.kernels import CASES, N

D = cuda.to_device
ones = np.ones


def refused(kernel: Any, *args: Any, launch: Any = (1, 8)) -> str:
    with pytest.raises(ad.SplitadError) as caught:
        ad.cuda.split(kernel)[launch](*to_device(args))
    assert isinstance(caught.value, ad.UnsupportedError), caught.value
    return str(caught.value)


@cuda.jit
def early_return(x, n):
    s = cuda.shared.array(8, float64)
    i = cuda.grid(1)
    if i >= n:
        return
    s[i] = x[i]
    cuda.syncthreads()
    x[i] = s[7 - i]


@cuda.jit
def data_decides(x, n):
    k = 0
    while x[k] < 0.5:
        cuda.syncthreads()
        k += 1
    x[0] = 1.0


def test_divergent_barriers() -> None:
    text = refused(early_return, ones(8), 8)
    assert "Not every thread" in text and "cuda.syncthreads()" in text and "^" in text
    assert "Not every thread" in refused(data_decides, ones(8), 8)


@cuda.jit(device=True)
def meet():
    cuda.syncthreads()
    return 1.0


@cuda.jit
def meets_in_a_branch(x, n):
    t = cuda.threadIdx.x
    if t < n:
        x[t] = x[t] * meet()


@cuda.jit
def own_trip_count(x, n):
    t = cuda.threadIdx.x
    for _ in range(t):
        cuda.syncthreads()
        x[t] = x[t] * 2.0


@cuda.jit
def flag_of_a_loop(x, n):
    t = cuda.grid(1)
    k = 0
    while k < t % 3:
        k += 1
    if k == 2:
        cuda.syncthreads()
    x[t] = x[t] * x[t]


@cuda.jit
def flag_that_was_written(x, n):
    t = cuda.threadIdx.x
    x[0] = 0.3
    if x[n - 8] > 0.2:
        cuda.syncthreads()
    x[t] = x[t] * x[t]


@cuda.jit
def chosen_by_a_thread(x, n):
    t = cuda.threadIdx.x
    steps = 2 if t > 3 else 2 + n
    for _ in range(steps):
        x[t] = x[t] * x[t]
        cuda.syncthreads()


@cuda.jit
def left_early(x, n):
    t = cuda.threadIdx.x
    for k in range(4):
        if k > t:
            break
        cuda.syncthreads()
        x[t] = x[t] * x[t]


@pytest.mark.parametrize(
    "kernel",
    [meets_in_a_branch, own_trip_count, flag_of_a_loop, flag_that_was_written, chosen_by_a_thread,
     left_early],
)  # fmt: skip
def test_more_divergent_barriers(kernel: Any) -> None:
    assert "Not every thread" in refused(kernel, ones(8), 8)


@cuda.jit
def uniform(x, limits, n):
    """All threads of a block agree on how they go."""
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.blockIdx.x == 1 or n > 7:
        k = 0
        while k < limits[cuda.blockIdx.x]:
            s[t] = x[i] * (k + 1.5)
            cuda.syncthreads()
            if k % 2 == 0 and n > 3:
                x[i] = s[3 - t] * s[t]
                cuda.syncthreads()
            k += 1
    x[i] = x[i] * x[i]


def test_uniform_control_flow() -> None:
    args = (0.5 + np.random.default_rng(1).random(8), np.array([2, 3]), 5)
    check(uniform, (2, 4), args)


@cuda.jit
def shared_in_branch(x, n):
    if n > 3:
        s = cuda.shared.array(8, float64)
        s[cuda.threadIdx.x] = x[0]
        x[cuda.threadIdx.x] = s[cuda.threadIdx.x]


@cuda.jit
def allocates(x):
    t = np.empty(3)
    t[0] = x[0]
    x[0] = t[0] * 2.0


@cuda.jit
def raises(x):
    if x[0] > 0.5:
        raise ValueError("no")
    x[0] = x[0] * 2.0


@cuda.jit
def complex_numbers(x):
    x[0] = (complex(x[0], 1.0) * 2.0).real


@cuda.jit
def shuffles(x):
    x[0] = cuda.shfl_sync(0xFFFFFFFF, x[0], 0)


@cuda.jit
def exchanges(x):
    cuda.atomic.exch(x, 0, 1.0)


@cuda.jit
def old_value(x, y):
    y[cuda.grid(1)] = cuda.atomic.add(x, 0, 1.0) * 2.0


@cuda.jit
def chooses(x, y, n):
    for _ in range(n):
        x[0] = y[0] * 2.0
        x, y = y, x


@cuda.jit
def unknown_step(x, k):
    for i in range(0, 8, k):
        x[i] = x[i] * 2.0


@cuda.jit(device=True)
def itself(x):
    return itself(x / 2.0) if x > 1.0 else x


@cuda.jit
def recursive(x):
    x[0] = itself(x[0])


@pytest.mark.parametrize(
    "kernel, args, words",
    [
        (shared_in_branch, (ones(8), 4), "shared.array is called in a branch"),
        (allocates, (ones(8),), "cannot allocate memory"),
        (raises, (ones(8),), "cannot raise"),
        (complex_numbers, (ones(8),), "Complex numbers"),
        (shuffles, (ones(8),), "cuda.shfl_sync is not supported"),
        (exchanges, (ones(8),), "cuda.atomic.exch is not supported"),
        (old_value, (ones(8), ones(8)), "returns is used"),
        (chooses, (ones(8), ones(8), 3), "Which array a name stands for"),
        (unknown_step, (ones(8), 2), "step of this range"),
        (recursive, (ones(8),), "calls itself"),
        (complex_numbers, (ones(8) * 1j,), "complex128"),
    ],
)
def test_refused_with_its_line(kernel: Any, args: Any, words: str) -> None:
    text = refused(kernel, *args)
    assert words in text, text
    assert "refusals.py" in text


def test_functions_for_the_cpu_have_no_threads() -> None:
    def on_the_cpu(x):
        x[cuda.grid(1)] = 1.0

    with pytest.raises(ad.UnsupportedError, match="Use ad.cuda.split"):
        ad.split(on_the_cpu)(ones(3))


# what numba.cuda has for kernels, and splitad does not know; with arguments
UNKNOWN = {
    **dict.fromkeys(("shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"), "1, x[0], 1"),
    **dict.fromkeys(("all_sync", "any_sync", "eq_sync", "ballot_sync"), "1, True"),
    **dict.fromkeys(("match_any_sync", "match_all_sync"), "1, 2"),
    **dict.fromkeys(("syncthreads_count", "syncthreads_and", "syncthreads_or"), "1"),
    **dict.fromkeys(("activemask", "lanemask_lt", "syncwarp", "cg.this_grid"), ""),
    **dict.fromkeys(("threadfence", "threadfence_block", "threadfence_system"), ""),
    **dict.fromkeys(("popc", "brev", "clz", "ffs", "nanosleep"), "1"),
    **dict.fromkeys(("atomic.and_", "atomic.or_", "atomic.xor"), "x, 0, 1"),
    **dict.fromkeys(("atomic.inc", "atomic.dec", "atomic.nanmax", "atomic.nanmin"), "x, 0, 1"),
    "atomic.cas": "x, 0, 1, 1", "atomic.compare_and_swap": "x, 1, 1", "cg.this_grid().sync": "",
    "const.array_like": "x", "fma": "x[0], x[0], x[0]", "cbrt": "x[0]", "selp": "True, x[0], 1.0",
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_refused_by_name(name: str) -> None:
    text = f"def kernel(x):\n    cuda.{name}({UNKNOWN[name]})\n    x[0] = x[0] * x[0]\n"
    file = f"<refused: {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"cuda": cuda}
    exec(compile(text, file, "exec"), scope)
    said = refused(cuda.jit(scope["kernel"]), ones(8))
    assert f"cuda.{name.removesuffix('().sync')} is not supported here" in said, said
    assert "Supported are grid, gridsize" in said and f"{file}:2" in said


@cuda.jit
def prints(x):
    print("x")
    x[0] = x[0] * 2.0


TABLE = np.arange(8.0)


@cuda.jit
def global_array(x):
    x[0] = x[0] * TABLE[0]


@cuda.jit
def reshaped(x):
    y = x.reshape((2, 4))
    y[0, 0] = y[0, 0] * 2.0


@cuda.jit
def two_dynamic_arrays(x):
    s = cuda.shared.array(0, float64)
    t = cuda.shared.array(0, float64)
    s[0] = x[0]
    x[0] = t[0]


@cuda.jit
def size_of_an_argument(x):
    a = cuda.local.array(x.shape[0], float64)
    a[0] = x[0]
    x[0] = a[0]


@cuda.jit
def array_of_records(x):
    a = cuda.local.array(2, PARTICLE)
    a[0].mass = x[0]
    x[0] = a[0].mass


@cuda.jit
def mantissa(x):
    m, _ = math.frexp(x[0])
    x[0] = m


@cuda.jit
def by_a_ufunc(x):
    x[0] = np.cbrt(x[0])


@cuda.jit
def doubled(x):
    x[0] = x[0] * 2


@cuda.jit
def of_no_dimension(x):
    x[()] = x[()] * 2


PARTICLE = np.dtype([("mass", np.float64), ("kind", np.int64), ("speed", np.float64)])


@pytest.mark.parametrize(
    "kernel, x, words",
    [
        (prints, ones(8), "print is not supported"),
        (global_array, ones(8), "A global array is not supported"),
        (reshaped, ones(8), "This view (reshape)"),
        (two_dynamic_arrays, ones(8), "is the same memory as the first one"),
        (size_of_an_argument, ones(8), "shape of cuda.local.array is not a constant"),
        (array_of_records, ones(8), "dtype of cuda.local.array is not one of numbers"),
        (mantissa, ones(8), "math.frexp has no derivative rule"),
        (by_a_ufunc, ones(8), "cbrt is not supported in kernels"),
        (doubled, ones(8, np.float16), "float16"),
        (of_no_dimension, np.array(1.0), "has no dimensions"),
    ],
)
def test_more_that_is_refused(kernel: Any, x: Any, words: str) -> None:
    text = refused(kernel, x)
    assert words in text, text
    assert "refusals.py" in text


class Plain:
    def kernel(self, x):
        x[cuda.grid(1)] = 1.0


def test_what_is_no_kernel() -> None:
    """As ad.split says it."""
    forward = ad.cuda.split(SAXPY.kernel)
    pullback = forward[2, 8](D(ones(N)), D(ones(N)), 0.5, N)
    for derivative in (forward, pullback, ad.cuda.vjp(SAXPY.kernel)):
        with pytest.raises(ad.UnsupportedError, match="of saxpy> is a derivative"):
            ad.cuda.split(derivative)
    with pytest.raises(ad.UnsupportedError, match="bound method"):
        ad.cuda.split(Plain().kernel)
    with pytest.raises(ad.NoRuleError, match="no Python source"):
        ad.cuda.split(math.sin)
    with pytest.raises(TypeError, match="how to launch saxpy"):
        ad.cuda.vjp(SAXPY.kernel)(1.0)
    for nothing in (3.0, np.float64, "kernel"):
        with pytest.raises(TypeError, match="is not a function"):
            ad.cuda.vjp(nothing)
    with pytest.raises(TypeError, match="for the CPU"):
        ad.cuda.split(njit(SAXPY.kernel.py_func))


# ---- the boundary --------------------------------------------------------------------------------------


SAXPY = CASES["saxpy"]


def saxpy(**options: Any) -> Any:
    return ad.cuda.split(SAXPY.kernel, **options)


def test_arguments() -> None:
    x = D(np.arange(20.0))
    forward = saxpy()
    with pytest.raises(TypeError, match="cuda.to_device"):
        forward[2, 8](ones(N), x, 0.5, N)
    with pytest.raises(TypeError, match="how to launch"):
        forward(x, x, 0.5, N)
    with pytest.raises(TypeError, match="takes 4 arguments"):
        forward[2, 8](x, x)
    with pytest.raises(ad.AliasingError, match="x and y of saxpy overlap"):
        forward[2, 8](x[:N], x[5:], 0.5, N)
    with pytest.raises(ad.NotDifferentiableError, match="Active"):
        saxpy(*[]) and ad.cuda.split(SAXPY.kernel, *4 * [ad.Active])[2, 8](x, x, 1, N)
    with pytest.raises(TypeError, match="takes 4 arguments, but 1"):
        ad.cuda.split(SAXPY.kernel, ad.Const)
    with pytest.raises(ValueError, match="sizes of a grid"):
        forward[0, 8](x, x, 0.5, N)


def test_interleaved_arguments_do_not_overlap() -> None:
    both = D(np.arange(1.0, 27.0))
    pullback = saxpy()[2, 8](both[::2], both[1::2], 0.5, N)
    (a_bar,) = pullback(D(np.zeros(N)), D(ones(N)))
    assert a_bar == np.arange(1.0, 27.0)[::2].sum()


def test_shadows() -> None:
    x, y = D(ones(N)), D(ones(N))
    pullback = saxpy()[2, 8](x, y, 0.5, N)
    with pytest.raises(TypeError, match="takes 2 shadows"):
        pullback(x)
    for shadow, words in (
        (D(ones(N + 1)), "shape"),
        (D(ones(N, np.float32)), "float32"),
        (y, "overlaps the argument y"),
        (ones(N), "not an array on the device"),
    ):
        with pytest.raises(ad.ShadowError, match=words):
            pullback(shadow, D(ones(N)))
    one = D(ones(N))
    with pytest.raises(ad.ShadowError, match="overlap in memory"):
        pullback(one, one)


def test_make_zero() -> None:
    x, y = D(ones(N)), D(ones(N, np.float32))
    made = ad.make_zero(x)
    assert type(made) is type(x) and not made.copy_to_host().any()
    assert ad.make_zero(y).dtype == np.float32
    pullback = saxpy()[2, 8](x, D(ones(N)), 0.5, N)
    x_bar, y_bar = pullback.make_zero()
    assert pullback(x_bar, y_bar) == (0.0,)
    assert not x_bar.copy_to_host().any()


def test_activities() -> None:
    """A Const array that active data goes through has a shadow of its own."""
    case = CASES["workspace"]
    x, work, y, n = to_device(case.make(np.random.default_rng(2)))
    plain = ad.cuda.split(case.kernel)[case.launch](x, work, y, n)
    inner = ad.cuda.split(case.kernel, ad.Duplicated, ad.Const, ad.Duplicated, ad.Const)
    other = inner[case.launch](x, work, y, n)
    bars = [D(np.zeros(N)), D(np.zeros(N)), D(ones(N))]
    plain(*bars)
    mine = [D(np.zeros(N)), D(ones(N))]
    assert other(*mine) == ()
    np.testing.assert_array_equal(mine[0].copy_to_host(), bars[0].copy_to_host())
    assert np.any(mine[0].copy_to_host())


def test_what_is_not_modified_is_not_copied() -> None:
    case = CASES["nbody"]
    args = to_device(case.make(np.random.default_rng(2)))
    saved = ad.cuda.split(case.kernel)[case.launch](*args)
    kept = ad.cuda.split(case.kernel, modified_between=False)[case.launch](*args)
    assert kept.tape_nbytes < saved.tape_nbytes
    one, other = saved.make_zero(), kept.make_zero()
    for shadows, pullback in ((one, saved), (other, kept)):
        shadows[1].copy_to_device(ones((6, 2)))
        pullback(*shadows)
    assert np.any(one[0].copy_to_host())
    np.testing.assert_allclose(one[0].copy_to_host(), other[0].copy_to_host(), rtol=1e-12)


# ---- the tape ------------------------------------------------------------------------------------------


def test_tape_slots() -> None:
    case = CASES["newton"]
    args = case.make(np.random.default_rng(2))
    check(case.kernel, case.launch, args, tape_slots=100)
    forward = ad.cuda.split(case.kernel, tape_slots=1)
    with pytest.raises(ad.TapeLimitError, match="too small") as caught:
        forward[case.launch](*to_device(args))
    slots = int(str(caught.value).split("tape_slots=")[1].split(",")[0])
    check(case.kernel, case.launch, args, tape_slots=slots)
    with pytest.raises(ad.TapeLimitError):
        ad.cuda.split(case.kernel, tape_slots=slots - 1)[case.launch](*to_device(args))


def test_max_tape_bytes() -> None:
    case = CASES["logistic"]
    args = case.make(np.random.default_rng(2))
    needed = ad.cuda.split(case.kernel)[case.launch](*to_device(args)).tape_nbytes
    ad.cuda.split(case.kernel, max_tape_bytes=needed)[case.launch](*to_device(args))
    given = to_device(args)
    with pytest.raises(ad.TapeLimitError, match="max_tape_bytes"):
        ad.cuda.split(case.kernel, max_tape_bytes=needed - 1)[case.launch](*given)
    np.testing.assert_array_equal(given[0].copy_to_host(), args[0])  # it has not run
    with pytest.raises(TypeError, match="max_tape_bytes"):
        ad.cuda.split(case.kernel, max_tape_bytes="1MB")


def test_the_tape_grows_with_the_trip_count() -> None:
    """What was counted for one launch is not taken for another one."""
    case = CASES["logistic"]
    forward = ad.cuda.split(case.kernel)
    x, r, _, n = case.make(np.random.default_rng(2))
    sizes = [forward[2, 8](D(x), r, steps, n).tape_nbytes for steps in (2, 9, 2)]
    assert sizes[0] == sizes[2] < sizes[1]


def test_pullbacks_in_any_order() -> None:
    """Each has its own tape, which is used again once the pullback is gone."""
    case = CASES["logistic"]
    forward = ad.cuda.split(case.kernel)
    x, r, steps, n = case.make(np.random.default_rng(2))
    inputs = [x, 0.5 * x, 0.9 * x]
    pullbacks = [forward[2, 8](D(v), r, steps, n) for v in inputs]
    found = []
    for pullback in reversed(pullbacks):
        shadow = D(ones(N))
        found.append((pullback(shadow), shadow.copy_to_host()))
    del pullbacks, pullback
    kept = forward._runner.memory.free
    assert sum(map(len, kept.values())) >= 2
    ad.cuda.release_memory()
    assert not kept
    for v, (bars, shadow) in zip(inputs, reversed(found), strict=True):
        again = D(ones(N))
        assert forward[2, 8](D(v), r, steps, n)(again) == pytest.approx(bars)
        np.testing.assert_array_equal(again.copy_to_host(), shadow)


def test_layouts() -> None:
    """Fortran order, and arrays that are not contiguous."""
    g = np.random.default_rng(3)
    case = CASES["heat"]
    u = g.random((7, 6))
    expected = run(case.kernel, case.launch, (u, np.zeros((7, 6)), 0.1))[1]
    bars = None
    for make in (np.asfortranarray, np.ascontiguousarray, lambda a: D(np.repeat(a, 2, 0))[::2]):
        given = [make(a) for a in (u, np.zeros((7, 6)))]
        given = [D(a) if isinstance(a, np.ndarray) else a for a in given]
        pullback = ad.cuda.split(case.kernel)[case.launch](*given, 0.1)
        np.testing.assert_array_equal(given[1].copy_to_host(), expected)
        shadows = pullback.make_zero()
        shadows[1].copy_to_device(np.asarray(math.pi * u, order="C") if shadows[1].is_c_contiguous()
                                  else np.asfortranarray(math.pi * u))  # fmt: skip
        (c_bar,) = pullback(*shadows)
        found = (c_bar, shadows[0].copy_to_host())
        if bars is not None:
            np.testing.assert_allclose(found[0], bars[0])
            np.testing.assert_allclose(found[1], bars[1])
        bars = found


def test_a_launch_in_two_dimensions_of_a_kernel_in_one() -> None:
    """What `cuda.grid(1)` says is then no thread's own: additions are atomic."""
    assert "cuda.atomic" in text_of("saxpy", 2) and "cuda.atomic.add(d_x" not in text_of("saxpy", 1)


@cuda.jit
def narrowed(x, y):
    """Two threads may have the same k."""
    i = cuda.grid(1)
    if i < y.shape[0]:
        k = np.int8(i)
        y[i] = x[k] * x[k]


def test_what_is_converted_is_no_longer_a_threads_own() -> None:
    from numba import types

    A = types.float64[::1]
    work = ad.cuda.split(narrowed)._runner.resolve.__wrapped__.__self__
    text = work.pair((A, A), 1).text.pullback
    assert "cuda.atomic.add(d_x" in text and "cuda.atomic.add(d_y" not in text


def text_of(name: str, dims: int) -> str:
    from numba import types

    from splitad.cuda import _Specialise

    A = types.float64[::1]
    forward = ad.cuda.split(CASES[name].kernel)
    work = forward._runner.resolve.__wrapped__.__self__
    assert isinstance(work, _Specialise)
    return work.pair((A, A, types.float64, types.int64), dims).text.pullback


def test_registers() -> None:
    """A large block leaves fewer to each thread."""
    from splitad.targets.cuda.launch import Launch

    found = [Launch.of((1, t)).registers for t in (32, 256, 257, 512, (32, 32), 1000)]
    assert found == [None, None, 224, 128, 64, 64]


def test_neighbours_lie_together_on_the_tape() -> None:
    """The thread is the last index, or the last but one, of cells of 8 bytes."""
    import re

    for name in ("saxpy", "single", "logistic", "in_place", "branches", "tree_sum"):
        case = CASES[name]
        found = [
            place
            for text in pair_of(name)
            for place in re.findall(r"tape_(?:cells_)?(?:float|int|bool)\d*\[(.*?)\]", text)
        ]
        assert found and all(", tape_thread" in place for place in found), case


def pair_of(name: str) -> tuple[str, str]:
    from splitad.targets.cuda.launch import Launch, _argument, _type_of

    case = CASES[name]
    args = to_device(case.make(np.random.default_rng(1)))
    argtypes = tuple(_type_of(_argument(x, 0)) for x in args)
    work = ad.cuda.split(case.kernel)._runner.resolve.__wrapped__.__self__
    text = work.pair(argtypes, Launch.of(case.launch).dims).text
    return text.forward, text.pullback


# ---- without waiting -----------------------------------------------------------------------------------


def test_nothing_waits() -> None:
    case = CASES["newton"]
    args = case.make(np.random.default_rng(2))
    with pytest.raises(ad.TapeLimitError, match="tape_slots"):
        ad.cuda.split(case.kernel, wait=False)[case.launch](*to_device(args))
    small = ad.cuda.split(case.kernel, wait=False, tape_slots=1)[case.launch](*to_device(args))
    shadows = small.make_zero()
    small(*shadows)
    assert all(np.isnan(s.copy_to_host()).all() for s in shadows)
    with pytest.raises(ad.TapeLimitError):
        small.check()
    large = ad.cuda.split(case.kernel, wait=False, tape_slots=100)[case.launch](*to_device(args))
    large.check()
    shadows = large.make_zero()
    shadows[1].copy_to_device(ones(N))
    assert large(*shadows) == ()
    assert np.isfinite(shadows[0].copy_to_host()).all()


def test_scalars_stay_on_the_device() -> None:
    x, y = D(ones(N)), D(ones(N))
    (expected,) = saxpy()[2, 8](x, D(ones(N)), 0.5, N)(D(ones(N)), D(ones(N)))
    pullback = saxpy(wait=False)[2, 8](x, y, 0.5, N)
    (bar,) = pullback(D(ones(N)), D(ones(N)))
    assert bar.copy_to_host().tolist() == [expected]
    out = D(np.array([1.0]))
    assert pullback(D(ones(N)), D(ones(N)), out=(out,))[0] is out
    assert out.copy_to_host().tolist() == [expected + 1.0]
    with pytest.raises(ad.ShadowError, match="one element"):
        pullback(D(ones(N)), D(ones(N)), out=(D(ones(2)),))


# ---- calls for every day -------------------------------------------------------------------------------


def test_vjp() -> None:
    x, y = ones(N) * np.arange(N), ones(N)
    pullback = ad.cuda.vjp(SAXPY.kernel)[2, 8](D(x), D(y), 0.5, N)
    for _ in range(2):
        x_bar, y_bar, a_bar, n_bar = pullback({"y": D(3.0 * ones(N))})
        assert (x_bar.copy_to_host() == 1.5).all() and (y_bar.copy_to_host() == 6.0).all()
        assert a_bar == 3.0 * x.sum() and n_bar is None
    (only,) = ad.cuda.vjp(SAXPY.kernel, wrt="a")[2, 8](D(x), D(y), 0.5, N)({1: D(ones(N))})
    assert only == x.sum()
    with pytest.raises(ad.ShadowError, match="shape"):
        pullback({"y": D(ones(2))})
    (last,) = ad.cuda.vjp(SAXPY.kernel, wrt=-2)[2, 8](D(x), D(y), 0.5, N)({"y": D(ones(N))})
    assert last == x.sum()
    with pytest.raises(TypeError, match="saxpy has no argument 'z'"):
        ad.cuda.vjp(SAXPY.kernel, wrt="z")
    with pytest.raises(TypeError, match="4 arguments; wrt=4"):
        ad.cuda.vjp(SAXPY.kernel, wrt=4)
    with pytest.raises(TypeError, match="no argument 'z'"):
        pullback({"z": D(ones(N))})


@cuda.jit
def energy(x, scale, loss):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * scale
        cuda.atomic.add(loss, 0, x[i] * x[i])


def test_value_and_grad() -> None:
    x, loss = D(np.arange(4.0)), D(np.zeros(1))
    call = ad.cuda.value_and_grad(energy, "loss", wrt=("x", "scale"))
    for _ in range(2):
        value, (x_bar, scale_bar) = call[1, 8](x, 3.0, loss)
        assert value == 9.0 * 14.0 and scale_bar == 2 * 3.0 * 14.0
        np.testing.assert_allclose(x_bar.copy_to_host(), 18.0 * np.arange(4.0))
        assert (x.copy_to_host() == np.arange(4.0)).all() and loss.copy_to_host()[0] == 0.0
    value, gradient = ad.cuda.value_and_grad(energy, 2, restore=False)[1, 8](x, 3.0, loss)
    assert (x.copy_to_host() == 3.0 * np.arange(4.0)).all() and loss.copy_to_host()[0] == value
    with pytest.raises(TypeError, match="one element"):
        ad.cuda.value_and_grad(energy, "x")[1, 8](x, 3.0, loss)


def test_tuples_of_scalars() -> None:
    check(weighted, (2, 8), (np.arange(1.0, 1.0 + N), N))
    x = D(np.arange(1.0, 1.0 + N))
    forward = ad.cuda.split(in_tuple)
    ((a_bar, none, b_bar),) = forward[2, 8](x, (2.0, 3, 4.0))(D(ones(N)))
    assert (a_bar, none, b_bar) == (3.0 * N * (N + 1) / 2, None, float(N))
    with pytest.raises(ad.UnsupportedError, match="arrays and floats"):
        ad.cuda.split(mixed)[1, 8]((x, 2.0))


@cuda.jit
def weighted(x, n):
    i = cuda.grid(1)
    if i < n:
        w = (x[i], 2.0)
        x[i] = w[0] * w[1] * w[0]


@cuda.jit
def in_tuple(x, w):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * w[0] * w[1] + w[2]


class Pair(NamedTuple):
    first: Any
    second: Any


@cuda.jit
def by_name(p, w):
    i = cuda.grid(1)
    if i < p.first.shape[0]:
        p.first[i] = p.first[i] * p.second[i] * w.first + w.second


def test_namedtuples() -> None:
    x, y = np.arange(1.0, 1.0 + N), np.arange(2.0, 2.0 + N)
    pullback = ad.cuda.split(by_name)[2, 8](Pair(D(x), D(y)), Pair(3.0, 4.0))
    (made,) = pullback.make_zero()
    assert type(made) is Pair and not made.first.copy_to_host().any()
    shadow = Pair(D(ones(N)), D(np.zeros(N)))
    (scalars,) = pullback(shadow)
    assert scalars == Pair((x * y).sum(), float(N)) and type(scalars) is Pair
    np.testing.assert_array_equal(shadow.first.copy_to_host(), 3.0 * y)
    np.testing.assert_array_equal(shadow.second.copy_to_host(), 3.0 * x)


def test_nothing_to_do() -> None:
    """No element at all, and more threads than elements."""
    x, y = D(np.zeros(0)), D(np.zeros(0))
    pullback = saxpy()[2, 8](x, y, 0.5, 0)
    assert pullback(*pullback.make_zero()) == (0.0,)
    x, y = D(ones(1)), D(ones(1))
    assert saxpy()[2, 8](x, y, 0.5, 1)(D(ones(1)), D(ones(1))) == (1.0,)


@cuda.jit
def mixed(pair):
    x, a = pair
    x[cuda.grid(1)] = a * x[cuda.grid(1)]


def test_copies_of_any_layout() -> None:
    """The kernel that copies what is not contiguous; the simulator itself does without."""
    from splitad.targets.cuda import device

    x = D(np.arange(48.0).reshape(4, 3, 4))
    y = D(np.zeros((2, 3, 4)))
    device._copier(3)[2, 3](y, x[::2])
    np.testing.assert_array_equal(y.copy_to_host(), x.copy_to_host()[::2])


# ---- records -------------------------------------------------------------------------------------------


@cuda.jit
def collide(p, q, a, steps):
    i = cuda.grid(1)
    if i < p.shape[0]:
        for _ in range(steps):
            p[i].speed = p[i].speed * a + math.sin(p[i]["mass"]) * q[(i + 1) % p.shape[0]].mass
        q[i].speed = p[i].speed * p[i].kind


@cuda.jit
def collide_apart(mass, kind, speed, q_mass, q_speed, a, steps):
    i = cuda.grid(1)
    if i < mass.shape[0]:
        for _ in range(steps):
            speed[i] = speed[i] * a + math.sin(mass[i]) * q_mass[(i + 1) % mass.shape[0]]
        q_speed[i] = speed[i] * kind[i]


def particles(g: np.random.Generator) -> np.ndarray:
    made = np.zeros(6, PARTICLE)
    made["mass"], made["kind"], made["speed"] = g.random(6), g.integers(0, 9, 6), g.random(6)
    return made


def test_records() -> None:
    """As with the fields in arrays of their own."""
    g = np.random.default_rng(6)
    p, q, p_bar, q_bar = (particles(g) for _ in range(4))
    apart = [p["mass"], p["kind"], p["speed"], q["mass"], q["speed"]]
    plain = ad.cuda.split(collide_apart)[1, 8](*[D(a.copy()) for a in apart], 0.7, 3)
    bars = [p_bar["mass"], p_bar["speed"], q_bar["mass"], q_bar["speed"]]
    expected = [D(b.copy()) for b in bars]
    a_bar = plain(*expected)
    given, shadows = [D(p), D(q)], [D(p_bar), D(q_bar)]
    pullback = ad.cuda.split(collide)[1, 8](*given, 0.7, 3)
    assert pullback(*shadows) == a_bar
    found = [s.copy_to_host() for s in shadows]
    mine = [found[0]["mass"], found[0]["speed"], found[1]["mass"], found[1]["speed"]]
    for one, other in zip(mine, expected, strict=True):
        np.testing.assert_allclose(one, other.copy_to_host(), rtol=1e-14)
    zero = pullback.make_zero()[0].copy_to_host()
    assert (zero["kind"] == p["kind"]).all() and not zero["mass"].any() and not zero["speed"].any()
