"""Random stencils: what threads load around their own elements, under guards of many forms.

Each is checked against finite differences, and against the pair that adds by atomics.  Run by
test_simulated.py, in a process with numba's simulator.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from numba import cuda

import splitad as ad
from tests.targets.cuda.checking import check
from tests.targets.cuda.random_kernels import function

AXES = "ijk"
SIZES = {1: (11,), 2: (6, 5), 3: (4, 4, 3)}
BLOCK = {1: (4,), 2: (3, 2), 3: (2, 2, 2)}


class Stencil:
    """v and z, stored at a thread's own place, from u and w around it, a scalar c, and whole numbers m.

    kind: the dtype; the simulator takes constants for floats of any size, hence their types in the text.
    plain: nothing in it stands in the way of gathering what u and w get."""

    def __init__(self, seed: int) -> None:
        self.pick = pick = random.Random(seed)
        self.kind = pick.choice(["float64", "float64", "float32"])
        self.dims = pick.choice([1, 1, 2, 2, 3])
        self.shape = SIZES[self.dims]
        self.reach = pick.choice([1, 1, 2]) if self.dims == 1 else 1
        # without a guard against them, negative indices are elements at the other end
        self.wraps = pick.random() < 0.25
        self.plain = True
        self.launch = self._launch()

    def _launch(self) -> tuple[Any, Any]:
        """With fewer threads than elements, as many, or more."""
        block = BLOCK[self.dims]
        pick = self.pick
        blocks = [
            max(1, -(-n // b) + pick.choice([-1, 0, 0, 1]))
            for n, b in zip(self.shape, block, strict=True)
        ]
        return tuple(blocks), block

    # ---- expressions ------------------------------------------------------------------------------

    def constant(self, value: float) -> str:
        return f"{self.kind}({value})"

    def place(self, near: bool) -> str:
        by = [self.pick.randint(-self.reach, self.reach) if near else 0 for _ in range(self.dims)]
        if self.dims > 1 and self.pick.random() < 0.7:  # along one axis
            only = self.pick.randrange(self.dims)
            by = [b if k == only else 0 for k, b in enumerate(by)]
        return ", ".join(f"{a}{b:+d}" if b else a for a, b in zip(AXES, by, strict=False))

    def number(self, depth: int = 2) -> str:
        pick = self.pick
        if depth == 0 or pick.random() < 0.2:
            return pick.choice(
                [f"u[{self.place(True)}]", f"u[{self.place(True)}]", f"w[{self.place(True)}]"]
                + [f"w[{self.place(False)}]", f"u[{self.place(False)}]", "c", self.constant(0.5)]
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        one, two = self.constant(1.5), self.constant(2.0)
        return pick.choice(
            [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} + {two} * {b})", f"math.sin({a})",
             f"({a} / ({one} + {b} * {b}))"]
        )  # fmt: skip

    # ---- statements -------------------------------------------------------------------------------

    def body(self, pad: str) -> list[str]:
        pick, own = self.pick, self.place(False)
        kind = pick.choice(
            [
                "one",
                "one",
                "two",
                "update",
                "branch",
                "branch",
                "sum",
                "carried",
                "twice",
                "loop",
                "far",
            ]
        )
        first = f"{pad}v[{own}] = {self.number(3)}"
        if kind == "two":
            return [first, f"{pad}z[{own}] = {self.number()}"]
        if kind == "update":
            return [f"{pad}v[{own}] = v[{own}] * c - {self.number()}"]
        if kind == "branch":
            test = pick.choice([f"m[{own}] == 1", f"m[{own}] > 0 or i % 2 == 0", "not i > 2"])
            lines = [f"{pad}t = {self.number()}", f"{pad}if {test}:"]
            lines += [f"{pad} v[{own}] = t + {self.number()}", f"{pad}else:"]
            return lines + [f"{pad} {pick.choice(['v', 'z'])}[{own}] = t * {self.number()}"]
        if kind == "sum":
            return [f"{pad}cuda.atomic.add(loss, m[{own}] % 2, {self.number()})", first]
        if kind == "carried":
            return [f"{pad}t = {self.number()}", f"{pad}q = t * {self.number()}"] + [
                f"{pad}v[{own}] = q + t", f"{pad}z[{own}] = q * t"
            ]  # fmt: skip
        if kind == "twice":  # the second overwrites the first: v's shadow is zero for that
            self.plain = False
            return [first, f"{pad}v[{own}] = {self.number()} + {self.constant(0.1)} * v[{own}]"]
        if kind == "loop":
            self.plain = False
            return [f"{pad}for r in range(3):", f"{pad} v[{own}] = v[{own}] * c + {self.number()}"]
        if kind == "far":  # one of the loads is anywhere: it keeps its atomics
            others = ", ".join(["m[" + own + "]"] + ["0"] * (self.dims - 1))
            return [f"{first} * u[{others}]"]
        return [first]

    def tests(self) -> list[str]:
        """They hold where all that is loaded exists."""
        pick, found = self.pick, []
        for a, n in zip(AXES, self.shape, strict=False):
            r = self.reach
            size = pick.choice([str(n), f"u.shape[{AXES.index(a)}]"])
            found.append(pick.choice([f"{a} < {size} - {r}", f"{a} <= {size} - {r + 1}"]))
            if not self.wraps:
                lower = [f"{a} >= {r}", f"{r} <= {a}", f"{a} > {r - 1}", f"{a} - {r} >= 0"]
                found.append(pick.choice(lower + ([f"{a} != 0"] if r == 1 else [])))
        pick.shuffle(found)
        return found

    def source(self) -> str:
        pick = self.pick
        index = ", ".join(AXES[: self.dims])
        lines = ["def kernel(u, w, v, z, m, loss, c):", f" {index} = cuda.grid({self.dims})"]
        if self.dims == 1 and pick.random() < 0.4:
            lines[1] = " i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x"
        tests = self.tests()
        form = pick.choice(["and", "and", "return", "nested", "not"])
        if form == "return":
            opposite = [f"not ({t})" for t in tests]
            lines += [f" if {' or '.join(opposite)}:", "  return", *self.body(" ")]
        elif form == "nested":
            pad = " "
            for test in tests:
                lines.append(f"{pad}if {test}:")
                pad += " "
            lines += self.body(pad)
        elif form == "not":
            lines += [f" if not ({' and '.join(tests)}):", "  return", *self.body(" ")]
        else:
            lines += [f" if {' and '.join(tests)}:", *self.body("  ")]
        return "\n".join(lines) + "\n"


def compare(seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether anything was gathered."""
    stencil = Stencil(seed)
    text = stencil.source()
    kernel = cuda.jit(function(text, "kernel", seed))
    g = np.random.default_rng(seed)
    dtype = getattr(np, stencil.kind)
    floats = [g.random(stencil.shape).astype(dtype) for _ in range(4)]
    args = (*floats, g.integers(0, 3, stencil.shape), np.zeros(2, dtype), dtype(0.7))
    pullback = check(kernel, stencil.launch, args, atomic=True)

    monkeypatch.setenv("SPLITAD_WITHOUT", "cuda_gather")
    given = [cuda.to_device(x) for x in args[:-1]]
    plain = ad.cuda.split(kernel)[stencil.launch](*given, args[-1])
    monkeypatch.delenv("SPLITAD_WITHOUT")
    assert plain._spec.gather is None
    bars = [g.standard_normal(x.shape).astype(dtype) for x in (*floats, args[5])]
    shadows = [[cuda.to_device(b) for b in bars] for _ in range(2)]
    found = [p(*s) for p, s in zip((pullback, plain), shadows, strict=True)]
    # rounding: some ten terms of about one are added up in another order
    rtol = 1e-12 if dtype is np.float64 else 1e-5
    assert found[0] == pytest.approx(found[1], rel=100 * rtol, abs=100 * rtol), text
    for mine, other in zip(*shadows, strict=True):
        np.testing.assert_allclose(
            mine.copy_to_host(), other.copy_to_host(), rtol=rtol, atol=10 * rtol, err_msg=text
        )
    gathered = pullback._spec.gather is not None
    near = re.search(r"[uw]\[[^\]]*[+-]\d", text)  # beside the thread's own place
    assert gathered == (stencil.plain and near is not None), text
    return gathered


@pytest.mark.parametrize("seed", range(40))
def test_as_by_atomics(seed: int, monkeypatch) -> None:
    compare(seed, monkeypatch)
