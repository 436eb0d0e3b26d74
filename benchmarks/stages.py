"""What is found out about one kernel in one tool: figures, and whether the gradient is right.

measure      everything
first_calls  only how long first calls take, where an earlier process has left compiled code in the caches
reference    only splitad's gradient, which the other tools are compared with

Each returns a row: a dict with "tool", "kernel" and "status", which is

    ok         wrong      the gradient is not what splitad's is, or splitad's not what differences say
    none       there is no program; "note" says why
    unchecked  there is nothing to compare with
    error      "note" has it
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks import own
from benchmarks.agreement import bound, disagreement, from_differences
from benchmarks.kernels import KERNELS, Kernel
from benchmarks.measure import Part, first_call, interleaved, peak_beyond
from benchmarks.program import NotWritten, Program
from benchmarks.tools import OWN, module_of

BATCH_BYTES = 64 << 20  # what the arguments of one batch may take

Row = dict[str, Any]
Args = tuple[Any, ...]


def measure(
    tool: str, name: str, *, small: bool, rounds: int, folder: Path, cache: bool = False
) -> Row:
    """folder: where splitad leaves gradients for the others.  cache: keeps the primal's code on disk."""

    def find(row: Row, kernel: Kernel, args: Args) -> None:
        program = module_of(tool).program(kernel, args)
        row["note"] = program.note
        parts = _parts(kernel, args, program, cache)
        row["compile_seconds"] = {part: first_call(parts[part]) for part in parts}
        row["value"], gradients = _run(program)
        if tool == OWN:
            save_gradients(folder, name, gradients)
            row.update(_against_differences(kernel, args, gradients))
        else:
            row.update(_against_reference(folder, name, gradients))
        given = program.args(1)[0]
        row["peak_bytes"] = peak_beyond(lambda: program.value_and_grad(*given), program.release)
        row["seconds"] = interleaved(parts, rounds)
        primal = row["seconds"]["primal"]
        row["ratio"] = {k: s / primal for k, s in row["seconds"].items() if k != "primal"}
        if program.forward is not None:
            program.release()  # a tape in a used block counts all of the block
            row["tape_bytes"] = program.tape_bytes(program.forward(*program.args(1)[0]))

    return _guarded(tool, name, small, find)


def first_calls(tool: str, name: str, *, small: bool) -> Row:
    def find(row: Row, kernel: Kernel, args: Args) -> None:
        parts = _parts(kernel, args, module_of(tool).program(kernel, args), cache=True)
        row["compile_seconds"] = {part: first_call(parts[part]) for part in parts}

    return _guarded(tool, name, small, find)


def reference(name: str, *, small: bool, folder: Path) -> Row:
    def find(row: Row, kernel: Kernel, args: Args) -> None:
        save_gradients(folder, name, _run(own.program(kernel, args))[1])

    return _guarded(OWN, name, small, find)


def warm_up(tool: str) -> None:
    """A compiler's own start is nobody's compile time."""
    numba.njit(lambda x: x[0] + 1.0)(np.ones(1))
    module_of(tool).warm_up()


def _guarded(tool: str, name: str, small: bool, find: Callable[[Row, Kernel, Args], None]) -> Row:
    kernel = KERNELS[name]
    row: Row = {"tool": tool, "kernel": name, "status": "ok"}
    try:
        find(row, kernel, kernel.small() if small else kernel.full())
    except NotWritten as why:
        row.update(status="none", note=str(why))
    except Exception as error:  # one tool's fault in one kernel is a result, too
        text = str(error).splitlines() or [""]
        row.update(status="error", note=f"{type(error).__name__}: {text[0]}")
    return row


def _run(program: Program) -> tuple[float, list[np.ndarray]]:
    return program.gradients(program.value_and_grad(*program.args(1)[0]))


def _parts(kernel: Kernel, args: Args, program: Program, cache: bool) -> dict[str, Part]:
    nbytes = sum(a.nbytes for a in args if isinstance(a, np.ndarray)) + 1
    most = max(1, BATCH_BYTES // nbytes)
    parts = {
        "primal": Part(numba.njit(cache=cache)(kernel.fn), own.Fresh(args), most),
        "value_and_grad": Part(program.value_and_grad, program.args, most),
    }
    forward, pullback = program.forward, program.pullback
    if forward is None or pullback is None:
        return parts

    def seeded(count: int) -> list[Args]:
        outs = [forward(*given) for given in program.args(count if program.once else 1)]
        return [program.seed(outs[k % len(outs)]) for k in range(count)]

    parts["forward"] = Part(forward, program.args, most)
    parts["pullback"] = Part(pullback, seeded, most)
    return parts


# ---- is the gradient right? --------------------------------------------------------------------------


def _against_differences(kernel: Kernel, args: Args, gradients: list[np.ndarray]) -> Row:
    error, worth = from_differences(kernel, args, gradients)
    right = error <= bound(gradients) + 10 * worth
    return {
        "disagreement": error,
        "worth": worth,  # of the differences: they cannot tell more than this
        "status": "ok" if right else "wrong",
    }


def _against_reference(folder: Path, name: str, gradients: list[np.ndarray]) -> Row:
    expected = load_gradients(folder, name)
    if expected is None:
        return {"status": "unchecked"}
    error = disagreement(gradients, expected)
    return {"disagreement": error, "status": "ok" if error <= bound(expected) else "wrong"}


def save_gradients(folder: Path, name: str, gradients: list[np.ndarray]) -> None:
    np.savez(folder / f"{name}.npz", *gradients)


def load_gradients(folder: Path, name: str) -> list[np.ndarray] | None:
    path = folder / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as found:
        return [found[f"arr_{k}"] for k in range(len(found.files))]
