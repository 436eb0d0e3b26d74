"""forward and pullback as values: in Python, in njit code, in containers, across threads; nothing leaks."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit, typed, types
from numba.core.errors import NumbaWarning
from numba.experimental import jitclass

from splitad.errors import SplitadError, TapeLimitError
from splitad.runtime import pairs
from splitad.tape import ops
from tests.leaks import held, no_leak
from tests.runtime.handmade import expected, make

forward, resolver = make()
other_forward, _ = make()
reflected = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning")
X = np.array([1.0, 2.0, 3.0])


def check(got: Any, x_bar: Any, a: float, s: float, result_bar: float, seed: Any) -> None:
    _, a_bar, s_bar, entry = expected(X, a, s, result_bar, seed)
    assert np.allclose(got, (a_bar, s_bar)) and np.allclose(x_bar, entry)


def test_from_python() -> None:
    x = X.copy()
    result, pullback = forward(x, 0.5)
    assert np.array_equal(x, 0.5 * X) and np.isclose(result, expected(X, 0.5, 2.0, 1.0, X)[0])
    x[:] = np.nan
    for _ in range(2):
        x_bar = np.ones(3)
        check(pullback(0.3, x_bar), x_bar, 0.5, 2.0, 0.3, np.ones(3))
    (zero,) = pullback.make_zero()
    assert np.array_equal(zero, np.zeros(3))
    assert pullback.tape_nbytes == 64 + 24
    assert repr(forward) == "<forward of f>" and "tape of 88 bytes" in repr(pullback)


def test_the_reverse_is_compiled_late() -> None:
    late, asked = make()
    late(X.copy(), 0.5)
    late(X.copy(), 0.5, 3.0)
    assert asked.asked == ["forward array(float64, 1d, C), float64, float64"]
    _, pullback = late(X.copy(), 0.5)
    pullback(1.0, np.zeros(3))
    pullback(1.0, np.zeros(3))
    assert asked.asked[1:] == ["reverse"]


@pytest.mark.parametrize("call", [
    lambda x: forward(x, 0.5, 3.0), lambda x: forward(x, s=3.0, a=0.5), lambda x: forward(a=0.5, x=x, s=3.0),
    lambda x: forward(x, 0.5, s=3.0),
])  # fmt: skip
def test_keywords(call: Any) -> None:
    result, pullback = call(X.copy())
    x_bar = np.zeros(3)
    check(pullback(1, x_bar), x_bar, 0.5, 3.0, 1.0, np.zeros(3))


def test_wrong_numbers_of_arguments() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        forward(X)
    with pytest.raises(TypeError, match="too many positional arguments"):
        forward(X, 1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'b'"):
        forward(X, 1.0, b=2.0)
    _, pullback = forward(X.copy(), 0.5)
    with pytest.raises(TypeError, match="takes result_bar and 1 shadow, but 1 argument was given"):
        pullback(1.0)
    with pytest.raises(TypeError, match="but 3 arguments were given"):
        pullback(1.0, X, X)

    @njit
    def too_few(pullback):
        return pullback(1.0)

    with pytest.raises(TypeError, match="takes result_bar and 1 shadow, but 1 argument was given"):
        too_few(pullback)


def test_in_njit() -> None:
    @njit
    def use(x, seed):
        result, pullback = forward(x, s=3.0, a=0.5)
        x_bar = seed.copy()
        got = pullback(2, x_bar)
        (zero,) = pullback.make_zero()
        return got, x_bar, zero, pullback.tape_nbytes

    @njit
    def with_default(x, seed):
        result, pullback = forward(x, 0.5)
        x_bar = seed.copy()
        return pullback(2.0, x_bar), x_bar

    with no_leak():
        got, x_bar, zero, size = use(X.copy(), np.ones(3))
        check(got, x_bar, 0.5, 3.0, 2.0, np.ones(3))
        assert size == 88 and np.array_equal(zero, np.zeros(3))
        got, x_bar = with_default(X.copy(), np.ones(3))
        check(got, x_bar, 0.5, 2.0, 2.0, np.ones(3))
        del got, x_bar, zero


def test_boxed_and_unboxed() -> None:
    @njit
    def make_one(x, a):
        return forward(x, a)[1]

    @njit
    def call(pullback, x_bar):
        return pullback(1.0, x_bar)

    @njit
    def through(pullback):
        return pullback

    with no_leak():
        pullback = through(make_one(X.copy(), 0.5))
        assert numba.typeof(pullback) is numba.typeof(make_one(X.copy(), 0.25))
        x_bar = np.ones(3)
        check(pullback(1.0, x_bar), x_bar, 0.5, 2.0, 1.0, np.ones(3))
        x_bar = np.ones(3)
        check(call(pullback, x_bar), x_bar, 0.5, 2.0, 1.0, np.ones(3))
        del pullback


def test_merged_by_if() -> None:
    @njit
    def use(x, which, x_bar):
        if which:
            _, pullback = forward(x.copy(), 0.5)
        else:
            _, pullback = forward(x.copy(), 0.25)
        return pullback(1.0, x_bar)

    with no_leak():
        for which, a in ((True, 0.5), (False, 0.25)):
            x_bar = np.ones(3)
            check(use(X, which, x_bar), x_bar, a, 2.0, 1.0, np.ones(3))


def test_the_forward_as_a_value() -> None:
    @njit
    def apply(f, x):
        g = f
        pair = (g, 1)
        return pair[0](x, 0.5)[0], pair[0]

    with no_leak():
        result, same = apply(forward, X.copy())
        assert same is forward and np.isclose(result, expected(X, 0.5, 2.0, 1.0, X)[0])


@reflected
def test_containers() -> None:
    @njit
    def in_tuple(x, x_bar):
        pair = (forward(x.copy(), 0.5)[1], forward(x.copy(), 0.25)[1])
        return pair[1](1.0, x_bar), pair

    @njit
    def in_list(x, x_bar):
        kept = [forward(x.copy(), 1.0 / (k + 1.0))[1] for k in range(4)]
        kept.append(kept[0])
        return kept[3](1.0, x_bar), kept

    @njit
    def in_typed_list(x, x_bar):
        kept = typed.List()
        for k in range(4):
            kept.append(forward(x.copy(), 1.0 / (k + 1.0))[1])
        return kept[3](1.0, x_bar), kept

    @njit
    def call_last(kept, x_bar):
        return kept[3](1.0, x_bar)

    x_bar = np.ones(3)  # compile before counting
    in_typed_list(X, x_bar)
    gc.collect()
    with no_leak():
        for use in (in_tuple, in_list, in_typed_list):
            x_bar = np.ones(3)
            got, kept = use(X, x_bar)
            check(got, x_bar, 0.25, 2.0, 1.0, np.ones(3))
            x_bar = np.ones(3)
            check(
                kept[len(kept) - 2 if len(kept) > 4 else -1](1.0, x_bar),
                x_bar,
                0.25,
                2.0,
                1.0,
                np.ones(3),
            )
            if use is not in_tuple:
                x_bar = np.ones(3)
                check(call_last(kept, x_bar), x_bar, 0.25, 2.0, 1.0, np.ones(3))
            del kept


def test_field_of_a_jitclass() -> None:
    _, example = forward(X.copy(), 0.5)

    @jitclass([("forward", numba.typeof(forward)), ("pullback", numba.typeof(example))])
    class Holder:
        def __init__(self, forward, x):
            self.forward = forward
            self.pullback = forward(x, 0.5)[1]

        def run(self, x_bar):
            return self.pullback(1.0, x_bar)

    def use() -> None:
        holder = Holder(forward, X.copy())
        x_bar = np.ones(3)
        check(holder.run(x_bar), x_bar, 0.5, 2.0, 1.0, np.ones(3))
        x_bar = np.ones(3)
        check(holder.pullback(1.0, x_bar), x_bar, 0.5, 2.0, 1.0, np.ones(3))
        holder.pullback = forward(X.copy(), 0.25)[1]
        x_bar = np.ones(3)
        check(holder.run(x_bar), x_bar, 0.25, 2.0, 1.0, np.ones(3))

    use()
    with no_leak():
        use()


@reflected
def test_a_value_of_another_pair_is_not_taken_for_one_of_this() -> None:
    @njit
    def call(kept, x_bar):
        return kept[1](1.0, x_bar)

    mine, other = forward(X.copy(), 0.5)[1], other_forward(X.copy(), 0.5)[1]
    call([mine, mine], np.ones(3))
    with pytest.raises(TypeError):
        call([mine, other], np.ones(3))


def test_exceptions_in_the_primal_leak_no_tape() -> None:
    @njit
    def in_njit(x, a):
        return forward(x, a)[0]

    @njit
    def caught(x, a):
        try:
            result, pullback = forward(x, a)
            return result + pullback(1.0, np.zeros_like(x))[0]
        except Exception:
            return -1.0

    for call in (forward, in_njit, caught):
        call(X.copy(), 0.5)
    before, references = held(), sys.getrefcount(X)
    for _ in range(5):
        with pytest.raises(ValueError, match="a is negative"):
            forward(X, -1.0)
    assert held() == before and sys.getrefcount(X) == references  # f itself leaks nothing here
    for _ in range(5):
        for call in (forward, in_njit):
            with pytest.raises(ZeroDivisionError):
                call(X, 0.0)
        with pytest.raises(ValueError, match="a is negative"):
            in_njit(X, -1.0)
        assert caught(X, -1.0) == -1.0 and caught(X, 0.0) == -1.0
    assert held()[2:] == before[2:]


def test_tape_limit() -> None:
    limited, _ = make(max_tape_bytes=100)
    limited(X.copy(), 0.5)
    with no_leak(), pytest.raises(TapeLimitError, match="max_tape_bytes"):
        limited(np.ones(10), 0.5)


def test_the_first_tape_is_as_large_as_the_last_one_was_and_then_trimmed() -> None:
    big, small = np.ones(100_000), np.ones(10)
    forward(big, 0.5)
    kept = [forward(small, 0.5)[1] for _ in range(20)]
    assert all(pullback.tape_nbytes < 3000 for pullback in kept)
    sizes = {forward(big, 0.5)[1].tape_nbytes for _ in range(3)}
    assert max(sizes) <= 2 * min(sizes)


def test_forward_and_pullback_free_what_they_took() -> None:
    def use() -> None:
        _, pullback = forward(X.copy(), 0.5)
        pullback(1.0, np.zeros(3))
        forward(X.copy(), 0.5)

    use()
    with no_leak():
        for _ in range(10):
            use()


def test_threads() -> None:
    free, _ = make(nogil=True)
    size = 20_000
    x = np.random.default_rng(1).random(size)
    a_values = [0.5, 0.25, 0.75, 1.5]
    pullbacks: dict[float, list[Any]] = {a: [] for a in a_values}
    wrong: list[float] = []

    def run(a: float) -> None:
        for _ in range(20):
            pullbacks[a].append(free(x.copy(), a)[1])

    def back(a: float) -> None:  # every thread calls every pullback
        for b in a_values:
            for pullback in pullbacks[b]:
                x_bar = np.zeros(size)
                pullback(1.0, x_bar)
                if not np.allclose(x_bar, 4.0 * b * b * x):
                    wrong.append(b)

    for target in (run, back):
        threads = [threading.Thread(target=target, args=(a,)) for a in a_values]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert ops.live_tapes() >= 80
    pullbacks.clear()
    gc.collect()


def test_star_arguments_are_one_tuple() -> None:
    import inspect

    from splitad.runtime.callables import Forward

    @njit
    def forward_impl(tape, a, rest):
        tape[2] = 0
        return a + rest[0] * rest[1], ()

    @njit
    def reverse_impl(tape, refs, result_bar):
        return (result_bar,)

    class Star:
        def forward_dispatcher(self, argtypes: Any) -> Any:
            return forward_impl, str(argtypes)

        def reverse_dispatcher(self, key: str) -> Any:
            return reverse_impl

        zero_dispatcher = reverse_dispatcher

        def content(self, key: str) -> None:
            return None

        plain_zeros = content

    def f(a, *rest):
        pass

    star = Forward(pairs.register_pair("star", Star(), inspect.signature(f), "f"))

    @njit
    def use(a, b, c):
        return star(a, b, c)[0]

    assert star(1.0, 2.0, 3.0)[0] == 7.0 and use(1.0, 2.0, 3.0) == 7.0
    assert star(1.0, 2, 3.0)[0] == 7.0 and use(1.0, 2, 3.0) == 7.0
    assert star(1.0, 2.0, 3.0)[1](5) == (5.0,)


def test_types_are_pickled_by_name() -> None:
    pullback_type = numba.typeof(forward(X.copy(), 0.5)[1])
    for typ in (numba.typeof(forward), pullback_type, types.List(pullback_type)):
        assert pickle.loads(pickle.dumps(typ)) == typ
    assert pickle.loads(pickle.dumps(pullback_type)) is pullback_type
    with pytest.raises(SplitadError, match="another process"):
        pairs.find_pair("nobody")


def test_numba_does_not_cache_a_caller(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "from numba import njit\n"
        "from tests.runtime.handmade import make\n"
        "import numpy as np\n"
        "forward, _ = make()\n"
        "pullback = forward(np.ones(3), 0.5)[1]\n"
        "@njit(cache=True)\ndef runs(x):\n    return forward(x, 0.5)[0]\n"
        "@njit(cache=True)\ndef indirect(x):\n    return runs(x)\n"
        "@njit(cache=True)\ndef calls(p, x):\n    p(1.0, x)\n"
        "if __name__ == '__main__':\n"
        "    x = np.ones(3)\n    runs(x); indirect(x); calls(pullback, x)\n"
        "    print([sum(f.stats.cache_misses.values()) for f in (runs, indirect, calls)])\n"
    )
    root = str(Path(pairs.__file__).parents[2])
    program = (
        f"import sys; sys.path[:0] = [{root!r}, {str(tmp_path)!r}]; import runpy; "
        "runpy.run_module('caller', run_name='__main__')"
    )
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stderr.count(NumbaWarning.__name__) == 3
    assert not list(tmp_path.rglob("*.nbc"))
