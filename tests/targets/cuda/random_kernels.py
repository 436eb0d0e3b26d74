"""Random kernels, in which each thread works on its own elements: the CPU has the same derivative.

The same statements are put into a kernel and into a loop over the elements, and what the two pairs give is
compared, to rounding.  Run by test_simulated.py, in a process with numba's simulator.
"""

from __future__ import annotations

import linecache
import math
import random
import re
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, float64, njit, typeof

import splitad as ad
from splitad.ir import activities
from tests.fuzz.interpreted import Interpreted

N = 11
SCALARS = ("p", "q", "r")


class Program:
    """Statements over own elements x[i], y[i], m[i], a parameter c, local scalars and a local array."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0

    def number(self, depth: int = 2) -> str:
        pick = self.pick
        if depth == 0 or pick.random() < 0.3:
            return pick.choice(
                ["x[i]", "y[i]", "c", *SCALARS, "w[m[i] % 3]", "w[0]", "0.5", "1.25", "float(m[i])"]
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"math.sin({a})", f"math.tanh({a})",
                f"({a} / (1.5 + math.fabs({b})))", f"math.sqrt(1.0 + {a} * {a})", f"max({a}, {b})",
                f"math.exp(-math.fabs({a}))", f"({a} if {self.test()} else {b})",
            ]
        )  # fmt: skip

    def test(self) -> str:
        return self.pick.choice(
            [
                "x[i] > 0.4",
                "y[i] * c < 0.3",
                "m[i] % 2 == 0",
                "p > q",
                "i % 3 == 1",
                "r < 0.7 and p > 0.1",
            ]
        )

    def whole(self) -> str:
        return self.pick.choice(["m[i]", "2", "3", "i % 4", "m[i] // 2 + 1"])

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        for _ in range(self.pick.randint(1, 3)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent: int, depth: int, in_loop: bool) -> None:
        pick, pad = self.pick, " " * indent
        kind = pick.random()
        if depth == 0 or kind < 0.5:
            target = pick.choice(["x[i]", "y[i]", *SCALARS, *SCALARS, "w[1]", "w[m[i] % 3]"])
            how = pick.choice(["=", "=", "=", "+=", "*="])
            self.lines.append(f"{pad}{target} {how} math.tanh({self.number()})")
        elif kind < 0.68:
            self.lines.append(f"{pad}if {self.test()}:")
            self.block(indent + 1, depth - 1, in_loop)
            if pick.random() < 0.6:
                self.lines.append(f"{pad}else:")
                self.block(indent + 1, depth - 1, in_loop)
        elif kind < 0.86:
            self.loops += 1
            self.lines.append(f"{pad}for k{self.loops} in range({self.whole()}):")
            self.block(indent + 1, depth - 1, True)
            if pick.random() < 0.3:
                self.lines.append(f"{pad} if {self.test()}:")
                self.lines.append(f"{pad}  {pick.choice(['break', 'continue'])}")
                self.statement(indent + 1, 0, True)
        else:
            self.loops += 1
            count = f"n{self.loops}"
            self.lines.append(f"{pad}{count} = 0")
            self.lines.append(f"{pad}while {count} < {self.whole()} and {self.test()}:")
            self.lines.append(f"{pad} {count} += 1")
            self.block(indent + 1, depth - 1, True)

    def source(self) -> tuple[str, str]:
        """The kernel, and the loop."""
        self.block(2, 3, False)
        body = [
            "  p = x[i]", "  q = y[i] * c", "  r = 0.3", *(f"  w[{k}] = x[i] + {k}" for k in range(3)),
            *self.lines, "  y[i] = y[i] + p * q + r",
        ]  # fmt: skip
        kernel = ["def kernel(x, y, m, c):", " i = cuda.grid(1)", " if i < x.shape[0]:"]
        kernel += ["  w = cuda.local.array(3, float64)", *body]
        loop = ["def loop(x, y, m, c):", " for i in range(x.shape[0]):", "  w = np.empty(3)", *body]
        return "\n".join(kernel) + "\n", "\n".join(loop) + "\n"


def function(text: str, name: str, seed: int) -> Any:
    file = f"<random kernel {name} {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"math": math, "np": np, "cuda": cuda, "float32": float32, "float64": float64}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


def on_the_cpu(loop: Any, args: tuple[Any, ...], shadows: list[np.ndarray]) -> Any:
    """What the pullback returns.  The pair is run in plain Python, as the simulator runs the kernel's."""
    kinds = tuple(activities.default(typeof(arg)) for arg in args)
    _, pullback = Interpreted(njit(loop), kinds, args, {})(*args)
    return pullback(None, *shadows)


def compare(seed: int) -> None:
    texts = Program(seed).source()
    kernel, loop = (function(t, n, seed) for t, n in zip(texts, ("kernel", "loop"), strict=True))
    g = np.random.default_rng(seed)
    x, y, m = g.random(N), g.random(N), g.integers(0, 4, N)
    bars = g.standard_normal(N), g.standard_normal(N)
    given = [cuda.to_device(v) for v in (x, y, m)]
    pullback = ad.cuda.split(cuda.jit(kernel))[3, 4](*given, 0.8)
    on_device = [cuda.to_device(b) for b in bars]
    (c_bar,) = pullback(*on_device)
    on_host = [b.copy() for b in bars]
    (expected,) = on_the_cpu(loop, (x, y, m, 0.8), on_host)
    pairs = [*zip(given[:2], (x, y), strict=True), *zip(on_device, on_host, strict=True)]
    for mine, other in pairs:
        np.testing.assert_allclose(
            mine.copy_to_host(), other, rtol=1e-9, atol=1e-12, err_msg=texts[0]
        )
    assert c_bar == pytest.approx(expected, rel=1e-9, abs=1e-12), texts[0]


# ---- blocks --------------------------------------------------------------------------------------------


T, BLOCKS = 4, 2


class Stages:
    """Stages with a barrier after each: every thread writes its own elements of one array, and reads any of
    the others; or all of them find an extremum in shared memory.  The loop does a stage for one thread after
    the other."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.kernel: list[str] = []
        self.loop: list[str] = []
        self.loops = 0

    def number(self, source: str, depth: int = 2) -> str:
        pick = self.pick
        if depth == 0 or pick.random() < 0.3:
            others = ["t", "(t + 1) % 4", "3 - t", "(t * m[i]) % 4", "0"]
            return pick.choice(
                [f"{source}[{pick.choice(others)}]"] * 3 + ["x[i]", "c", "z[m[i]]", "0.5", "q[0]"]
            )
        a, b = self.number(source, depth - 1), self.number(source, depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"math.sin({a})",
                f"({a} / (1.5 + math.fabs({b})))", f"({a} if {source}[t] > 0.3 else {b})",
            ]
        )  # fmt: skip

    def stage(self, indent: int) -> None:
        pick = self.pick
        if pick.random() < 0.25:
            self.extremum(indent)
            return
        source, target = pick.choice([("s", "v"), ("v", "s")])
        lines = [f"{target}[t] = math.tanh({self.number(source)})"]
        if pick.random() < 0.4:
            lines[0] = lines[0].replace(" = ", f" = {target}[t] * ", 1)
        if pick.random() < 0.4:
            lines.append(f"cuda.atomic.add(total, m[i] % 2, {self.number(source)})")
        if pick.random() < 0.3:
            lines.append(f"cuda.atomic.min(least, m[i] % 2, {self.distinct(source)})")
        if pick.random() < 0.4:
            lines = [f"if {pick.choice(['t > 1', 'm[i] == 2', 'x[i] > 0.5'])}:"] + [
                " " + l for l in lines
            ]
        if pick.random() < 0.3:
            lines.append(f"for j in range(m[i]):\n x[i] = x[i] * {source}[(t + j) % 4] + 0.3")
        self.add(indent, lines)

    def distinct(self, source: str) -> str:
        """A number that no two threads have: what is equal is a kink."""
        return f"math.tanh({self.number(source)}) + 0.37 * x[i]"

    def extremum(self, indent: int) -> None:
        pick = self.pick
        source, which = pick.choice(["s", "v"]), pick.choice(["max", "min"])
        start = self.number(source).replace("q[0]", "0.4")
        self.add(indent, ["if t == 1:", f" q[0] = math.tanh({start})"])
        offer = f"cuda.atomic.{which}(q, 0, {self.distinct(source).replace('q[0]', 'x[i]')})"
        if pick.random() < 0.5:
            self.add(
                indent, [f"if {pick.choice(['t > 1', 'm[i] == 2', 'x[i] > 0.5'])}:", " " + offer]
            )
        else:
            self.add(indent, [offer])

    def add(self, indent: int, lines: list[str]) -> None:
        flat = [part for line in lines for part in line.split("\n")]
        pad = " " * indent
        self.kernel += [pad + line for line in flat] + [pad + "cuda.syncthreads()"]
        self.loop += [pad + " for t in range(4):", pad + "  i = b * 4 + t"]
        for line in flat:
            found = re.match(r"( *)cuda\.atomic\.(\w+)\((\w+), (.*?), (.*)\)$", line)
            if found:
                lead, how, array, place, value = found.groups()
                at = f"{array}[{place}]"
                done = f"{at} + {value}" if how == "add" else f"{how}({at}, {value})"
                line = f"{lead}{at} = {done}"
            self.loop.append(pad + "  " + line)

    def stages(self, indent: int, depth: int) -> None:
        for _ in range(self.pick.randint(1, 3)):
            if depth and self.pick.random() < 0.4:
                self.loops += 1
                for lines, extra in ((self.kernel, ""), (self.loop, " ")):
                    lines.append(
                        f"{extra}{' ' * indent}for k{self.loops} in range({1 + self.loops % 3}):"
                    )
                self.stages(indent + 1, depth - 1)
            else:
                self.stage(indent)

    def source(self) -> tuple[str, str]:
        start = ["s[t] = x[i] * 0.8", "v[t] = 0.4", "if t == 0:", " q[0] = 0.3"]
        end = ["y[i] = s[t] * v[3 - t] + x[i]"]
        self.stages(1, 2)
        kernel = [
            "def kernel(x, y, z, m, total, least, c):", " i = cuda.grid(1)", " t = cuda.threadIdx.x",
            " s = cuda.shared.array(4, float64)", " v = cuda.shared.array(4, float64)",
            " q = cuda.shared.array(1, float64)",
            *(" " + line for line in start), " cuda.syncthreads()", *self.kernel,
            *(" " + line for line in end),
        ]  # fmt: skip
        each = ["  for t in range(4):", "   i = b * 4 + t"]
        loop = [
            "def loop(x, y, z, m, total, least, c):", " for b in range(2):", "  s = np.empty(4)",
            "  v = np.empty(4)", "  q = np.empty(1)", *each, *("   " + line for line in start), *self.loop,
            *each, *("   " + line for line in end),
        ]  # fmt: skip
        return "\n".join(kernel) + "\n", "\n".join(loop) + "\n"


def compare_blocks(seed: int) -> None:
    texts = Stages(seed).source()
    kernel, loop = (function(t, n, seed) for t, n in zip(texts, ("kernel", "loop"), strict=True))
    g = np.random.default_rng(seed)
    floats = [g.random(8), g.random(8), g.random(4), np.zeros(2), np.array([0.3, 9.0])]
    m = g.integers(0, 4, 8)
    bars = [g.standard_normal(a.shape) for a in floats]
    given = [cuda.to_device(a) for a in floats]
    args = (*given[:3], cuda.to_device(m), *given[3:], 0.8)
    pullback = ad.cuda.split(cuda.jit(kernel))[BLOCKS, T](*args)
    on_device = [cuda.to_device(b) for b in bars]
    (c_bar,) = pullback(*on_device)
    on_host = [b.copy() for b in bars]
    (expected,) = on_the_cpu(loop, (*floats[:3], m, *floats[3:], 0.8), on_host)
    pairs = [*zip(given, floats, strict=True), *zip(on_device, on_host, strict=True)]
    for mine, other in pairs:
        np.testing.assert_allclose(
            mine.copy_to_host(), other, rtol=1e-9, atol=1e-12, err_msg=texts[0]
        )
    assert c_bar == pytest.approx(expected, rel=1e-9, abs=1e-12), texts[0]


@pytest.mark.parametrize("seed", range(8))
def test_as_on_the_cpu(seed: int) -> None:
    compare(seed)


@pytest.mark.parametrize("seed", range(8))
def test_blocks_as_on_the_cpu(seed: int) -> None:
    compare_blocks(seed)
