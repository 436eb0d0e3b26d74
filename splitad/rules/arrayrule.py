"""The data of an array rule; `registry` has the protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numba
from numba import types

from splitad.ir.recursive import RecursiveFunction
from splitad.rules.texts import RuleError

Fn = Callable[..., Any]
Check = Callable[[tuple[types.Type, ...], Mapping[str, Any]], str | None]


@dataclass(frozen=True)
class Need:
    """A parameter of a pullback.

    kind "contents", "shape", "shadow": of argument `index`; "out", "d_out": of the result;
    "residual": `index` into ArrayCall.outs, as for "out" and "d_out"; "static": the argument `name`.
    """

    kind: Literal["contents", "shape", "shadow", "out", "d_out", "residual", "static"]
    name: str
    index: int


@dataclass(frozen=True)
class RecursiveRule:
    """What the analyses ask of the rule of a recursive call (ir/recursive.py): it touches everything."""

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    call: tuple[Need, ...] = ()
    overwrites: None = None
    forward: None = None

    @staticmethod
    def of(fn: RecursiveFunction) -> RecursiveRule:
        arrays = tuple(k for k, t in enumerate(fn.argtypes) if isinstance(t, types.Array))
        return RecursiveRule(fn.__name__, tuple(range(len(fn.argtypes))), arrays)

    def saves(self, active: Sequence[bool]) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class ArrayRule:
    """The derivative of a function that takes arrays; the module's docstring has the protocol."""

    name: str
    primals: tuple[Fn, ...]
    params: tuple[str, ...]
    pullback: Fn
    call: tuple[Need, ...]
    needed_by: Mapping[str, tuple[str, ...]]
    overwrites: int | None
    forward: Fn | None
    residual: tuple[str, ...]
    static: tuple[str, ...]
    check: Check | None
    results: tuple[str, ...] = ()
    optional: int = 0

    @property
    def reads(self) -> tuple[int, ...]:
        """Positions of the arguments in whose contents the results have a derivative."""
        if not self.call:
            return ()
        return tuple(i for i in range(len(self.params)) if i != self.overwrites)

    @property
    def writes(self) -> tuple[int, ...]:
        """Positions of the arguments that the function writes, if they are given."""
        return () if self.overwrites is None else (self.overwrites,)

    def saves(self, active: Sequence[bool]) -> tuple[str, ...]:
        """Names of the parameters of `call` that must be saved, of kinds contents, shape, out, residual.

        active: for each argument of the call, whether it is.
        """
        on = {p for p, is_on in zip(self.params, active, strict=False) if is_on}
        if self.overwrites is not None and len(active) > self.overwrites:
            on.discard(self.params[self.overwrites])
        kinds = ("contents", "shape", "out", "residual")
        return tuple(
            n.name
            for n in self.call
            if n.kind in kinds
            and (n.name not in self.needed_by or on & set(self.needed_by[n.name]))
        )

    def accepts(self, argtypes: Sequence[types.Type], static: Mapping[str, Any]) -> str | None:
        """None, or why the rule cannot handle these argument types and static arguments."""
        fewest = len(self.params) - max(self.optional, self.overwrites is not None)
        if not fewest <= len(argtypes) <= len(self.params):
            return f"{self.name} takes ({', '.join(self.params)}), not {len(argtypes)} arguments"
        for name in static:
            if name not in self.static:
                return f"the argument {name}= of {self.name} has no derivative rule"
        return self.check(tuple(argtypes), static) if self.check is not None else None


def parameters(
    rule: str,
    pullback: Fn,
    names: tuple[str, ...],
    residual: tuple[str, ...],
    static: tuple[str, ...],
    results: tuple[str, ...] = (),
) -> tuple[Need, ...]:
    """What each parameter of a pullback stands for."""
    call = tuple(
        _need(rule, p, names, residual, static, results)
        for p in inspect.signature(getattr(pullback, "py_func", pullback)).parameters
    )
    if not any(n.kind == "d_out" for n in call):
        raise RuleError(
            f"rule {rule}: its pullback has no parameter d_{results[0] if results else 'out'}"
        )
    if not any(n.kind == "shadow" for n in call):
        raise RuleError(f"rule {rule}: its pullback adds into no argument (d_{names[0]}, say)")
    return call


def _need(
    rule: str,
    p: str,
    names: tuple[str, ...],
    residual: tuple[str, ...],
    static: tuple[str, ...],
    results: tuple[str, ...],
) -> Need:
    """What parameter p of a pullback stands for."""
    if p == "d_out" and not results:
        return Need("d_out", p, 0)
    if p in results:
        return Need("out", p, results.index(p))
    if p.startswith("d_") and p[2:] in results:
        return Need("d_out", p, results.index(p[2:]))
    if p in residual:
        return Need("residual", p, max(1, len(results)) + residual.index(p))
    if p in static:
        return Need("static", p, static.index(p))
    if p in names:
        return Need("contents", p, names.index(p))
    if p == "out" and not results:
        return Need("out", p, 0)
    if p.startswith("d_") and p[2:] in names:
        return Need("shadow", p, names.index(p[2:]))
    if p.startswith("shape_") and p[6:] in names:
        return Need("shape", p, names.index(p[6:]))
    raise RuleError(f"rule {rule}: its pullback has a parameter {p}, which stands for nothing")


@cache
def jitted(rule: ArrayRule) -> Any:
    """The pullback as an njit function; compiled when it is first called."""
    return _njit(rule.pullback)


@cache
def jitted_forward(rule: ArrayRule) -> Any:
    """The forward of a rule that has one, as an njit function."""
    assert rule.forward is not None
    return _njit(rule.forward)


def _njit(fn: Fn) -> Any:
    return fn if hasattr(fn, "py_func") else numba.njit(error_model="numpy")(fn)
