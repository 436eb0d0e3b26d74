"""The derivative of every scalar function that Numba knows.  The rule's form: see `registry`.

Conventions are those of the contract: abs'(0) = 0, max and min give the whole cotangent to the argument
that was returned (the first at a tie), a norm at the origin has derivative 0.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from splitad.rules import ops
from splitad.rules.registry import Adjoint, linear, refuse, scalar, zero


def _fns(*names: str) -> tuple[Callable[..., Any], ...]:
    """The functions "module.name" that exist in this version of Python and NumPy, each once."""
    modules = {"math": math, "cmath": cmath, "np": np, "operator": operator}
    found = (getattr(modules[n.split(".")[0]], n.split(".")[1], None) for n in names)
    return tuple(dict.fromkeys(fn for fn in found if fn is not None))


# ---- arithmetic ------------------------------------------------------------------------------------

_PAIRS = [(1.5, -0.7), (-2.0, 3.0), (1 + 2j, 0.5 - 1j)]

linear("add", _fns("operator.add", "operator.iadd", "np.add"), "x y", (1, 1), samples=_PAIRS)
linear("sub", _fns("operator.sub", "operator.isub", "np.subtract"), "x y", (1, -1), samples=_PAIRS)
linear("neg", _fns("operator.neg", "np.negative"), "x", (-1,), samples=[(1.5,), (1 - 2j,)])
linear("pos", _fns("operator.pos", "np.positive"), "x", (1,), samples=[(1.5,), (1 - 2j,)])
scalar("mul", _fns("operator.mul", "operator.imul", "np.multiply"), "x y", dx="y", dy="x",
       cheap=True, samples=_PAIRS)  # fmt: skip
scalar("div", (ops.fdiv, *_fns("operator.truediv", "operator.itruediv", "np.divide", "np.true_divide")),
       "x y", dx="1.0 / y", dy="-out / y", cheap=True, samples=_PAIRS)  # fmt: skip
scalar("square", (np.square,), "x", dx="2.0 * x", cheap=True, samples=[(-1.5,), (1 - 2j,)])
scalar(
    "reciprocal", (np.reciprocal,), "x", dx="-(out * out)", cheap=True, samples=[(-1.5,), (1 - 2j,)]
)
scalar("mod", _fns("operator.mod", "operator.imod", "np.remainder", "np.mod"), "x y",
       dx="1.0", dy="-(x // y)", samples=[(7.3, 2.0), (-7.3, 2.0), (7.3, -2.0)])  # fmt: skip
scalar("fmod", _fns("math.fmod", "np.fmod"), "x y",
       dx="1.0", dy="(out - x) / y", samples=[(7.3, 2.0), (-7.3, 2.0), (7.3, -2.0)])  # fmt: skip
zero("floordiv", _fns("operator.floordiv", "operator.ifloordiv", "np.floor_divide"))
# pow(x, 0) is 1 for every x; pow(0, y) is 0 for every y > 0; of x < 0 no real power moves with y
scalar("pow",
       (pow, *_fns("operator.pow", "operator.ipow", "math.pow", "np.power", "np.float_power")), "x y",
       dx="0.0 if y == 0 else y * x ** (y - 1)",
       dy="0.0 if x == 0 and y >= 0 else math.log(x) * out",
       complex_dy="0.0 if x == 0 else cmath.log(x) * out",
       samples=[(1.5, 2.3), (0.3, -1.5), (1.5, 1.0), (-1.5, 3), (-1.5, -2), (2, 1.5), (0.0, 2.0),
                (1 + 2j, 0.5 - 1j), (1 + 2j, 2)])  # fmt: skip

# ---- choosing --------------------------------------------------------------------------------------

scalar("abs", (abs, *_fns("operator.abs", "np.absolute", "np.fabs", "math.fabs")), "x",
       dx="1.0 if x > 0 else (-1.0 if x < 0 else 0.0)",
       complex_dx=Adjoint("d * (x / out) if out != 0 else 0.0 * x"),
       cheap=True, samples=[(1.5,), (-1.5,), (1 - 2j,)])  # fmt: skip
# Python's max is `y if y > x else x`, NumPy's gives a NaN precedence, fmax gives it none
scalar("max", (max,), "x y", dx="0.0 if y > x else 1.0", dy="1.0 if y > x else 0.0",
       cheap=True, samples=[(1.5, -0.7), (-2.0, 3.0)])  # fmt: skip
scalar("min", (min,), "x y", dx="0.0 if y < x else 1.0", dy="1.0 if y < x else 0.0",
       cheap=True, samples=[(1.5, -0.7), (-2.0, 3.0)])  # fmt: skip
for _name, _less in (("maximum", ">="), ("minimum", "<=")):
    _first = f"x {_less} y or x != x"
    scalar(_name, _fns(f"np.{_name}"), "x y",
           dx=f"1.0 if {_first} else 0.0", dy=f"0.0 if {_first} else 1.0",
           complex_dx="1.0 if out == x or x != x else 0.0",
           complex_dy="0.0 if out == x or x != x else 1.0",
           cheap=True, samples=_PAIRS)  # fmt: skip
for _name, _less in (("fmax", ">="), ("fmin", "<=")):
    _first = f"x {_less} y or y != y"
    scalar(_name, _fns(f"np.{_name}"), "x y",
           dx=f"1.0 if {_first} else 0.0", dy=f"0.0 if {_first} else 1.0",
           complex_dx="1.0 if out == x or y != y else 0.0",
           complex_dy="0.0 if out == x or y != y else 1.0",
           cheap=True, samples=_PAIRS)  # fmt: skip
scalar("select", (ops.select, np.where), "c x y", dc=None,
       dx="1.0 if c else 0.0", dy="0.0 if c else 1.0",
       cheap=True, samples=[(True, 1.5, -0.7), (False, 1.5, -0.7), (True, 1 + 2j, 1j)])  # fmt: skip
scalar("copysign", _fns("math.copysign", "np.copysign"), "x y",
       dx="0.0 if x == 0 else math.copysign(1.0, x) * math.copysign(1.0, y)", dy=None,
       cheap=True, samples=[(1.5, -2.0), (-1.5, -2.0), (1.5, 2.0)])  # fmt: skip
scalar("nextafter", _fns("math.nextafter", "np.nextafter"), "x y", dx="1.0", dy=None,
       samples=[(1.5, 2.0)])  # fmt: skip

# ---- exponentials, logarithms, roots ---------------------------------------------------------------

_UNIT = [(0.3,), (-0.6,), (0.4 + 0.3j,)]
_LINE = [(0.3,), (-1.7,), (0.4 + 0.3j,)]
_HALF = [(0.3,), (2.5,), (0.4 + 0.3j,), (-1 + 0.5j,)]

scalar("exp", _fns("math.exp", "cmath.exp", "np.exp"), "x", dx="out", samples=_LINE)
scalar("exp2", _fns("math.exp2", "np.exp2"), "x", dx=f"{math.log(2)} * out", samples=_LINE)
# not out + 1.0, which loses all digits for very negative x
scalar("expm1", _fns("math.expm1", "np.expm1"), "x", dx="math.exp(x)", samples=_LINE)
scalar("log", _fns("math.log", "cmath.log", "np.log"), "x", dx="1.0 / x", samples=_HALF)
scalar("log2", _fns("math.log2", "np.log2"), "x", dx=f"{1 / math.log(2)} / x", samples=_HALF)
scalar("log10", _fns("math.log10", "cmath.log10", "np.log10"), "x",
       dx=f"{1 / math.log(10)} / x", samples=_HALF)  # fmt: skip
scalar("log1p", _fns("math.log1p", "np.log1p"), "x", dx="1.0 / (1.0 + x)", samples=_UNIT)
# exp(x - out); where x is out, the other term is nothing beside it (or both are infinite)
scalar("logaddexp", (np.logaddexp,), "x y",
       dx="1.0 if x == out else math.exp(x - out)", dy="1.0 if y == out else math.exp(y - out)",
       samples=[(0.3, 0.7), (2.0, -1.0)])  # fmt: skip
scalar("logaddexp2", (np.logaddexp2,), "x y",
       dx="1.0 if x == out else 2.0 ** (x - out)", dy="1.0 if y == out else 2.0 ** (y - out)",
       samples=[(0.3, 0.7), (2.0, -1.0)])  # fmt: skip
scalar("sqrt", _fns("math.sqrt", "cmath.sqrt", "np.sqrt"), "x", dx="0.5 / out",
       cheap=True, samples=_HALF)  # fmt: skip
scalar("cbrt", _fns("math.cbrt", "np.cbrt"), "x", dx="1.0 / (3.0 * out * out)",
       samples=[(0.3,), (-1.7,)])  # fmt: skip
scalar("hypot", _fns("math.hypot", "np.hypot"), "x y",
       dx="0.0 if out == 0 else x / out", dy="0.0 if out == 0 else y / out",
       samples=[(1.5, -0.7), (0.0, 2.0)])  # fmt: skip
scalar("ldexp", _fns("math.ldexp", "np.ldexp"), "x i", dx="2.0 ** i", di=None,
       samples=[(1.5, 3), (1.5, -2)])  # fmt: skip

# ---- circular and hyperbolic functions -------------------------------------------------------------

scalar("sin", _fns("math.sin", "cmath.sin", "np.sin"), "x", dx="math.cos(x)", samples=_LINE)
scalar("cos", _fns("math.cos", "cmath.cos", "np.cos"), "x", dx="-math.sin(x)", samples=_LINE)
scalar("tan", _fns("math.tan", "cmath.tan", "np.tan"), "x", dx="1.0 + out * out", samples=_LINE)
scalar("asin", _fns("math.asin", "cmath.asin", "np.arcsin"), "x",
       dx="1.0 / math.sqrt((1.0 - x) * (1.0 + x))", samples=_UNIT)  # fmt: skip
scalar("acos", _fns("math.acos", "cmath.acos", "np.arccos"), "x",
       dx="-1.0 / math.sqrt((1.0 - x) * (1.0 + x))", samples=_UNIT)  # fmt: skip
scalar("atan", _fns("math.atan", "cmath.atan", "np.arctan"), "x",
       dx="1.0 / (1.0 + x * x)", samples=_LINE)  # fmt: skip
scalar("atan2", _fns("math.atan2", "np.arctan2"), "y x",
       dy="over_norm2(x, y)", dx="-over_norm2(y, x)",
       samples=[(0.3, 0.7), (-2.0, -1.0), (1.0, 0.0), (0.0, 1.0)])  # fmt: skip
scalar("sinh", _fns("math.sinh", "cmath.sinh", "np.sinh"), "x", dx="math.cosh(x)", samples=_LINE)
scalar("cosh", _fns("math.cosh", "cmath.cosh", "np.cosh"), "x", dx="math.sinh(x)", samples=_LINE)
scalar("tanh", _fns("math.tanh", "cmath.tanh", "np.tanh"), "x",
       dx="(1.0 - out) * (1.0 + out)", samples=_LINE)  # fmt: skip
scalar("asinh", _fns("math.asinh", "cmath.asinh", "np.arcsinh"), "x",
       dx="1.0 / math.hypot(1.0, x)", complex_dx="1.0 / cmath.sqrt(1.0 + x * x)",
       samples=_LINE)  # fmt: skip
scalar("acosh", _fns("math.acosh", "cmath.acosh", "np.arccosh"), "x",
       dx="1.0 / (math.sqrt(x - 1.0) * math.sqrt(x + 1.0))",
       samples=[(1.3,), (7.0,), (0.4 + 0.3j,)])  # fmt: skip
scalar("atanh", _fns("math.atanh", "cmath.atanh", "np.arctanh"), "x",
       dx="1.0 / ((1.0 - x) * (1.0 + x))", samples=_UNIT)  # fmt: skip
linear("degrees", _fns("math.degrees", "np.degrees", "np.rad2deg"), "x", (180 / math.pi,),
       samples=[(0.3,)])  # fmt: skip
linear("radians", _fns("math.radians", "np.radians", "np.deg2rad"), "x", (math.pi / 180,),
       samples=[(30.0,)])  # fmt: skip
scalar("sinc", (np.sinc,), "x", dx="sinc_dx(x)",
       complex_dx="(cmath.cos(3.141592653589793 * x) - out) / x if x != 0 else 0.0",
       samples=[(0.3,), (-1.7,), (0.05,), (0.0,), (0.4 + 0.3j,)])  # fmt: skip

# ---- special functions -----------------------------------------------------------------------------

scalar("erf", (math.erf,), "x", dx=f"{2 / math.sqrt(math.pi)} * math.exp(-x * x)",
       samples=[(0.3,), (-1.7,)])  # fmt: skip
scalar("erfc", (math.erfc,), "x", dx=f"{-2 / math.sqrt(math.pi)} * math.exp(-x * x)",
       samples=[(0.3,), (-1.7,)])  # fmt: skip
scalar("gamma", (math.gamma,), "x", dx="digamma(x) * out", samples=[(0.3,), (4.5,), (-1.7,)])
scalar("lgamma", (math.lgamma,), "x", dx="digamma(x)", samples=[(0.3,), (4.5,), (25.0,), (-1.7,)])

# ---- complex numbers -------------------------------------------------------------------------------

_Z = [(1.5,), (1 - 2j,)]

scalar("real", (ops.real, np.real), "x", dx="1.0", complex_dx=Adjoint("d"), cheap=True, samples=_Z)
scalar("imag", (ops.imag, np.imag), "x", dx="0.0", complex_dx=Adjoint("complex(0.0, d)"),
       cheap=True, samples=_Z)  # fmt: skip
scalar("conj", (np.conj,), "x", dx="1.0", complex_dx=Adjoint("d.conjugate()"),
       cheap=True, samples=_Z)  # fmt: skip
scalar("complex", (complex,), "x y", dx="1.0", dy="1.0", complex_dx=Adjoint("d"),
       complex_dy=Adjoint("d.imag"), cheap=True, samples=[(1.5, -0.7)])  # fmt: skip
scalar("angle", _fns("np.angle", "cmath.phase"), "x", dx="0.0",
       complex_dx=Adjoint("d * complex(-over_norm2(x.imag, x.real), over_norm2(x.real, x.imag))"),
       samples=[(1.5,), (1 - 2j,), (-1 + 0.5j,)])  # fmt: skip
# z / abs(z); before NumPy 2 the sign of the real part
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    scalar("sign", (np.sign,), "x", dx=None,
           complex_dx=Adjoint("0.0 * x if out == 0 else (d * out.conjugate()).imag / abs(x) * (1j * out)"),
           cheap=True, samples=[(1 - 2j,), (-1 + 0.5j,)])  # fmt: skip
else:
    zero("sign", (np.sign,))
scalar("rect", (cmath.rect,), "r phi", dr="cmath.exp(1j * phi)", dphi="1j * out",
       samples=[(1.5, 0.3)])  # fmt: skip

# ---- no derivative ---------------------------------------------------------------------------------

zero("stop_gradient", (ops.stop_gradient,))
zero("compare", _fns("operator.lt", "operator.le", "operator.gt", "operator.ge", "operator.eq",
     "operator.ne", "operator.is_", "operator.is_not", "np.less", "np.less_equal", "np.greater",
     "np.greater_equal", "np.equal", "np.not_equal"))  # fmt: skip
zero("bits", _fns("operator.and_", "operator.or_", "operator.xor", "operator.invert",
     "operator.lshift", "operator.rshift", "operator.iand", "operator.ior", "operator.ixor",
     "operator.ilshift", "operator.irshift", "np.bitwise_and", "np.bitwise_or", "np.bitwise_xor",
     "np.invert", "np.left_shift", "np.right_shift"))  # fmt: skip
zero("logic", _fns("operator.not_", "operator.truth", "np.logical_and", "np.logical_or",
     "np.logical_xor", "np.logical_not"))  # fmt: skip
zero("classify", _fns("math.isnan", "math.isinf", "math.isfinite", "cmath.isnan", "cmath.isinf",
     "cmath.isfinite", "np.isnan", "np.isinf", "np.isfinite", "np.isnat", "np.signbit",
     "np.isreal", "np.iscomplex"))  # fmt: skip
zero("to_integer", (round, *_fns("math.floor", "math.ceil", "math.trunc", "np.floor", "np.ceil",
     "np.trunc", "np.rint", "np.round", "np.around")))  # fmt: skip
zero("number_theory", _fns("math.gcd", "np.gcd", "np.lcm"), cheap=False)
zero("spacing", (np.spacing,), cheap=False)
zero("text", (str,), cheap=False)
refuse(_fns("math.frexp"), "math.frexp has no derivative rule; use math.log2 or scale by hand")
refuse(_fns("math.modf"), "math.modf has no derivative rule; write x - math.trunc(x)")
refuse((cmath.polar,), "cmath.polar has no derivative rule; use abs and cmath.phase")
