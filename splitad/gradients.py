"""value_and_grad, grad and vjp: a pair, zero shadows, and one pullback."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, typeof, types

from splitad.cache import CompiledPair
from splitad.codegen.load import load_source
from splitad.errors import NotDifferentiableError, ShadowError
from splitad.ir.activities import Activity, default
from splitad.runtime.callables import Entry, Forward, Pullback
from splitad.runtime.gradient_calls import Gradient, Steps
from splitad.runtime.zero import make_zero
from splitad.transform import gradient

Wrt = int | str | tuple[int | str, ...]
MakeForward = Callable[..., Forward]


def positions(wrt: Wrt, names: Sequence[str], function: str) -> tuple[int, ...]:
    """The positions that wrt names."""
    found = []
    for item in wrt if isinstance(wrt, tuple) else (wrt,):
        if isinstance(item, str):
            if item not in names:
                raise TypeError(f"{function} has no argument '{item}'")
            found.append(list(names).index(item))
        else:
            if not -len(names) <= item < len(names):
                raise TypeError(
                    f"{function} has {len(names)} arguments; wrt={item} is not one of them"
                )
            found.append(item % len(names))
    return tuple(found)


def types_of(args: tuple[Any, ...]) -> tuple[types.Type, ...]:
    """The argument types that a pair is specialised to."""
    return tuple(types.unliteral(typeof(a)) for a in args)


def specialised(forward: Forward, argtypes: tuple[types.Type, ...]) -> CompiledPair:
    """The compiled pair for these types."""
    spec = forward._pair.specialise(argtypes)
    compiled: CompiledPair = forward._pair.resolver.compiled[spec.key]  # type: ignore[attr-defined]
    return compiled


class Maker:
    """Makes what value_and_grad and grad return."""

    def __init__(self, f: Callable[..., Any], wrt: Wrt, restore: bool, with_value: bool) -> None:
        py_func = getattr(f, "py_func", f)
        self.function = py_func.__name__
        self.doc = py_func.__doc__
        self.names = list(inspect.signature(py_func).parameters)
        self.single = not isinstance(wrt, tuple)
        self.wrt = positions(wrt, self.names, self.function)
        self.restore, self.with_value = restore, with_value

    def gradient(self, forward: Forward) -> Gradient:
        """The gradient by a pair that was made with this wrt and modified_between=False."""
        make_aliased = forward._make_aliased
        aliased = None if make_aliased is None else lambda: self.gradient(make_aliased())
        key = f"gradient of {forward._pair.key}"
        made = Gradient(key, forward, lambda types: self._steps(forward, types), aliased)
        made.__doc__ = self.doc
        return made

    def _steps(self, forward: Forward, argtypes: tuple[types.Type, ...]) -> Steps:
        pair = specialised(forward, argtypes)
        self._check(pair)
        shape = "".join(f"{{gradients[{k}]}}, " for k in range(len(self.wrt)))
        shape = "{gradients[0]}" if self.single else f"({shape})"
        written = pair.written if self.restore else ()
        shape = "{value}, " + shape if self.with_value else shape
        text, names = gradient.run(
            Entry(forward._pair), self.names, argtypes, pair.activities, self.wrt, shape, written
        )
        source = f"# {forward._pair.key} {argtypes}\n\n{text}"
        module = load_source(self.function + "__gradient", source, names)
        if not written:
            return Steps(njit(module.gradient))
        return Steps(njit(module.gradient), njit(module.save), njit(module.restore))

    def _check(self, pair: CompiledPair) -> None:
        fn = pair.text.facts.fn
        result = fn.result_type
        if not isinstance(types.unliteral(result), types.Float):
            raise NotDifferentiableError(
                f"{self.function} returns {result}, and a gradient needs a real scalar",
                fn.loc,
                "Return one float, or use splitad.vjp with a result_bar.",
            )
        for k in self.wrt:
            if pair.activities[k] is Activity.Const:
                type = pair.argtypes[k]
                raise NotDifferentiableError(
                    f"wrt names the argument '{self.names[k]}' of {self.function}, which is {type}",
                    fn.loc,
                    "Pass a float (1.0, not 1) or an array of floats."
                    if isinstance(types.unliteral(type), types.Integer)
                    else "Only floats, and arrays and structs of floats, have a gradient.",
                )


def cotangents(
    activities: Sequence[Activity],
    bars: tuple[Any, ...],
    shadows: tuple[Any, ...],
    args: Sequence[Any],
) -> list[Any]:
    """One cotangent per argument, from what a pullback returned and the shadows it wrote."""
    returned, written = iter(bars), iter(shadows)
    found: list[Any] = []
    for activity, arg in zip(activities, args, strict=True):
        if activity is Activity.Active:
            found.append(next(returned))
        elif activity is Activity.Duplicated:
            shadow = next(written)
            if isinstance(arg, tuple) and _has_float_scalar(arg):
                shadow = _merged(shadow, next(returned))
            found.append(shadow)
        else:
            found.append(None)
    return found


def _has_float_scalar(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_float_scalar(v) for v in value)
    return isinstance(value, (float, complex, np.floating, np.complexfloating))


def _merged(shadow: Any, bar: Any) -> Any:
    """A tuple's shadow arrays with the scalars' cotangents in their places."""
    if bar is None:
        return shadow
    if isinstance(shadow, tuple):
        parts = [_merged(s, b) for s, b in zip(shadow, bar, strict=True)]
        return type(shadow)(*parts) if hasattr(shadow, "_fields") else tuple(parts)
    return bar


def vjp(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    wrt: Wrt | None,
    make_forward: MakeForward,
) -> tuple[Any, Callable[..., Any]]:
    """See api.vjp."""
    py_func = getattr(f, "py_func", f)
    signature = inspect.signature(py_func)
    names = list(signature.parameters)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    args = tuple(bound.arguments.values())
    chosen = tuple(range(len(names))) if wrt is None else positions(wrt, names, py_func.__name__)
    forward = make_forward(f, None, chosen)
    compiled = specialised(forward, types_of(args))
    result, pullback = forward(*args)
    on = [a is Activity.Duplicated for a in compiled.activities]
    template = make_zero(tuple(a for a, yes in zip(args, on, strict=True) if yes))
    return result, VjpPullback(
        pullback, compiled, template, args_like(args), names, chosen, result, wrt is None
    )


def args_like(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The structure of the arguments without holding on to arrays."""
    return tuple(a if isinstance(a, tuple) else None for a in args)


class VjpPullback:
    """Returns new cotangents at each call."""

    def __init__(
        self,
        pullback: Pullback,
        compiled: CompiledPair,
        template: tuple[Any, ...],
        args: tuple[Any, ...],
        names: list[str],
        chosen: tuple[int, ...],
        result: Any,
        everything: bool,
    ) -> None:
        self._pullback, self._compiled, self._template = pullback, compiled, template
        self._args, self._names, self._chosen = args, names, chosen
        self._result_type = compiled.text.facts.fn.result_type

    @property
    def tape_nbytes(self) -> int:
        return self._pullback.tape_nbytes

    def __call__(self, result_bar: Any = 1.0, exit_bar: dict[Any, Any] | None = None) -> Any:
        if isinstance(self._result_type, types.NoneType):
            result_bar = None
        elif default(self._result_type) is Activity.Const:
            result_bar = None
        shadows = make_zero(self._template)
        activities = self._compiled.activities
        order = [k for k, a in enumerate(activities) if a is Activity.Duplicated]
        for key, bar in (exit_bar or {}).items():
            (k,) = positions(key, self._names, self._compiled.text.facts.fn.name)
            if k not in order:
                raise ShadowError(
                    f"exit_bar names the argument '{self._names[k]}', which has no exit state"
                )
            _fill(shadows[order.index(k)], bar)
        bars = self._pullback(result_bar, *shadows)
        parts = cotangents(activities, bars, shadows, self._args)
        return tuple(parts[k] for k in self._chosen)


def _fill(shadow: Any, bar: Any) -> None:
    """Copy a given cotangent into a zero shadow of the same structure."""
    if isinstance(shadow, np.ndarray):
        bar = np.asarray(bar)
        if bar.shape != shadow.shape:
            raise ShadowError(f"exit_bar has shape {bar.shape} where the state has {shadow.shape}")
        shadow[...] = bar
    elif isinstance(shadow, (tuple, list)):
        for s, b in zip(shadow, bar, strict=True):
            _fill(s, b)
    else:
        for name in shadow._numba_type_.struct:
            value = getattr(shadow, name)
            if isinstance(value, (float, complex)):
                setattr(shadow, name, getattr(bar, name))
            elif value is not None and not isinstance(value, int):
                _fill(value, getattr(bar, name))
