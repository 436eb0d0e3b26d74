"""One command for a machine with a GPU: are kernels' derivatives right there, and what do they cost?

    python benchmarks/gpu_check.py [--output results.json] [--only checks|interop|times] [--scale 1.0]

checks    every kernel of the tests against finite differences, on the GPU; the same at larger sizes;
          many threads that add to one place; two streams; capture into a CUDA graph
interop   arrays of CuPy and PyTorch, without copies
times     forward and pullback over the plain kernel, and the bytes that each moves a second

Needs numba, numba-cuda and NumPy, and what is compared with where it is installed.  With
NUMBA_ENABLE_CUDASIM=1 it runs in numba's simulator at tiny sizes, to try the program itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda, float32

sys.path.insert(0, str(Path(__file__).parent.parent))

import splitad as ad
from tests.targets.cuda.checking import check
from tests.targets.cuda.kernels import CASES

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
THREADS = 4 if SIMULATED else 256
Results = dict[str, Any]


# ---- kernels that are timed ----------------------------------------------------------------------------


@cuda.jit
def axpy(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i] * x[i] + y[i]


@cuda.jit
def heat2(u, v, c):
    i, j = cuda.grid(2)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        t = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
        v[i, j] = u[i, j] + c * t * u[i, j]


@cuda.jit
def heat3(u, v, c):
    k, j, i = cuda.grid(3)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1 and 0 < k < u.shape[2] - 1:
        t = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
        t += u[i, j, k - 1] + u[i, j, k + 1] - 6.0 * u[i, j, k]
        v[i, j, k] = u[i, j, k] + c * t


@cuda.jit
def bodies(x, f, n):
    i = cuda.grid(1)
    if i < n:
        a = float32(0.0)
        b = float32(0.0)
        for j in range(n):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            d = dx * dx + dy * dy + float32(0.01)
            w = float32(1.0) / (d * math.sqrt(d))
            a += w * dx
            b += w * dy
        f[i, 0] = a
        f[i, 1] = b


@cuda.jit
def total(x, y):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    v = float32(0.0)
    if i < x.shape[0]:
        v = x[i] * x[i]
    s[t] = v
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(y, 0, s[0])


@cuda.jit
def histogram(x, weight, bins):
    i = cuda.grid(1)
    if i < x.shape[0]:
        k = min(int(x[i] * bins.shape[0]), bins.shape[0] - 1)
        cuda.atomic.add(bins, k, weight[i] * x[i])


@cuda.jit
def lstm_cell(gates, cell, hidden):
    i = cuda.grid(1)
    n = cell.shape[0]
    if i < n:
        a = 1.0 / (1.0 + math.exp(-gates[i]))
        b = 1.0 / (1.0 + math.exp(-gates[n + i]))
        o = 1.0 / (1.0 + math.exp(-gates[2 * n + i]))
        g = math.tanh(gates[3 * n + i])
        cell[i] = b * cell[i] + a * g
        hidden[i] = o * math.tanh(cell[i])


def timed_cases(scale: float) -> dict[str, tuple[Any, Any, list[Any], float]]:
    """kernel, launch, arguments, and the bytes that the plain kernel must move."""
    g = np.random.default_rng(0)
    n = 16 if SIMULATED else int(scale * (1 << 24))
    m = 4 if SIMULATED else int(math.sqrt(scale) * 4096)
    k = 4 if SIMULATED else int(round(scale ** (1 / 3) * 256))
    b = 4 if SIMULATED else int(scale * 16384)

    def single(*shape: int) -> np.ndarray:
        return g.random(shape, dtype=np.float32)

    def blocks(count: int, threads: int = THREADS) -> int:
        return -(-count // threads)

    two, three = ((2, 2), (1, 2, 2)) if SIMULATED else ((8, 32), (64, 2, 2))
    grid2 = tuple(blocks(m, t) for t in two)
    grid3 = tuple(blocks(k, t) for t in three)
    f = np.float32
    return {
        "axpy": (axpy, (blocks(n), THREADS), [single(n), single(n), f(0.5)], 12.0 * n),
        "heat 2-D": (heat2, (grid2, two), [single(m, m), single(m, m), f(0.1)], 8.0 * m * m),
        "heat 3-D": (heat3, (grid3, three), [single(k, k, k), single(k, k, k), f(0.1)], 8.0 * k**3),
        "n-body": (bodies, (blocks(b), THREADS), [single(b, 2), single(b, 2), b], 16.0 * b),
        "sum": (total, (blocks(n), THREADS), [single(n), np.zeros(1, f)], 4.0 * n),
        "histogram": (
            histogram, (blocks(n), THREADS), [single(n), single(n), np.zeros(256, f)], 8.0 * n,
        ),
        "lstm cell": (
            lstm_cell, (blocks(n // 4), THREADS), [single(4 * (n // 4)), single(n // 4), single(n // 4)],
            4.0 * n + 3.0 * n,
        ),
    }  # fmt: skip


# ---- checks --------------------------------------------------------------------------------------------


def attempt(results: Results, name: str, work: Callable[[], Any]) -> None:
    """Runs it, and notes what came of it."""
    start = time.perf_counter()
    try:
        found = work()
        outcome = {"ok": True, **(found if isinstance(found, dict) else {})}
    except ImportError as error:
        outcome = {"ok": None, "why": str(error)}
    except Exception as error:
        outcome = {"ok": False, "why": f"{type(error).__name__}: {error}"}
        outcome["trace"] = traceback.format_exc(limit=6)
    outcome["seconds"] = round(time.perf_counter() - start, 3)
    results[name] = outcome
    state = {True: "ok", None: "left out", False: "FAILED"}[outcome["ok"]]
    print(f"  {name:32s} {state:9s} {outcome.get('why', '')}", flush=True)


def small(name: str) -> None:
    case = CASES[name]
    check(case.kernel, case.launch, case.make(np.random.default_rng(1)), atomic=case.atomic)


def large(name: str) -> None:
    """The threads for themselves, at a size that fills the machine."""
    n = 16 if SIMULATED else 1 << 18
    case = CASES[name]
    first = case.make(np.random.default_rng(1))
    grown = tuple(
        np.resize(x, n) if isinstance(x, np.ndarray) and x.ndim == 1 else n if x == 13 else x
        for x in first
    )
    check(case.kernel, (-(-n // THREADS), THREADS), grown, atomic=case.atomic)


def contention() -> None:
    """Every thread reads one element, so all of them add to its shadow."""
    n = 32 if SIMULATED else 1 << 20
    launch = (-(-n // THREADS), THREADS)
    args = [cuda.to_device(v) for v in (np.array([3.0]), np.arange(n) * 1.0)]
    pullback = ad.cuda.split(scaled)[launch](*args)
    x_bar, y_bar = (cuda.to_device(v) for v in (np.zeros(1), np.ones(n)))
    pullback(x_bar, y_bar)
    expected = n * (n - 1) / 2
    assert abs(x_bar.copy_to_host()[0] - expected) < 1e-9 * expected


@cuda.jit
def scaled(x, y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        y[i] = x[0] * y[i]


def streams() -> None:
    """Pairs on two streams at a time give what they give one after the other."""
    n = 16 if SIMULATED else 1 << 20
    launch = (-(-n // THREADS), THREADS)
    g = np.random.default_rng(0)
    inputs = [(g.random(n), g.random(n)) for _ in range(4)]

    def run(stream: Any, x: Any, y: Any) -> Any:
        own = [cuda.to_device(v, stream=stream) for v in (x, y)]
        pullback = ad.cuda.split(axpy)[(*launch, stream)](*own, 0.5)
        bars = [cuda.to_device(np.ones(n), stream=stream) for _ in own]
        return pullback, bars

    made = []
    for (x, y), stream in zip(inputs, [cuda.stream(), cuda.stream()] * 2, strict=True):
        made.append(run(stream, x, y))
    for (pullback, bars), (x, y) in zip(made, inputs, strict=True):
        (a_bar,) = pullback(*bars)
        plain, expected = run(0, x, y)
        assert abs(a_bar - plain(*expected)[0]) < 1e-9 * n
        np.testing.assert_allclose(bars[0].copy_to_host(), expected[0].copy_to_host())


def graph() -> dict[str, Any]:
    """Forward and pullback captured into one CUDA graph, which is then run on new data."""
    cupy = importlib.import_module("cupy")
    n = 1 << 16
    launch = (-(-n // THREADS), THREADS)
    forward = ad.cuda.split(CASES["logistic"].kernel, wait=False, tape_slots=16)
    x, bar, out = cupy.zeros(n), cupy.zeros(n), cupy.zeros(1)
    own = cupy.cuda.Stream(non_blocking=True)
    stream = cuda.external_stream(own.ptr)

    def both() -> Any:
        pullback = forward[(*launch, stream)](x, 3.1, 4, n)
        pullback(bar, out=(out,))
        return pullback

    both()  # compiles, and allocates what the capture may not
    own.synchronize()
    with own:
        own.begin_capture()
        pullback = both()
        captured = own.end_capture()
    data = np.random.default_rng(0).random(n)
    expected = np.ones(n)
    plain = ad.cuda.split(CASES["logistic"].kernel)[launch](cuda.to_device(data), 3.1, 4, n)
    expected_bar = cuda.to_device(expected)
    (r_bar,) = plain(expected_bar)
    for _ in range(2):
        x.set(data)
        bar.set(expected)
        out.fill(0.0)
        cupy.cuda.Device().synchronize()
        captured.launch(own)
        own.synchronize()
        pullback.check()
        assert abs(float(out[0]) - r_bar) < 1e-9 * max(1.0, abs(r_bar))
        np.testing.assert_allclose(bar.get(), expected_bar.copy_to_host())
    return {}


def checks(results: Results) -> None:
    print("checks")
    for name in CASES:
        attempt(results, name, lambda name=name: small(name))
    for name in (
        "saxpy",
        "logistic",
        "in_place",
        "device_function",
        "newton",
        "stencil",
        "workspace",
    ):
        attempt(results, f"{name}, large", lambda name=name: large(name))
    attempt(results, "contention", contention)
    attempt(results, "streams", streams)
    attempt(results, "graph", graph)


# ---- other people's arrays -----------------------------------------------------------------------------


def with_library(make: Callable[[np.ndarray], Any], get: Callable[[Any], np.ndarray]) -> None:
    """The kernel writes the library's array, and the pullback its shadow."""
    n = 1 << 12
    x, y = make(np.arange(n) * 1.0), make(np.ones(n))
    pullback = ad.cuda.split(axpy)[-(-n // THREADS), THREADS](x, y, 0.5)
    assert get(y)[3] == 0.5 * 9.0 + 1.0
    x_bar, y_bar = make(np.zeros(n)), make(np.ones(n))
    (a_bar,) = pullback(x_bar, y_bar)
    assert a_bar == float(np.sum(np.arange(n) ** 2.0))
    np.testing.assert_array_equal(get(x_bar), np.arange(n) * 1.0)
    assert type(x_bar) is type(x)


def interop(results: Results) -> None:
    print("interop")

    def cupy() -> None:
        module = importlib.import_module("cupy")
        with_library(module.asarray, module.asnumpy)

    def torch() -> None:
        module = importlib.import_module("torch")
        if not module.cuda.is_available():
            raise ImportError("PyTorch finds no GPU")
        with_library(lambda a: module.from_numpy(a).cuda(), lambda t: t.cpu().numpy())

    for name, work in (("CuPy", cupy), ("PyTorch", torch)):
        attempt(results, name, work)


# ---- times ---------------------------------------------------------------------------------------------


def seconds(work: Callable[[], Any], least: float = 0.2) -> float:
    """The median time of a call, with the device's work done."""
    work()
    cuda.synchronize()
    found: list[float] = []
    start = time.perf_counter()
    while len(found) < 3 or (time.perf_counter() - start < least and len(found) < 200):
        before = time.perf_counter()
        work()
        cuda.synchronize()
        found.append(time.perf_counter() - before)
        if SIMULATED:
            break
    return float(np.median(found))


def measure(kernel: Any, launch: Any, args: list[Any], nbytes: float) -> dict[str, Any]:
    own = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in args]
    start = time.perf_counter()
    forward = ad.cuda.split(kernel)
    pullback = forward[launch](*own)
    shadows = pullback.make_zero()
    out = tuple(cuda.to_device(np.zeros(1, np.float32)) for a in args if isinstance(a, np.float32))
    pullback(*shadows, out=out)
    cuda.synchronize()
    compiled = time.perf_counter() - start
    plain = seconds(lambda: kernel[launch](*own))
    ahead = seconds(lambda: forward[launch](*own))
    back = seconds(lambda: pullback(*shadows, out=out))
    print(
        f"  {'':32s} plain {1e3 * plain:8.3f} ms   {nbytes / plain / 1e9:7.0f} GB/s   forward "
        f"{ahead / plain:5.2f}x   pullback {back / plain:5.2f}x   tape {pullback.tape_nbytes / 1e6:.0f} MB"
    )
    return {
        "plain": plain,
        "forward": ahead,
        "pullback": back,
        "bandwidth": nbytes / plain,
        "tape": pullback.tape_nbytes,
        "first call": compiled,
    }


def times(results: Results, scale: float) -> None:
    print("times")
    for name, case in timed_cases(scale).items():
        attempt(results, name, lambda case=case: measure(*case))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    parser.add_argument("--only", choices=["checks", "interop", "times"])
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes that are timed")
    given = parser.parse_args()
    if not SIMULATED and not cuda.is_available():
        print(
            "numba.cuda finds no GPU here; NUMBA_ENABLE_CUDASIM=1 tries the program in the simulator"
        )
        return 2
    device = "numba's simulator" if SIMULATED else cuda.get_current_device().name
    device = device.decode() if isinstance(device, bytes) else str(device)
    results: dict[str, Any] = {
        "device": device,
        "python": platform.python_version(),
        "numba": importlib.import_module("numba").__version__,
    }
    print(device)
    for name, work in (
        ("checks", checks),
        ("interop", interop),
        ("times", lambda found: times(found, given.scale)),
    ):
        if given.only in (None, name):
            results[name] = {}
            work(results[name])
    if given.output:
        given.output.write_text(json.dumps(results, indent=1))
    parts = [results[name] for name in ("checks", "interop", "times") if name in results]
    failed = [key for part in parts for key, found in part.items() if found["ok"] is False]
    print(f"{len(failed)} failed" + "".join(f", {name}" for name in failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
