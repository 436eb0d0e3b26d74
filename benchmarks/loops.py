"""How long gradients of the loop kernels take, beside their primals.

    python benchmarks/loops.py                     all kernels at full size (some minutes)
    python benchmarks/loops.py burgers cholesky    these
    python benchmarks/loops.py --quick             small sizes: does everything run?

For each kernel, in one process: the primal under plain njit, forward, pullback, and value_and_grad; medians
over rounds in which the four take turns, so that a busy machine slows all of them alike.  Fast kernels are
called many times per round.  Arguments and shadows get their first contents back before every call, outside
the timing; value_and_grad does not do it (restore=False), as nothing else does.  The tape of one forward and
the gradient of one call are given up before the next, so memory is warm, as it is in a training loop.

Ratios are to the primal of the same run.  Compile seconds are those of the first call less a later one, with
the disk cache empty and Numba warmed up by a trivial function.  The table goes to the terminal, the numbers
with the versions and the machine to benchmarks/results/loops-<time>.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# Compile times must not come from an earlier run's cache.
_CACHE = tempfile.TemporaryDirectory(prefix="splitad-bench-")
os.environ["SPLITAD_CACHE_DIR"] = _CACHE.name

import numba  # noqa: E402
import numpy as np  # noqa: E402

import splitad as ad  # noqa: E402
from benchmarks.kernels import KERNELS, Kernel  # noqa: E402
from splitad.testing import copy_args  # noqa: E402

PARTS = ("primal", "forward", "pullback", "value_and_grad")
BATCH_SECONDS = 5e-3  # one timing covers at least so much, if memory allows
BATCH_BYTES = 64 << 20


class Bench:
    """One kernel with its compiled functions."""

    def __init__(self, kernel: Kernel, quick: bool) -> None:
        self.args = kernel.small() if quick else kernel.full()
        self.spare: list[tuple[Any, ...]] = []  # arguments, used again and again
        self.plain = numba.njit(kernel.fn)
        self.forward = ad.split(kernel.fn)
        self.both = ad.value_and_grad(kernel.fn, wrt=kernel.wrt, restore=False)
        self.compile_seconds = self._compile()
        _, self.pullback = self.forward(*copy_args(self.args))
        self.tape_bytes = int(self.pullback.tape_nbytes)

    def _compile(self) -> dict[str, float]:
        seconds = {}
        for part in PARTS:
            first = self._time(part, 1)
            seconds[part] = max(0.0, first - self._time(part, 1))
        return seconds

    def _time(self, part: str, count: int) -> float:
        """Seconds per call, over count calls on fresh arguments."""
        if part == "pullback":
            _, pullback = self.forward(*self._arguments(1)[0])
            given = [(1.0, *pullback.make_zero()) for _ in range(count)]
            return _timed(pullback, given)
        call = {"primal": self.plain, "forward": self.forward, "value_and_grad": self.both}[part]
        return _timed(call, self._arguments(count))

    def _arguments(self, count: int) -> list[tuple[Any, ...]]:
        """As many sets of arguments, each as the kernel was given them."""
        if not all(isinstance(a, (np.ndarray, float, int)) for a in self.args):
            return [copy_args(self.args) for _ in range(count)]
        while len(self.spare) < count:
            self.spare.append(copy_args(self.args))
        for spare in self.spare[:count]:
            for to, given in zip(spare, self.args, strict=True):
                if isinstance(to, np.ndarray):
                    np.copyto(to, given)
        return self.spare[:count]

    def run(self, rounds: int) -> dict[str, float]:
        """The median seconds of each part."""
        size = sum(a.nbytes for a in self.args if isinstance(a, np.ndarray)) + 1
        counts = {}
        for part in PARTS:
            once = min(self._time(part, 1) for _ in range(3))
            counts[part] = int(max(1, min(BATCH_SECONDS / once, BATCH_BYTES / size, 2000)))
        times: dict[str, list[float]] = {part: [] for part in PARTS}
        for _ in range(rounds):
            for part in PARTS:
                times[part].append(self._time(part, counts[part]))
        return {part: statistics.median(times[part]) for part in PARTS}


def _timed(call: Callable[..., Any], given: list[tuple[Any, ...]]) -> float:
    start = time.perf_counter()
    for args in given:
        call(*args)  # what it returns, tapes too, is given up before the next call
    return (time.perf_counter() - start) / len(given)


def measure(name: str, quick: bool, rounds: int) -> dict[str, Any]:
    bench = Bench(KERNELS[name], quick)
    seconds = bench.run(rounds)
    return {
        "kernel": name,
        "seconds": seconds,
        "ratio": {part: seconds[part] / seconds["primal"] for part in PARTS[1:]},
        "tape_bytes": bench.tape_bytes,
        "compile_seconds": bench.compile_seconds,
    }


def warm_up() -> None:
    """Numba's own first compilation, and splitad's, are nobody's compile time."""

    def square(x):
        s = 0.0
        for i in range(x.size):
            s += x[i] * x[i]
        return s

    numba.njit(square)(np.ones(2))
    ad.value_and_grad(square)(np.ones(2))
    _, pullback = ad.split(square)(np.ones(2))
    pullback(1.0, *pullback.make_zero())


# ---- output ------------------------------------------------------------------------------------------

HEADER = (
    "kernel", "primal ms", "forward", "pullback", "value+grad", "tape MB", "compile s: primal / fwd / pb",
)  # fmt: skip


def row(result: dict[str, Any]) -> list[str]:
    if "error" in result:
        return [result["kernel"], result["error"], "", "", "", "", ""]
    ratio, compiled = result["ratio"], result["compile_seconds"]
    return [
        result["kernel"],
        f"{result['seconds']['primal'] * 1e3:.4g}",
        *(f"{ratio[part]:.2f}" for part in PARTS[1:]),
        f"{result['tape_bytes'] / 1e6:.3g}",
        " / ".join(f"{compiled[part]:.2f}" for part in PARTS[:3]),
    ]


def print_table(results: list[dict[str, Any]]) -> None:
    rows = [row(result) for result in results]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(len(line[k]) for line in [list(HEADER), *rows]) for k in range(len(HEADER))]
        for line in [list(HEADER), *rows]:
            print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))
        return
    table = Table(title="times relative to the njit primal")
    for k, name in enumerate(HEADER):
        table.add_column(name, justify="left" if k == 0 else "right")
    for line in rows:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def save(results: list[dict[str, Any]], quick: bool) -> Path:
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "quick": quick,
        "machine": platform.platform(),
        "cpu": numba.core.config.CPU_NAME or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "results": results,
    }
    path = folder / f"loops-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="kernel", help=", ".join(KERNELS))
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    unknown = set(options.names) - set(KERNELS)
    if unknown:
        parser.error(f"no such kernel: {', '.join(sorted(unknown))}")
    warm_up()
    results = []
    for name in options.names or KERNELS:
        try:
            result = measure(name, options.quick, 3 if options.quick else options.rounds)
        except ad.SplitadError as error:
            result = {"kernel": name, "error": str(error).splitlines()[0]}
        print("  ".join(row(result)), flush=True)
        results.append(result)
    print_table(results)
    print(f"saved to {save(results, options.quick).relative_to(ROOT)}")
    return int(any("error" in result for result in results))


if __name__ == "__main__":
    sys.exit(main())
