"""One command for a machine with a GPU: are kernels' derivatives right there, and what do they cost?

    python benchmarks/gpu_check.py [--output results.json] [--only <part>] [--scale 1.0]

checks    every kernel of the tests against finite differences, on the GPU; at larger sizes, against the small
          ones and against splitad on the CPU; random kernels against the CPU; many threads that add to one
          place, or offer the same to it; two streams; capture into a CUDA graph
tests     what the simulator's tests say of refusals and of extrema, on the GPU (with pytest)
interop   arrays of CuPy and PyTorch, without copies
times     forward and pullback over the plain kernel, and the bytes that each moves a second
peers     the same work, forward and gradient, in JAX and Warp, and whether the gradients agree

Each part is a process of its own with a time limit, so that one that fails or hangs leaves the others alone;
all of them together take less than six minutes.  Needs numba, numba-cuda and NumPy, and what is compared with
where it is installed; nothing is downloaded.  With NUMBA_ENABLE_CUDASIM=1 it runs in numba's simulator at
tiny sizes, to try the program itself; JAX and Warp are then tried on the CPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# a launch of few threads is no mistake here
os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numba import cuda

import splitad as ad
from benchmarks.gpu_kernels import SIMULATED, THREADS, Work, axpy, works
from tests.targets.cuda.checking import arrays, check, to_device, to_host
from tests.targets.cuda.kernels import CASES

ROOT = Path(__file__).resolve().parent.parent
Results = dict[str, Any]
LIMITS = {"checks": 150, "tests": 65, "interop": 25, "times": 40, "peers": 70}  # seconds


# ---- checks --------------------------------------------------------------------------------------------


_save: list[Callable[[], None]] = []  # what writes the results so far
_stop = [float("inf")]  # when nothing more is begun


def attempt(results: Results, name: str, work: Callable[[], Any]) -> None:
    """Runs it, and notes what came of it."""
    start = time.perf_counter()
    try:
        if start > _stop[0]:
            raise ImportError("there was no time left")
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
    for save in _save:
        save()


def small(name: str) -> None:
    case = CASES[name]
    check(case.kernel, case.launch, case.make(np.random.default_rng(1)), atomic=case.atomic)


def random(kind: str, seed: int) -> None:
    """Against splitad on the CPU; tests/targets/cuda/random_kernels.py needs pytest."""
    module = importlib.import_module("tests.targets.cuda.random_kernels")
    getattr(module, kind)(seed)


LARGE = (
    "saxpy", "single", "logistic", "in_place", "device_function", "newton", "workspace", "branches",
    "functions", "numpy_functions", "single_functions", "clamp",
)  # fmt: skip


def large(name: str) -> None:
    """The threads for themselves, many copies of the small case: each has the same derivative."""
    times = 3 if SIMULATED else 1 << 14
    case = CASES[name]
    first = case.make(np.random.default_rng(1))
    (size,) = {x.shape[0] for x in first if isinstance(x, np.ndarray)}
    grown = tuple(
        np.tile(x, times)
        if isinstance(x, np.ndarray)
        else size * times
        if isinstance(x, int) and x == size
        else x
        for x in first
    )
    bars = [
        np.random.default_rng(2).standard_normal(x.shape).astype(x.dtype) for x in arrays(first)
    ]
    threads = 8 if SIMULATED else 256
    launch = (-(-size * times // threads), threads)
    forward = ad.cuda.split(case.kernel)
    small_state, small_bars, small_found = _derivative(forward, case.launch, first, bars)
    grown_bars = [np.tile(bar, times) for bar in bars]
    state, entry, found = _derivative(forward, launch, grown, grown_bars)
    for mine, other in zip([*state, *entry], [*small_state, *small_bars], strict=True):
        np.testing.assert_array_equal(mine, np.tile(other, times))
    single = any(x.dtype == np.float32 for x in bars)
    np.testing.assert_allclose(found, np.array(small_found) * times, rtol=1e-3 if single else 1e-9)


def _derivative(forward: Any, launch: Any, args: Any, bars: list[np.ndarray]) -> Any:
    """What the arrays of floats hold in the end, their cotangents, and those of the scalars."""
    given = to_device(args)
    pullback = forward[launch](*given)
    shadows = [to_device(bar.copy()) for bar in bars]
    found = pullback(*shadows)
    return arrays(to_host(given)), [s.copy_to_host() for s in shadows], found


def as_on_the_cpu(work: Work) -> None:
    """Each element of the final states and the cotangents, and the scalars' cotangents."""
    given = [cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in work.args]
    pullback = ad.cuda.split(work.kernel)[work.launch](*given)
    shadows = [cuda.to_device(bar) for bar in work.bars]
    found = pullback(*shadows)
    own = [x.copy() if isinstance(x, np.ndarray) else x for x in work.args]
    bars = [bar.copy() for bar in work.bars]
    _, plain = ad.split(work.loop)(*own)
    expected = plain(None, *bars)
    for mine, other in zip(
        [*(given[k] for k in work.arrays), *shadows],
        [*(own[k] for k in work.arrays), *bars],
        strict=True,
    ):
        _close(mine.copy_to_host(), other, 1e-3 if other.size < 1000 else 2e-4)
    for one, other in zip(found, expected, strict=True):  # sums over all elements, in another order
        scale = max(abs(other), float(np.sqrt(max(bar.size for bar in bars))))
        assert abs(one - other) < 1e-2 * scale, (one, other)


def _close(mine: np.ndarray, other: np.ndarray, tolerance: float) -> float:
    """The largest difference, over the largest value; AssertionError where that is too large."""
    scale = max(float(np.max(np.abs(other))), 1e-30)
    apart = float(np.max(np.abs(mine.astype(float) - other))) / scale
    assert apart < tolerance, f"the results differ by {apart:.1e} of the largest"
    return apart


def equal_offers() -> None:
    """Of many threads that offer the same to one element, one gets the cotangent."""
    n = 32 if SIMULATED else 1 << 18
    launch = (-(-n // THREADS), THREADS)
    x = np.ones(n)
    x[::3] = 0.5
    for _ in range(3):
        args = [cuda.to_device(v) for v in (x, np.zeros(1))]
        pullback = ad.cuda.split(offer)[launch](*args)
        before: Any = None
        for _ in range(3):
            x_bar, y_bar = (cuda.to_device(v) for v in (np.zeros(n), np.full(1, 7.0)))
            pullback(x_bar, y_bar)
            found = x_bar.copy_to_host()
            assert y_bar.copy_to_host()[0] == 0.0 and found.sum() == 7.0 and found.max() == 7.0
            assert not found[::3].any()
            assert before is None or (before == found).all(), "another thread, the second time"
            before = found


@cuda.jit
def offer(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.max(y, 0, x[i])


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

    forward = ad.cuda.split(axpy)

    def run(stream: Any, x: Any, y: Any) -> Any:
        own = [cuda.to_device(v, stream=stream) for v in (x, y)]
        pullback = forward[(*launch, stream)](*own, 0.5)
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


def graph() -> None:
    """Forward and pullback captured into one CUDA graph, which is then run on new data."""
    if SIMULATED:
        raise ImportError("the simulator has no graphs")
    driver = importlib.import_module("cuda.bindings.driver")  # numba-cuda needs it too

    def call(name: str, *given: Any) -> Any:
        code, *made = getattr(driver, name)(*given)
        if int(code):
            raise RuntimeError(f"{name}: {code}")
        return made[0] if made else None

    n = 1 << 16
    launch = (-(-n // THREADS), THREADS)
    forward = ad.cuda.split(CASES["logistic"].kernel, wait=False, tape_slots=16)
    stream = cuda.stream()
    handle = driver.CUstream(int(stream.handle))
    x, bar, out = (cuda.to_device(np.zeros(size)) for size in (n, n, 1))

    def both() -> Any:
        pullback = forward[(*launch, stream)](x, 3.1, 4, n)
        pullback(bar, out=(out,))
        return pullback

    both()  # compiles, and allocates what is used again in the capture
    cuda.synchronize()
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    call("cuStreamBeginCapture", handle, relaxed)
    pullback = both()
    captured = call("cuGraphInstantiate", call("cuStreamEndCapture", handle), 0)

    plain = ad.cuda.split(CASES["logistic"].kernel)
    for seed in range(3):
        data = np.random.default_rng(seed).random(n)
        expected_bar = cuda.to_device(np.ones(n))
        (r_bar,) = plain[launch](cuda.to_device(data), 3.1, 4, n)(expected_bar)
        for to, value in ((x, data), (bar, np.ones(n)), (out, np.zeros(1))):
            to.copy_to_device(value)
        cuda.synchronize()
        call("cuGraphLaunch", captured, handle)
        cuda.synchronize()
        pullback.check()
        found = float(out.copy_to_host()[0])
        assert abs(found - r_bar) < 1e-9 * max(1.0, abs(r_bar)), (found, r_bar)
        np.testing.assert_allclose(bar.copy_to_host(), expected_bar.copy_to_host())


def checks(results: Results, scale: float) -> None:
    attempt(results, "contention", contention)
    attempt(results, "equal offers", equal_offers)
    attempt(results, "streams", streams)
    attempt(results, "graph", graph)
    for name in CASES:
        attempt(results, name, lambda name=name: small(name))
    for name in LARGE:
        attempt(results, f"{name}, large", lambda name=name: large(name))
    for name, make in works(scale / 16).items():
        attempt(results, f"{name}, and the CPU", lambda make=make: as_on_the_cpu(make()))
    for seed in range(2 if SIMULATED else 4):
        for kind in ("compare", "compare_blocks"):
            attempt(
                results, f"random {seed}, {kind}", lambda kind=kind, seed=seed: random(kind, seed)
            )


def tests(results: Results, scale: float) -> None:
    """Each test that fails, and how many there were."""
    importlib.import_module("pytest")
    folder = ROOT / "tests" / "targets" / "cuda"
    files = [str(folder / name) for name in ("extrema.py", "refusals.py")]
    options = "-v --tb=short -W ignore -p no:cacheprovider -p no:xdist".split()
    command = [sys.executable, "-u", "-m", "pytest", *options, "-k", "not gpu", *files]
    start = time.perf_counter()
    plain = {**os.environ, "PYTEST_ADDOPTS": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=plain) as run:
        assert run.stdout is not None
        for line in run.stdout:
            at = re.search(r"(\w+\.py::.+?) (PASSED|FAILED|ERROR)\b", line)
            if at:
                why = {} if at[2] == "PASSED" else {"why": "see the output of pytest"}
                results[at[1]] = {"ok": at[2] == "PASSED", **why}
                for save in _save:
                    save()
            elif line.startswith("E  ") or line.startswith("FAILED"):
                print("   ", line.rstrip(), flush=True)
    bad = [name for name, found in results.items() if not found["ok"]]
    print(
        f"  {len(results)} tests, {len(bad)} failed, {time.perf_counter() - start:.0f} s",
        flush=True,
    )
    if run.returncode and not bad:
        results["pytest"] = {"ok": False, "why": f"it ended with status {run.returncode}"}


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


def interop(results: Results, scale: float) -> None:
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


def seconds(
    work: Callable[[], Any], wait: Callable[[], None] = cuda.synchronize, least: float = 0.15
) -> float:
    """The time of a call where calls follow each other: the median over rounds of several."""
    work()
    wait()
    if SIMULATED:
        return _round(work, wait, 1)
    count = max(1, min(50, int(0.02 / max(_round(work, wait, 1), 1e-6))))
    found: list[float] = []
    start = time.perf_counter()
    while len(found) < 3 or (time.perf_counter() - start < least and len(found) < 50):
        found.append(_round(work, wait, count))
    return float(np.median(found))


def _round(work: Callable[[], Any], wait: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        work()
    wait()
    return (time.perf_counter() - start) / count


def prepared(work: Work) -> tuple[list[Any], Any, list[Any], list[Any], tuple[Any, ...]]:
    """Arguments, the forward, shadows and what they are filled with, and the places of the scalars."""
    own = [cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in work.args]
    bars = [cuda.to_device(bar) for bar in work.bars]
    shadows = [cuda.device_array_like(bar) for bar in bars]
    scalars = [x for x in work.args if isinstance(x, np.float32)]
    out = tuple(cuda.to_device(np.zeros(1, np.float32)) for _ in scalars)
    return own, ad.cuda.split(work.kernel), shadows, bars, out


def measure(work: Work) -> dict[str, Any]:
    """A pullback uses up the shadows of what was overwritten: these are filled again each time, and the time
    that this takes is taken off."""
    start = time.perf_counter()
    own, forward, shadows, bars, out = prepared(work)

    def fill() -> None:
        for shadow, bar in zip(shadows, bars, strict=True):
            shadow.copy_to_device(bar)

    def back() -> None:
        fill()
        pullback(*shadows, out=out)

    pullback = forward[work.launch](*own)
    back()
    cuda.synchronize()
    compiled = time.perf_counter() - start
    plain = seconds(lambda: work.kernel[work.launch](*own))
    ahead = seconds(lambda: forward[work.launch](*own))
    behind = max(seconds(back) - seconds(fill), 1e-9)
    tape = pullback.tape_nbytes
    # at least: what the kernel moves, and the tape; then the tape, and each shadow read and written
    moved = {"plain": work.nbytes, "forward": work.nbytes + tape}
    moved["pullback"] = tape + 2.0 * sum(bar.size * bar.dtype.itemsize for bar in bars)
    rate = {
        name: moved[name] / took / 1e9
        for name, took in (("plain", plain), ("forward", ahead), ("pullback", behind))
    }
    print(
        f"  {'':24s} plain {1e3 * plain:8.3f} ms {rate['plain']:6.0f} GB/s   forward {ahead / plain:5.2f}x "
        f"{rate['forward']:6.0f} GB/s   pullback {behind / plain:5.2f}x {rate['pullback']:6.0f} GB/s   "
        f"tape {tape / 1e6:.0f} MB"
    )
    return {
        "plain": plain,
        "forward": ahead,
        "pullback": behind,
        "GB/s": rate,
        "tape": tape,
        "first call": compiled,
    }


def times(results: Results, scale: float) -> None:
    for name, make in works(scale).items():
        attempt(results, name, lambda make=make: measure(make()))


# ---- peers ---------------------------------------------------------------------------------------------


def both(work: Work) -> tuple[float, dict[int, np.ndarray]]:
    """The time of splitad's forward and pullback, and the gradients."""
    own, forward, shadows, bars, out = prepared(work)

    def run() -> None:
        for shadow, bar in zip(shadows, bars, strict=True):
            shadow.copy_to_device(bar)
        forward[work.launch](*own)(*shadows, out=out)

    took = seconds(run)
    first = [cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in work.args]
    for shadow, bar in zip(shadows, bars, strict=True):
        shadow.copy_to_device(bar)
    forward[work.launch](*first)(*shadows, out=out)
    return took, {k: s.copy_to_host() for k, s in zip(work.arrays, shadows, strict=True)}


def peers(results: Results, scale: float) -> None:
    """Forward and gradient together."""
    found: dict[str, Any] = {}

    def load(peer: str) -> None:
        module = importlib.import_module(f"benchmarks.peers.gpu_{peer}")
        module.usable(SIMULATED)
        found[peer] = module

    for peer in ("jax", "warp"):
        attempt(results, peer, lambda peer=peer: load(peer))
    for name, make in works(scale).items():
        if name == "row maxima":
            continue  # its gradient is a matter of ties there
        work = make()
        own: Results = {}

        def ours(work: Work = work, own: Results = own) -> Results:
            own["took"], own["gradients"] = both(work)
            return {"forward and gradient": own["took"]}

        attempt(results, name, ours)
        if own:
            for peer, module in found.items():
                attempt(
                    results,
                    f"{name}, {peer}",
                    lambda args=(peer, module, name, work, own): against(*args),
                )


def against(peer: str, module: Any, name: str, work: Work, own: Results) -> Results:
    run, wait, gradients = module.program(name, work.args, work.bars, work.written)
    took = seconds(run, wait)
    found = gradients()
    apart = max(_close(found[k], own["gradients"][k], 1e-3) for k in found)
    print(
        f"  {'':24s} splitad {1e3 * own['took']:9.3f} ms   {peer} {1e3 * took:9.3f} ms   "
        f"gradients differ by {apart:.1e}"
    )
    return {"forward and gradient": took, "difference": apart}


# ---- the program ---------------------------------------------------------------------------------------

VERSIONS = ("numba", "numba-cuda", "numpy", "cupy", "torch", "jax", "warp-lang")
PARTS = {"checks": checks, "tests": tests, "interop": interop, "times": times, "peers": peers}


def part(name: str, scale: float, output: Path) -> None:
    """One part, in this process."""
    results: Results = {}

    def save() -> None:
        output.write_text(json.dumps(results, indent=1))

    _save.append(save)
    _stop[0] = time.perf_counter() + 0.85 * LIMITS[name]
    save()
    attempt_all = PARTS[name]
    try:
        attempt_all(results, scale)
    except ImportError as error:
        results[name] = {"ok": None, "why": str(error)}
        print(f"  left out: {error}", flush=True)
    save()


def in_a_process(name: str, scale: float) -> Results:
    """One part, in a process of its own."""
    print(name, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "results.json"
        command = [
            sys.executable,
            __file__,
            "--part",
            name,
            "--scale",
            str(scale),
            "--output",
            str(output),
        ]
        why = ""
        child = subprocess.Popen(command, start_new_session=True)
        try:
            if child.wait(LIMITS[name]):
                why = f"the process ended with status {child.returncode}"
        except subprocess.TimeoutExpired:
            why = f"it took longer than {LIMITS[name]} s"
            os.killpg(child.pid, signal.SIGKILL)  # and what it has started
            child.wait()
        found: Results = json.loads(output.read_text()) if output.exists() else {}
    if why:
        found[f"{name}, to the end"] = {"ok": False, "why": why}
        print(f"  FAILED: {why}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--scale", type=float, help="of the sizes: 1 (of 24 GB of memory) or less")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        part(given.part, given.scale, given.output)
        return 0
    if not SIMULATED and not cuda.is_available():
        print(
            "numba.cuda finds no GPU here; NUMBA_ENABLE_CUDASIM=1 tries the program in the simulator"
        )
        return 2
    start = time.perf_counter()
    device, scale = "numba's simulator", given.scale or 1.0
    if not SIMULATED:
        name = cuda.get_current_device().name
        device = name.decode() if isinstance(name, bytes) else str(name)
        free = cuda.current_context().get_memory_info().free
        scale = given.scale or min(1.0, free / 24e9)
    results: Results = {
        "device": device,
        "python": platform.python_version(),
        "versions": {
            name: _version(name)
            for name in ("numba", "numba-cuda", "numpy", "cupy", "torch", "jax", "warp-lang")
        },
        "scale": scale,
    }
    print(device, ", ".join(f"{k} {v}" for k, v in results["versions"].items() if v), flush=True)
    for name in PARTS:
        if given.only in (None, name):
            results[name] = in_a_process(name, scale)
            if given.output:
                given.output.write_text(json.dumps(results, indent=1))
    parts = [results[name] for name in PARTS if name in results]
    failed = [key for one in parts for key, found in one.items() if found["ok"] is False]
    out = [key for one in parts for key, found in one.items() if found["ok"] is None]
    print(f"{len(failed)} failed" + "".join(f"; {name}" for name in failed))
    print(f"{len(out)} left out" + "".join(f"; {name}" for name in out))
    print(f"{time.perf_counter() - start:.0f} s")
    return bool(failed)


def _version(package: str) -> str:
    from importlib import metadata

    for name in (package, f"{package}-cuda12x", f"{package}-cuda13x"):  # CuPy's names
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


if __name__ == "__main__":
    sys.exit(main())
