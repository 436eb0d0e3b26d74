"""splitad's side of the benchmark: the kernels as they stand, no program to write."""

from __future__ import annotations

from typing import Any

import numpy as np

import splitad as ad
from benchmarks.kernels import Kernel
from benchmarks.program import Gradients, Program
from splitad.testing import copy_args


class Fresh:
    """Sets of arguments, each as the kernel was given them, on memory that is used again and again."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args = args
        self.spare: list[tuple[Any, ...]] = []

    def __call__(self, count: int) -> list[tuple[Any, ...]]:
        while len(self.spare) < count:
            self.spare.append(copy_args(self.args))
        for spare in self.spare[:count]:
            for to, given in zip(spare, self.args, strict=True):
                if isinstance(to, np.ndarray):
                    np.copyto(to, given)
        return self.spare[:count]


def program(kernel: Kernel, args: tuple[Any, ...]) -> Program:
    """The forward and the pullback want what value_and_grad wants: cotangents of the arguments in wrt."""
    activities = [ad.Const] * len(args)
    for k in kernel.wrt:
        activities[k] = ad.Duplicated if isinstance(args[k], np.ndarray) else ad.Active
    forward = ad.split(kernel.fn, *activities)
    # Nothing uses the arguments after the call; see Fresh.
    both = ad.value_and_grad(kernel.fn, wrt=kernel.wrt, restore=False)
    return Program(
        value_and_grad=both,
        gradients=_gradients,
        args=Fresh(args),
        forward=forward,
        pullback=lambda pullback, *shadows: pullback(1.0, *shadows),
        seed=lambda out: (out[1], *out[1].make_zero()),
        tape_bytes=lambda out: int(out[1].tape_nbytes),
        release=ad.release_memory,
    )


def _gradients(result: Any) -> Gradients:
    value, gradients = result
    return float(value), [np.asarray(g) for g in gradients]


def warm_up() -> None:
    """splitad's own first compilation is nobody's compile time."""

    def square(x):
        s = 0.0
        for i in range(x.size):
            s += x[i] * x[i]
        return s

    ad.value_and_grad(square)(np.ones(2))
    _, pullback = ad.split(square)(np.ones(2))
    pullback(1.0, *pullback.make_zero())
