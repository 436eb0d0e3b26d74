"""What gradients cost, in splitad and elsewhere: times, memory, compile seconds, and whether they are right.

    python benchmarks/run.py                                 all that is installed: a quarter of an hour
    python benchmarks/run.py --quick                         a minute: three kernels, small sizes
    python benchmarks/run.py --tool splitad --tool jax       these tools
    python benchmarks/run.py --kernel burgers --kernel gmm   these kernels
    python benchmarks/compare.py OLD.json NEW.json           two runs beside each other

Each tool has a process of its own, on one core, in which its calls take turns with those of the same kernel
under plain njit; figures are medians, ratios are to the primal of the same process.  A second process finds
what is left of compile time when the first has filled the caches.  Every gradient is compared with splitad's,
and splitad's with finite differences; where a tool needs the kernel written in another way, that is said.

Needs the extra `bench`, and `peers` for the other tools.  The results go to the folder benchmarks/results, or
to --out: NAME.json, and NAME.png with the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
QUICK_KERNELS = ["rosenbrock", "burgers", "cholesky"]
NOT_QUICK = ("torch_compile",)  # compiles for tens of seconds
sys.path.insert(0, str(ROOT))  # run as a file, the folder around it is not on the path

from benchmarks.kernels import KERNELS  # noqa: E402
from benchmarks.tools import OWN, TOOLS, installed, tool_version  # noqa: E402

Row = dict[str, Any]


def environment(folder: Path) -> dict[str, str]:
    """One thread each, and caches that are empty at first: compile times must not come from earlier runs."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB")
    caches = {
        "SPLITAD_CACHE_DIR": "splitad",
        "NUMBA_CACHE_DIR": "numba",
        "JAX_COMPILATION_CACHE_DIR": "jax",
        "TORCHINDUCTOR_CACHE_DIR": "torch",
        "WARP_CACHE_PATH": "warp",
    }
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        **{name: str(folder / "caches" / sub) for name, sub in caches.items()},
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }


def stage(folder: Path, tool: str, name: str, options: argparse.Namespace) -> list[Row]:
    """The rows of one process.  If it dies, those that it had written, and a note."""
    out = folder / f"{tool}-{name}.json"
    command = [
        sys.executable, "-m", "benchmarks.worker", "--tool", tool, "--stage", name,
        "--folder", str(folder), "--out", str(out), "--rounds", str(options.rounds),
        "--kernels", *options.kernel,
    ]  # fmt: skip
    if options.quick:
        command.append("--small")
    print(f"--- {tool}, {name}", flush=True)
    code = subprocess.run(command, env=environment(folder), cwd=ROOT).returncode
    found: list[Row] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else []
    if code:
        print(f"{tool}, {name}: the process ended with {code}", file=sys.stderr)
        if name == "measure":
            lost = options.kernel[len(found) :]
            note = f"the process ended with {code}"
            found += [{"tool": tool, "kernel": k, "status": "error", "note": note} for k in lost]
        elif name in ("growth", "calls"):
            found.append({"what": name, "status": "error", "note": str(code)})
    return found


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """The results of every tool, splitad first: the others are compared with it."""
    found: dict[str, list[Row]] = {"results": [], "growth": [], "calls": []}
    with tempfile.TemporaryDirectory(prefix="splitad-bench-") as name:
        folder = Path(name)
        if OWN not in options.tool:
            stage(folder, OWN, "reference", options)
        for tool in options.tool:
            measured = stage(folder, tool, "measure", options)
            if not options.quick:
                cached = {r["kernel"]: r for r in stage(folder, tool, "cached", options)}
                for row in measured:
                    row["cached_seconds"] = cached.get(row["kernel"], {}).get("compile_seconds", {})
            found["results"] += measured
        if OWN in options.tool and not options.only_kernels:
            found["growth"] = stage(folder, OWN, "growth", options)
            found["calls"] = stage(folder, OWN, "calls", options)
    return found


def about(options: argparse.Namespace) -> dict[str, Any]:
    """Where and with what the figures were found."""
    import numba
    import numpy

    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "quick": options.quick,
        "rounds": options.rounds,
        "machine": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": numpy.__version__,
        "tools": {tool: tool_version(tool) for tool in options.tool},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def show(found: dict[str, Any]) -> None:
    from benchmarks import table

    console = table.console()
    console.print(table.kernels(found["results"]))
    if any(row.get("note") for row in found["results"]):
        console.print(table.programs(found["results"]))
    if found["growth"]:
        console.print(table.growth(found["growth"]))
    if found["calls"]:
        console.print(table.calls(found["calls"]))


def save(found: dict[str, Any], path: Path) -> None:
    """path.json and path.png."""
    from benchmarks import plot

    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    plot.ratios(found["results"], path.with_suffix(".png"))


def failures(found: dict[str, Any]) -> list[str]:
    """What splitad itself got wrong."""
    mine = [row for row in found["results"] if row["tool"] == OWN and row["status"] != "ok"]
    bad = [f"{row['kernel']}: {row['status']} {row.get('note', '')}" for row in mine]
    bounded = [*found["growth"], *found["calls"]]
    return bad + [str(row.get("what")) for row in bounded if row.get("status", "ok") != "ok"]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds, less of all")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="again for another")
    parser.add_argument("--kernel", action="append", choices=KERNELS, help="again for another")
    parser.add_argument("--only-kernels", action="store_true", help="no growth, no calls")
    parser.add_argument("--rounds", type=int, help="in which the functions take turns")
    parser.add_argument("--out", type=Path, help="where the results go, without .json")
    options = parser.parse_args(arguments)
    missing = [tool for tool in options.tool or () if not installed(tool)]
    if missing:
        parser.error(f'not installed: {", ".join(missing)} (pip install -e ".[peers]")')
    slow = NOT_QUICK if options.quick else ()
    chosen = options.tool or [tool for tool in TOOLS if installed(tool) and tool not in slow]
    options.tool = [tool for tool in TOOLS if tool in chosen]
    options.kernel = options.kernel or (QUICK_KERNELS if options.quick else list(KERNELS))
    options.rounds = options.rounds or (3 if options.quick else 9)
    name = time.strftime("%Y%m%d-%H%M%S")
    options.out = options.out or ROOT / "benchmarks" / "results" / name
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    found = {**about(options), **measure_all(options)}
    show(found)
    save(found, options.out)
    print(f"saved to {options.out}.json and .png")
    bad = failures(found)
    for line in bad:
        print(f"FAILED {line}", file=sys.stderr)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
