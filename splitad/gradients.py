"""value_and_grad, grad and vjp as they are called from Python: a pair, zero shadows, and one pullback."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types

from splitad.cache import CompiledPair
from splitad.errors import NotDifferentiableError, ShadowError
from splitad.ir.activities import Activity, default
from splitad.runtime.callables import Forward, Pullback
from splitad.runtime.state import Saved, save
from splitad.runtime.zero import make_zero

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
                raise TypeError(f"{function} has {len(names)} arguments; wrt={item} is not one of them")
            found.append(item % len(names))
    return tuple(found)


def specialised(forward: Forward, args: tuple[Any, ...]) -> CompiledPair:
    """The compiled pair for these arguments."""
    from numba import typeof

    spec = forward._pair.specialise(tuple(types.unliteral(typeof(a)) for a in args))
    compiled: CompiledPair = forward._pair.resolver.compiled[spec.key]  # type: ignore[attr-defined]
    return compiled


class _Gradient:
    """What value_and_grad and grad share."""

    def __init__(
        self, f: Callable[..., Any], wrt: Wrt, restore: bool, make_forward: MakeForward
    ) -> None:
        py_func = getattr(f, "py_func", f)
        self.__name__ = self.__qualname__ = py_func.__name__
        self.__doc__ = py_func.__doc__
        self._signature = inspect.signature(py_func)
        self._names = list(self._signature.parameters)
        self._single = not isinstance(wrt, tuple)
        self.wrt = positions(wrt, self._names, py_func.__name__)
        self._restore = restore
        # nothing can change the arguments between the two halves
        self.forward = make_forward(f, None, self.wrt, modified_between=False)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not kwargs and len(args) == len(self._names):
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _both(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        compiled = specialised(self.forward, args)
        self._check(compiled)
        saved: Saved | None = save(args, compiled.written) if self._restore else None
        try:
            value, pullback = self.forward(*args)
            duplicated = [a is Activity.Duplicated for a in compiled.activities]
            shadows = make_zero(tuple(a for a, on in zip(args, duplicated, strict=True) if on))
            bars = pullback(1.0, *shadows)
        finally:
            if saved is not None:
                saved.restore()
        parts = cotangents(compiled.activities, bars, shadows, args)
        chosen = tuple(parts[k] for k in self.wrt)
        return value, chosen[0] if self._single else chosen

    def _check(self, compiled: CompiledPair) -> None:
        result = compiled.text.facts.fn.result_type
        if not isinstance(types.unliteral(result), types.Float):
            raise NotDifferentiableError(
                f"{self.__name__} returns {result}, and a gradient needs a real scalar",
                compiled.text.facts.fn.loc,
                "Return one float, or use splitad.vjp with a result_bar.",
            )
        for k in self.wrt:
            if compiled.activities[k] is Activity.Const:
                type = compiled.argtypes[k]
                raise NotDifferentiableError(
                    f"wrt names the argument '{self._names[k]}' of {self.__name__}, which is {type}",
                    compiled.text.facts.fn.loc,
                    "Pass a float (1.0, not 1) or an array of floats."
                    if isinstance(types.unliteral(type), types.Integer)
                    else "Only floats, and arrays and structs of floats, have a gradient.",
                )


class ValueAndGrad(_Gradient):
    """``(value, gradient)`` of a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return self._both(self._bind(args, kwargs))


class Grad(_Gradient):
    """The gradient of a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._both(self._bind(args, kwargs))[1]


def cotangents(
    activities: Sequence[Activity], bars: tuple[Any, ...], shadows: tuple[Any, ...], args: Sequence[Any]
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
    compiled = specialised(forward, args)
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
