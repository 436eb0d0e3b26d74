"""Rules of the functions of CUDA threads (ir/threads.py): what a thread knows of itself has no derivative,
and what atomics and barriers read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splitad.ir import threads
from splitad.rules.arrayrule import Need


@dataclass(frozen=True)
class ThreadRule:
    """What the analyses ask of an atomic operation or a barrier; its adjoint is targets/cuda's."""

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    results: tuple[str, ...] = ()
    call: tuple[Need, ...] = ()
    overwrites: None = None
    forward: None = None

    @staticmethod
    def of(op: threads.ArrayOp) -> ThreadRule:
        return ThreadRule(op.__name__, op.reads(), op.writes())

    def saves(self, active: Sequence[bool]) -> tuple[str, ...]:
        return ()
