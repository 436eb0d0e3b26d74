"""The pipeline of generated code compiles what Numba's does, and does less."""

from __future__ import annotations

import gc
import operator
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
from numba import float64, literal_unroll, njit, vectorize
from numba.core.base import BaseContext as TargetContext
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import run_frontend
from numba.core.errors import TypingError
from numba.core.postproc import PostProcessor
from numba.core.runtime import _nrt_python, rtsys
from numba.core.ssa import reconstruct_ssa
from numba.core.typed_passes import NopythonRewrites
from numba.core.typing.context import BaseContext
from numba.core.untyped_passes import InlineClosureLikes, LiteralUnroll
from numba.extending import overload

import splitad as ad
from splitad.runtime.light_ssa import reconstruct
from splitad.runtime.numba_pipeline import _SET_UP_ONCE, _with_room
from splitad.runtime.stored import Keeper, keeping_jit


def generated(function: Any) -> Any:
    return keeping_jit(function, Keeper(lambda args: None))


@vectorize([float64(float64)])
def cube(x):
    return x * x * x


@njit
def halve(x):
    return x / 2


def loops(a, b):
    s = 0.0
    for i in range(a.size):
        t = a[i] * b[i]
        for j in range(a.size):
            s = s + t * a[j]
            if s > 100.0:
                s = halve(s)
        a[i] = s
    return s


def whole_arrays(a, b):
    return a * b + np.sin(a) - cube(b)


def closures(a, b):
    return sum([x * 2.0 for x in a]) + (lambda x: x + 1.0)(b[0])


def unrolled(a, b):
    s = 0.0
    for x in literal_unroll((1, 2.5, a[0])):
        s += x
    return s


def lists(a, b):
    xs = []
    for x in a:
        xs.append(x * b[0])
    return np.array(xs), np.array([a[0], b[0]])


def tuples(a, b):
    both = (a, 3, b[0])
    return both[0][both[1] - 3] + both[2]


def recursive(a, b):
    return a[0] if a.size < 2 else a[0] + recursive(a[1:], b)


def raising(a, b):
    if a[0] > 0.5:
        raise ValueError("too large", a.size)
    return a[0]


def rebound(a, b):
    swaps = 0
    for i in range(7):
        t = a * 2.0
        if i % 3 == 1:
            a, b = b, t
            swaps += 1
        elif i == 5:
            t = b[1:]
            b = t
    return a, b, swaps**2


def ranges(a, b):
    n, s = a.size, 0
    for step in (1, -1, 3, -2):
        for i in range(n, -n, step):
            s = 3 * s + i
            if s > 10**6 or len(range(i)) > n:
                break
    for i in range(n):
        for j in range(i, n):
            s += i * j
        for j in range(n - 1, i, -1):
            s -= j
        for j in range(0, n, 2):
            s += 2 * j
        for j in range(n, -1, -3):
            s += 3 * j
        for j in range(np.uint64(i)):
            s += int(j)
        for j in range(np.int32(2), np.int32(i)):
            s += 7 * j
    both = range(2, n)
    for i in both:
        for j in both:
            s += 5 * i * j
    for pair in enumerate(range(n)):
        s += pair[0] * pair[1]
    return float(s)


def sometimes(a, b):
    s = 0.0
    for i in range(a.size):
        if a[i] > 0.5:
            part = a[i:]
            k = i
        if i > 3:
            s += part.sum() * k
        whole = b
        while k % 3 != 0:
            k += 1
            whole = whole[:-1]
        s += whole.size
    return s, part, k


FUNCTIONS = [ranges, sometimes, loops, whole_arrays, closures, unrolled, lists, tuples, rebound]


def arguments() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(0.1, 2.0, 5), np.linspace(1.0, 3.0, 5)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_numba(function: Any) -> None:
    ours, theirs = arguments(), arguments()
    got, wanted = generated(function)(*ours), njit(function)(*theirs)
    for g, w in zip((got, *ours), (wanted, *theirs), strict=True):
        if isinstance(w, tuple):
            assert all(np.array_equal(x, y) for x, y in zip(g, w, strict=True))
        else:
            assert np.array_equal(g, w)


def unset(a, b):
    while a[0] < 1.0:
        a[0] += b[0]
        late = a[0]
        for late in range(3):
            early = late
    for i in range(a.size):
        i = i * 2
        early, late = late, early
    return early, late, i


@pytest.mark.parametrize("function", [*FUNCTIONS, unset])
def test_the_versions_of_variables_are_those_of_numba(function: Any) -> None:
    ours, theirs = run_frontend(function), run_frontend(function)
    ours.blocks = reconstruct(ours.blocks)
    reconstruct_ssa(theirs)
    assert str(ours.dump_to_string()) == str(theirs.dump_to_string())


def test_no_step() -> None:
    def stepping(a, k):
        s = 0.0
        for i in range(0, a.size, k):
            s += a[i]
        return s

    compiled = generated(stepping)
    assert compiled(np.ones(5), 2) == 3.0
    with pytest.raises(ValueError, match="must not be zero"):
        compiled(np.ones(5), 0)

    def none(a):
        return [i for i in range(0, a.size, 0)]

    with pytest.raises(ValueError, match="must not be zero"):
        generated(none)(np.ones(5))


def test_what_is_lowered_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[int] = []
    add = CPUCodeLibrary.add_ir_module

    def counted(self: Any, module: Any) -> None:
        lines.append(str(module).count("\n"))
        add(self, module)

    monkeypatch.setattr(CPUCodeLibrary, "add_ir_module", counted)
    njit(loops)(*arguments())
    theirs = lines[0]  # then the wrappers
    lines.clear()
    generated(loops)(*arguments())
    assert lines[0] < 0.8 * theirs


def test_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = arguments()
    monkeypatch.setitem(globals(), "recursive", generated(recursive))
    assert recursive(a, b) == pytest.approx(a.sum())


def test_exceptions() -> None:
    compiled = generated(raising)
    assert compiled(np.zeros(2), np.zeros(2)) == 0.0
    with pytest.raises(ValueError, match="too large"):
        compiled(np.ones(2), np.zeros(2))


def test_fields_of_records() -> None:
    def fields(rows):
        s = 0.0
        for name in literal_unroll(("a", "k")):
            s += rows[1][name]
        return s + rows[0]["a"]

    rows = np.array([(1.5, 2), (2.5, 3)], [("a", float), ("k", int)])
    assert generated(fields)(rows) == njit(fields)(rows) == 7.0


def passes(monkeypatch: pytest.MonkeyPatch, function: Any) -> Counter[str]:
    """How often which of the passes ran that are left out where they are not needed."""
    ran: Counter[str] = Counter()
    for each in (NopythonRewrites, InlineClosureLikes, LiteralUnroll):

        def run(
            self: Any, state: Any, usual: Any = each.run_pass, name: str = each.__name__
        ) -> Any:
            ran[name] += state.func_id.func is function
            return usual(self, state)

        monkeypatch.setattr(each, "run_pass", run)
    generated(function)(*arguments())
    return ran


def test_passes_run_where_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        assert not +passes(patch, tuples)
    with monkeypatch.context() as patch:
        assert +passes(patch, whole_arrays) == {"NopythonRewrites": 1}
    with monkeypatch.context() as patch:
        assert passes(patch, closures)["InlineClosureLikes"] > 0
    with monkeypatch.context() as patch:
        assert passes(patch, unrolled)["LiteralUnroll"] == 1


def test_a_question_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[Any] = Counter()
    usual = BaseContext.resolve_function_type

    def resolve(self: Any, func: Any, args: Any, kws: Any) -> Any:
        asked[func, tuple(args)] += 1
        return usual(self, func, args, kws)

    def products(a, b):
        s = 0.0
        for i in range(a.size):
            for j in range(b.size):
                s = s + a[i] * b[j] * a[j]
        return s

    monkeypatch.setattr(BaseContext, "resolve_function_type", resolve)
    njit(products)(*arguments())
    times = max(asked.values())
    asked.clear()
    generated(products)(*arguments())
    assert times > 1 and set(asked.values()) == {1}


@pytest.fixture
def counted() -> Iterator[None]:
    """Numba counts what is allocated and freed."""
    on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not on:
        _nrt_python.memsys_disable_stats()


@pytest.mark.usefixtures("counted")
def test_nothing_is_kept_or_freed_twice() -> None:
    def views(a, n):
        last = a
        for i in range(n):
            t = a[i:].copy()
            if i % 2:
                last = t
        return last[0]

    compiled = generated(views)
    compiled(np.ones(9), 8)
    before = rtsys.get_allocation_stats()
    for _ in range(5):
        assert compiled(np.ones(9), 8) == 1.0
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free >= 40


def test_lifetimes_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Counter[Any] = Counter()
    usual = PostProcessor.run

    def run(self: Any, *args: Any, **options: Any) -> None:
        found[self.func_ir.func_id.func] += 1
        usual(self, *args, **options)

    monkeypatch.setattr(PostProcessor, "run", run)
    njit(loops)(*arguments())
    assert found[loops] > 3
    found.clear()
    generated(loops)(*arguments())
    assert found[loops] == 1


def test_an_operator_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[Any] = Counter()
    usual = TargetContext.get_function

    def get_function(self: Any, fn: Any, *rest: Any, **options: Any) -> Any:
        asked[getattr(fn, "typing_key", fn)] += 1
        return usual(self, fn, *rest, **options)

    def sums(a, b):
        return a[0] + b[0] + a[1] + b[1] + a[2] + b[2]

    monkeypatch.setattr(TargetContext, "get_function", get_function)
    njit(sums)(*arguments())
    assert asked[operator.add] == 5
    asked.clear()
    generated(sums)(*arguments())
    assert asked[operator.add] == 1


def test_what_leads_to_the_halves_is_not_optimised_fully(monkeypatch: pytest.MonkeyPatch) -> None:
    optimised = []
    usual = CPUCodeLibrary._optimize_final_module

    def optimise(self: Any) -> None:
        optimised.append(self.name)
        usual(self)

    def squares(x):
        s = 0.0
        for i in range(x.size):
            s += x[i] * x[i]
        return s

    monkeypatch.setattr(CPUCodeLibrary, "_optimize_final_module", optimise)
    assert ad.grad(squares)(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert "squares__forward" in optimised and "squares__pullback" in optimised
    if not _SET_UP_ONCE:
        assert "squares_gradient" not in optimised


def _faults(depth: int) -> int:
    """Page faults of many calls, made from that deep."""
    if depth:
        return _faults(depth - 1)
    import resource  # not everywhere

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(1000):
        _nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _nothing() -> None:
    pass


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts page faults")
@pytest.mark.parametrize(("on", "fails"), [(True, False), (False, False), (True, True)])
def test_garbage_is_not_searched_for_while_compiling(on: bool, fails: bool) -> None:
    meanwhile: list[bool] = []

    def noted_state():
        return 1.0

    @overload(noted_state)
    def typed():
        meanwhile.append(gc.isenabled())
        return lambda: 1.0

    def noting(a, b):
        return noted_state()

    def failing(a, b):
        return noted_state() + a.nothing

    gc.enable() if on else gc.disable()
    try:
        with pytest.raises(TypingError) if fails else nullcontext():
            generated(failing if fails else noting)(*arguments())
        assert gc.isenabled() is on
    finally:
        gc.enable()
    assert meanwhile and not any(meanwhile)


def test_frames_of_a_compilation_take_no_memory_each_time() -> None:
    depths = range(300)  # more than there is room for in one of CPython's blocks
    assert max(map(_faults, depths)) >= 1000  # what it would be otherwise
    assert max(_with_room(partial(_faults, depth)) for depth in depths) < 100


ANOTHER_PRODUCT = """
import numpy as np
import splitad as ad
from numba import njit


def f(z, w):
    total = 0.0
    for i in range(z.shape[0]):
        p = z[i] * w[i] * z[i]
        total += p.real * p.imag
    return total


@njit(error_model="numpy")
def products(z, w, out):
    for i in range(z.shape[0]):
        out[i] = z[i] * w[i]


z = np.random.default_rng(0).normal(size=400).view(complex)
w, out = z[::-1].copy(), np.empty_like(z)
_, pullback = ad.split(f)(z, w)
pullback(1.0, *pullback.make_zero())
products(z, w, out)
pairs = zip(z.tolist(), w.tolist(), strict=True)
exact = [complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real) for a, b in pairs]
assert out.tolist() == exact, np.sum(out != np.array(exact))
"""


def test_fastmath_of_a_pullback_stays_with_it(tmp_path) -> None:
    """In a process of its own: what Numba shares is made by who needs it first."""
    program = tmp_path / "products.py"
    program.write_text(ANOTHER_PRODUCT, encoding="utf-8")
    environment = {**os.environ, "SPLITAD_CACHE": "0"}
    run = [sys.executable, str(program)]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
