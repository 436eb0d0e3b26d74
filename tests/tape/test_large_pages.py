"""Large blocks ask Linux for large pages before they are touched."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import njit

import splitad as ad
from splitad.tape import machine_code, ops
from splitad.tape.arrays import empty_array, zero_array
from splitad.tape.machine_code import HUGE, Emit, compiled, i64, large_pages

SMAPS = Path("/proc/self/smaps")
linux = pytest.mark.skipif(
    sys.platform != "linux" or "VmFlags" not in SMAPS.read_text(), reason="only Linux is asked"
)


def asked(address: int) -> bool:
    """Whether large pages were asked for, for the mapping that holds this address."""
    found = False
    for line in SMAPS.read_text().split("\n"):
        first = line.split(" ")[0]
        if "-" in first and not first.endswith(":"):
            start, stop = (int(part, 16) for part in first.split("-"))
            found = start <= address < stop
        elif found and line.startswith("VmFlags:"):
            return "hg" in line.split()
    return False


@njit
def empty(n):
    return empty_array((n,), np.float64)


@njit
def zeros(n):
    return zero_array((n,), np.float64)


@njit
def like(x):
    return ad.make_zero((x, x[1:]))[1]


def middle(a: np.ndarray) -> int:
    return int(a.ctypes.data) + a.nbytes // 2


@linux
@pytest.mark.parametrize("make", [empty, zeros, lambda n: like(np.ones(n))])
def test_arrays(make: Any) -> None:
    assert asked(middle(make(HUGE)))


@linux
def test_tapes() -> None:
    tape = ops.tape_new(4 * HUGE, 1 << 40)
    assert asked(int(tape[0]) + 2 * HUGE)


def emitted(name: str) -> tuple[ir.Module, str]:
    module = ir.Module(name=name)
    e = Emit(module, name, i64, 2)
    large_pages(module)(e, *e.fn.args)
    e.b.ret(e.fn.args[1])
    return module, str(module)


def test_no_other_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        assert "madvise" in emitted("splitad_test_asks")[1]
    monkeypatch.setattr(machine_code.sys, "platform", "darwin")
    assert "madvise" not in emitted("splitad_test_asks_not")[1]
    monkeypatch.setattr(machine_code.sys, "platform", "linux")
    monkeypatch.setattr(machine_code, "c_function", lambda name: 0)
    assert "madvise" not in emitted("splitad_test_cannot_ask")[1]


def test_a_refusal_is_ignored() -> None:
    module, _ = emitted("splitad_test_refused")
    engine = compiled(module, ["splitad_test_refused"])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    call = kind(engine.get_function_address("splitad_test_refused"))
    assert call(1 << 46, HUGE) == HUGE  # nothing is mapped there
