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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numba import types

from splitad.errors import AliasingError, ShadowError, SplitadError, TapeLimitError
from splitad.tape.layout import WORD
from splitad.targets.cuda import device
from splitad.targets.cuda.pullback import SPREAD, Parameters, Path
from splitad.targets.cuda.tape import SPARE, Slots

Dims = tuple[int, int, int]
_REGISTERS, _MOST = 65536, 255  # of a multiprocessor, for one block; and of a thread


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
        return max([k + 1 for k, n in enumerate(self.sizes) if n > 1], default=1)

    @property
    def sizes(self) -> list[int]:
        """The threads along each axis."""
        return [b * t for b, t in zip(self.blocks, self.threads, strict=True)]

    def reaching(self, arrays: Sequence[Sequence[tuple[int, int]]]) -> Launch | None:
        """Such a launch, with a thread for each element that a thread of this one may have loaded: for each
        array and axis, how many elements there are, and how far behind the last thread they may be.  None
        where there is no element."""
        blocks = list(self.blocks)
        for axis in range(self.dims):
            here = self.sizes[axis]
            count = max((min(n, here + by) for n, by in (a[axis] for a in arrays)), default=0)
            blocks[axis] = -(-count // self.threads[axis])
        return replace(self, blocks=tuple(blocks)) if min(blocks) else None  # type: ignore[arg-type]

    @property
    def registers(self) -> int | None:
        """How many registers a thread may have, lest the block be too large for a multiprocessor, which a
        plain kernel of fewer registers is not; None where that is no limit."""
        warps = -(-int(np.prod(self.threads)) // 32)
        most = _REGISTERS // (32 * warps) // 8 * 8
        return most if most < _MOST else None

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
    counted_by: the scalars on which depends how much is needed of the tape, beside the launch and the shapes;
    None where it depends on what arrays hold.  gather: the kernel that comes before the reverse one, if there
    is one."""

    name: str
    forward: Any
    reverse: Any
    slots: Slots
    given: Parameters
    arrays: dict[Path, str]
    written: frozenset[Path]
    stable: tuple[bool, ...]
    counted_by: frozenset[Path] | None
    gather: Any = None
    sizes: dict[Any, int] = field(default_factory=dict)  # known needs of the tape


def part(args: Sequence[Any], path: Path) -> Any:
    value = args[path[0]]  # type: ignore[index]
    for step in path[1:]:
        value = value[step]
    return value


class Memory:
    """Blocks of device memory.  What is given back is used again on the same stream, where the launches that
    used it come before; so once launches repeat themselves, nothing is allocated."""

    KEPT = 4  # of each size and stream
    SIZES = 16  # and of how many sizes; those that were not used for longest go first

    def __init__(self) -> None:
        self.free: dict[tuple[int, Any], list[Any]] = {}
        _memories.add(self)

    def take(self, nbytes: int, stream: Any) -> Any:
        blocks = self.free.get((nbytes, _key(stream)))
        return blocks.pop() if blocks else device.empty(nbytes, np.uint8)

    def give(self, block: Any, stream: Any) -> None:
        key = (block.size, _key(stream))
        blocks = self.free[key] = self.free.pop(key, [])  # now the last one
        if len(blocks) < self.KEPT:
            blocks.append(block)
        while len(self.free) > self.SIZES:
            del self.free[next(iter(self.free))]


_memories: weakref.WeakSet[Memory] = weakref.WeakSet()


def release_memory() -> None:
    """Give back the device memory that is kept for further launches."""
    for memory in list(_memories):
        memory.free.clear()


class Loan:
    """Memory that is in use: while a pullback lives, or for one launch."""

    def __init__(self, memory: Memory, stream: Any) -> None:
        self.memory, self.stream = memory, stream
        self.blocks: list[Any] = []

    def block(self, nbytes: int) -> Any:
        made = self.memory.take(nbytes, self.stream)
        self.blocks.append(made)
        return made

    def like(self, x: Any) -> Any:
        """A contiguous array of x's shape and dtype."""
        if device.type_of(x).layout == "F" and len(x.shape) > 1:
            return device.empty(tuple(x.shape), x.dtype, "F")
        return self.array(tuple(x.shape), x.dtype)

    def array(self, shape: tuple[int, ...], dtype: Any) -> Any:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return self.block(size).view(dtype).reshape(shape) if size else device.empty(shape, dtype)

    def copy(self, x: Any) -> Any:
        made = self.like(x)
        device.assign(made, x, self.stream)
        return made

    def zeros(self, x: Any) -> Any:
        made = self.like(x)
        device.clear(made, self.stream)
        return made

    def zeros_of(self, shape: tuple[int, ...], dtype: Any) -> Any:
        made = self.array(shape, dtype)
        device.clear(made, self.stream)
        return made

    def word(self) -> Any:
        """One integer, zero."""
        return self.zeros_of((1,), np.int64)

    def end(self) -> None:
        for block in self.blocks:
            self.memory.give(block, self.stream)
        self.blocks.clear()


def _key(stream: Any) -> Any:
    return id(stream) if stream else 0


# ---- forward -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs the pairs of one kernel.
    resolve: (argument types, dimensions, registers of a thread) -> Specialisation."""

    resolve: Callable[[tuple[types.Type, ...], int, int | None], Specialisation]
    max_tape_bytes: int | None
    tape_slots: int | None
    wait: bool = True  # whether a launch may wait for the device
    memory: Memory = field(default_factory=Memory)

    def forward(self, launch: Launch, given: Sequence[Any]) -> Pullback:
        args = tuple(_argument(x, k, self.wait) for k, x in enumerate(given))
        spec = self.resolve(tuple(map(_type_of, args)), launch.dims, launch.registers)
        _check_arguments(spec, args)
        nbytes = self._capacity(spec, launch, args)
        total = (nbytes + SPARE) * launch.count if spec.slots.used else 0
        copied = [p for p in spec.given.kept if not spec.stable[p[0]]]  # type: ignore[index]
        held = total + sum(_nbytes(part(args, path)) for path in copied)
        ends = [part(args, path) for path in spec.given.ends]
        held += sum(_nbytes(x) + 8 * x.size for x in ends)
        if self.max_tape_bytes is not None and held > self.max_tape_bytes:
            raise TapeLimitError(
                f"the tape of {spec.name} would take {held} bytes, more than max_tape_bytes="
                f"{self.max_tape_bytes}"
            )
        loan = Loan(self.memory, launch.stream)
        kept = [
            loan.copy(part(args, path)) if path in copied else part(args, path)
            for path in spec.given.kept
        ]
        tape = loan.block(total) if total else None
        need = loan.word()
        spec.forward[launch.config](*_tape(spec, tape, launch), nbytes, need, *args)
        kept += [loan.copy(x) for x in ends]
        kept += [loan.zeros_of(tuple(x.shape), np.int64) for x in ends]
        made = Pullback(self, spec, launch, args, tape, nbytes, need, kept, held)
        weakref.finalize(made, loan.end).atexit = False
        counted = spec.counted_by is not None and self.tape_slots is None
        if spec.slots.dynamic and self.wait and not counted:
            made.check()
        return made

    def written(self, launch: Launch, given: Sequence[Any]) -> list[Any]:
        """The arrays among the arguments that the kernel writes."""
        args = tuple(_argument(x, k, self.wait) for k, x in enumerate(given))
        spec = self.resolve(tuple(map(_type_of, args)), launch.dims, launch.registers)
        return [part(args, path) for path in sorted(spec.written)]

    def _capacity(self, spec: Specialisation, launch: Launch, args: Sequence[Any]) -> int:
        """The bytes of tape that a thread gets."""
        slots = spec.slots
        if not slots.dynamic:
            return slots.size
        if self.tape_slots is not None:
            return slots.size + WORD * self.tape_slots
        if not self.wait:
            raise TapeLimitError(
                f"how much tape {spec.name} needs is not known before it is launched, and with wait=False "
                "no launch can count it",
                None,
                "Give tape_slots=, the values of 8 bytes that a thread puts on the tape in loops.",
            )
        if spec.counted_by is None:
            return self._counted(spec, launch, args)
        deciding = (part(args, path) for path in sorted(spec.counted_by))
        shapes = (tuple(part(args, path).shape) for path in spec.arrays)
        key = (launch.blocks, launch.threads, launch.shared, *deciding, *shapes)
        if key not in spec.sizes:
            spec.sizes[key] = self._counted(spec, launch, args)
        return spec.sizes[key]

    def _counted(self, spec: Specialisation, launch: Launch, args: Sequence[Any]) -> int:
        """A launch without a tape, on copies of what the kernel writes, says how much it needs."""
        loan = Loan(self.memory, launch.stream)
        copies = {path: loan.copy(part(args, path)) for path in spec.written}
        own = [_with_copies(x, (k,), copies) for k, x in enumerate(args)]
        need = loan.word()
        tape = loan.block(SPARE * launch.count)
        spec.forward[launch.config](*_tape(spec, tape, launch), 0, need, *own)
        found = int(device.read(need, launch.stream)[0])
        loan.end()
        return -(-found // WORD) * WORD


def _tape(spec: Specialisation, tape: Any, launch: Launch) -> list[Any]:
    """The tape's memory, once for each type of value on it."""
    used = spec.slots.used
    return [device.as_type(tape, used[name], launch.count) for name in sorted(used)]


def _nbytes(x: Any) -> int:
    return int(x.size) * x.dtype.itemsize


def _with_copies(x: Any, path: Path, copies: dict[Path, Any]) -> Any:
    if isinstance(x, tuple):
        return _like(x, [_with_copies(item, (*path, k), copies) for k, item in enumerate(x)])
    return copies.get(path, x)


def _like(x: tuple[Any, ...], items: Sequence[Any]) -> tuple[Any, ...]:
    """A tuple of these items; a namedtuple where x is one."""
    made: tuple[Any, ...] = type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    return made


# ---- arguments -----------------------------------------------------------------------------------------


def _argument(x: Any, position: int, wait: bool = True) -> Any:
    if device.is_array(x):
        return device.as_array(x, wait)
    if isinstance(x, tuple):
        return _like(x, [_argument(item, position, wait) for item in x])
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
        named = type(x) if hasattr(x, "_fields") else None
        return types.BaseTuple.from_types([_type_of(item) for item in x], named)
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

    is_derivative = True

    def __init__(
        self,
        runner: Runner,
        spec: Specialisation,
        launch: Launch,
        args: Sequence[Any],
        tape: Any,
        capacity: int,
        need: Any,
        kept: list[Any],
        nbytes: int,
    ) -> None:
        self._runner, self._spec, self._launch, self._args = runner, spec, launch, args
        self._tape, self._capacity, self._need, self._kept = tape, capacity, need, kept
        self._checked = False
        self.tape_nbytes = nbytes  # on the device

    def __repr__(self) -> str:
        return f"<pullback of {self._spec.name}>"

    @property
    def shadowed(self) -> tuple[int, ...]:
        """The positions of the Duplicated arguments."""
        return self._spec.given.shadows

    @property
    def active(self) -> tuple[int, ...]:
        """The positions of the Active arguments."""
        return self._spec.given.active

    @property
    def stream(self) -> Any:
        return self._launch.stream

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

    def __call__(self, *shadows: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Add up the shadows; the cotangents of the Active arguments, each the sum over all threads.

        out: device arrays of one element, one for each scalar, to which the cotangents are added; they are
        returned, and nothing waits for the device.
        """
        spec, launch = self._spec, self._launch
        given = spec.given
        if len(shadows) != len(given.shadows):
            raise TypeError(
                f"the pullback of {spec.name} takes {len(given.shadows)} shadows, not {len(shadows)}"
            )
        wait = self._runner.wait
        own = [_shadow(s, k, wait) for k, s in zip(given.shadows, shadows, strict=True)]
        self._check_shadows(own)
        scalars = [part(self._args, path) for path in given.scalars]
        sizes = [int(part(self._args, path).shape[axis]) for path, axis in given.sizes]
        loan = Loan(self._runner.memory, launch.stream)
        into = self._into(out)
        bars = [
            loan.zeros_of((SPREAD,), np.asarray(part(self._args, path)).dtype)
            for path in given.bars
        ]
        inner = [loan.zeros(part(self._args, path)) for path in given.inner]
        given_to = (
            *_tape(spec, self._tape, launch), self._capacity, self._need,
            *self._kept, *scalars, *sizes, *bars, *inner, *own,
        )  # fmt: skip
        gathering = launch.reaching(self._reached())
        if spec.gather is not None and gathering is not None:
            spec.gather[gathering.config](*launch.sizes[: launch.dims], *given_to)
        spec.reverse[launch.config](*given_to)
        if into is not None:
            for to, bar in zip(into, bars, strict=True):
                device.add_sum(to, bar, launch.stream)
            loan.end()
            return tuple(into)
        found = {
            path: float(device.read(bar, launch.stream).sum())
            for path, bar in zip(given.bars, bars, strict=True)
        }
        loan.end()
        return tuple(_returned(self._args[k], (k,), found) for k in given.active)

    def _reached(self) -> list[list[tuple[int, int]]]:
        """For each array that is gathered for, and each axis of the launch: how many elements there are along
        it, and how far behind the last thread they may be."""
        return [
            [(int(part(self._args, path).shape[axis]), by) for axis, by in axes]
            for path, axes in self._spec.given.reach
        ]

    def _into(self, out: Sequence[Any] | None) -> list[Any] | None:
        """The device arrays that get the cotangents of the scalars; None where they go to the host."""
        dtypes = [np.asarray(part(self._args, path)).dtype for path in self._spec.given.bars]
        if out is None and self._runner.wait:
            return None
        if out is None:
            return [device.zeros((1,), dtype, self._launch.stream) for dtype in dtypes]
        wait = self._runner.wait
        into = [device.as_array(x, wait) if device.is_array(x) else x for x in out]
        if len(into) != len(dtypes) or any(
            getattr(x, "dtype", None) != dtype or tuple(x.shape) != (1,)
            for x, dtype in zip(into, dtypes, strict=False)
        ):
            wanted = ", ".join(map(str, dtypes))
            raise ShadowError(f"out= takes device arrays of one element each, of dtypes ({wanted})")
        return into

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
        return _like(x, [_zeros(item, stream) for item in x])
    return device.zeros_like(x, stream) if device.is_array(x) else x


def _shadow(x: Any, position: int, wait: bool) -> Any:
    return x if isinstance(x, np.ndarray) else _argument(x, position, wait)


def _returned(x: Any, path: Path, found: dict[Path, float]) -> Any:
    """The cotangent of an Active argument."""
    if isinstance(x, tuple):
        return _like(x, [_returned(item, (*path, k), found) for k, item in enumerate(x)])
    return found.get(path)
