"""User-defined derivative rules: the same tables, the same checks as for the built-in ones.

@njit
def softplus(x):
    return math.log1p(math.exp(x))

rule(softplus, dx="1.0 / (1.0 + math.exp(-x))", samples=[(0.3,), (-2.0,)])

def slope(x, out): ...                       # what it names is what is saved
rule(softplus, dx=slope, samples=[(0.3,)])

def smooth_pullback(shape_a, d_out, d_a): ...
rule(smooth, pullback=smooth_pullback)       # smooth takes and returns arrays
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numba

from splitad.ir.foreign import callable_of, hashable
from splitad.rules import registry, sampled
from splitad.rules.registry import Adjoint, ArrayRule, RuleError, ScalarRule
from splitad.rules.spelling import unique_number

Fn = Callable[..., Any]
registered: list[tuple[Any, ScalarRule | ArrayRule]] = []  # (function, rule), in their order
Derivative = str | Fn | Adjoint | None


def rule(
    fn: Fn,
    *,
    params: str | None = None,
    samples: Iterable[tuple[Any, ...]] | None = None,
    cheap: bool = False,
    zero: bool = False,
    linear: Sequence[float] | None = None,
    pullback: Fn | None = None,
    needed_by: Mapping[str, str] | None = None,
    overwrites: int | None = None,
    forward: Fn | None = None,
    residual: str = "",
    static: str = "",
    **partials: Derivative,
) -> ScalarRule | ArrayRule:
    """Say what the derivative of fn is; fn is then called as it stands, and never looked into.

    **A function of scalars**: ``d<param>=`` for each parameter of fn.  An expression in the parameters,
    `out` (the result) and `math`; or a function whose parameters are called like those; or None where
    there is no derivative.  `samples`: points, one tuple of arguments each, at which the derivatives are
    compared with finite differences here and now.
    Complex values: see `splitad.rules.registry`; in short, ``complex_d<param>=`` overrides.

    **A function of arrays**: `pullback`, whose parameters say by their names what it is given: ``a`` (the
    contents of argument a at the call), ``shape_a``, ``out``, ``d_out`` and ``d_a``, the shadow that it
    adds into, which is None where a is not active.  If fn has active scalar arguments, it returns a tuple
    with their contributions.  `forward` returns ``(result, *residuals)``, and is run instead of fn;
    `residual` names the residuals, for the pullback to ask for.  fn must not write its arguments, apart
    from one at position `overwrites` that it sets completely, and what it returns must not be a view of one.

    **No derivative**: ``zero=True``, for functions of scalars and of arrays; the latter must not write their
    arguments, nor return views of them.

    **Linear** functions of scalars: ``linear=(1.0, -1.0)``, the coefficient of each parameter.

    fn: an njit function, or a plain one that njit can compile (the rule is for it and its njit form), one
    that has an ``@overload``, or one of a C library, through ctypes or cffi, which has no parameter names:
    ``params="x y"`` gives them.

    RuleError: the rule is malformed, or wrong at a sample, or fn has a rule already.
    """
    made = _rule(
        fn, params, samples, cheap, zero, linear, pullback, needed_by, overwrites, forward, residual,
        static, partials,
    )  # fmt: skip
    registered.extend((primal, made) for primal in made.primals)
    return made


def _rule(
    fn: Fn,
    params: str | None,
    samples: Iterable[tuple[Any, ...]] | None,
    cheap: bool,
    zero: bool,
    linear: Sequence[float] | None,
    pullback: Fn | None,
    needed_by: Mapping[str, str] | None,
    overwrites: int | None,
    forward: Fn | None,
    residual: str,
    static: str,
    partials: Mapping[str, Derivative],
) -> ScalarRule | ArrayRule:
    fn = hashable(fn)
    primals = [fn]
    python = getattr(fn, "py_func", None)
    if python is not None:
        primals.append(python)
    name = getattr(fn, "__name__", repr(fn))
    if sum((zero, linear is not None, pullback is not None, bool(partials))) != 1:
        raise RuleError(
            f"rule {name}: give either d<param>= for each parameter, or linear=, or pullback=, or zero=True"
        )
    if zero:
        names, optional = _zero_params(fn, params)
        return registry.zero(name, primals, cheap=cheap, array_params=names, optional=optional)
    params = _params_of(name, fn) if params is None else params
    if linear is not None:
        return registry.linear(name, primals, params, linear, samples=samples or ())
    if pullback is not None:
        if samples is not None or cheap:
            raise RuleError(f"rule {name}: samples= and cheap= belong to functions of scalars")
        return registry.array(
            name, primals, params, pullback=pullback, needed_by=needed_by, overwrites=overwrites,
            forward=forward, residual=residual, static=static,
        )  # fmt: skip
    if forward is not None or residual or static or overwrites is not None or needed_by is not None:
        raise RuleError(
            f"rule {name}: forward=, residual=, static=, ... belong to functions of arrays"
        )
    helpers: dict[str, Any] = {}
    texts: dict[str, Any] = {}
    for key, given in partials.items():
        if given is None or isinstance(given, (str, Adjoint)):
            texts[key] = given
        elif callable(given):
            texts[key], helper_name, helper = _call_text(f"{name}_{key}", given)
            helpers[helper_name] = helper
        else:
            raise RuleError(f"rule {name}: {key}= must be a text or a function, not {given!r}")
    samples = tuple(samples or ())
    check = partial(
        sampled.check, name, primals[-1], tuple(params.split()), texts, helpers, samples
    )
    return registry.scalar(
        name, primals, params, samples=samples, cheap=cheap, helpers=helpers, check=check, **texts
    )


def is_users(fn: Any) -> bool:
    """Whether a function of arrays has a rule that was registered here."""
    return registry.array_rule(fn) is not None and any(fn == primal for primal, _ in registered)


def _signature(fn: Fn) -> inspect.Signature:
    return inspect.signature(getattr(callable_of(fn), "py_func", callable_of(fn)))


def _params_of(name: str, fn: Fn) -> str:
    try:
        signature = _signature(fn)
    except (TypeError, ValueError) as error:
        raise RuleError(
            f"rule {name}: it has no signature; name its parameters with params="
        ) from error
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        raise RuleError(f"rule {name}: a function with *args or **kwargs has no fixed parameters")
    return " ".join(signature.parameters)


def _zero_params(fn: Fn, params: str | None) -> tuple[str, int]:
    """The parameters of a function without a derivative, and how many have a default; none where it cannot be
    one of arrays."""
    optional = 0
    if params is None:
        try:
            params = _params_of("", fn)
        except RuleError:
            return "", 0
        optional = sum(p.default is not p.empty for p in _signature(fn).parameters.values())
    # (no expression refers to them)
    names = (name + "_" if name in registry.RESERVED else name for name in params.split())
    return " ".join(names), optional


def _call_text(name: str, fn: Fn) -> tuple[str, str, Any]:
    """A call of a partial that is given as a function, as text, and what to inject for it."""
    params = inspect.signature(getattr(fn, "py_func", fn)).parameters
    unique = f"{name}_{unique_number(fn)}"
    return f"{unique}({', '.join(params)})", unique, _jitted(fn)


@cache
def _jitted(fn: Fn) -> Any:
    return fn if hasattr(fn, "py_func") else numba.njit(error_model="numpy")(fn)
