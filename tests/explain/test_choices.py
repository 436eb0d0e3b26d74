"""What `show` says was chosen, and why: a small function for each reason."""

from __future__ import annotations

import linecache
import math
import os
import random
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba import typeof

from splitad.cache import CompiledPair, Request
from splitad.explain.choices import Choice, choices
from splitad.explain.table import WIDTH, table
from splitad.pipeline import Options
from tests.transform import golden_programs, programs
from tests.transform.pair_text import pair_text
from tests.transform.programs import State, ramp

SQUARE = ramp(9).reshape(3, 3)


def chosen(f: Callable[..., Any], *args: Any, **options: Any) -> tuple[Choice, ...]:
    return choices(pair_text(f, *args, **options).facts)


def find(found: tuple[Choice, ...], value: str, text: str = "") -> Choice:
    """The one choice for a value, in the line that begins like this."""
    (one,) = [c for c in found if c.value == value and c.text.startswith(text)]
    return one


# ---- values --------------------------------------------------------------------------------------------


def dear(x, n):
    for i in range(n):
        for j in range(n):
            e = math.exp(x[i] * x[j])
            x[i] += e * e


def test_taped_because_of_its_cost() -> None:
    e = find(chosen(dear, ramp(), 2), "e")
    assert (e.choice, e.reason) == ("taped", "math.exp is dearer than a load")
    assert (e.bytes, e.often, e.depth) == (8, "per iteration of i, j", 2)
    assert e.text == "e = math.exp(x[i] * x[j])" and e.function == "dear"
    assert e.line == dear.__code__.co_firstlineno + 3


def carried(x):
    s = 1.0
    for i in range(x.size):
        s = s * s * x[i]
    return s


def test_carried_by_a_loop() -> None:
    found = chosen(carried, ramp())
    s = find(found, "s")
    assert (s.choice, s.reason) == ("taped", "carried from one iteration to the next")
    assert s.text.startswith("for i") and s.often == "per iteration of i"
    loop = find(found, "loop over i")
    assert loop.choice == "last iteration first"
    assert loop.reason == "s goes from one iteration to the next"


def branch(x, c):
    if math.sin(c) > 0.5:
        y = x * math.cos(x)
    else:
        y = x + c
    return y * y


def test_the_result_of_a_branch() -> None:
    y = find(chosen(branch, 1.0, 2.0), "y", "if")
    assert (y.choice, y.reason, y.often) == ("taped", "the result of a branch", "once")


def numpys(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * np.random.normal()
    return s


def pythons(x):
    return x * random.random()


@pytest.mark.parametrize(("f", "arg"), [(numpys, ramp()), (pythons, 1.0)])
def test_a_random_number(f: Any, arg: Any) -> None:
    drawn = find(chosen(f, arg), "a random number")
    assert (drawn.choice, drawn.reason) == ("taped", "a random number is not drawn twice")


def rounded(x, y):
    s = 0.0
    for i in range(x.size):
        if x[i] * x[i] > y[i]:
            s += x[i] * y[i]
    return s


def copied(x, steps):
    u, v = x.copy(), x.copy()
    for _ in range(steps):
        for i in range(x.size):
            v[i] = u[i] * u[i]
        u, v = v, u
    return u[0]


def test_what_is_known_in_the_forward_only() -> None:
    u = find(chosen(copied, ramp(), 3), "which array u is", "u, v")
    assert (u.choice, u.reason) == ("taped", "known in the forward only")


def test_a_comparison_that_may_come_out_differently() -> None:
    above = find(chosen(rounded, ramp(), ramp()), "(x[i] * x[i]) > y[i]")
    assert above.choice == "taped" and above.bytes == 1
    assert above.reason.startswith("it hangs on the last bits of a float")


def test_free_and_computed_again() -> None:
    found = chosen(golden_programs.three_buffers, ramp(), ramp(), ramp(), 3)
    i = find(found, "i")
    assert (i.choice, i.reason, i.bytes) == ("free", "the loop counts it again", 0)
    after = find(found, "i + 1")
    assert (after.choice, after.reason) == ("computed again", "cheap")
    bound = find(found, "u.shape[0] - 1")
    assert bound.choice == "taped"
    assert bound.reason == "computing it again would need u.shape[0], which is no less"


# ---- what is loaded ------------------------------------------------------------------------------------


def written(x):
    for i in range(x.size):
        x[i] = x[i] * x[i]


def test_loaded_from_what_is_written_beside() -> None:
    found = chosen(written, ramp())
    line = written.__code__.co_firstlineno + 2
    x = find(found, "x[i]")
    assert (x.choice, x.reason) == ("taped", f"line {line} writes x in the same iteration")
    loop = find(found, "loop over i")
    assert loop.reason == f"it loads from x, line {line}, and stores to it"


def corner(x):
    return x[0, 0] * x[1, 1]


def test_a_copy_that_would_be_larger() -> None:
    x = find(chosen(corner, SQUARE), "x[0, 0]")
    assert (x.choice, x.reason) == ("taped", "a copy of all of x would be larger")


def only_read(x):
    s = 0.0
    for i in range(x.size):
        s += math.sin(x[i])
    return s


def test_a_snapshot() -> None:
    found = chosen(only_read, ramp(), stable=(False,))
    why = "the caller may write x before the pullback, unless modified_between=False"
    x, copy = find(found, "x[i]"), find(found, "contents of x")
    assert x.choice == "loaded again from a copy of x made at the end" and x.reason == why
    assert (copy.choice, copy.reason) == ("copied at the end", why)
    assert (copy.bytes, copy.often, copy.depth) == (8, "per element of x", 1)


def test_kept_by_reference() -> None:
    promised = chosen(only_read, ramp(), stable=(True,))
    x, kept = find(promised, "x[i]"), find(promised, "contents of x")
    assert x.choice == "loaded again from x itself"
    assert kept.choice == "kept by reference" and kept.bytes == 0
    assert kept.reason == "nobody writes x before the pullback: modified_between=False"

    def own(x):
        tmp = np.empty(x.size)
        for i in range(x.size):
            tmp[i] = 2.0 * x[i]
        s = 0.0
        for i in range(x.size):
            s += math.sin(tmp[i])
        return s

    kept = find(chosen(own, ramp()), "contents of tmp")
    assert kept.choice == "kept by reference"
    assert kept.reason == "nothing writes tmp any more, and the caller cannot reach it"


def stepped(x, out, steps):
    for _ in range(steps):
        for i in range(x.size):
            out[i] = x[i] * x[i]
        for i in range(x.size):
            x[i] = out[i]


def test_a_copy_in_each_step() -> None:
    found = chosen(stepped, ramp(), ramp(), 3)
    first = stepped.__code__.co_firstlineno
    copy = find(found, "contents of x")
    assert copy.choice == f"copied behind the loop in line {first + 2}" and copy.line == first + 2
    assert copy.often == "per iteration of _ and element of x" and copy.depth == 2
    assert copy.reason == f"line {first + 5} writes x later"
    x = find(found, "x[i]")
    assert x.choice == (
        f"loaded again from a copy of x made once per iteration of _, behind the loop in line {first + 2}"
    )


def test_an_undo_log() -> None:
    found = chosen(golden_programs.undo_log, SQUARE)
    old = find(found, "a's old value")
    assert (old.choice, old.bytes) == ("taped", 8)
    assert old.reason == "undo log of a: loaded deeper than it is stored"
    loaded = find(found, "a[j, k]")
    assert loaded.choice == "loaded again from a copy of a at the end, undone store by store"
    assert find(found, "contents of a").choice == "copied at the end, with an undo log"
    assert find(found, "loop over j").reason == "stores to a are taken back, the last one first"


TABLE = np.array([1.0, 2.0, 3.0])


def weighted(x):
    s = 0.0
    for i in range(3):
        s += TABLE[i] * x[i]
    return s


def test_a_global_array() -> None:
    found = chosen(weighted, ramp())
    (w,) = (c for c in found if c.choice.startswith("loaded again"))
    assert w.choice == "loaded again from a global array" and w.reason.endswith("is a constant")


def of_matrices(a, b):
    return np.sum(np.dot(a, b))


def test_what_a_call_reads() -> None:
    found = chosen(of_matrices, SQUARE, SQUARE)
    read = [c for c in found if c.value == "contents of a"]
    assert {c.choice for c in read} == {
        "loaded again from a copy of a made at the end",
        "copied at the end",
    }


def test_fields_are_called_as_the_user_does() -> None:
    found = chosen(golden_programs.field_rebound, State(ramp(), ramp()))
    assert any(c.value.startswith("state.") for c in found)
    assert not any("state_" in c.value + c.reason for c in found)


@numba.njit
def inner(a):
    e = math.exp(a)
    return e * e * math.sin(e)


def outer(x, y):
    for i in range(x.size):
        y[i] = inner(x[i]) + inner(2.0 * x[i])


def test_an_inlined_function() -> None:
    found = chosen(outer, ramp(), ramp())
    e = [c for c in found if c.value == "e"]
    assert len(e) == 2 and {c.function for c in e} == {"inner"}
    assert {c.line for c in e} == {inner.py_func.__code__.co_firstlineno + 2}
    assert [c.function for c in found] == sorted((c.function for c in found), reverse=True)
    text = table(found)
    assert "e = math.exp(a)   in inner\n" in text and "e (2 times)" in text


# ---- loops ---------------------------------------------------------------------------------------------


def test_independent_iterations_and_buffers() -> None:
    found = chosen(golden_programs.three_buffers, ramp(), ramp(), ramp(), 3)
    loop, around = find(found, "loop over i"), find(found, "loop over _")
    assert (loop.choice, loop.reason) == (
        "in forward order",
        "no iteration reads what another one adds",
    )
    assert around.choice == "last iteration first"
    assert around.reason == f"it holds a loop, line {loop.line}"
    u = [c for c in found if c.value == "cotangent of u"]
    assert {c.choice for c in u} == {"added through a buffer"}


def summed(x, y, n):
    for k in range(n):
        for i in range(n):
            y[i] = y[i] + x[k] * x[k]


def test_a_sum_in_a_scalar() -> None:
    found = chosen(summed, ramp(), ramp(), 3)
    x = next(c for c in found if c.value == "cotangent of x")
    assert x.choice == "summed in a scalar, added once behind the loop over i"


def on_a_ring(x, out, n):
    for i in range(n):
        out[i] = (x[(i + 1) % n] - x[i - 2]) * x[i - 1]


def test_the_ends_of_a_ring() -> None:
    loop = find(chosen(on_a_ring, ramp(), ramp(), 5), "loop over i")
    assert loop.choice == "in forward order, but the first 2 and the last 1 by themselves"


def backwards(x, y, n):
    for i in range(n - 1, -1, -1):
        y[i] = x[i] * x[i]


def scattered(x, y, index):
    for i in range(index.size):
        y[index[i]] = x[i] * x[i]


def looked_up(x, y, index):
    for i in range(index.size):
        y[i] = x[index[i]] * x[index[i]]


def two_places(x, y, index):
    for i in range(index.size):
        y[i] = x[index[i]] * x[i]


def sweep(u, f):
    for i in range(1, u.size - 1):
        r = u[i - 1] + u[i + 1] + f[i]
        u[i] = r / (1.0 + 0.01 * r * r)


def test_a_partial_that_is_found_ahead() -> None:
    found = chosen(sweep, ramp(), ramp())
    (ahead,) = (c for c in found if c.choice.startswith("multiplied by a partial"))
    assert ahead.text == "u[i] = r / (1.0 + 0.01 * r * r)"
    assert ahead.choice.endswith("that in r")
    assert ahead.reason == "the iterations wait for each other"
    found = chosen(sweep, ramp(), ramp(), without=("partials",))
    assert not [c for c in found if c.choice.startswith("multiplied by a partial")]


INDEX = np.array([0, 2, 1])


@pytest.mark.parametrize(
    ("f", "args", "reason"),
    [
        (backwards, (ramp(), ramp(), 5), "its step is not 1"),
        (scattered, (ramp(), ramp(), INDEX), "iterations may store to the same element"),
        (looked_up, (ramp(), ramp(), INDEX), "the index of x in line"),
        (two_places, (ramp(), ramp(), INDEX), "iterations may load the same element of x"),
        (rounded, (ramp(), ramp()), "it holds a branch, line"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_why_the_last_iteration_is_first(f: Any, args: Any, reason: str) -> None:
    loop = find(chosen(f, *args), "loop over i")
    assert loop.choice == "last iteration first" and loop.reason.startswith(reason)


def test_a_loop_with_a_break() -> None:
    loop = find(chosen(golden_programs.loop_with_break, ramp(), 1.0), "loop over i")
    assert loop.reason == "a while loop, or one with a break"


def test_what_is_left_out() -> None:
    found = chosen(only_read, ramp(), without=("adjoint_loops", "snapshots"))
    assert find(found, "loop over i").reason == "SPLITAD_WITHOUT"
    x = find(found, "x[i]")
    assert (x.choice, x.reason) == ("taped", "SPLITAD_WITHOUT")


# ---- CUDA ----------------------------------------------------------------------------------------------


def test_a_kernel() -> None:
    cuda = pytest.importorskip("numba.cuda")

    def kernel(x, w, out, n):
        i = cuda.grid(1)
        if i < n:
            s = 0.0
            for k in range(w.size):
                s = math.sin(s * x[i] + w[k])
                out[i] = s * out[i]

    options = Options(kernel=1, error_model="numpy")
    argtypes = tuple(map(typeof, (ramp(), ramp(), ramp(), 3)))
    found = choices(CompiledPair(Request(kernel, None, None, options), argtypes).text.facts)
    out = find(found, "out[i]")
    assert out.choice == "taped" and out.often == "per thread and iteration of k"
    assert out.reason.endswith("writes out, of which a thread makes no copy")
    n = find(found, "n")
    assert (n.choice, n.reason) == ("free", "the launch gives it to the pullback")
    assert find(found, "loop over k").reason == "a thread's own loop"
    assert find(found, "i", "i = ").choice == "computed again"
    assert find(found, "w[k]").choice == "loaded again from w as it was at the launch"


# ---- all of it -----------------------------------------------------------------------------------------

ALL = [*golden_programs.CASES, *programs.CASES]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.fn.__name__)
def test_every_byte_is_accounted_for(case: programs.Case) -> None:
    """What is said of values adds up to the layout of the tape; each value is spoken of once."""
    facts = pair_text(case.fn, *case.args(), const=case.const).facts
    found = choices(facts)
    taped = [c for c in found if c.choice == "taped"]
    columns = [column for record in facts.layout.record.values() for column in record.columns]
    assert sum(c.bytes for c in taped) == sum(column.size for column in columns)
    assert len(taped) == len(columns)
    again = {s.out for s in facts.plan.recomputed.values() for s in s}  # type: ignore[union-attr]
    assert set(facts.plan.why) >= again | {column.var for column in columns}
    assert not [c for c in found if "{" in c.reason or not c.reason]
    assert max(map(len, table(found).splitlines())) <= WIDTH


def test_the_table_joins_and_aligns() -> None:
    found = (
        Choice(3, "y = f(a, b)", "a", "taped", "dear", 8, "per iteration of i", 1, "f"),
        Choice(3, "y = f(a, b)", "b", "taped", "dear", 8, "per iteration of i", 1, "f"),
        Choice(3, "y = f(a, b)", "long_name", "computed again", "cheap", function="f"),
        Choice(12, "", "c", "free", "counted", function="f"),
    )
    assert table(found).splitlines() == [
        "choices:",
        "    3: y = f(a, b)",
        "       a, b       taped, 8 bytes each per iteration of i (dear)",
        "       long_name  computed again (cheap)",
        "   12:",
        "       c  free (counted)",
        "most of the tape, if all loops are equally long: a in line 3, b in line 3",
    ]
    assert table(()).splitlines()[1].startswith("  nothing")


def test_a_function_without_a_source_line() -> None:
    """Its text can be gone by the time it is shown."""
    scope: dict[str, Any] = {"math": math}
    name = os.path.join(os.path.dirname(__file__), "gone.py")
    text = "def f(x):\n    e = math.exp(x)\n    return e * e\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), scope)
    facts = pair_text(scope["f"], 1.0).facts
    del linecache.cache[name]
    (e,) = choices(facts)
    assert (e.line, e.text, e.value, e.choice) == (2, "", "e", "taped")


# ---- replays -------------------------------------------------------------------------------------------


def pairs(x, v, steps):
    for _t in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                e = math.exp(x[i] - x[j])
                v[i] += e
        for i in range(x.size):
            x[i] += v[i]


def test_a_replayed_loop() -> None:
    text = pair_text(pairs, ramp(), ramp(), 2)
    found = choices(text.facts, [body.facts for body in text.replays.values()])
    loop = find(found, "loop over _t")
    assert loop.choice == "replayed, last iteration first"
    assert loop.reason == "an iteration would tape a higher power of the sizes than it starts from"
    x = find(found, "contents of x", "for _t")
    assert (x.choice, x.often) == (
        "copied before each iteration",
        "per iteration of _t and element of x",
    )
    assert (x.bytes, x.depth) == (8, 2)
    line = pairs.__code__.co_firstlineno + 7
    assert x.reason == f"the loop is replayed, and line {line} writes x"
    e = find(found, "e")  # on the small tape
    assert e.choice == "taped, 8 bytes per iteration of i, j, when replayed" and e.bytes == 0
    assert find(found, "loop over j").choice.endswith("when replayed")
    assert max(c.depth for c in found if c.bytes) == 2


def test_a_loop_that_has_to_be_replayed(monkeypatch) -> None:
    monkeypatch.setenv("SPLITAD_ALWAYS", "replay")
    assert find(chosen(carried, ramp()), "loop over i").reason == "SPLITAD_ALWAYS"
