"""One test over the whole registry: every rule against finite differences at its own samples."""

import builtins
import cmath
import linecache
import math
import operator
from functools import cache

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target

from splitad.rules import ops, registry, scalar  # noqa: F401  (scalar registers the rules)
from splitad.rules.registry import scalar_rule
from splitad.rules.spelling import cheap, contribution, plain, spell

# as long as no test has registered rules of its own
BUILT_IN = registry.scalar_rules()
COEFFICIENTS = (-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12)


def compile_text(source, names, name="evaluate"):
    filename = f"<rule {len(linecache.cache)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(names)
    exec(compile(source, filename, "exec"), namespace)
    return numba.njit(error_model="numpy")(namespace[name])


@cache
def primal_function(primal, count):
    """fn(a0, a1, ...), compiled."""
    names = [f"a{i}" for i in range(count)]
    text, used = spell(primal, names)
    return compile_text(f"def evaluate({', '.join(names)}):\n    return {text}\n", used)


def is_complex(value):
    return isinstance(value, (complex, np.complexfloating))


def evaluator(rule, primal, args, strong_zero=True):
    """A compiled function (args..., d) -> (fn(args), contributions...), printed as the pullback would."""
    out_complex = is_complex(primal_function(primal, len(args))(*args))
    complex_args = tuple(map(is_complex, args))
    moving = tuple(not isinstance(a, (bool, int)) for a in args)
    return _evaluator(rule, primal, complex_args, moving, out_complex, strong_zero), out_complex


@cache
def _evaluator(rule, primal, complex_args, moving, out_complex, strong_zero):
    names = list(rule.params)
    text, used = spell(primal, names)
    lines, returned = [f"out = {text}"], ["out"]
    for i, partial in enumerate(rule.partials_for(out_complex or any(complex_args))):
        if partial is None or not moving[i]:
            continue
        p, more = contribution(
            partial,
            {**{n: n for n in names}, "out": "out"},
            "d",
            operand_complex=complex_args[i],
            out_complex=out_complex,
            strong_zero=strong_zero,
        )
        used = {**used, **more}
        lines.append(f"d_{names[i]} = {p}")
        returned.append(f"d_{names[i]}")
    body = "\n    ".join([*lines, f"return {', '.join(returned)},"])
    return compile_text(f"def evaluate({', '.join([*names, 'd'])}):\n    {body}\n", used)


def narrow(value):
    if isinstance(value, complex):
        return np.complex64(value)
    return np.float32(value) if isinstance(value, float) else value


def check(rule, primal, sample):
    rng = np.random.default_rng(1)
    evaluate, out_complex = evaluator(rule, primal, sample)
    d = complex(*rng.normal(size=2)) if out_complex else rng.normal()
    moving = [
        i
        for i, p in enumerate(rule.partials_for(out_complex or any(map(is_complex, sample))))
        if p is not None and not isinstance(sample[i], (bool, int))
    ]
    _, *bars = evaluate(*sample, d)
    assert len(bars) == len(moving)
    for i, bar in zip(moving, bars, strict=True):
        directions = (1.0, 1j) if isinstance(sample[i], complex) else (1.0,)
        for v in directions:
            h = 3e-4 * max(1.0, abs(sample[i]))

            def at(k, i=i, v=v, h=h):
                moved = list(sample)
                moved[i] = moved[i] + k * h * v
                return evaluate(*moved, d)[0]

            slope = sum(c * at(k) for k, c in zip(*COEFFICIENTS, strict=True)) / h
            want = (np.conj(d) * slope).real
            got = (np.conj(bar) * v).real
            assert got == pytest.approx(want, rel=1e-8, abs=1e-9), (rule.params[i], sample)
    # the same text in single precision
    small = tuple(narrow(s) for s in sample)
    single, _ = evaluator(rule, primal, small)
    _, *single_bars = single(*small, narrow(d))
    for bar, single_bar in zip(bars, single_bars, strict=True):
        assert single_bar == pytest.approx(bar, rel=2e-5, abs=2e-6)


def types_with(primal, sample):
    """Whether Numba has the function for these types."""
    try:
        primal_function(primal, len(sample))(*sample)
    except (numba.core.errors.NumbaError, NotImplementedError):  # the latter from lowering
        return False
    return True


def cases():
    for rule in BUILT_IN:
        if rule.kind != "zero" and rule.name != "nextafter":  # its differences see single ulps
            spelled = dict.fromkeys(plain(fn) for fn in rule.primals)
            yield from (pytest.param(rule, fn, id=f"{rule.name}-{fn.__name__}") for fn in spelled)


@pytest.mark.parametrize("rule, primal", list(cases()))
def test_partials_against_finite_differences(rule, primal):
    for sample in rule.samples:
        # some functions of math came to Numba late, or never; the next test sees that one is checked
        if types_with(primal, sample):
            check(rule, primal, sample)


def test_every_sample_is_used_by_some_primal():
    for rule in BUILT_IN:
        for sample in rule.samples:
            assert any(types_with(plain(fn), sample) for fn in reversed(rule.primals)), (
                rule.name,
                sample,
            )


def test_every_complex_function_has_a_complex_sample():
    for rule in BUILT_IN:
        if rule.kind == "zero" or any(isinstance(v, complex) for s in rule.samples for v in s):
            continue
        z = tuple(v + 0.5j if isinstance(v, float) else v for v in rule.samples[0])
        assert not any(types_with(fn, z) for fn in rule.primals), rule.name


# what Numba knows but is no pure function of scalars
NOT_SCALAR = {
    "int", "bool", "float", "sum", "map", "filter", "isinstance", "getattr", "hasattr", "repr", "str",
    "len", "hash", "ord", "chr", "bytes", "sorted", "contains", "getitem", "delitem", "setitem",
    "matmul", "imatmul", "print", "range", "enumerate", "zip", "tuple", "list", "set", "dict", "slice", "any",
    "all", "iter", "next", "type", "id", "issubclass", "reversed", "setattr", "super", "object", "concat",
    "iconcat", "attrgetter", "itemgetter", "frozenset",
}  # fmt: skip


def test_every_scalar_function_of_numba_is_in_the_registry():
    context = cpu_target.typing_context
    context.refresh()
    missing = []
    for fn in context._functions:
        name = getattr(fn, "__name__", "")
        known = any(getattr(m, name, None) is fn for m in (math, cmath, operator, builtins))
        if (known and name not in NOT_SCALAR) or isinstance(fn, np.ufunc):
            if scalar_rule(fn) is None and registry.refusal(fn) is None:
                missing.append(fn)
    assert not missing


def test_every_ufunc_of_numba_is_in_the_registry():
    from numba.np import ufunc_db

    for ufunc in set(ufunc_db.get_ufuncs()) - {np.divmod}:  # two results: // and %
        assert scalar_rule(ufunc) is not None or registry.refusal(ufunc) is not None, ufunc


# ---- conventions at singular points ------------------------------------------------------------------


def bars(fn, *args, d=1.0, strong_zero=True):
    evaluate, _ = evaluator(scalar_rule(fn), fn, args, strong_zero)
    return evaluate(*args, d)[1:]


inf, nan = math.inf, math.nan


@pytest.mark.parametrize(
    "fn, args, want",
    [
        (abs, (0.0,), (0.0,)),
        (abs, (0j,), (0j,)),
        (np.absolute, (-0.0,), (0.0,)),
        (max, (1.0, 1.0), (1.0, 0.0)),
        (min, (1.0, 1.0), (1.0, 0.0)),
        (max, (nan, 1.0), (1.0, 0.0)),
        (max, (1.0, nan), (1.0, 0.0)),
        (np.maximum, (1.0, 1.0), (1.0, 0.0)),
        (np.maximum, (1.0, nan), (0.0, 1.0)),
        (np.minimum, (nan, 1.0), (1.0, 0.0)),
        (np.fmax, (nan, 1.0), (0.0, 1.0)),
        (np.fmin, (1.0, nan), (1.0, 0.0)),
        (np.fmin, (1.0, 1.0), (1.0, 0.0)),
        (operator.pow, (0.0, 0.0), (0.0, 0.0)),
        (operator.pow, (inf, 0.0), (0.0, inf)),
        (operator.pow, (0.0, 0.5), (inf, 0.0)),
        (operator.pow, (0.0, 3), (0.0,)),
        (operator.pow, (0.0, 1), (1.0,)),
        (operator.pow, (0.0, 0), (0.0,)),
        (operator.pow, (2.0, -3), (-3 / 16,)),
        (operator.pow, (-8.0, 2.0), (-16.0, nan)),
        (np.power, (-8.0, 2.0), (-16.0, nan)),
        (math.hypot, (0.0, 0.0), (0.0, 0.0)),
        (np.hypot, (0.0, 0.0), (0.0, 0.0)),
        (math.hypot, (3e300, 4e300), (0.6, 0.8)),
        (math.atan2, (1e-200, 1e-200), (5e199, -5e199)),
        (math.atan2, (1e200, 1e200), (5e-201, -5e-201)),
        (math.expm1, (-50.0,), (math.exp(-50.0),)),
        (np.logaddexp, (-inf, 1.0), (0.0, 1.0)),
        (np.logaddexp, (inf, 1.0), (1.0, 0.0)),
        (math.sqrt, (0.0,), (inf,)),
        (ops.fdiv, (1.0, 0.0), (inf, -inf)),
        (ops.select, (False, nan, 2.0), (0.0, 1.0)),
        (math.copysign, (0.0, 1.0), (0.0,)),
    ],
)
def test_conventions(fn, args, want):
    assert bars(fn, *args) == pytest.approx(want, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize(
    "fn, args",
    [(math.sqrt, (0.0,)), (math.log, (0.0,)), (operator.mul, (inf, nan)), (np.sqrt, (0j,))],
)
def test_strong_zero(fn, args):
    d = 0j if isinstance(args[0], complex) else 0.0
    assert all(bar == 0 for bar in bars(fn, *args, d=d))
    assert any(bar != bar for bar in bars(fn, *args, d=d, strong_zero=False))


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 3.7, 9.99, 10.0, 50.0, 1e10, -0.5, -3.3, -20.25])
def test_digamma(x):
    mpmath = pytest.importorskip("mpmath")
    from splitad.rules.namespace import digamma

    assert digamma(x) == pytest.approx(float(mpmath.digamma(x)), rel=1e-13)


@pytest.mark.parametrize("x", [1e-9, 1e-3, 0.1, 0.159, 0.16, 1.0, -0.05, 3.3])
def test_sinc_dx(x):
    mpmath = pytest.importorskip("mpmath")
    from splitad.rules.namespace import sinc_dx

    with mpmath.workdps(60):
        y = mpmath.pi * mpmath.mpf(x)
        want = float(mpmath.pi * (mpmath.cos(y) / y - mpmath.sin(y) / y**2))
    assert sinc_dx(x) == pytest.approx(want, rel=1e-13, abs=0)


def test_needs_follow_from_the_text():
    def needs(fn):
        return [p and p.needs for p in scalar_rule(fn).partials]

    assert needs(math.exp) == [("out",)]
    assert needs(math.sin) == [("x",)]
    assert needs(operator.mul) == [("y",), ("x",)]
    assert needs(math.copysign) == [("x", "y"), None]
    assert scalar_rule(operator.add).partials[0].constant
    assert scalar_rule(max).partials[0].bounded and not scalar_rule(math.sin).partials[0].bounded
    assert scalar_rule(operator.add).kind == scalar_rule(np.degrees).kind == "linear"
    assert scalar_rule(math.floor).kind == "zero"


def test_cheap():
    from numba import types

    from splitad.ir.nodes import Lit, Var

    x = Var("x", types.float64)
    assert cheap(scalar_rule(operator.mul), (x, x)) and cheap(scalar_rule(math.sqrt), (x,))
    assert not cheap(scalar_rule(math.sin), (x,))
    assert cheap(scalar_rule(operator.pow), (x, Lit(2, types.int64)))
    assert not cheap(scalar_rule(operator.pow), (x, Lit(2.0, types.float64)))
