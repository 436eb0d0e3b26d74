"""Every array rule against finite differences: layouts, precisions, complex values, inactive arguments."""

import operator

import numba
import numpy as np
import pytest
from numba import types

from splitad.rules import registry
from splitad.rules.registry import array_rule, jitted
from tests.rules import results
from tests.rules.numpy_table import ARGUMENTS

# as long as no test has registered rules of its own
BUILT_IN = registry.array_rules()
STEP = {"f": 2e-2, "d": 3e-4, "F": 2e-2, "D": 3e-4}
RTOL = {"f": 2e-3, "d": 1e-8, "F": 2e-3, "D": 1e-8}
COEFFICIENTS = (-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12)


def numbers(rng, shape, dtype):
    x = rng.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(x).astype(dtype)


def with_layout(x, layout):
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "A":
        big = np.zeros([2 * n for n in x.shape], x.dtype)
        view = big[tuple(slice(None, None, 2) for _ in x.shape)]
        view[...] = x
        return view
    return np.ascontiguousarray(x)


def inner(a, b):
    """Re(sum(conj(a) * b)) in double precision."""
    a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
    return float(np.sum(np.conj(a) * b).real)


def run_pullback(rule, args, static, out, d_out, shadows):
    """Calls the pullback by the protocol, with None for what `saves` says is not needed."""
    saved = rule.saves([s is not None for s in shadows])
    values = []
    for need in rule.call:
        if need.kind in ("contents", "shape", "out", "residual") and need.name not in saved:
            values.append(None)
        elif need.kind == "contents":
            x = args[need.index]
            values.append(np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x)
        elif need.kind == "shape":
            values.append(args[need.index].shape)
        elif need.kind == "out":
            values.append(out)
        elif need.kind == "d_out":
            values.append(d_out)
        elif need.kind == "static":
            values.append(static.get(need.name))
        else:
            values.append(shadows[need.index])
    return jitted(rule)(*values)


def check(fn, primal, args, static, active, layout, dtype):
    rule = array_rule(primal)
    typeofs = [numba.typeof(a) for a in args]
    assert rule.accepts(typeofs, static) is None
    rng = np.random.default_rng(3)
    out = fn(*args)
    d_out = numbers(rng, np.shape(out), args[0].dtype)
    d_out = d_out[()] if d_out.ndim == 0 else d_out
    initial = [
        numbers(rng, a.shape, a.dtype) if on else None for a, on in zip(args, active, strict=True)
    ]
    shadows = [None if s is None else with_layout(s.copy(), layout) for s in initial]
    kept = np.copy(d_out)
    assert run_pullback(rule, args, static, out, d_out, shadows) is None
    np.testing.assert_array_equal(d_out, kept)
    h = STEP[np.dtype(dtype).char]
    for k, on in enumerate(active):
        if not on:
            continue
        v = numbers(rng, args[k].shape, dtype)
        slope = 0.0
        for step, c in zip(*COEFFICIENTS, strict=True):
            moved = list(args)
            moved[k] = with_layout((args[k] + step * h * v).astype(dtype), layout)
            slope = slope + c * np.asarray(fn(*moved), np.complex128) / h
        assert shadows[k].dtype == dtype
        got = inner(shadows[k].astype(np.complex128) - initial[k], v)
        want = inner(d_out, slope)
        scale = np.linalg.norm(np.asarray(slope)) * np.linalg.norm(np.asarray(d_out)) + 1
        assert abs(got - want) < RTOL[np.dtype(dtype).char] * scale, (k, got, want)


PRODUCTS = [
    (np.dot, (4,), (4,)), (np.dot, (3, 4), (4,)), (np.dot, (3,), (3, 4)), (np.dot, (3, 4), (4, 2)),
    (operator.matmul, (4,), (4,)), (operator.matmul, (3, 4), (4, 2)), (np.vdot, (4,), (4,)),
    (np.outer, (3,), (4,)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::numba.NumbaPerformanceWarning")  # of the primal, for layout A
@pytest.mark.parametrize(
    "layout, dtype, active",
    [
        ("C", "f8", (True, True)),
        ("F", "c16", (True, True)),
        ("C", "f4", (True, False)),
        ("A", "f8", (False, True)),
    ],
)
@pytest.mark.parametrize("primal, left, right", PRODUCTS)
def test_products(primal, left, right, layout, dtype, active):
    rng = np.random.default_rng(0)
    args = [with_layout(numbers(rng, s, dtype), layout) for s in (left, right)]
    check(lambda a, b: primal(a, b), primal, args, {}, active, layout, np.dtype(dtype))


@pytest.mark.parametrize("layout, dtype", [("C", "f8"), ("A", "c16"), ("F", "f4")])
@pytest.mark.parametrize(
    "primal, shape, axis",
    [
        (np.sum, (4,), 0), (np.sum, (3, 4), 0), (np.sum, (3, 4), 1), (np.sum, (3, 4), -1),
        (np.sum, (2, 3, 4), 1), (np.sum, (3, 4), None), (np.mean, (3, 4), None), (np.cumsum, (4,), None),
        (np.cumsum, (3, 4), None), (np.cumsum, (2, 3, 4), 1), (np.sum, (0, 3), 0), (np.cumsum, (0,), None),
    ],
)  # fmt: skip
def test_sums(primal, shape, axis, layout, dtype):
    args = [with_layout(numbers(np.random.default_rng(0), shape, dtype), layout)]
    static = {} if axis is None else {"axis": axis}
    check(lambda a: primal(a, **static), primal, args, static, (True,), layout, np.dtype(dtype))


@pytest.mark.parametrize("layout, dtype", [("C", "f8"), ("A", "c16")])
@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "solve vector", "solve matrix"])
def test_linalg(name, layout, dtype):
    rng = np.random.default_rng(0)
    primal = getattr(np.linalg, name.split()[0])
    a = numbers(rng, (3, 3), dtype)
    a = a @ np.conj(a).T + np.eye(3) if name == "cholesky" else a + 2 * np.eye(3)
    args = [with_layout(a.astype(dtype), layout)]
    if name.startswith("solve"):
        args.append(with_layout(numbers(rng, (3,) if "vector" in name else (3, 2), dtype), layout))
    check(lambda *p: primal(*p), primal, args, {}, (True,) * len(args), layout, np.dtype(dtype))


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "solve"])
def test_linalg_in_single_precision(name):
    args = [ARGUMENTS["p" if name == "cholesky" else "s"](np.dtype(float))]
    args += [ARGUMENTS["m"](np.dtype(float))] if name == "solve" else []
    bars = lambda out: (results.numbers(0, np.shape(out), float)[()],)
    results.check_narrow(getattr(np.linalg, name), args, {}, bars)


def test_solve_with_one_active_argument():
    rng = np.random.default_rng(0)
    args = [numbers(rng, (3, 3), "f8") + 2 * np.eye(3), numbers(rng, (3,), "f8")]
    for active in ((True, False), (False, True)):
        check(np.linalg.solve, np.linalg.solve, args, {}, active, "C", np.dtype("f8"))
    assert array_rule(np.linalg.solve).saves((False, True)) == ("a",)


def test_the_determinant_of_a_singular_matrix_has_its_derivative():
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    check(np.linalg.det, np.linalg.det, [a], {}, (True,), "C", np.dtype("f8"))


CHECKED = {p[0] for p in PRODUCTS} | {np.sum, np.mean, np.cumsum}
CHECKED |= {getattr(np.linalg, n) for n in ("inv", "det", "cholesky", "solve")}


def test_every_array_rule_is_checked():
    from tests.rules import test_factorization_rules, test_ordering_rules, test_signal_rules

    modules = test_factorization_rules, test_ordering_rules, test_signal_rules
    checked = CHECKED.union(*(module.CHECKED for module in modules))
    built_in = {
        fn
        for rule in registry.array_rules()
        for fn in rule.primals
        if rule.call and fn.__module__.split(".")[0] != "tests"
    }
    assert built_in == checked


@pytest.mark.parametrize(
    "shapes", [((0,), (0,)), ((2, 0), (0,)), ((2, 0), (0, 3)), ((0, 2), (2, 3))]
)
def test_empty_operands(shapes):
    args = [np.ones(s) for s in shapes]
    check(np.dot, np.dot, args, {}, (True, True), "C", np.dtype("f8"))


@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2, 2), (2,)), ((2,), (2, 2)), ((2, 2), (2, 2))])
def test_strong_zero(shapes):
    args = [np.full(s, np.inf) for s in shapes]
    d_out = np.zeros(np.shape(np.dot(*(np.ones(s) for s in shapes))))[()]
    shadows = [np.ones(s) for s in shapes]
    run_pullback(array_rule(np.dot), args, {}, None, d_out, shadows)
    assert all((s == 1).all() for s in shadows)


def test_what_is_saved():
    dot = array_rule(np.dot)
    assert dot.saves((True, True)) == ("a", "b")
    assert dot.saves((True, False)) == ("b",)
    assert dot.saves((False, True)) == ("a",)
    assert dot.saves((True, False, True)) == ("b",)  # the cotangent of out= is what comes in
    assert dot.reads == (0, 1) and dot.writes == (2,)
    assert array_rule(np.sum).saves((True,)) == ()
    assert array_rule(np.linalg.inv).saves((True,)) == ("out",)
    assert array_rule(np.cumsum).writes == ()


def test_what_is_refused():
    matrix, vector = types.float64[:, ::1], types.float64[::1]
    assert array_rule(np.dot).accepts([types.float64[:, :, ::1], vector], {})
    assert array_rule(np.dot).accepts([types.complex128[::1], vector], {})
    assert array_rule(np.dot).accepts([vector], {})
    assert array_rule(np.dot).accepts([vector, vector, vector, vector], {})
    assert array_rule(np.vdot).accepts([matrix, matrix], {})
    assert array_rule(np.sum).accepts([matrix], {"axis": (0, 1)})
    assert array_rule(np.sum).accepts([matrix], {"dtype": types.float32})
    assert array_rule(np.sum).accepts([types.float64], {})
    assert array_rule(np.dot).accepts([matrix, vector, vector], {}) is None
