"""Every fault of a user is refused by the right error, whose text says where, why and what to do.

The full texts are in tests/golden/errors, with line numbers left out, so that they can be read in one
place. After each of them the library goes on working.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib.util
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit, objmode, stencil, typed, types, vectorize
from numba.experimental import jitclass

import splitad as ad
from splitad.tape.pool import live_tapes
from tests.pairs import pair

# ---- functions with a fault; the comment `# here` marks the line that the error must name --------


def has_try(x):
    try:  # here
        y = 1.0 / x
    except Exception:
        y = 0.0
    return y


def has_objmode(x):
    with objmode(y="float64"):  # here
        y = x * 2.0
    return y * x


def makes_values(x):
    yield x  # here
    yield 2.0 * x


_values = njit(makes_values)


def has_generator(x):
    s = 0.0
    for v in _values(x):  # here
        s += v * v
    return s


def has_held_generator(x):
    s = 0.0
    values = _values(x)
    for k, v in enumerate(values):  # here
        s += k * v
    return s


def has_nditer(x):
    s = 0.0
    for v in np.nditer(x):  # here
        s += v.item()
    return s


def has_array_field(p, dt):
    for i in range(p.shape[0]):
        p[i].vel[1] -= dt * p[i].m  # here
    return p[0].m


def has_dict(x):
    d = {}  # here
    d[0] = x * x
    return d[0]


def reads_bits(x):
    return x.view(np.int64)[0] * 1.0  # here


@stencil
def _average(a):
    return 0.5 * (a[-1] + a[1])


def has_stencil(x):
    return _average(x)[1]  # here


@vectorize
def _square(x):
    return x * x


def has_vectorize(x):
    return _square(x)[0]  # here


_absolute = ctypes.CDLL(None).fabs
_absolute.argtypes, _absolute.restype = [ctypes.c_double], ctypes.c_double


def calls_c(x):
    return _absolute(x * x)  # here


def _cubes(x):
    return (x * x * x).sum()


_slope = ad.grad(_cubes)
_forward = ad.split(_cubes)
_slope_of_square = ad.grad(lambda x: x * x)


def has_gradient(x):
    return _slope(x).sum()  # here


def has_forward(x):
    result, pullback = _forward(x)  # here
    return result


ONE = np.ones(3)
PARTICLES = np.ones(3, [("vel", "f8", (2,)), ("m", "f8")])

UNSUPPORTED = [
    (has_try, (1.0,)),
    (has_objmode, (1.0,)),
    (has_generator, (1.0,)),
    (has_held_generator, (1.0,)),
    (makes_values, (1.0,)),
    (has_nditer, (ONE,)),
    (has_array_field, (PARTICLES, 0.1)),
    (has_gradient, (ONE,)),
    (has_forward, (ONE,)),
    (has_dict, (1.0,)),
    (reads_bits, (ONE,)),
    (has_stencil, (ONE,)),
    (has_vectorize, (ONE,)),
    (calls_c, (1.0,)),
]


# ---- functions without one -----------------------------------------------------------------------


@njit
def square(x):
    return x * x


@njit
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


@njit
def scaled(x, n):
    return x * n


@njit
def shift(a, b):
    for i in range(1, a.shape[0]):
        a[i] = a[i] * b[i - 1]


@njit
def squares(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


@njit
def count(x):
    n = 0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            n += 1
    return n


@njit
def nothing(x):
    x[0] = 1.0


# ---- how it is looked at -------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def goes_on_working() -> Iterator[None]:
    yield
    assert ad.grad(square)(3.0) == 6.0
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(ad.grad(total)(x), 2.0 * x)


def readable(error: BaseException) -> str:
    """The text with folders and line numbers left out."""
    text = f"{type(error).__name__}: {error}"
    text = re.sub(r"[^\s'\"(]*[/\\]([\w<>-]+\.py)", r"\1", text)
    return re.sub(r"(\.py):\d+", r"\1:LINE", text)


def refused(kind: type[Exception], call: Callable[[], Any], *fragments: str) -> Exception:
    with pytest.raises(kind) as caught:
        call()
    for fragment in fragments:
        assert re.search(fragment, str(caught.value), re.I), f"{fragment!r} not in: {caught.value}"
    return caught.value


def marked_line(f: Callable[..., Any]) -> tuple[int, str]:
    lines, first = inspect.getsourcelines(f)
    for number, line in enumerate(lines, first):
        if "# here" in line:
            return number, line.strip()
    raise AssertionError("no line is marked")


def says_where(error: Exception, f: Any) -> None:
    """The file and the line of the def, below the decorator."""
    lines, first = inspect.getsourcelines(f.py_func)
    line = first + [line.startswith("def ") for line in lines].index(True)
    assert f"{Path(__file__).name}:{line}, in {f.__name__}" in str(error)


# ---- code that is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("f, args", UNSUPPORTED, ids=lambda p: getattr(p, "__name__", ""))
def test_unsupported_construct(f, args, golden) -> None:
    no_rule = f in (calls_c, has_stencil, has_vectorize)
    kind = ad.NoRuleError if no_rule else ad.UnsupportedError
    error = refused(kind, lambda: ad.vjp(njit(f), *args))
    number, line = marked_line(f)
    text = str(error)
    assert f"{Path(__file__).name}:{number}" in text
    assert f.__name__ in text
    assert line in text
    assert re.search(r"^\s*\^", text, re.M), "no caret"
    assert error.hint, "does not say what to do"
    assert "0x" not in text, "an address says nothing"
    golden(f"errors/{f.__name__}.txt", readable(error))


def test_a_function_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return x * x\n", namespace)
    refused(ad.SplitadError, lambda: ad.grad(namespace["f"])(1.0), "source", r"\bf\b")


def test_a_source_file_edited_since_import(tmp_path: Path) -> None:
    file = tmp_path / "edited_module.py"
    file.write_text("def f(x):\n    return x * x\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("edited_module", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["edited_module"] = module
    try:
        spec.loader.exec_module(module)
        file.write_text("def f(x):\n    return x * x * x\n", encoding="utf-8")
        os.utime(file, (1, 1))  # even where the clock says nothing
        refused(
            ad.SplitadError, lambda: ad.grad(module.f)(2.0), "edited_module.py", "source|changed"
        )
    finally:
        del sys.modules["edited_module"]


def test_what_plain_njit_rejects_shows_numbas_message() -> None:
    def adds_text(x):
        return x + "one"

    refused(numba.core.errors.TypingError, lambda: ad.grad(adds_text)(1.0), "No implementation")


# ---- what is no function to differentiate ----------------------------------------------------------


@pytest.mark.parametrize("what", [3, "f", None, int])
def test_no_function(what) -> None:
    for call in (ad.grad, ad.value_and_grad, ad.split, ad.vjp, ad.show):
        refused(
            TypeError, lambda call=call: call(what), f"{re.escape(repr(what))} is not a function"
        )


@pytest.mark.parametrize(
    "function, call",
    [(math.sin, r"math\.sin\(x\)"), (np.sin, r"np\.sin\(x\)"), (np.sum, r"np\.sum\(x\)"),
     (np.linalg.norm, r"np\.linalg\.norm\(x\)"), (max, r"return max\(x\)")],
    ids=["math.sin", "np.sin", "np.sum", "norm", "max"],
)  # fmt: skip
def test_a_library_function_by_itself(function, call) -> None:
    """It has a rule, which a function that calls it uses."""
    for each in (ad.grad, ad.split, ad.vjp):
        error = refused(ad.NoRuleError, lambda each=each: each(function), call)
        assert "def f(x): return" in error.hint


def test_other_callables() -> None:
    refused(ad.NoRuleError, lambda: ad.grad(functools.partial(total)), "partial", "function")


def test_a_derivative_of_a_derivative() -> None:
    _, pullback = _forward(ONE)
    for what in (_slope, _forward, pullback, ad.vjp(_cubes, ONE)[1]):
        error = refused(
            ad.UnsupportedError, lambda what=what: ad.grad(what), "Derivatives of derivatives"
        )
        assert "splitad.rule" in error.hint

    def pulls(x):
        bar = np.zeros(3)
        pullback(1.0, bar)
        return bar.sum() * x

    def given(f, x):
        return f(x).sum()

    refused(ad.UnsupportedError, lambda: ad.grad(pulls)(1.0), "pullback of _cubes", "derivatives")
    refused(ad.UnsupportedError, lambda: ad.grad(given, wrt="x")(_slope, ONE), "derivatives")

    @njit
    def slope_of_square(x):  # the way out
        return _slope_of_square(x)

    refused(ad.UnsupportedError, lambda: ad.grad(slope_of_square)(3.0), "derivatives")
    ad.rule(slope_of_square, dx="2.0", samples=[(3.0,)])

    def uses_it(x):
        return slope_of_square(x) * x

    assert ad.grad(uses_it)(3.0) == 12.0


@jitclass([("rate", types.float64)])
class _Layer:
    def __init__(self, rate):
        self.rate = rate

    def scaled(self, x):
        return self.rate * x


class _Plain:
    def scaled(self, x):
        return 2.0 * x


def test_bound_methods() -> None:
    layer = _Layer(2.0)
    hint = r"bound method[\s\S]*splitad\.vjp\(_Layer\.scaled, obj, \.\.\.\)"
    refused(ad.UnsupportedError, lambda: ad.vjp(layer.scaled, 3.0), hint)
    refused(ad.UnsupportedError, lambda: ad.vjp(_Plain().scaled, 3.0), "bound method", "jitclass")
    result, pullback = ad.vjp(_Layer.scaled, layer, 3.0)  # the way out
    assert result == 6.0 and pullback()[1] == 2.0


# ---- activities and arguments --------------------------------------------------------------------


def test_wrong_number_of_activities() -> None:
    def call() -> None:
        ad.split(shift, ad.Duplicated)(ONE.copy(), ONE.copy())

    refused(TypeError, call, "shift", "2", "1", "activit")


def test_wrong_number_of_arguments() -> None:
    refused(TypeError, lambda: ad.split(square, ad.Active)(1.0, 2.0), "square")


def test_wrong_number_of_shadows() -> None:
    _, pullback = pair(total, ad.Duplicated)(ONE)
    refused(TypeError, lambda: pullback(1.0))


def test_what_is_no_activity() -> None:
    refused(TypeError, lambda: ad.split(square, "active"), "active")


def test_an_integer_for_an_active_argument(golden) -> None:
    forward = ad.split(square, ad.Active)
    error = refused(ad.NotDifferentiableError, lambda: forward(1), r"\bx\b", r"\b1\.0\b")
    golden("errors/integer_for_active.txt", readable(error))


def test_integer_wrt(golden) -> None:
    error = refused(ad.NotDifferentiableError, lambda: ad.grad(scaled, wrt="n")(1.0, 2), r"\bn\b")
    golden("errors/integer_wrt.txt", readable(error))


def test_wrt_that_is_no_argument() -> None:
    refused((TypeError, ValueError), lambda: ad.grad(scaled, wrt="m")(1.0, 2), r"\bm\b")
    refused((TypeError, ValueError, IndexError), lambda: ad.grad(scaled, wrt=5)(1.0, 2), "5")


def test_star_counts_as_one_argument() -> None:
    def star(*xs):
        return xs[0] * xs[1]

    refused(
        TypeError,
        lambda: ad.grad(star, wrt=1)(2.0, 3.0),
        r"1 argument \(\*xs counts as one, a tuple\)",
        "wrt=1",
    )
    assert ad.grad(star)(2.0, 3.0) == (3.0, 2.0)
    result, pullback = ad.vjp(star, 2.0, 3.0)
    assert result == 6.0 and pullback() == ((3.0, 2.0),)


def test_result_that_is_no_scalar(golden) -> None:
    error = refused((TypeError, ad.NotDifferentiableError), lambda: ad.grad(squares)(ONE), "scalar")
    golden("errors/array_result.txt", readable(error))
    refused((TypeError, ad.NotDifferentiableError), lambda: ad.grad(nothing)(ONE.copy()), "scalar")


def test_result_that_is_an_integer(golden) -> None:
    error = refused(ad.NotDifferentiableError, lambda: ad.grad(count)(ONE), "int")
    golden("errors/integer_result.txt", readable(error))


@pytest.mark.parametrize("bar", [1.0, np.ones(3)], ids=["float", "array"])
def test_result_bar_of_no_result(bar, golden, request) -> None:
    _, pullback = ad.split(nothing)(ONE.copy())
    (x_bar,) = pullback.make_zero()
    x_bar[:] = 1.0
    error = refused(ad.ShadowError, lambda: pullback(bar, x_bar), "result is None", "pass None")
    golden(f"errors/result_bar_{request.node.callspec.id}_of_none.txt", readable(error))
    assert (x_bar == 1.0).all(), "written before it was refused"
    pullback(None, x_bar)
    np.testing.assert_array_equal(x_bar, [0.0, 1.0, 1.0])


def test_result_bar_of_an_integer() -> None:
    _, pullback = ad.split(count)(ONE)
    error = refused(
        ad.NotDifferentiableError, lambda: pullback(1.0, *pullback.make_zero()), "int64"
    )
    says_where(error, count)


# ---- shadows -------------------------------------------------------------------------------------


def test_overlapping_arguments_with_separate_shadows(golden) -> None:
    x = np.arange(1.0, 5.0)
    forward = ad.split(shift, ad.Duplicated, ad.Duplicated)

    def call() -> None:
        _, pullback = forward(x, x)
        pullback(None, np.ones(4), np.ones(4))

    error = refused(ad.AliasingError, call, r"\ba\b", r"\bb\b")
    golden("errors/aliasing.txt", readable(error))


@pytest.mark.parametrize(
    "shadow",
    [np.zeros(4), np.zeros((3, 1)), np.zeros(3, np.float32), np.zeros(3, np.complex128)],
    ids=["longer", "2d", "float32", "complex"],
)
def test_shadow_of_another_shape_or_dtype(shadow: np.ndarray, golden, request) -> None:
    _, pullback = pair(total, ad.Duplicated)(ONE)
    error = refused(ad.ShadowError, lambda: pullback(1.0, shadow), r"\bx\b")
    says_where(error, total)
    assert not shadow.any(), "written before it was refused"
    golden(f"errors/shadow_{request.node.callspec.id}.txt", readable(error))


def test_a_refused_shadow_does_not_keep_the_tape() -> None:
    """No cycle that would wait for the garbage collector."""
    forward = pair(total, ad.Duplicated)
    gc.collect()
    gc.disable()
    try:
        before = live_tapes()
        for bar, shadow in ((1.0, np.zeros(4)), (1.0, np.zeros((3, 1))), (1j, np.zeros(3))):
            _, pullback = forward(ONE)
            with contextlib.suppress(ad.ShadowError):
                pullback(bar, shadow)
            del pullback
        assert live_tapes() == before
    finally:
        gc.enable()


def test_shadow_that_is_the_primal(golden) -> None:
    x = np.ones(3)
    _, pullback = pair(total, ad.Duplicated)(x)
    error = refused(ad.ShadowError, lambda: pullback(1.0, x), r"\bx\b")
    assert (x == 1.0).all()
    golden("errors/shadow_is_primal.txt", readable(error))


def test_shadow_that_overlaps_the_primal() -> None:
    whole = np.ones(5)
    x = whole[:3]
    _, pullback = pair(total, ad.Duplicated)(x)
    refused(ad.ShadowError, lambda: pullback(1.0, whole[2:]), r"\bx\b")
    assert (whole == 1.0).all()


def test_shadow_that_is_the_result_bar(golden) -> None:
    _, pullback = ad.split(squares, ad.Duplicated)(ONE)
    bar = np.ones(3)
    error = refused(ad.ShadowError, lambda: pullback(bar, bar), "result_bar")
    assert (bar == 1.0).all()
    golden("errors/shadow_is_result_bar.txt", readable(error))


def test_shadow_that_is_another_shadow(golden) -> None:
    _, pullback = ad.split(shift, ad.Duplicated, ad.Duplicated)(np.ones(3), np.ones(3))
    bar = np.ones(3)
    error = refused(ad.ShadowError, lambda: pullback(None, bar, bar), r"\ba\b", r"\bb\b")
    assert (bar == 1.0).all()
    golden("errors/shadow_is_another_shadow.txt", readable(error))


# ---- the tape ------------------------------------------------------------------------------------


def test_tape_over_its_limit(golden) -> None:
    forward = ad.split(total, ad.Duplicated, max_tape_bytes=1000)
    error = refused(ad.TapeLimitError, lambda: forward(np.ones(1000)), "1000", "max_tape_bytes")
    says_where(error, total)
    golden("errors/tape_limit.txt", readable(error))
    _, pullback = forward(np.ones(10))  # a smaller one still fits
    (bar,) = pullback.make_zero()
    pullback(1.0, bar)
    np.testing.assert_array_equal(bar, 2.0)


@pytest.mark.parametrize("limit", ["1MB", 1.5, True, -1])
def test_tape_limit_that_is_no_number_of_bytes(limit) -> None:
    kind = ValueError if limit == -1 else TypeError
    refused(kind, lambda: ad.split(total, max_tape_bytes=limit), "max_tape_bytes", str(limit))


# ---- the errors themselves -----------------------------------------------------------------------


def test_all_derive_from_one() -> None:
    names = "Unsupported NoRule NotDifferentiable Aliasing Shadow TapeLimit".split()
    for name in names:
        assert issubclass(getattr(ad, f"{name}Error"), ad.SplitadError)


@jitclass([("a", types.Optional(types.float64))])
class _Maybe:
    def __init__(self, a):
        self.a = a


def _reads_optional(x, s):
    if s.a is not None:
        return x * s.a  # here
    return x


def test_optional_field() -> None:
    refused(ad.UnsupportedError, lambda: ad.vjp(_reads_optional, 1.0, _Maybe(2.0)), "optional")


def _reads_typed_dict(x, d):
    d[0] = x * x  # here
    return d[0]


def test_dict_argument() -> None:
    d = typed.Dict.empty(types.int64, types.float64)
    refused(ad.UnsupportedError, lambda: ad.vjp(_reads_typed_dict, 1.0, d), "dict")
