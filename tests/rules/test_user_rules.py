"""Rules of users' own: both forms, and what is refused when a rule is registered."""

import ctypes
import ctypes.util
import math

import numpy as np
import pytest
from numba import njit
from numba.extending import overload

from splitad import grad
from splitad.errors import AliasingError, NoRuleError, UnsupportedError
from splitad.ir.foreign import hashable
from splitad.rules import registry
from splitad.rules.registry import Adjoint, RuleError, jitted
from splitad.rules.spelling import contribution, spell
from splitad.rules.user import rule
from splitad.testing import check_vjp


def fresh():
    @njit
    def softplus(x):
        return math.log1p(math.exp(x))

    return softplus


def two(x, y):
    return x * y


def test_a_partial_as_text():
    softplus = fresh()
    made = rule(softplus, dx="1.0 / (1.0 + math.exp(-x))", samples=[(0.3,)])
    assert registry.scalar_rule(softplus) is registry.scalar_rule(softplus.py_func) is made
    assert made.partials[0].needs == ("x",) and made.name == "softplus"


def test_a_partial_as_a_function():
    softplus = fresh()

    def slope(x, out):
        return math.exp(x - out)

    (partial,) = rule(softplus, dx=slope, samples=[(0.3,)]).partials
    assert partial.needs == ("x", "out")
    text, names = contribution(partial, {"x": "u", "out": "y"}, "d_y")
    call = njit(eval(f"lambda u, y, d_y: {text}", names))
    want = 2.0 / (1.0 + math.exp(-0.3))
    assert call(0.3, softplus(0.3), 2.0) == pytest.approx(want)


def test_a_plain_function_can_be_called_from_generated_code():
    def f(x):
        return 2.0 * x

    rule(f, dx="2.0", samples=[(1.0,)])
    text, names = spell(f, ["x"])
    assert njit(eval(f"lambda x: {text}", names))(1.5) == 3.0


def test_a_pullback():
    @njit
    def scale(a, s):
        return s * a

    def pullback(a, s, d_out, d_a, d_s):
        if d_a is not None:
            d_a += s * d_out
        total = 0.0
        if d_s is not None:
            total = np.sum(a * d_out)
        return (total,)

    made = rule(scale, pullback=pullback, needed_by={"a": "s", "s": "a"})
    assert registry.array_rule(scale.py_func) is made
    assert made.saves((True, False)) == ("s",)
    a, shadow = np.arange(3.0), np.ones(3)
    assert jitted(made)(a, 2.0, np.ones(3), shadow, True) == (3.0,)
    np.testing.assert_array_equal(shadow, [3.0, 3.0, 3.0])
    assert jitted(made)(None, 2.0, np.ones(3), shadow, None) == (0.0,)


def test_a_residual():
    @njit
    def f(a):
        return np.exp(a)

    @njit
    def forward(a):
        out = np.exp(a)
        return out, 2.0 * out, len(a)

    def pullback(twice, n, d_out, d_a):
        d_a += 0.5 * twice * d_out

    made = rule(f, pullback=pullback, forward=forward, residual="twice n")
    assert [(n.kind, n.index) for n in made.call[:2]] == [("residual", 1), ("residual", 2)]
    assert made.saves((True,)) == ("twice", "n")


def test_no_derivative():
    @njit
    def bucket(x):
        return int(x / 0.1)

    assert rule(bucket, zero=True).kind == "zero"


def nothing(d_out):
    pass


def no_cotangent(d_x):
    pass


def stranger(x, elsewhere, d_out, d_x):
    pass


def proper(x, d_out, d_x):
    pass


S = [(1.0, 2.0)]


@pytest.mark.parametrize(
    "given, message",
    [
        (dict(dx="y", dy="x"), "no samples"),
        (dict(dx="y", samples=S), "dy= is missing"),
        (dict(dx="y", dy="x", samples=[(1.0,)]), "one value for each"),
        (dict(dx="y", dy="z", samples=S), "names z, which is neither a parameter"),
        (dict(dx="y", dy="numpy.sin(x)", samples=S), "names numpy"),
        (dict(dx="y", dy="d", samples=S), "names d"),
        (dict(dx="y", dy="x +", samples=S), "not an expression"),
        (dict(dx="y", dy="x", dz="x", samples=S), "dz= does not belong"),
        (dict(dx=None, dy=None, samples=S), "no partial at all"),
        (dict(dx="y", dy=1.0, samples=S), "must be a text or a function"),
        (dict(dx=lambda q: q, dy="x", samples=S), "names q"),
        (dict(samples=S), "either"),
        (dict(dx="y", dy="x", zero=True, samples=S), "either"),
        (dict(params="x x", dx="x", samples=S), "not distinct"),
        (dict(params="x out", dx="x", samples=S), "cannot be called out"),
        (dict(params="x d", dx="x", samples=S), "cannot be called d"),
        (dict(dx="y", dy="x", residual="r", samples=S), "belong to functions of arrays"),
        (dict(pullback=nothing), "adds into no argument"),
        (dict(pullback=no_cotangent), "no parameter d_out"),
        (dict(pullback=stranger), "a parameter elsewhere, which stands for nothing"),
        (dict(pullback=proper, residual="r"), "needs a forward="),
        (dict(pullback=proper, overwrites=0), "only the last argument"),
        (dict(pullback=proper, needed_by={"q": "x"}), "not its own"),
        (dict(pullback=proper, samples=S), "belong to functions of scalars"),
        (dict(pullback=proper, static="x"), "not distinct"),
    ],
)
def test_a_malformed_rule_is_refused(given, message):
    with pytest.raises(RuleError, match=message):
        rule(two, **given)
    assert registry.scalar_rule(two) is None and registry.array_rule(two) is None


def test_registering_twice_is_refused():
    softplus = fresh()
    slope = "1.0 / (1.0 + math.exp(-x))"
    rule(softplus, dx=slope, samples=[(0.3,)])
    with pytest.raises(RuleError, match="has a rule already"):
        rule(softplus, dx=slope, samples=[(0.3,)])
    with pytest.raises(RuleError, match="has a rule already"):
        rule(softplus, zero=True)
    with pytest.raises(RuleError, match="has a rule already"):
        rule(math.sin, params="x", dx="math.cos(x)", samples=[(0.3,)])
    with pytest.raises(RuleError, match="has a rule already"):
        rule(math.frexp, zero=True)


def test_functions_without_fixed_parameters_need_names():
    with pytest.raises(RuleError, match="no fixed parameters"):
        rule(lambda *x: x, dx="1.0", samples=[(1.0,)])


def test_an_adjoint_may_use_the_cotangent():
    def modulus(z):
        return abs(z)

    made = rule(modulus, dz="1.0", complex_dz=Adjoint("d * (z / out)"), samples=[(1j,)])
    (partial,) = made.partials_for(True)
    assert partial.adjoint and partial.needs == ("z", "out")
    text, _ = contribution(partial, {"z": "w", "out": "r"}, "d_r", operand_complex=True)
    assert text == "d_r * fdiv(w, r) if d_r != 0 else d_r"


def test_linear():
    @njit
    def difference(x, y):
        return 2.0 * x - y

    made = rule(difference, linear=(2.0, -1.0), samples=[(1.0, 2.0)])
    assert made.kind == "linear" and [p.text for p in made.partials] == ["2.0", "-1.0"]
    with pytest.raises(RuleError, match="coefficients"):
        rule(two, linear=(2.0,), samples=[(1.0, 2.0)])


def from_c(name):
    found = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    found.restype, found.argtypes = ctypes.c_double, [ctypes.c_double]
    return found


def test_a_function_through_ctypes():
    cube_root, other = from_c("cbrt"), from_c("expm1")

    @njit
    def with_rule(x):
        return cube_root(x[0]) * x[1] + from_c_again(x[1])

    from_c_again = from_c("cbrt")  # another object for the same function
    rule(cube_root, params="x", dx="out / (3.0 * x)", samples=[(2.0,)])
    assert registry.scalar_rule(hashable(from_c_again)).name == "cbrt"
    check_vjp(with_rule, np.array([2.0, 0.7]))

    @njit
    def without(x):
        return other(x)

    with pytest.raises(NoRuleError, match="expm1 has no rule"):
        grad(without)(1.0)
    with pytest.raises(RuleError, match="no signature"):
        rule(other, dx="out + 1.0", samples=[(1.0,)])


def test_a_function_through_cffi():
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef("double log1p(double);")
    log1p = ffi.dlopen(ctypes.util.find_library("m")).log1p

    @njit
    def f(x):
        return log1p(x[0]) * x[1]

    rule(log1p, params="x", dx="1.0 / (1.0 + x)", samples=[(0.5,)])
    check_vjp(f, np.array([2.0, 0.7]))


def test_an_overloaded_function():
    def smooth(x):
        raise NotImplementedError

    @overload(smooth)
    def _smooth(x):
        return lambda x: math.sqrt(x * x + 1.0)

    @njit
    def f(x):
        return smooth(x) * x

    rule(smooth, dx="x / out", samples=[(0.5,)])
    check_vjp(f, 0.5)


@njit
def rest(a):
    return a[1:]


def rest_pullback(d_out, d_a):
    d_a[1:] += d_out


@njit
def in_the_same_memory(x):
    b = rest(x)
    total = 0.0
    for i in range(b.shape[0]):
        b[i] = b[i] * x[i]
        total += b[i] * x[i + 1]
    return total


def test_a_result_that_is_a_view_is_refused():
    rule(rest, pullback=rest_pullback)
    with pytest.raises(
        AliasingError, match="what rest, which has a rule, returns overlaps an argument"
    ):
        grad(in_the_same_memory)(np.arange(1.0, 5.0))
    assert grad(in_the_same_memory)(np.ones(1)).tolist() == [0.0]  # it returns no element


@njit
def limit(a, k=0):
    """Of arrays and scalars: where the rule says that nothing depends on it."""
    return a[k] * a[k + 1]


@njit
def twice_mean(a):
    return 2.0 * a / a.size


@njit
def parts_of(a):
    return a[1:] * 1.0, a[0]


@njit
def watched(x):
    first, rest_of = parts_of(x)[1], parts_of(x)[0]
    return (
        limit(x) * x[0] + limit(x, 1) * x[0] + twice_mean(x)[1] * x[2] + first * rest_of[0] * x[3]
    )


def test_no_derivative_of_arrays():
    for fn in (limit, twice_mean, parts_of):
        rule(fn, zero=True)
    x = np.array([0.3, 0.5, 0.7, 1.1])
    by_hand = [x[0] * x[1] + x[1] * x[2], 0.0, 2.0 * x[1] / 4, x[0] * x[1]]
    assert np.allclose(grad(watched)(x), by_hand, rtol=1e-15)


@njit
def all_but_one(a):
    return a[1:]


@njit
def view_without_derivative(x):
    b = all_but_one(x)
    b[0] = 2.0 * x[0]
    return x[1] * x[0]


@njit
def out_of_a_tuple(t):
    return t[0][0] * t[1]


@njit
def of_any_number(*xs):
    return xs[0][0]


def test_no_derivative_and_what_that_cannot_be():
    rule(all_but_one, zero=True)
    with pytest.raises(AliasingError, match="what all_but_one, which has a rule, returns overlaps"):
        grad(view_without_derivative)(np.ones(3))
    rule(out_of_a_tuple, zero=True)
    with pytest.raises(UnsupportedError, match="out_of_a_tuple with an argument that is neither"):
        grad(njit(lambda x: out_of_a_tuple((x, 1.0)) * x[0]))(np.ones(3))
    rule(of_any_number, zero=True)
    with pytest.raises(UnsupportedError, match="of_any_number has a rule, which does not serve"):
        grad(njit(lambda x: of_any_number(x) * x[0]))(np.ones(3))


def test_one_rule_a_function():
    @njit
    def smoothed(a):
        return a * 0.5

    rule(smoothed, pullback=lambda d_out, d_a: None)
    with pytest.raises(RuleError, match="has a rule already"):
        rule(smoothed, zero=True)
    assert registry.scalar_rule(smoothed) is None
