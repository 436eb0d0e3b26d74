"""How scalar operations and contributions to cotangents are written in generated code.

spell(operator.add, ["a", "b"])   -> "a + b"
spell(math.sin, ["x"])            -> "math.sin(x)"      with {"math": math} to inject
spell(ops.fdiv, ["a", "b"])       -> "fdiv(a, b)"       with {"fdiv": ops.fdiv}
contribution(partial, {"x": "x_1", "out": "y"}, "d_y")  -> "guarded_mul(math.cos(x_1), d_y)"
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numba
import numpy as np

from splitad.ir.foreign import callable_of
from splitad.ir.threads import TEXTS, ArrayOp
from splitad.ir.types import has_overload
from splitad.rules import ops
from splitad.rules.registry import ScalarRule
from splitad.rules.texts import Partial

Fn = Callable[..., Any]

_INFIX: dict[Fn, str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "**", operator.matmul: "@",
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==",
    operator.ne: "!=", operator.and_: "&", operator.or_: "|", operator.xor: "^",
    operator.lshift: "<<", operator.rshift: ">>", operator.is_: "is", operator.is_not: "is not",
}  # fmt: skip
_UNARY: dict[Fn, str] = {
    operator.neg: "-", operator.pos: "+", operator.invert: "~", operator.not_: "not ",
}  # fmt: skip
_TEMPLATES: dict[Fn, str] = {
    ops.select: "{1} if {0} else {2}",
    ops.real: "{0}.real",
    ops.imag: "{0}.imag",
    operator.truth: "bool({0})",
    operator.abs: "abs({0})",
    **TEXTS,
}
_IN_PLACE: dict[Fn, Fn] = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
    operator.itruediv: operator.truediv, operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod, operator.ipow: operator.pow, operator.iand: operator.and_,
    operator.ior: operator.or_, operator.ixor: operator.xor, operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
}  # fmt: skip
_MODULES = {"math": math, "cmath": cmath, "np": np}


def plain(fn: Fn) -> Fn:
    """The operator of which fn is the in-place form; fn itself otherwise."""
    return _IN_PLACE.get(fn, fn)


def spell(fn: Fn, args: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The expression ``fn(*args)`` as source text, and the globals that it uses.

    args: names or literals; anything else must come in parentheses.  The text is meant to stand alone
    on the right of an assignment.
    """
    fn = plain(fn)
    safe = [a if a.isidentifier() or not a.startswith("-") else f"({a})" for a in args]
    if fn in _INFIX and len(args) == 2:
        return f"{safe[0]} {_INFIX[fn]} {safe[1]}", {}
    if fn in _UNARY and len(args) == 1:
        return f"{_UNARY[fn]}{safe[0]}", {}
    if fn in _TEMPLATES:
        return _TEMPLATES[fn].format(*safe), {}
    if isinstance(fn, ArrayOp):
        return fn.text.format(*safe), {}
    text, names = _callee(fn)
    return f"{text}({', '.join(args)})", names


def _callee(fn: Fn) -> tuple[str, dict[str, Any]]:
    name = getattr(fn, "__name__", "")
    if getattr(builtins, name, None) is fn:  # first: NumPy warns of np.str
        return name, {}
    for module_name, module in _MODULES.items():
        # np.true_divide is called "divide" on some versions of NumPy: the name must lead back to fn
        if getattr(module, name, None) is fn:
            return f"{module_name}.{name}", {module_name: module}
    if getattr(ops, name, None) is fn:
        return name, {name: fn}
    # a user's function: several may share a name, the caller of spell makes it unique if need be
    unique = f"{name if name.isidentifier() else 'fn'}_{unique_number(fn)}"
    return unique, {unique: _compiled(fn)}


@cache
def _compiled(fn: Fn) -> Fn:
    """What njit code can call: a plain Python function compiled, unless Numba has an ``@overload`` of it."""
    known = not isinstance(fn, FunctionType) or has_overload(fn)
    return callable_of(fn) if known else numba.njit(fn)


_numbers: dict[int, tuple[int, Fn]] = {}


def unique_number(fn: Fn) -> int:
    """A small number for a function, the same whenever it is asked for in this process."""
    # by identity, and holding on to fn: an id is only unique among living objects
    return _numbers.setdefault(id(fn), (len(_numbers), fn))[0]


def contribution(
    partial: Partial,
    names: Mapping[str, str],
    d: str,
    *,
    operand_complex: bool = False,
    out_complex: bool = False,
    strong_zero: bool = True,
    vector: bool = True,
) -> tuple[str, dict[str, Any]]:
    """What a result with cotangent `d` (a name) adds to the cotangent of the partial's operand.

    vector: the code is in a loop that may vectorise (how zero cotangents are guarded).
    names: what the rule's parameters and `out` are called here.  The text is an expression, to be cast
    to the operand's type; where it is a conditional expression it needs parentheses around it.
    """
    text = partial.render({**names, "d": d})
    used = dict(partial.helpers)
    if partial.adjoint:
        result, guarded = text, True
    elif partial.constant and float(partial.text) in (1.0, -1.0):
        result, guarded = (d if float(partial.text) == 1.0 else f"-{d}"), False
    else:
        p = text if text.isidentifier() else f"({text})"
        if out_complex and not partial.bounded:
            p = f"{p}.conjugate()"
        result, guarded = f"{p} * {d}", not partial.bounded
    zero = d
    if guarded and strong_zero and not partial.adjoint and not out_complex and not operand_complex:
        guard = ops.guarded_mul if vector else ops.guarded_mul_branch
        used[guard.__name__] = guard
        return f"{guard.__name__}({text}, {d})", used
    if out_complex and not operand_complex:
        zero = f"{d}.real"
        result = f"({result}).real"
    if guarded and strong_zero:
        result = f"{result} if {d} != 0 else {zero}"
    return result, used


def cheap(rule: ScalarRule, args: Sequence[Any]) -> bool:
    """Whether calling the function again costs about as much as loading its result.

    args: the operands; a power with a small constant integer exponent is a few multiplications.
    """
    if rule.name == "pow" and len(args) == 2:
        exponent = getattr(args[1], "value", None)
        return isinstance(exponent, int) and abs(exponent) <= 8
    return rule.cheap
