"""value_and_grad, grad and vjp: a pair, zero shadows, and one pullback."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import typeof, types
from numba.typed import List

from splitad.cache import CompiledPair
from splitad.codegen.load import load_source
from splitad.errors import NotDifferentiableError, ShadowError
from splitad.frontend.source import to_differentiate
from splitad.ir.activities import Activity, default
from splitad.runtime.callables import Entry, Forward, Pullback
from splitad.runtime.gradient_calls import Gradient, Steps
from splitad.runtime.linking import NO_WRAPPERS
from splitad.runtime.lists import LISTS
from splitad.runtime.pairs import Specialisation
from splitad.runtime.stored import Keeper, keeping_jit, key_of
from splitad.runtime.zero import make_zero
from splitad.transform import gradient
from splitad.transform.augment import never_ends
from splitad.transform.gradient import holds_scalars

Wrt = int | str | tuple[int | str, ...]
Parameters = Mapping[str, inspect.Parameter]
MakeForward = Callable[[tuple[int, ...]], Forward]  # wrt -> the forward of the function at hand
_numbers = itertools.count()


def positions(wrt: Wrt, parameters: Parameters, function: str) -> tuple[int, ...]:
    """The positions that wrt names."""
    names = list(parameters)
    found = []
    for item in wrt if isinstance(wrt, tuple) else (wrt,):
        if isinstance(item, str):
            if item not in names:
                raise TypeError(f"{function} has no argument '{item}'")
            found.append(names.index(item))
        else:
            if not -len(names) <= item < len(names):
                count = f"{len(names)} argument{'s' * (len(names) != 1)}"
                star = [p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL]
                note = f" (*{star[0]} counts as one, a tuple)" if star else ""
                raise TypeError(f"{function} has {count}{note}; wrt={item} is not one of them")
            found.append(item % len(names))
    return tuple(found)


def types_of(args: tuple[Any, ...]) -> tuple[types.Type, ...]:
    """The argument types that a pair is specialised to."""
    return tuple(types.unliteral(typeof(a)) for a in args)


def specialised(forward: Forward, argtypes: tuple[types.Type, ...]) -> CompiledPair:
    """The compiled pair for these types."""
    return compiled_pair(forward._pair.specialise(argtypes))


def compiled_pair(spec: Specialisation) -> CompiledPair:
    """What a specialisation was made of."""
    compiled: CompiledPair = spec.pair.resolver.compiled[spec.key]  # type: ignore[attr-defined]
    return compiled


class Maker:
    """Makes what value_and_grad and grad return."""

    def __init__(self, f: Callable[..., Any], wrt: Wrt, restore: bool, with_value: bool) -> None:
        py_func = to_differentiate(f)
        self.function = py_func.__name__
        self.doc = py_func.__doc__
        parameters = inspect.signature(py_func).parameters
        self.names = list(parameters)
        self.single = not isinstance(wrt, tuple)
        self.wrt = positions(wrt, parameters, self.function)
        self.restore, self.with_value = restore, with_value

    def gradient(self, make_forward: MakeForward) -> Gradient:
        """The gradient itself."""
        forward = make_forward(self.wrt)
        key = f"{forward._pair.key}, {next(_numbers)}"
        made = Gradient(key, forward, lambda types: self._steps(forward, types))
        made.__doc__ = self.doc
        return made

    def _steps(self, forward: Forward, argtypes: tuple[types.Type, ...]) -> Steps:
        pair = specialised(forward, argtypes)
        returns = self._check(pair)
        shape = "".join(f"{{gradients[{k}]}}, " for k in range(len(self.wrt)))
        shape = "{gradients[0]}" if self.single else f"({shape})"
        written = pair.summary.written
        shape = "{value}, " + shape if self.with_value else shape
        text, names = gradient.run(
            Entry(forward._pair),
            self.names,
            argtypes,
            pair.activities,
            self.wrt,
            shape,
            written,
            apart=_stay_apart(pair),
            restore=self.restore,
            returns=returns,
            swept=pair.summary.swept,
            cleared=pair.summary.cleared,
        )
        source = f"# {forward._pair.key} {argtypes}\n\n{text}"
        module = load_source(self.function + "__gradient", source, names)
        spec = forward._pair.specialise(argtypes)
        content = None if spec.name is None else key_of("gradient", spec.name, text)

        def jit(step: str) -> Any:
            def key(args: tuple[types.Type, ...]) -> str | None:
                return None if content is None else key_of(content, step, *args)

            return keeping_jit(getattr(module, step), Keeper(key), **NO_WRAPPERS)

        if not (written and self.restore):
            return Steps(jit("gradient"), content=content)
        return Steps(jit("gradient"), jit("save"), jit("restore"), content)

    def _check(self, pair: CompiledPair) -> bool:
        """False for a function that always raises: it is left to do so."""
        for k in self.wrt:
            if pair.activities[k] is Activity.Const:
                type = pair.argtypes[k]
                raise NotDifferentiableError(
                    f"wrt names the argument '{self.names[k]}' of {self.function}, which is {type}",
                    pair.text.facts.fn.loc,
                    "Pass a float (1.0, not 1) or an array of floats."
                    if isinstance(types.unliteral(type), types.Integer)
                    else "Only floats, and arrays and structs of floats, have a gradient.",
                )
        result = pair.summary.result_type
        if result == types.none and never_ends(pair.text.facts.fn.body):
            return False
        if not isinstance(types.unliteral(result), types.Float):
            raise NotDifferentiableError(
                f"{self.function} returns {result}, and a gradient needs a real scalar",
                pair.text.facts.fn.loc,
                "Return one float, or use splitad.vjp with a result_bar.",
            )
        return True


def _stay_apart(pair: CompiledPair) -> bool:
    """Whether arguments that share no memory share none when f ends."""
    return not any(
        assigned or isinstance(pair.argtypes[path[0]], LISTS)  # type: ignore[index]
        for path, assigned in pair.summary.written
    )


def cotangents(pair: CompiledPair, bars: tuple[Any, ...], shadows: tuple[Any, ...]) -> list[Any]:
    """One cotangent per argument, from what a pullback returned and the shadows it wrote."""
    returned, written = iter(bars), iter(shadows)
    found: list[Any] = []
    for activity, type in zip(pair.activities, pair.argtypes, strict=True):
        if activity is Activity.Active:
            found.append(next(returned))
        elif activity is Activity.Duplicated:
            shadow = next(written)
            found.append(_merged(shadow, next(returned)) if holds_scalars(type) else shadow)
        else:
            found.append(None)
    return found


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
    py_func = to_differentiate(f)
    names = inspect.signature(py_func).parameters
    chosen = tuple(range(len(names))) if wrt is None else positions(wrt, names, py_func.__name__)
    forward = make_forward(chosen)
    result, pullback = forward(*args, **kwargs)
    args = forward._fold(args, kwargs)
    pair = compiled_pair(pullback._spec)
    duplicated = [a is Activity.Duplicated for a in pair.activities]
    shadowed = tuple(a for a, on in zip(args, duplicated, strict=True) if on)
    # where what they share is not written, arguments that overlap have each its own part
    apart = _stay_apart(pair) and not pullback.args_overlap
    template = tuple(map(make_zero, shadowed)) if apart else pullback.make_zero()
    return result, VjpPullback(pullback, pair, template, names, chosen)


class VjpPullback:
    """Returns new cotangents at each call.  template: zero shadows of the exit state."""

    is_derivative = True

    def __init__(
        self,
        pullback: Pullback,
        pair: CompiledPair,
        template: tuple[Any, ...],
        parameters: Parameters,
        chosen: tuple[int, ...],
    ) -> None:
        self._pullback, self._pair, self._template = pullback, pair, template
        self._parameters, self._chosen = parameters, chosen

    @property
    def tape_nbytes(self) -> int:
        return self._pullback.tape_nbytes

    def __call__(self, result_bar: Any = 1.0, exit_bar: dict[Any, Any] | None = None) -> Any:
        if default(self._pair.summary.result_type) is Activity.Const:
            result_bar = None
        shadows = make_zero(self._template)
        activities = self._pair.activities
        order = [k for k, a in enumerate(activities) if a is Activity.Duplicated]
        fill = _Fill()
        for key, bar in (exit_bar or {}).items():
            (k,) = positions(key, self._parameters, self._pair.summary.name)
            if k not in order:
                name = list(self._parameters)[k]
                raise ShadowError(f"exit_bar names the argument '{name}', which has no exit state")
            fill(shadows[order.index(k)], bar)
        bars = self._pullback(result_bar, *shadows)
        parts = cotangents(self._pair, bars, shadows)
        return tuple(parts[k] for k in self._chosen)


class _Fill:
    """Copies given cotangents into zero shadows of the same structure.

    Where shadows share memory, what is given for each adds up; but what shares memory just so is the
    cotangent of all that was there, and counts once.
    """

    def __init__(self) -> None:
        self.done: list[tuple[np.ndarray, np.ndarray]] = []

    def __call__(self, shadow: Any, bar: Any) -> None:
        if isinstance(shadow, np.ndarray):
            self.array(shadow, np.asarray(bar))
        elif isinstance(shadow, (list, List)):
            if len(bar) != len(shadow):
                raise ShadowError(
                    f"exit_bar has {len(bar)} items where the state has {len(shadow)}"
                )
            for k, item in enumerate(bar):
                if isinstance(shadow[k], (float, complex)):
                    shadow[k] = item
                else:
                    self(shadow[k], item)
        elif isinstance(shadow, tuple):
            for s, b in zip(shadow, bar, strict=True):
                self(s, b)
        else:
            type = shadow._numba_type_
            for name in type.field_dict if isinstance(type, types.StructRef) else type.struct:
                value = getattr(shadow, name)
                if isinstance(value, (float, complex)):
                    setattr(shadow, name, getattr(bar, name))
                elif value is not None and not isinstance(value, int):
                    self(value, getattr(bar, name))

    def array(self, shadow: np.ndarray, bar: np.ndarray) -> None:
        if bar.shape != shadow.shape:
            raise ShadowError(f"exit_bar has shape {bar.shape} where the state has {shadow.shape}")
        others = [(s, b) for s, b in self.done if np.shares_memory(s, shadow)]
        together = [(s, b) for s, b in others if np.shares_memory(b, bar)]
        if not others:
            shadow[...] = bar
        elif not together:
            _add(shadow, bar)
        elif len(together) == len(others) and all(
            _behind(s, shadow) == _behind(b, bar) and b.strides == s.strides for s, b in others
        ):
            shadow[...] = bar
        else:
            raise ShadowError(
                "exit_bar has arrays that share memory otherwise than those of the final state do",
                None,
                "Give each position a cotangent of its own; where the state shares memory, they add up.",
            )
        self.done.append((shadow, bar))


def _add(shadow: np.ndarray, bar: np.ndarray) -> None:
    for name in shadow.dtype.names or ():
        _add(shadow[name], bar[name])
    if shadow.dtype.names is None:
        shadow += bar


def _behind(one: np.ndarray, other: np.ndarray) -> int:
    """How many bytes one array starts before the other."""
    return int(other.ctypes.data) - int(one.ctypes.data)
