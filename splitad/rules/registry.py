"""The one place where derivative rules are kept: data, registration, lookup.

A **scalar rule** belongs to a pure function of scalars, a `Prim` of the IR.  It is one line:

    scalar("sin", (math.sin, np.sin), "x", dx="math.cos(x)", samples=[(0.3,), (-2.0,)])
    scalar("exp", (math.exp, np.exp), "x", dx="out", samples=[(0.3,)])
    linear("sub", (operator.sub, np.subtract), "x y", (1.0, -1.0), samples=[(1.0, 2.0)])
    zero("floor", (math.floor, np.floor))

Each partial is a Python expression; **what it names is what the reverse pass needs** (arguments, and
`out`, the result), so there is no second declaration of what to save.  Partials may also call `math`,
`cmath`, and the helpers in `splitad.rules.namespace`.

Complex values.  A cotangent is conj-linear, dL = Re(conj(x_bar) * dx); for a holomorphic function the
contribution is `d * conj(partial)`, of which a real operand takes the real part.  With a complex operand
or result the partials are those of `rule.partials_for(True)`: the same text with `math.` as `cmath.`
and `/` as `fdiv` (Numba's division of complex numbers raises), or what `complex_dx=` says.  Where a
function is not holomorphic, `Adjoint(text)` gives the complete contribution to the operand, as an
expression over the arguments, `out` and `d`, the cotangent of the result: the derivative of abs is
`complex_dx=Adjoint("d * (x / out) if out != 0 else 0.0 * x")`.
`splitad.rules.spelling.contribution` turns all of this into the expression that gets printed.

An **array rule** belongs to a function that reads and writes arrays, an `ArrayCall`; one pullback serves
all types.  Its parameters are chosen by name:

    a            contents that argument `a` had at the call (a scalar argument: its value)
    shape_a      the shape that argument `a` had at the call
    out          contents (or value) of the result
    axis         a static argument's value (names listed in `static`)
    L            a residual (names listed in `residual`; see below)
    d_out        cotangent of the result: an array or a scalar; never modified
    d_a          shadow of argument `a`, an array into which the pullback **adds**; None where `a` is not
                 active.  Of a scalar argument: True where it is active, else None

and it returns None, or, if an argument can be a scalar, a tuple with the contributions to the scalar
arguments that it has a `d_` parameter for, in order (0.0 for the inactive ones).  A worked example:

    def dot_vv(a, b, d_out, d_a, d_b):          # a, b: 1-D arrays, d_out: a scalar
        for i in range(len(d_a)): d_a[i] += d_out * b[i]
        ...
    array("dot", (np.dot,), "a b", pullback=dot_vv, needed_by={"a": "b", "b": "a"})

    forward:   s = np.dot(u, w)                        u active, w not
               rule.saves((True, False)) == ("b",): tape the contents of w
    reverse:   dot_vv(None, w_saved, d_s, d_u, None)   in the order of rule.call; None: not needed

`needed_by={"a": "b"}` says that the contents of a are needed only if b is active (otherwise the consumer
passes None for a).  `overwrites=2`: if the call has an argument at position 2, the function sets the whole
of it, whatever it held, and returns it (`np.dot(a, b, out)`); `ArrayCall.outs` is then empty, `d_out` is
that argument's shadow, `out` its contents after the call, and the consumer fills that shadow with zeros
after the pullback.  Without `overwrites` no argument is written, and results alias nothing.
Of a function that returns a tuple, `results="w v"` names the items; then `w` is the contents of the first and
`d_w` its cotangent (None where it has none), in place of `out` and `d_out`.  Items of integers are named too.
`optional=1`: the last argument may be left out.  `array_zero` registers a function without a derivative.
With `forward=`, that function is called in the forward instead of the user's: it takes the same arguments
and returns `(result, *residuals)`; they are `ArrayCall.outs`, in this order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from splitad.ir.recursive import RecursiveFunction
from splitad.ir.threads import INDICES, LIKE, ArrayOp
from splitad.rules.arrayrule import (
    ArrayRule,
    Check,
    Need,
    RecursiveRule,
    jitted,
    jitted_forward,
    parameters,
)
from splitad.rules.special import rules_of
from splitad.rules.texts import Adjoint, Partial, RuleError, partial
from splitad.rules.threads import ThreadRule

__all__ = [
    "Adjoint", "ArrayRule", "Need", "Partial", "RuleError", "ScalarRule", "array", "array_rule",
    "array_rules", "array_zero", "jitted", "jitted_forward", "linear", "refusal", "refuse", "scalar",
    "scalar_rule", "scalar_rules", "zero",
]  # fmt: skip

Fn = Callable[..., Any]


# ---- scalar rules ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScalarRule:
    """The derivative of a pure function of scalars.

    kind "zero" has neither params nor partials and serves any number of arguments; "linear" has
    constant partials only.  cheap: cost of *calling the function again* (arithmetic, not a
    transcendental).  samples: points at which the tests compare with finite differences.
    """

    name: str
    primals: tuple[Fn, ...]
    params: tuple[str, ...]
    partials: tuple[Partial | None, ...]
    complex_partials: tuple[Partial | None, ...]
    kind: Literal["general", "linear", "zero"]
    cheap: bool
    samples: tuple[tuple[Any, ...], ...] = ()

    def partials_for(self, is_complex: bool) -> tuple[Partial | None, ...]:
        """The partials to use; is_complex: an operand or the result is complex."""
        return self.complex_partials if is_complex else self.partials


_scalar: dict[Fn, ScalarRule] = {}
_array: dict[Fn, ArrayRule] = {}
_refused: dict[Fn, str] = {}


def scalar(
    name: str,
    primals: Sequence[Fn],
    params: str,
    *,
    samples: Iterable[tuple[Any, ...]],
    cheap: bool = False,
    helpers: Mapping[str, Any] | None = None,
    check: Callable[[], None] = lambda: None,
    **partials: str | Adjoint | None,
) -> ScalarRule:
    """Register a rule: one ``d<param>=`` for each parameter (None: no derivative in it).

    ``complex_d<param>=`` is used for complex values; by default the same with cmath for math.
    helpers: further names that the texts may use.  check: called before anything is registered.
    """
    names = tuple(params.split())
    _check_params(name, names)
    known = {f"{c}d{p}" for p in names for c in ("", "complex_")}
    for given in partials:
        if given not in known:
            raise RuleError(f"rule {name}: {given}= does not belong to a parameter of ({params})")
    extra = dict(helpers or {})
    real: list[Partial | None] = []
    complex_: list[Partial | None] = []
    for p in names:
        if f"d{p}" not in partials:
            raise RuleError(
                f"rule {name}: d{p}= is missing; d{p}=None says that there is no derivative"
            )
        real.append(partial(name, names, partials[f"d{p}"], extra))
        given_complex = partials.get(f"complex_d{p}", partials[f"d{p}"])
        complex_.append(partial(name, names, given_complex, extra, for_complex=True))
    points = tuple(tuple(s) for s in samples)
    if not points:
        raise RuleError(f"rule {name}: it has no samples, so no test would check it")
    if any(len(s) != len(names) for s in points):
        raise RuleError(f"rule {name}: a sample needs one value for each of ({params})")
    present = [p for p in real + complex_ if p is not None]
    if not present:
        raise RuleError(f"rule {name}: it has no partial at all; use zero()")
    kind: Literal["general", "linear"] = (
        "linear" if all(p.constant and not p.adjoint for p in present) else "general"
    )
    check()
    return _add(
        ScalarRule(name, tuple(primals), names, tuple(real), tuple(complex_), kind, cheap, points)
    )


def linear(
    name: str,
    primals: Sequence[Fn],
    params: str,
    coefficients: Sequence[float],
    *,
    samples: Iterable[tuple[Any, ...]],
) -> ScalarRule:
    """Register a function that is linear (or affine) in its arguments, with these coefficients."""
    names = params.split()
    if len(names) != len(coefficients):
        raise RuleError(f"rule {name}: {len(coefficients)} coefficients for ({params})")
    texts: dict[str, Any] = {
        f"d{p}": repr(float(c)) for p, c in zip(names, coefficients, strict=True)
    }
    return scalar(name, primals, params, samples=samples, cheap=True, **texts)


def zero(
    name: str,
    primals: Sequence[Fn],
    *,
    cheap: bool = True,
    array_params: str = "",
    optional: int = 0,
) -> ScalarRule:
    """Register a function whose derivative is zero wherever it has one; also as one of arrays, where its
    parameters are given for that (optional: how many of them may be left out)."""
    if array_params:
        for fn in primals:
            _check_new(name, fn)
        array_zero(name, primals, array_params, optional=optional)
    return _add(ScalarRule(name, tuple(primals), (), (), (), "zero", cheap))


def refuse(primals: Sequence[Fn], reason: str) -> None:
    """Say why a function has no rule, and what to do instead."""
    for fn in primals:
        _check_new(str(fn), fn)
        _refused[fn] = reason


def scalar_rule(fn: Fn) -> ScalarRule | None:
    """The rule of fn as a function of scalars, or None."""
    fn = LIKE.get(fn, fn)
    found = _scalar.get(fn)
    if found is None and "scipy.special" in sys.modules and not _special:
        _register_special()
        found = _scalar.get(fn)
    return found


_special: list[ScalarRule] = []


def _register_special() -> None:
    """The rules of scipy.special, as soon as somebody has imported that."""
    for name, fn, params, partials, samples, helpers in rules_of(sys.modules["scipy.special"]):
        if fn not in _scalar:  # a user's own rule stands
            texts: dict[str, Any] = dict(partials)
            made = scalar(name, (fn,), params, samples=samples, helpers=helpers, **texts)
            _special.append(made)


def refusal(fn: Fn) -> str | None:
    """Why fn is refused, where that has been said with `refuse`."""
    return _refused.get(fn)


def scalar_rules() -> tuple[ScalarRule, ...]:
    """All scalar rules, each once, in the order of registration; without those of scipy.special."""
    return tuple(rule for rule in dict.fromkeys(_scalar.values()) if rule not in _special)


def array_rules() -> tuple[ArrayRule, ...]:
    """All array rules, each once, in the order of registration."""
    return tuple(dict.fromkeys(_array.values()))


# ---- array rules -----------------------------------------------------------------------------------


def array(
    name: str,
    primals: Sequence[Fn],
    params: str,
    *,
    pullback: Fn,
    needed_by: Mapping[str, str] | None = None,
    overwrites: int | None = None,
    forward: Fn | None = None,
    residual: str = "",
    static: str = "",
    check: Check | None = None,
    results: str = "",
    optional: int = 0,
) -> ArrayRule:
    """Register a rule for a function of arrays; see the module's docstring.

    check: a function of (argument types, static arguments) that says why these cannot be handled, or
    None where they can.
    """
    names, extra, fixed = tuple(params.split()), tuple(residual.split()), tuple(static.split())
    parts = tuple(results.split())
    _check_params(name, names + extra + fixed + parts)
    if overwrites is not None and overwrites != len(names) - 1:
        raise RuleError(f"rule {name}: only the last argument can be one that is overwritten")
    if bool(extra) and forward is None:
        raise RuleError(f"rule {name}: a residual needs a forward= that returns it")
    call = parameters(name, pullback, names, extra, fixed, parts)
    uses = {k: tuple(v.split()) for k, v in (needed_by or {}).items()}
    for key, by in uses.items():
        if key not in {n.name for n in call} or not set(by) <= set(names):
            raise RuleError(
                f"rule {name}: needed_by names {key!r}: {' '.join(by)!r}, which are not its own"
            )
    return _add_array(
        ArrayRule(
            name, tuple(primals), names, pullback, call, uses, overwrites, forward, extra, fixed,
            check, parts, optional,
        )
    )  # fmt: skip


def array_zero(
    name: str,
    primals: Sequence[Fn],
    params: str = "a",
    *,
    static: str = "",
    optional: int = 0,
    check: Check | None = None,
) -> ArrayRule:
    """Register a function of arrays without a derivative: of integers, or locally constant."""
    names, fixed = tuple(params.split()), tuple(static.split())
    _check_params(name, names + fixed)
    return _add_array(
        ArrayRule(
            name,
            tuple(primals),
            names,
            _nothing,
            (),
            {},
            None,
            None,
            (),
            fixed,
            check,
            (),
            optional,
        )
    )


def _nothing() -> None:
    """The pullback of what has no derivative; it is never called."""


def _add_array(rule: ArrayRule) -> ArrayRule:
    _check_primals(rule.name, rule.primals)
    for fn in rule.primals:
        _check_new(rule.name, fn, _array)
    _array.update(dict.fromkeys(rule.primals, rule))
    return rule


def array_rule(fn: Fn) -> ArrayRule | None:
    """The rule of fn as a function of arrays, or None."""
    if isinstance(fn, RecursiveFunction):
        return RecursiveRule.of(fn)  # type: ignore[return-value]
    if isinstance(fn, ArrayOp):
        return ThreadRule.of(fn)  # type: ignore[return-value]
    return _array.get(fn)


# ---- checks ----------------------------------------------------------------------------------------


RESERVED = frozenset({"d", "out", "d_out", "math", "cmath"})  # names with a meaning in partials


def _check_params(rule: str, names: tuple[str, ...]) -> None:
    if not names or len(set(names)) < len(names) or not all(n.isidentifier() for n in names):
        raise RuleError(f"rule {rule}: {names} are not distinct parameter names")
    if clash := RESERVED & set(names):
        raise RuleError(f"rule {rule}: a parameter cannot be called {', '.join(sorted(clash))}")


def _check_primals(rule: str, primals: tuple[Fn, ...]) -> None:
    if not primals or not all(callable(fn) for fn in primals):
        raise RuleError(f"rule {rule}: it must name the functions that it is for")


def _check_new(rule: str, fn: Fn, table: Mapping[Fn, Any] = _scalar) -> None:
    if fn in table or fn in _refused:
        raise RuleError(f"rule {rule}: {fn!r} has a rule already")


def _add(rule: ScalarRule) -> ScalarRule:
    _check_primals(rule.name, rule.primals)
    for fn in rule.primals:
        _check_new(rule.name, fn)
    _scalar.update(dict.fromkeys(rule.primals, rule))
    return rule


zero("thread index", INDICES)
