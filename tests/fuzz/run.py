"""Search for programs whose derivative is wrong.

    python -m tests.fuzz.run --minutes 60 --seed 0     programs 0, 1, 2, ... for an hour; --jobs N at a time
    python -m tests.fuzz.run --seed 17 --count 1       program 17 alone
    python -m tests.fuzz.run --show 17                 its text
    python -m tests.fuzz.run --check file.py           one file
    python -m tests.fuzz.run --reduce file.py          make a failing file smaller

Of most programs, the text of the pair is run in plain Python (interpreted.py), and what is found so is
compiled.  Programs run in a process of their own, so that a crash or a hang is a finding too.  A failing
program is saved to build/fuzz (or --save); reduced, it belongs into tests/fuzz/regressions, where the tests
find it.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.outcome import Outcome, check_file
from tests.fuzz.program import program
from tests.fuzz.reduce import category, reduce

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 600.0  # seconds for one program
PER_PROCESS = 100  # compiled code is never freed
COMPILED = 30  # every so many programs, one is compiled whatever its text does in plain Python
REPORT_EVERY = 300.0  # seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, default=sys.maxsize)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--save", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--check", type=Path, metavar="FILE")
    parser.add_argument("--reduce", type=Path, metavar="FILE")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.show is not None:
        print(program(options.show))
        return 0
    if options.check is not None:
        outcome = check_file(options.check)
        print(outcome.kind, outcome.why)
        return int(outcome.kind == "failed")
    if options.reduce is not None:
        target = options.reduce.with_suffix(".small.py")
        outcome = reduce(
            options.reduce, target, _check_apart if _crashes(options.reduce) else check_file
        )
        print(target.read_text(encoding="utf-8"), outcome.why, f"written to {target}", sep="\n")
        return 0
    if options.worker:
        return _work(options.seed, options.count)
    return _search(options)


def _search(options: argparse.Namespace) -> int:
    start = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    reasons: dict[tuple[str, str], list[int]] = collections.defaultdict(list)  # to the programs
    reported = start

    def report() -> None:
        minutes = (time.monotonic() - start) / 60
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        print(f"{counts.total()} programs in {minutes:.1f} minutes: {kinds}", flush=True)

    for seed, outcome in _outcomes(options, start + 60 * options.minutes):
        counts[f"{outcome.kind} {outcome.why}" if outcome.kind == "passed" else outcome.kind] += 1
        if outcome.kind in ("refused", "dropped"):
            reasons[outcome.kind, reason(outcome)].append(seed)
        if outcome.kind in ("failed", "odd"):
            options.save.mkdir(parents=True, exist_ok=True)
            path = options.save / f"program_{seed}.py"
            path.write_text(program(seed), encoding="utf-8")
            print(
                f"program {seed} {outcome.kind.upper()}, saved to {path}\n{outcome.why}", flush=True
            )
        if time.monotonic() - reported > REPORT_EVERY:
            reported = time.monotonic()
            report()
    report()
    for (kind, why), seeds in sorted(reasons.items(), key=lambda item: -len(item[1]))[:60]:
        print(f"  {kind} {len(seeds):4}: {why}  (program {seeds[0]})")
    return int(counts["failed"] > 0)


def reason(outcome: Outcome) -> str:
    """Why a program was refused or dropped, without the names and numbers of that program."""
    lines = [line for line in outcome.why.strip().splitlines() if line.strip()]
    text = lines[0] if lines else ""
    if text.startswith("numba:") and len(lines) > 1:
        text = "numba: " + next((line for line in lines[1:] if ":" not in line[:12]), lines[1])
    text = re.sub(r"\b[a-z]{1,2}\d*\b(\.[hgc]\b)?(?=[ ,.;:]|$)", "_", text)
    return re.sub(r"\d+", "N", text)[:150]


def _outcomes(options: argparse.Namespace, deadline: float) -> Iterator[tuple[int, Outcome]]:
    """The outcomes of all workers, as they come; each worker takes the next stretch of seeds."""
    last = options.seed + options.count
    stretches = iter(range(options.seed, last, PER_PROCESS))
    found: queue.Queue[tuple[int, Outcome] | None] = queue.Queue()
    lock = threading.Lock()

    def work() -> None:
        while time.monotonic() < deadline:
            with lock:
                first = next(stretches, None)
            if first is None:
                break
            seed, end = first, min(first + PER_PROCESS, last)
            # what LLVM makes of it is a quarter of the time, and seldom what is wrong
            optimised = (first - options.seed) // PER_PROCESS % 4 == 3
            while seed < end and time.monotonic() < deadline:  # more than once after a crash
                command = ["--worker", "--seed", str(seed), "--count", str(end - seed)]
                for outcome in _lines(command, deadline, optimised):
                    found.put((seed, outcome))
                    seed += 1
        found.put(None)

    for _ in range(options.jobs):
        threading.Thread(target=work, daemon=True).start()
    for _ in range(options.jobs):
        yield from iter(found.get, None)


def _lines(command: list[str], deadline: float, optimised: bool) -> Iterator[Outcome]:
    """What a worker process prints; its crash or hang is the last outcome."""
    environment = os.environ if optimised else {**os.environ, "NUMBA_OPT": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.run", *command],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []

    def read() -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    readers = [
        threading.Thread(target=read, daemon=True),
        threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        while time.monotonic() < deadline:
            try:
                line = lines.get(timeout=PATIENCE)
            except queue.Empty:
                yield Outcome("failed", f"no answer within {PATIENCE} seconds")
                return
            if line is None:
                break
            if line.startswith("{"):
                yield Outcome(**json.loads(line))
    finally:
        expected = process.poll()
        process.kill()
        code = process.wait()
        for reader in readers:
            reader.join()
        process.stdout.close()
        process.stderr.close()
    if expected is None and time.monotonic() >= deadline:
        return
    if code not in (0, -9):
        yield Outcome("failed", f"the process ended with {code}\n" + "".join(errors[-30:]))


def _work(first: int, count: int) -> int:
    with tempfile.TemporaryDirectory(prefix="splitad-fuzz-") as folder:
        os.environ["SPLITAD_CACHE_DIR"] = folder  # nothing of it is needed again
        for seed in range(first, first + count):
            path = Path(folder) / f"program_{seed}.py"
            path.write_text(program(seed), encoding="utf-8")
            outcome = check_file(path, quick=seed % COMPILED != 0)
            print(json.dumps({"kind": outcome.kind, "why": outcome.why}), flush=True)
    return 0


def _check_apart(path: Path) -> Outcome:
    """check_file in a process of its own."""
    command = [sys.executable, "-m", "tests.fuzz.run", "--check", str(path.resolve())]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return Outcome("failed", f"no answer within {PATIENCE} seconds")
    if run.returncode in (0, 1) and run.stdout:
        kind, _, why = run.stdout.partition(" ")
        return Outcome(kind, why)
    return Outcome("failed", f"the process ended with {run.returncode}")


def _crashes(path: Path) -> bool:
    return category(_check_apart(path)) == category(Outcome("failed", "the process ended with -11"))


if __name__ == "__main__":
    sys.exit(main())
