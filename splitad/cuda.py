"""Derivatives of kernels written for numba.cuda: `ad.cuda.split`, `vjp`, `value_and_grad`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numba import types

from splitad.analysis import threads
from splitad.analysis.memory import is_array
from splitad.cache import CompiledPair, Request
from splitad.codegen.load import load_source
from splitad.errors import (
    Loc,
    NotDifferentiableError,
    ShadowError,
    SplitadError,
    UnsupportedError,
)
from splitad.frontend.cuda_names import is_cuda_function
from splitad.frontend.source import to_differentiate
from splitad.gradients import Parameters, Wrt, positions
from splitad.ir.activities import Activity, check_given, stable
from splitad.pipeline import Options
from splitad.runtime.pairs import tape_limit
from splitad.transform.facts import path_name

try:
    from numba import cuda as _cuda

    from splitad.targets.cuda import device
    from splitad.targets.cuda.functions import for_device
    from splitad.targets.cuda.launch import (
        Launch,
        Pullback,
        Runner,
        Specialisation,
        release_memory,
    )
except ImportError as error:
    raise ImportError(
        f"splitad.cuda needs numba.cuda, which cannot be imported here ({error}).  Install it with "
        "`pip install 'splitad[cuda13]'` (or cuda12, as the GPU's driver wants it)."
    ) from error

__all__ = [
    "Forward", "Pullback", "kernel_types", "release_memory", "split", "value_and_grad", "vjp",
]  # fmt: skip


class Forward:
    """``forward[blocks, threads, stream, shared](*args)`` launches the kernel and returns the pullback."""

    is_derivative = True

    def __init__(self, runner: Runner, name: str) -> None:
        self._runner = runner
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<forward of {self.__name__}>"

    def __getitem__(self, config: Any) -> Callable[..., Pullback]:
        launch = Launch.of(config)
        _check_usable()

        def launched(*args: Any) -> Pullback:
            return self._runner.forward(launch, args)

        return launched

    def compiled(self, argtypes: tuple[types.Type, ...], dims: int = 1) -> Specialisation:
        """The pair for arguments of these types; dims: of the launch, as many as are larger than 1."""
        return self._runner.resolve(argtypes, dims, None)

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"say how to launch it: {self.__name__}[blocks, threads](...)")


def split(
    kernel: Callable[..., Any],
    *activities: Activity,
    modified_between: bool | Sequence[bool] = True,
    strong_zero: bool = True,
    max_tape_bytes: int | None = None,
    tape_slots: int | None = None,
    wait: bool = True,
) -> Forward:
    """The split pair of a kernel, a `cuda.jit` function or the plain Python function.

        forward = ad.cuda.split(kernel, ad.Duplicated, ad.Active, ad.Const)
        pullback = forward[blocks, threads, stream, shared](u, nu, n)     # u is updated as by the kernel
        (nu_bar,) = pullback(u_bar)                                       # later, any number of times

    Arrays are on the device (anything with `__cuda_array_interface__`), and so are their shadows;
    `pullback.make_zero()` and `ad.make_zero(array)` make some.  A scalar's cotangent is the sum over all
    threads; reading it waits for the launch.  The other arguments are those of `ad.split`.

    The kernel must be free of races, as any correct kernel is: between two barriers no thread may write
    what another one reads or writes, unless by atomics.  Sums by atomics are not bitwise reproducible.
    `cuda.atomic.max` and `min` give the whole cotangent to the offer that the element holds in the end; at a
    tie to what was there before, and of equal offers to one, the same in every pullback of a launch.

    Each thread has a part of the tape in device memory.  How much it needs is known when the kernel is
    compiled, or follows from the launch, the scalar arguments and the shapes (then it is counted once, by a
    launch on copies), or depends on data (then it is counted at each call).  tape_slots: how many values of
    8 bytes a thread may put on the tape in loops; nothing is counted, and TapeLimitError if that is too few
    (the kernel has run by then).
    max_tape_bytes: TapeLimitError, before anything runs, instead of a larger tape.

    wait=False: no launch waits for the device, so that both can be captured into a CUDA graph.  Where the
    tape depends on loops tape_slots must be given; `pullback.check()` says afterwards if that was too few
    (shadows are NaN then); cotangents of scalars stay on the device, in arrays of one element, or are added
    to those in `pullback(..., out=)`.  The streams of other libraries' arrays are not waited for either.
    """
    py_func = to_differentiate(kernel)
    count = len(inspect.signature(py_func).parameters)
    check_given(py_func.__name__, count, activities)
    options = Options(
        error_model="numpy",  # CUDA has no exceptions
        strong_zero=strong_zero,
        stable=stable(count, modified_between),
    )
    tape_limit(max_tape_bytes)  # refuses what is no number of bytes
    work = _Specialise(kernel, tuple(activities) or None, options, _options_of(kernel))
    return Forward(Runner(work.of, max_tape_bytes, tape_slots, wait), py_func.__name__)


class _Launchable:
    """``self[blocks, threads, stream, shared](*args)`` calls a function with the launch first."""

    is_derivative = True

    def __init__(self, function: Callable[..., Any], kernel: str, doc: str) -> None:
        self._function, self._kernel = function, kernel
        self.__doc__ = doc

    def __repr__(self) -> str:
        return f"<derivative of {self._kernel}>"

    def __getitem__(self, config: Any) -> Callable[..., Any]:
        return partial(self._function, config)

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"say how to launch {self._kernel}: [blocks, threads](...)")


def vjp(kernel: Callable[..., Any], wrt: Wrt | None = None) -> _Launchable:
    """As `ad.vjp`, for a kernel: ``pullback = ad.cuda.vjp(kernel)[blocks, threads](*args)`` runs it.

    pullback({name or position: cotangent}) takes cotangents of the final states of arrays and returns new
    ones for the arguments in wrt (all by default; None where an argument has none).
    """
    parameters = _parameters(kernel)
    forward = _kept(kernel, True)
    every = tuple(range(len(parameters)))
    wanted = every if wrt is None else positions(wrt, parameters, forward.__name__)

    def run(config: Any, *args: Any) -> Callable[..., tuple[Any, ...]]:
        pullback = forward[config](*args)

        def pull(exit_bar: Mapping[str | int, Any]) -> tuple[Any, ...]:
            return _pull(pullback, parameters, exit_bar, forward.__name__, wanted)

        return pull

    return _Launchable(run, forward.__name__, vjp.__doc__ or "")


def value_and_grad(
    kernel: Callable[..., Any], loss: str | int, wrt: Wrt = 0, *, restore: bool = True
) -> _Launchable:
    """``(value, gradient) = ad.cuda.value_and_grad(kernel, "loss")[blocks, threads](*args)``.

    loss: name or position of an array of one element, in which the kernel leaves what is differentiated
    (with what it held before the launch, where the kernel adds to it).  wrt: position or name of the
    argument, or a tuple of them; then the gradient is a tuple.  The arguments are put back as they were
    before the call; restore=False leaves them as the kernel does.
    """
    parameters = _parameters(kernel)
    names = list(parameters)
    forward = _kept(kernel, False)
    (at,) = positions(loss, parameters, forward.__name__)
    wanted = positions(wrt, parameters, forward.__name__)

    def run(config: Any, *args: Any) -> tuple[float, Any]:
        launch = Launch.of(config)
        if at < len(args) and (not device.is_array(args[at]) or device.size(args[at]) != 1):
            raise TypeError(f"{names[at]}, the loss, is not a device array of one element")
        before = forward._runner.written(launch, args) if restore else ()
        saved = [(x, device.copy(x, launch.stream)) for x in before]
        try:
            pullback = forward[config](*args)
            final = device.as_array(args[at])
            value = float(device.read(final, launch.stream).reshape(-1)[0])
            one = device.to_device(np.ones(tuple(final.shape), final.dtype), launch.stream)
            found = _pull(pullback, parameters, {at: one}, forward.__name__, wanted)
        finally:
            for x, copy in saved:
                device.assign(x, copy, launch.stream)
        for k, cotangent in zip(wanted, found, strict=True):
            if cotangent is None:
                raise NotDifferentiableError(
                    f"the argument '{names[k]}' of {forward.__name__} has no derivative"
                )
        return value, found if isinstance(wrt, tuple) else found[0]

    return _Launchable(run, forward.__name__, value_and_grad.__doc__ or "")


@lru_cache(maxsize=128)
def _kept(kernel: Callable[..., Any], modified_between: bool) -> Forward:
    """The pair that is used again when the same kernel is asked for again."""
    return split(kernel, modified_between=modified_between)


def _parameters(kernel: Callable[..., Any]) -> Parameters:
    return inspect.signature(to_differentiate(kernel)).parameters


def _pull(
    pullback: Pullback,
    parameters: Parameters,
    exit_bar: Mapping[str | int, Any],
    function: str,
    wanted: Sequence[int],
) -> tuple[Any, ...]:
    """The cotangents of the arguments at these positions, for those of the final states."""
    shadows = dict(zip(pullback.shadowed, pullback.make_zero(), strict=True))
    for key, bar in exit_bar.items():
        (k,) = positions(key, parameters, function)
        name = list(parameters)[k]
        if k not in shadows or isinstance(shadows[k], tuple) or not device.is_array(bar):
            raise ShadowError(f"the cotangent of {name} is not one of an array on the device")
        to, given = shadows[k], device.as_array(bar)
        if tuple(to.shape) != tuple(given.shape) or to.dtype != given.dtype:
            raise ShadowError(f"the cotangent of {name} has another shape or dtype")
        device.assign(to, given, pullback.stream)
    scalars = dict(zip(pullback.active, pullback(*shadows.values()), strict=True))
    return tuple({**shadows, **scalars}.get(k) for k in wanted)


def zeros(x: Any) -> Any:
    """A device array of zeros, like x."""
    return device.zeros_like(device.as_array(x))


# ---- compiling -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Specialise:
    """Compiles the pair of a kernel for argument types and the dimensions of a launch."""

    kernel: Any
    activities: tuple[Activity, ...] | None
    options: Options
    jit: dict[str, Any]
    wrt: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.of = lru_cache(maxsize=None)(self._of)

    def _of(
        self, argtypes: tuple[types.Type, ...], dims: int, registers: int | None
    ) -> Specialisation:
        """registers: how many a thread may have, where that is a limit."""
        jit = dict(self.jit)
        if registers is not None and not device.SIMULATED:
            jit["max_registers"] = min(registers, jit.get("max_registers") or registers)
        pair = self.pair(argtypes, dims)
        text = pair.text
        facts = text.facts
        assert text.slots is not None and text.given is not None
        module = self.module(pair)
        written = threads.written_roots(facts.active.memory)
        arrays = [leaf for leaf in facts.fn.leaves if is_array(leaf.var)]
        name = facts.fn.name
        paths = {leaf.var: leaf.path for leaf in facts.fn.leaves}
        counted = threads.counted_by(facts.fn, facts.active)
        return Specialisation(
            name,
            _cuda.jit(**jit)(getattr(module, name + "__forward")),
            _cuda.jit(**jit)(getattr(module, name + "__pullback")),
            text.slots,
            text.given,
            {leaf.path: path_name(facts, leaf.path) for leaf in arrays},
            frozenset(
                leaf.path for leaf in arrays if facts.active.memory.base_roots(leaf.var) & written
            ),
            self.options.stable,
            None if counted is None else frozenset(p for v, p in paths.items() if v in counted),
            _cuda.jit(**jit)(getattr(module, name + "__gather")) if text.gather else None,
        )

    def pair(self, argtypes: tuple[types.Type, ...], dims: int) -> CompiledPair:
        options = replace(self.options, kernel=dims)
        count = len(_parameters(self.kernel))
        if len(argtypes) != count:
            raise TypeError(f"the kernel takes {count} arguments, not {len(argtypes)}")
        return CompiledPair(Request(self.kernel, self.activities, self.wrt, options), argtypes)

    def module(self, pair: CompiledPair) -> Any:
        text = pair.text
        key = (
            f"# CUDA: {pair.argtypes} {[a.name for a in pair.activities]} {pair.request.options}\n"
        )
        source = "\n\n".join([key, text.forward, text.pullback, text.gather])
        return load_source(text.facts.fn.name, source, for_device(text.names))


_TAKEN_OVER = ("fastmath", "opt", "lineinfo", "max_registers", "launch_bounds")
_WITHOUT_MEANING = {"device", "inline", "forceinline", "debug", "extensions", "cache", "lto"}


def _options_of(kernel: Any) -> dict[str, Any]:
    """The options of cuda.jit that the pair's kernels get too."""
    if hasattr(kernel, "py_func") and not is_cuda_function(kernel):
        raise TypeError(
            f"{kernel.__name__} is compiled for the CPU: a kernel is made by cuda.jit, or is a plain function"
        )
    given = dict(getattr(kernel, "targetoptions", {}))
    if getattr(kernel, "_fastmath", False):  # in the simulator
        given["fastmath"] = True
    if given.get("device"):
        raise TypeError("a device function cannot be launched; pass the kernel that calls it")
    found = {}
    for option, value in given.items():
        if option in _TAKEN_OVER:
            if value is not None:
                found[option] = value
        elif option not in _WITHOUT_MEANING and value:
            code = kernel.py_func.__code__
            raise UnsupportedError(
                f"The kernel is compiled with the option {option}, which splitad does not know.",
                Loc(code.co_filename, code.co_firstlineno, code.co_name),
                "Leave the option out.",
            )
    return found


@lru_cache(maxsize=1)
def _check_usable() -> None:
    if not device.SIMULATED and not _cuda.is_available():
        raise SplitadError(
            "numba.cuda finds no GPU that it can use here",
            None,
            "With a GPU, install numba-cuda: pip install 'splitad[cuda13]' (or cuda12, as the driver "
            "wants it).  Without one, numba's simulator runs kernels: set NUMBA_ENABLE_CUDASIM=1 before "
            "numba is imported.",
        )


def kernel_types(
    spec: Specialisation, argtypes: tuple[types.Type, ...]
) -> tuple[tuple[types.Type, ...], tuple[types.Type, ...]]:
    """The argument types of the two kernels of a pair, for compiling them without a launch."""

    def of(path: Any) -> types.Type:
        type = argtypes[path[0]]
        for step in path[1:]:
            type = type[step]  # type: ignore[index]
        return type

    given = spec.given
    tape = tuple(spec.slots.used[name] for name in sorted(spec.slots.used))
    word = (types.int64, types.Array(types.int64, 1, "C"))
    back = [
        *(of(path) for path in given.kept),
        *(of(path) for path in given.ends),
        *(types.Array(types.int64, of(path).ndim, "C") for path in given.ends),  # type: ignore[attr-defined]
        *(of(path) for path in given.scalars),
        *(types.int64 for _ in given.sizes),
        *(types.Array(of(path), 1, "C") for path in given.bars),
        *(of(path) for path in given.inner),
        *(argtypes[k] for k in given.shadows),
    ]
    return (*tape, *word, *argtypes), (*tape, *word, *back)
