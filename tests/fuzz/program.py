"""A whole random program, as the text of a module.

f                 the function
make_args(seed)   arguments, of the same types for every seed
CONST             the positions that are Const
SPLIT, JIT        options of ad.split and of njit
WITHOUT           what splitad is to leave out of what makes derivatives fast (pipeline.OPTIONAL)
EXTRA             what else is checked: "driver", a call from compiled code; "gradient", ad.value_and_grad
"""

from __future__ import annotations

import random
import re

from splitad.pipeline import OPTIONAL
from tests.fuzz.blocks import statements
from tests.fuzz.scope import Name, Scope
from tests.fuzz.statements import result
from tests.fuzz.structs import struct_arguments

SIZE = 4  # of the one-dimensional arguments
ROWS, COLUMNS = 3, 4
HELPERS = re.compile(r"\b(h_\w+|State|Point|Box)\b")
VECTOR = f"rng.uniform(-1.2, 1.2, {SIZE})"
NUMBER = "rng.uniform(-1.2, 1.2)"


def program(seed: int) -> str:
    """The module's text; the same seed gives the same text."""
    rng = random.Random(seed)
    s = Scope(rng, budget=rng.choice([4, 7, 10, 14, 20, 28]))
    s.result = s.pick(["f"] * 6 + ["tuple", "array", "none", "both", "point", "twice"])
    s.exchanges = s.chance(0.15)
    if s.exchanges:  # short ones: what is wrong there shows in a few statements
        s.budget = s.pick([3, 5, 7, 10])
    arguments, makers, const, set_up, overlap = _arguments(s)
    if s.names("c") and s.chance(0.3):
        s.result = "c"
    statements(s, 10)
    while s.budget > 0:
        statements(s, 4)
    s.emit(f"return {result(s)}")
    body = [f"def f({', '.join(arguments)}):", *s.lines, "", "", "def make_args(seed=0):",
            f"    rng = np.random.default_rng({seed % 1000} + 1000 * seed)",
            *[f"    {line}" for line in set_up],
            f"    return ({', '.join(makers)},)"]  # fmt: skip
    split, jit, extra = _options(s, len(makers), overlap)
    used = sorted(set(HELPERS.findall("\n".join(body))))
    imports = ["import math", "", "import numpy as np"]
    if "List(" in "\n".join(body):
        imports.append("from numba.typed import List")
    if "prange" in "\n".join(body):
        imports.append("from numba import prange")
    if "GLOBAL" in "\n".join(body):
        body = ["GLOBAL = np.array([0.7, -0.4, 1.1, 0.2])", "", "", *body]
    if used:
        imports += ["", f"from tests.fuzz.helpers import {', '.join(used)}"]
    return "\n".join(
        [
            f'"""Random program {seed}."""',
            "# ruff: noqa",
            *imports,
            "",
            "",
            *body,
            "",
            "",
            f"CONST = {const!r}",
            f"SPLIT = {split!r}",
            f"JIT = {jit!r}",
            f"EXTRA = {extra!r}",
            f"WITHOUT = {_without(rng)!r}",
            "",
        ]
    )


def _options(s: Scope, count: int, overlap: bool) -> tuple[dict, dict, str]:
    split: dict = {}
    if not overlap and s.chance(0.15):
        each = tuple(s.chance(0.5) for _ in range(count))
        split["modified_between"] = s.pick([False, each])
    if s.chance(0.1):
        split["strong_zero"] = False
    jit = s.pick([{}] * 12 + [{"error_model": "numpy"}, {"boundscheck": True}, {"fastmath": True}])
    extra = s.pick(["", "driver"] + ["gradient"] * (2 if s.result == "f" else 0))
    return split, jit, extra


def _without(rng: random.Random) -> tuple[str, ...]:
    """Nothing, one thing, some or all."""
    each = rng.choice([0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0])
    if each == 0.0 and rng.random() < 0.5:
        return (rng.choice(OPTIONAL),)
    return tuple(name for name in OPTIONAL if rng.random() < each)


def _arguments(s: Scope) -> tuple[list[str], list[str], tuple[int, ...], list[str], bool]:
    """Parameters of f, expressions that make them, the Const ones, lines before these, any overlap."""
    names: list[Name] = []
    makers: list[str] = []
    lines = [f"x = {VECTOR}", f"m = rng.uniform(-1.2, 1.2, ({ROWS}, {COLUMNS}))"]
    overlap = False

    def add(name: Name, maker: str) -> None:
        names.append(name)
        makers.append(maker)
        s.define(name)

    add(Name("x", "a", (SIZE,)), "x")
    if s.chance(0.6):
        add(Name("a", "f"), NUMBER)
    if s.chance(0.6):
        kind = s.pick([*range(16), *range(6), *range(7, 16)])  # single precision must be compiled
        overlap = kind < 5
        add(*_second(kind))
    if s.chance(0.4):
        add(*_matrix(s))
    if s.chance(0.3):
        add(Name("n", "i"), str(s.rng.randrange(4)))
    if s.chance(0.12):
        add(Name("p", "t"), f"({NUMBER}, 0.7)")
    if s.chance(0.08):
        add(Name("w", "p"), f"Point({NUMBER}, 0.9)")  # a tie with p would be a kink
    if s.chance(0.1):
        add(Name("q", "q", (SIZE,)), f"Box({VECTOR}, {NUMBER})")
    if s.exchanges:
        structs, before, shared = struct_arguments(s)
        lines += before
        overlap = overlap or shared
        for name, maker in structs:
            add(name, maker)
    elif s.chance(0.25):
        shared = s.chance(0.2)
        first = "x" if shared else VECTOR
        lines.append(
            f"s = State({first}, {s.pick([VECTOR, VECTOR, VECTOR, 'rng.uniform(-1.2, 1.2, 4)'])}, 0.8)"
        )
        add(Name("s", "s", (SIZE,)), "s")
        overlap = overlap or shared
        if s.chance(0.2):
            second = s.rng.randrange(5)
            overlap = overlap or second < 3
            add(
                Name("r", "s", (SIZE,)),
                [
                    f"State({VECTOR}, s.h, 0.3)",
                    f"State(s.g, {VECTOR}, 0.3)",
                    "s",
                    *[f"State({VECTOR}, {VECTOR}, 0.3)"] * 2,
                ][second],
            )
    if s.chance(0.15):
        size = s.rng.randrange(1, SIZE + 2)
        values = [
            s.rng.randrange(-SIZE, SIZE) if s.chance(0.1) else s.rng.randrange(SIZE)
            for _ in range(size)
        ]
        add(Name("ix", "x", (size,), bound=SIZE), f"np.array({values!r})")
    if s.chance(0.08):
        add(Name("on", "b", (SIZE,)), f"rng.uniform(-1.0, 1.0, {SIZE}) > 0.0")
    if s.chance(0.1):
        if s.chance(0.4):
            add(Name("z", "c"), f"complex({NUMBER}, {NUMBER})")
        else:
            step = s.pick(["", "[::-1]"])
            add(
                Name("z", "a", (3,), dtype="c16", contiguous=not step),
                f"(rng.uniform(-1.2, 1.2, 3) + 1j * rng.uniform(-1.2, 1.2, 3)){step}",
            )
    if s.chance(0.07):
        add(Name("o", "a", (0,)), "np.zeros(0)")
    if s.chance(0.1):
        shape = s.pick([(2, 3, 2), (3, 1, 4)])
        cube = f"rng.uniform(-1.2, 1.2, {shape})"
        order = s.pick(["", "", "[:, ::-1]"])
        add(Name("d", "a", shape, contiguous=not order), cube + order)
    if s.chance(0.08):
        size = s.rng.randrange(1, 4)
        items = ", ".join([NUMBER] * size)
        add(Name("l", "l", bound=size), s.pick([f"List([{items}])", f"[{items}]"]))
    if s.chance(0.08):
        size = s.rng.randrange(1, 4)
        items = [VECTOR] * size
        if s.chance(0.15):
            items[s.rng.randrange(size)] = s.pick(["x", "x[::1]"])
            overlap = True
        add(Name("la", "la", (SIZE,), bound=size), f"List([{', '.join(items)}])")
    # (of a struct given twice, once as Const, differences cannot move one field alone)
    twins = "sr" if makers.count("s") > 1 else ""
    arrays = [k for k, n in enumerate(names) if n.kind in "as" and n.text not in twins]
    const: tuple[int, ...] = ()
    if s.chance(0.5 if s.exchanges else 0.2):
        const = (s.pick(arrays),)
        if len(arrays) > 1 and s.chance(0.2):
            const = tuple(sorted({*const, s.pick(arrays)}))
    return [name.text for name in names], makers, const, lines, overlap


def _second(kind: int) -> tuple[Name, str]:
    """Another vector; for kind < 5 it may overlap the first, or the matrix."""
    if kind == 0:
        return Name("y", "a", (SIZE,)), "x"
    if kind == 1:
        return Name("y", "a", (SIZE - 1,)), "x[1:]"
    if kind == 2:
        return Name("y", "a", (SIZE,), contiguous=False), "x[::-1]"
    if kind == 3:
        return Name("y", "a", (COLUMNS,)), "m[1]"
    if kind == 4:
        return Name("y", "a", (ROWS,), contiguous=False), "m[:, 2]"
    if kind == 5:
        return Name("y", "a", (SIZE,), contiguous=False), f"rng.uniform(-1.2, 1.2, {2 * SIZE})[::2]"
    if kind == 6:
        return Name("y", "a", (SIZE,), dtype="f4"), f"{VECTOR}.astype(np.float32)"
    if kind == 7:
        return Name("y", "a", (1,)), "rng.uniform(-1.2, 1.2, 1)"
    return Name("y", "a", (SIZE,)), VECTOR


def _matrix(s: Scope) -> tuple[Name, str]:
    kind = s.rng.randrange(8)
    if kind == 0:
        return Name("m", "a", (COLUMNS, ROWS), contiguous=False), "m.T"
    if kind == 1:
        return Name("m", "a", (2, 2), contiguous=False), "m[::2, 1::2]"
    if kind == 2:
        return Name("m", "a", (ROWS, COLUMNS), contiguous=False), "np.asfortranarray(m)"
    return Name("m", "a", (ROWS, COLUMNS)), "m"
