"""One kernel in one tool: what the measurement needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Gradients = tuple[float, list[np.ndarray]]  # the value, and one array per position of wrt


class NotWritten(Exception):
    """This tool has no program for this kernel; the message says why."""


def as_they_are(given: tuple[Any, ...]) -> Callable[[int], list[tuple[Any, ...]]]:
    """The same arguments for every call: for programs that do not write to them."""
    return lambda count: [given] * count


@dataclass(frozen=True)
class Program:
    """value_and_grad(*args) does all of it; gradients() turns what it returns into NumPy arrays.

    forward(*args) returns something of which seed() makes the arguments of the pullback.
    """

    value_and_grad: Callable[..., Any]
    gradients: Callable[[Any], Gradients]
    args: Callable[[int], list[tuple[Any, ...]]]
    forward: Callable[..., Any] | None = None
    pullback: Callable[..., Any] | None = None
    seed: Callable[[Any], tuple[Any, ...]] = lambda out: (out,)
    once: bool = False  # what forward returns serves one pullback only
    tape_bytes: Callable[[Any], int | None] = lambda out: None
    release: Callable[[], Any] = lambda: None
    note: str = ""  # what was rewritten; empty where the program is the kernel as it stands


@dataclass
class Written:
    """The programs of one tool, by the name of the kernel's function."""

    programs: dict[str, tuple[Callable[..., Any], str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # why there is none

    def __call__(self, note: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorates a program that bears its kernel's name; the note says what was rewritten."""

        def register(f: Callable[..., Any]) -> Callable[..., Any]:
            self.programs[f.__name__] = f, note
            return f

        return register

    def find(self, kernel: str) -> tuple[Callable[..., Any], str]:
        if kernel not in self.programs:
            raise NotWritten(self.reasons.get(kernel, "no program for it"))
        return self.programs[kernel]


def folded(gradients: Gradients) -> Gradients:
    """For library factorisations, whose cotangent is spread over both triangles: as that of the lower one."""
    value, (g,) = gradients
    return value, [np.tril(g) + np.triu(g, 1).T]
