"""splitad's own scalar operations, and how operations are written."""

import math
import operator

import numba
import numpy as np
import pytest

from splitad.rules import ops, scalar  # noqa: F401
from splitad.rules.registry import scalar_rule, scalar_rules
from splitad.rules.spelling import contribution, spell

BUILT_IN = scalar_rules()  # as long as no test has registered rules of its own


@pytest.mark.parametrize("error_model", ["python", "numpy"])
@pytest.mark.parametrize(
    "a, b",
    [
        (1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (1.0, 3.0), (np.float32(1), np.float32(3)),
        (1 + 2j, 3 - 4j), (1 + 2j, 0.5j), (1 + 2j, 0j), (np.complex64(1 + 2j), np.complex64(3 - 4j)),
        (1 + 2j, 3.0), (1.0, 1 + 2j), (np.float32(1), np.complex64(1 + 2j)), (1.0, -0.0), (2, 3),
    ],
)  # fmt: skip
def test_fdiv_never_raises_and_is_numbas_division(error_model, a, b):
    @numba.njit(error_model=error_model)
    def compiled(a, b):
        return ops.fdiv(a, b)

    got = compiled(a, b)
    if b != 0:
        plain = numba.njit(lambda a, b: a / b)
        assert got == plain(a, b)
        returns = [f.nopython_signatures[0].return_type for f in (compiled, plain)]
        assert returns[0] == returns[1]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, np.divide(a, b), rtol=1e-6)
        np.testing.assert_allclose(ops.fdiv(a, b), got, rtol=1e-6)


def test_select_real_imag():
    @numba.njit
    def compiled(c, z):
        return ops.select(c, ops.real(z), ops.imag(z))

    assert compiled(True, 1 + 2j) == ops.select(True, 1.0, 2.0) == 1.0
    assert compiled(False, 1 + 2j) == 2.0


def test_trip_count_and_at_most() -> None:
    compiled = numba.njit(lambda n, limit: (ops.trip_count(n), ops.at_most(n, limit)))
    for n, limit in [(3, 5), (5, 3), (0, 0), (-2, 4), (np.int32(-2), np.int32(-3))]:
        assert compiled(n, limit) == (ops.trip_count(n), ops.at_most(n, limit))
        assert compiled(n, limit) == (len(range(n)), sorted([n, limit])[0])


@pytest.mark.parametrize("p, d", [(math.inf, 0.0), (math.nan, 0.0), (math.inf, -0.0), (2, 0.0)])
def test_a_zero_cotangent_times_anything_is_zero(p, d):
    compiled = numba.njit(lambda p, d: ops.guarded_mul(p, d))
    for kind in (float, np.float32):
        assert compiled(kind(p), kind(d)) == 0 == ops.guarded_mul(kind(p), kind(d))
        assert math.isnan(compiled(kind(0), kind(math.nan)))
        assert compiled(kind(math.inf), kind(math.inf)) == math.inf
        assert compiled(kind(1.5), kind(-2)) == -3


@pytest.mark.parametrize(
    "fn, args, text, names",
    [
        (operator.add, ["a", "b"], "a + b", []),
        (operator.iadd, ["a", "b"], "a + b", []),
        (operator.pow, ["-2.0", "b"], "(-2.0) ** b", []),
        (operator.neg, ["a"], "-a", []),
        (operator.not_, ["a"], "not a", []),
        (math.sin, ["a"], "math.sin(a)", ["math"]),
        (np.sin, ["a"], "np.sin(a)", ["np"]),
        (abs, ["a"], "abs(a)", []),
        (operator.abs, ["a"], "abs(a)", []),
        (min, ["a", "-1"], "min(a, -1)", []),
        (ops.fdiv, ["a", "b"], "fdiv(a, b)", ["fdiv"]),
        (ops.select, ["c", "a", "b"], "a if c else b", []),
        (ops.imag, ["z"], "z.imag", []),
    ],
)
def test_spell(fn, args, text, names):
    got, used = spell(fn, args)
    assert (got, sorted(used)) == (text, names)


def test_every_primal_is_spelled_by_its_own_name():
    for rule in BUILT_IN:
        for fn in rule.primals:
            # older ufuncs have none; libdevice's functions stand for those of a GPU
            module = getattr(fn, "__module__", "")
            if module in ("_operator", "splitad.ir.libdevice"):
                continue
            text, used = spell(fn, ["a", "b", "c"][: max(1, len(rule.params))])
            assert all(name in ("math", "cmath", "np") or hasattr(ops, name) for name in used), text


def test_users_functions_get_names_of_their_own():
    def f(x):
        return x

    first = f

    def f(x):
        return -x

    (a, names), (b, _) = spell(first, ["x"]), spell(f, ["x"])
    assert a != b and spell(first, ["x"])[0] == a and [f.py_func for f in names.values()] == [first]


@pytest.mark.parametrize(
    "fn, names, text",
    [
        (math.sin, {"x": "u"}, "guarded_mul(math.cos(u), d_y)"),
        (math.exp, {"x": "u", "out": "y"}, "guarded_mul(y, d_y)"),
        (operator.mul, {"x": "u", "y": "-2.0"}, "guarded_mul((-2.0), d_y)"),
        (operator.sub, {}, "d_y"),
        (max, {"x": "u", "y": "v"}, "(0.0 if v > u else 1.0) * d_y"),
    ],
)
def test_contribution(fn, names, text):
    assert contribution(scalar_rule(fn).partials[0], names, "d_y")[0] == text


def test_contribution_of_complex_values():
    mul = scalar_rule(operator.mul).partials_for(True)[0]
    names = {"x": "u", "y": "v"}
    got, _ = contribution(mul, names, "d", out_complex=True, operand_complex=True)
    assert got == "v.conjugate() * d if d != 0 else d"
    got, _ = contribution(mul, names, "d", out_complex=True)
    assert got == "(v.conjugate() * d).real if d != 0 else d.real"
