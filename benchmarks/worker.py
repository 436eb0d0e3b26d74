"""A process of its own for one tool, on one core; run.py starts it.

    python -m benchmarks.worker --tool jax --stage measure --kernels gmm nbody --folder F --out F/jax.json

Writes its rows to a JSON file, after each, so that nothing is lost if the process dies.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
STAGES = ("measure", "cached", "reference", "growth", "calls")


def on_one_core() -> None:
    """Before anything else is imported: thread pools take as many threads as a process may use cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """What was asked for, one row at a time."""
    from benchmarks import calls, growth, stages

    stages.warm_up(options.tool)
    if options.stage == "growth":
        yield from growth.rows(options.small)
    elif options.stage == "calls":
        yield from calls.rows(options.small)
    else:
        yield from kernel_rows(options)


def kernel_rows(options: argparse.Namespace) -> Iterator[Row]:
    from benchmarks import stages
    from benchmarks.kernels import KERNELS

    tool, small, folder = options.tool, options.small, options.folder
    compiled = set()
    for name in options.kernels:
        if options.stage == "measure":
            rounds = options.rounds
            row = stages.measure(tool, name, small=small, rounds=rounds, folder=folder, cache=True)
        elif options.stage == "cached":
            row = stages.first_calls(tool, name, small=small)
        else:
            row = stages.reference(name, small=small, folder=folder)
        if KERNELS[name].fn in compiled:
            row.pop("compile_seconds", None)  # for another size of the same function there is none
        compiled.add(KERNELS[name].fn)
        yield row


def write(path: Path, found: Iterable[Row]) -> None:
    done: list[Row] = []
    for row in found:
        done.append(row)
        path.write_text(json.dumps(done), encoding="utf-8")
        print(_short(row), flush=True)


def _short(row: Row) -> str:
    ratio = row.get("ratio", {}).get("value_and_grad")
    what = " ".join(str(row[k]) for k in ("tool", "kernel", "what", "parameter") if k in row)
    return f"{what}: {row.get('status', '')}" + (f", {ratio:.3g} x primal" if ratio else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default="splitad")
    parser.add_argument("--stage", choices=STAGES, default="measure")
    parser.add_argument("--kernels", nargs="*", default=[])
    parser.add_argument("--small", action="store_true", help="small sizes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, required=True, help="where gradients are exchanged")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    options = parser.parse_args()
    on_one_core()
    write(options.out, rows(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
