"""Launching a kernel's pair: the tape's memory, what the boundary checks, the two launches.

    launched = Launch.of((blocks, threads, stream, shared))
    pullback = Runner(resolver, ...).forward(launched, args)
    pullback(*shadows)

Kernels on one stream run one after the other, and so do forward and pullback here; nothing is synchronised
but where a number is needed on the host (a counting launch, the cotangent of a scalar).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types

from splitad.errors import AliasingError, ShadowError, SplitadError, TapeLimitError
from splitad.tape.layout import WORD
from splitad.targets.cuda import device
from splitad.targets.cuda.pullback import Parameters, Path
from splitad.targets.cuda.tape import SPARE, Slots

Dims = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """How kernels are launched."""

    blocks: Dims
    threads: Dims
    stream: Any = 0
    shared: int = 0

    @staticmethod
    def of(config: Any) -> Launch:
        if not isinstance(config, tuple) or not 2 <= len(config) <= 4:
            raise TypeError(
                "a kernel is launched by forward[blocks, threads, stream, shared](*args)"
            )
        blocks, threads, *rest = config
        return Launch(_three(blocks), _three(threads), *rest)

    @property
    def count(self) -> int:
        return int(np.prod(self.blocks, dtype=np.int64) * np.prod(self.threads, dtype=np.int64))

    @property
    def dims(self) -> int:
        """How many of the leading dimensions may be larger than one."""
        sizes = [b * t for b, t in zip(self.blocks, self.threads, strict=True)]
        return max([k + 1 for k, n in enumerate(sizes) if n > 1], default=1)

    @property
    def config(self) -> tuple[Any, ...]:
        return self.blocks, self.threads, self.stream, self.shared


def _three(size: Any) -> Dims:
    sizes = tuple(map(int, size)) if isinstance(size, (tuple, list)) else (int(size),)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ValueError(f"{size!r} is not one, two or three sizes of a grid or block")
    return (*sizes, 1, 1, 1)[:3]  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Specialisation:
    """A compiled pair.  leaves: the paths of the arrays in the arguments, each with its name.
    written: those of arrays that the kernel writes.  stable: the arguments that nobody writes in between.
    steady: whether what is needed of the tape follows from the launch, the scalars and the shapes."""

    name: str
    forward: Any
    reverse: Any
    slots: Slots
    given: Parameters
    arrays: dict[Path, str]
    written: frozenset[Path]
    stable: tuple[bool, ...]
    steady: bool
    sizes: dict[Any, int] = field(default_factory=dict)  # known needs of the tape


def part(args: Sequence[Any], path: Path) -> Any:
    value = args[path[0]]  # type: ignore[index]
    for step in path[1:]:
        value = value[step]
    return value


class Memory:
    """Blocks of device memory for tapes; what a pullback gives back is used again on the same stream."""

    KEPT = 2  # of each size and stream

    def __init__(self) -> None:
        self.free: dict[tuple[int, Any], list[Any]] = {}

    def take(self, nbytes: int, stream: Any) -> Any:
        blocks = self.free.get((nbytes, _key(stream)))
        return blocks.pop() if blocks else device.empty(nbytes, np.uint8)

    def give(self, block: Any, stream: Any) -> None:
        blocks = self.free.setdefault((block.size, _key(stream)), [])
        if len(blocks) < self.KEPT:
            blocks.append(block)


def _key(stream: Any) -> Any:
    return id(stream) if stream else 0


# ---- forward -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs the pairs of one kernel.  resolve: (argument types, dimensions) -> Specialisation."""

    resolve: Callable[[tuple[types.Type, ...], int], Specialisation]
    max_tape_bytes: int | None
    tape_slots: int | None
    memory: Memory = field(default_factory=Memory)

    def forward(self, launch: Launch, given: Sequence[Any]) -> Pullback:
        args = tuple(_argument(x, k) for k, x in enumerate(given))
        spec = self.resolve(tuple(map(_type_of, args)), launch.dims)
        _check_arguments(spec, args)
        nbytes = self._capacity(spec, launch, args)
        total = (nbytes + SPARE) * launch.count if spec.slots.used else 0
        kept = [self._kept(spec, args, path, launch.stream) for path in spec.given.kept]
        held = total + sum(_nbytes(a) for a, is_copy in kept if is_copy)
        if self.max_tape_bytes is not None and held > self.max_tape_bytes:
            raise TapeLimitError(
                f"the tape of {spec.name} would take {held} bytes, more than max_tape_bytes="
                f"{self.max_tape_bytes}"
            )
        tape = self.memory.take(total, launch.stream) if total else None
        need = _need(launch.stream)
        spec.forward[launch.config](*_tape(spec, tape, launch), nbytes, need, *args)
        made = Pullback(spec, launch, args, tape, nbytes, need, [a for a, _ in kept], held)
        if tape is not None:
            weakref.finalize(made, self.memory.give, tape, launch.stream).atexit = False
        if spec.slots.dynamic and not (spec.steady and self.tape_slots is None):
            made.check()
        return made

    def _kept(
        self, spec: Specialisation, args: Sequence[Any], path: Path, stream: Any
    ) -> tuple[Any, bool]:
        """An array that the pullback reads, and whether it is a copy."""
        array = part(args, path)
        if spec.stable[path[0]]:  # type: ignore[index]
            return array, False
        return device.copy(array, stream), True

    def _capacity(self, spec: Specialisation, launch: Launch, args: Sequence[Any]) -> int:
        """The bytes of tape that a thread gets."""
        slots = spec.slots
        if not slots.dynamic:
            return slots.size
        if self.tape_slots is not None:
            return slots.size + WORD * self.tape_slots
        if not spec.steady:
            return self._counted(spec, launch, args)
        key = (launch.blocks, launch.threads, *_flat(args))
        if key not in spec.sizes:
            spec.sizes[key] = self._counted(spec, launch, args)
        return spec.sizes[key]

    def _counted(self, spec: Specialisation, launch: Launch, args: Sequence[Any]) -> int:
        """A launch without a tape, on copies of what the kernel writes, says how much it needs."""
        copies = {path: device.copy(part(args, path), launch.stream) for path in spec.written}
        own = [_with_copies(x, (k,), copies) for k, x in enumerate(args)]
        need = _need(launch.stream)
        tape = self.memory.take(SPARE * launch.count, launch.stream)
        spec.forward[launch.config](*_tape(spec, tape, launch), 0, need, *own)
        found = int(device.read(need, launch.stream)[0])
        self.memory.give(tape, launch.stream)
        return -(-found // WORD) * WORD


def _need(stream: Any) -> Any:
    """Where a launch says how many bytes of tape a thread needed, at most."""
    made = device.empty(1, np.int64)
    device.clear(made, stream)
    return made


def _tape(spec: Specialisation, tape: Any, launch: Launch) -> list[Any]:
    """The tape's memory, once for each type of value on it."""
    used = spec.slots.used
    return [device.as_type(tape, used[name], launch.count) for name in sorted(used)]


def _nbytes(x: Any) -> int:
    return int(x.size) * x.dtype.itemsize


def _with_copies(x: Any, path: Path, copies: dict[Path, Any]) -> Any:
    if isinstance(x, tuple):
        return tuple(_with_copies(item, (*path, k), copies) for k, item in enumerate(x))
    return copies.get(path, x)


def _flat(args: Any) -> list[Any]:
    """What is known of arguments without looking at arrays."""
    found: list[Any] = []
    for x in args:
        if isinstance(x, tuple):
            found += _flat(x)
        else:
            found.append(tuple(x.shape) if device.is_array(x) else x)
    return found


# ---- arguments -----------------------------------------------------------------------------------------


def _argument(x: Any, position: int) -> Any:
    if device.is_array(x):
        return device.as_array(x)
    if isinstance(x, tuple):
        return tuple(_argument(item, position) for item in x)
    if isinstance(x, np.ndarray):
        raise TypeError(
            f"argument {position} is a NumPy array: copy it to the device first, with cuda.to_device"
        )
    if isinstance(x, (int, float, np.number, np.bool_)):
        return x
    raise TypeError(
        f"argument {position} is a {type(x).__name__}, which cannot be passed to a kernel"
    )


def _type_of(x: Any) -> types.Type:
    from numba import typeof

    if device.is_array(x):
        return device.type_of(x)
    if isinstance(x, tuple):
        return types.BaseTuple.from_types([_type_of(item) for item in x])
    return types.unliteral(typeof(x))


def _check_arguments(spec: Specialisation, args: Sequence[Any]) -> None:
    paths = list(spec.arrays)
    for k, path in enumerate(paths):
        x = part(args, path)
        if path in spec.written and device.overlaps_itself(x):
            raise AliasingError(
                f"{spec.name} writes {spec.arrays[path]}, which overlaps itself in memory"
            )
        for other in paths[:k]:
            if (path in spec.written or other in spec.written) and device.overlap(
                x, part(args, other)
            ):
                raise AliasingError(
                    f"the arguments {spec.arrays[other]} and {spec.arrays[path]} of {spec.name} overlap in "
                    "memory, and the kernel writes one of them; pass a copy"
                )


# ---- pullback ------------------------------------------------------------------------------------------


class Pullback:
    """The derivative of one launch: ``pullback(*shadows)``, any number of times."""

    def __init__(
        self,
        spec: Specialisation,
        launch: Launch,
        args: Sequence[Any],
        tape: Any,
        capacity: int,
        need: Any,
        kept: list[Any],
        nbytes: int,
    ) -> None:
        self._spec, self._launch, self._args = spec, launch, args
        self._tape, self._capacity, self._need, self._kept = tape, capacity, need, kept
        self._checked = False
        self.tape_nbytes = nbytes  # on the device

    def make_zero(self) -> tuple[Any, ...]:
        """A zero shadow for each Duplicated argument."""
        stream = self._launch.stream
        return tuple(_zeros(self._args[k], stream) for k in self._spec.given.shadows)

    def check(self) -> None:
        """TapeLimitError if the tape was too small for the launch; waits for the launch."""
        if self._checked:
            return
        found = int(device.read(self._need, self._launch.stream)[0])
        if found > self._capacity:
            spare = -(-(found - self._spec.slots.size) // WORD)
            raise TapeLimitError(
                f"the tape of {self._spec.name} was too small: a thread needed {found} bytes, and had "
                f"{self._capacity}.  Its arguments have been changed by then, and there is no derivative.",
                None,
                f"Give tape_slots={spare}, or leave it out: then a launch on copies counts.",
            )
        self._checked = True

    def __call__(self, *shadows: Any) -> tuple[float, ...]:
        """Add up the shadows; the cotangents of the Active arguments, each the sum over all threads."""
        spec, launch = self._spec, self._launch
        given = spec.given
        if len(shadows) != len(given.shadows):
            raise TypeError(
                f"the pullback of {spec.name} takes {len(given.shadows)} shadows, not {len(shadows)}"
            )
        own = [
            _argument(s, k) if not isinstance(s, np.ndarray) else s
            for k, s in zip(given.shadows, shadows, strict=True)
        ]
        self._check_shadows(own)
        scalars = [part(self._args, path) for path in given.scalars]
        sizes = [int(part(self._args, path).shape[axis]) for path, axis in given.sizes]
        bars = [_bar(part(self._args, path), launch.stream) for path in given.bars]
        inner = [device.zeros_like(part(self._args, path), launch.stream) for path in given.inner]
        spec.reverse[launch.config](
            *_tape(spec, self._tape, launch), self._capacity, self._need,
            *self._kept, *scalars, *sizes, *bars, *inner, *own,
        )  # fmt: skip
        return tuple(float(device.read(bar, launch.stream)[0]) for bar in bars)

    def _check_shadows(self, shadows: Sequence[Any]) -> None:
        spec = self._spec
        found: list[tuple[str, Any, Any]] = []
        for k, shadow in zip(spec.given.shadows, shadows, strict=True):
            for path, name in spec.arrays.items():
                if path[0] == k:
                    found.append((name, part(self._args, path), _shadow_part(shadow, path, name)))
        for name, primal, shadow in found:
            if not device.is_array(shadow):
                raise ShadowError(f"the shadow of {name} is not an array on the device")
            if tuple(shadow.shape) != tuple(primal.shape) or shadow.dtype != primal.dtype:
                raise ShadowError(
                    f"the shadow of {name} has shape {tuple(shadow.shape)} and dtype {shadow.dtype}, not "
                    f"{tuple(primal.shape)} and {primal.dtype}"
                )
            if device.overlaps_itself(shadow):
                raise ShadowError(f"the shadow of {name} overlaps itself in memory")
            for path, other in spec.arrays.items():
                if device.overlap(shadow, part(self._args, path)):
                    raise ShadowError(
                        f"the shadow of {name} overlaps the argument {other} in memory"
                    )
        for k, (name, _, shadow) in enumerate(found):
            for other, _, other_shadow in found[:k]:
                # even where the arguments do: what is a thread's own is one array's
                if device.overlap(shadow, other_shadow):
                    raise ShadowError(
                        f"the shadows of {other} and {name} overlap in memory; give each its own"
                    )


def _shadow_part(shadow: Any, path: Path, name: str) -> Any:
    try:
        return part((shadow,), (0, *path[1:]))
    except (TypeError, IndexError, SplitadError):
        raise ShadowError(f"the shadow of {name} is not where it should be in its tuple") from None


def _zeros(x: Any, stream: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_zeros(item, stream) for item in x)
    return device.zeros_like(x, stream) if device.is_array(x) else x


def _bar(x: Any, stream: Any) -> Any:
    """Where the cotangent of a scalar is added up."""
    made = device.empty(1, np.asarray(x).dtype)
    device.clear(made, stream)
    return made
