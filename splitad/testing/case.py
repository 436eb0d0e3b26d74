"""What one check is about: the function, its pair, the arguments; and a forward that has been run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitad.testing.arguments import spoil
from splitad.testing.copying import arrays_in, copy_args
from splitad.testing.leaves import Values, contents, snapshot


@dataclass(frozen=True)
class Tape:
    """A forward that has been run; its arguments and its result are overwritten by now."""

    pullback: Callable[..., Any]
    entry: tuple[Any, ...]  # copies: the arguments as they were,
    exit: tuple[Any, ...]  # as f left them,
    result: Any  # and what f returned
    args: tuple[Any, ...]  # the arguments themselves


@dataclass(frozen=True)
class Case:
    name: str
    plain: Callable[..., Any]
    forward: Callable[..., Any]
    args: tuple[Any, ...]
    kinds: tuple[str, ...]
    prepare: Callable[[], None]
    exact: bool
    modified: tuple[bool, ...]
    apart: bool = (
        False  # whether Const arguments keep to themselves, though they share others' memory
    )

    @property
    def duplicated(self) -> tuple[int, ...]:
        return tuple(k for k, kind in enumerate(self.kinds) if kind == "Duplicated")

    @property
    def wanted(self) -> tuple[int, ...]:
        return tuple(k for k, kind in enumerate(self.kinds) if kind != "Const")

    def fail(self, what: str) -> AssertionError:
        return AssertionError(f"{self.name}: {what}")

    def run(self, args: tuple[Any, ...]) -> Values:
        """f's result and what it leaves in the Duplicated arguments, by path; args are used up."""
        self.prepare()
        values = snapshot(self.plain(*args), ("result",))
        for k in self.duplicated:
            values.update(snapshot(args[k], (k,)))
        return values

    def moved(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Copies for differences: what they change is not what is Const, where that has its own part."""
        copies = copy_args(args)
        if not self.apart:
            return copies
        return tuple(
            copy_args((args[k],))[0] if kind == "Const" else copies[k]
            for k, kind in enumerate(self.kinds)
        )

    def forward_at(self, at: tuple[Any, ...]) -> Tape:
        """Run forward on copies, then overwrite all that it was given or gave."""
        args = copy_args(at)
        arrays = arrays_in(args)  # also those that fields will no longer hold
        before = [contents(arg) for arg in args]
        self.prepare()
        result, pullback = self.forward(*args)
        for k, changes in enumerate(self.modified):
            if not changes and contents(args[k]) != before[k] and _overlaps_another(args, k):
                raise self.fail(
                    f"argument {k} is declared modified_between=False, "
                    "but f writes to it through another argument"
                )
        *exit_args, result_copy = copy_args((*args, result))
        if all(self.modified):
            spoil((*args, *arrays, result))
        else:
            self._spoil_some(args)
        return Tape(pullback, copy_args(at), tuple(exit_args), result_copy, args)

    def _spoil_some(self, args: tuple[Any, ...]) -> None:
        """Overwrite the arguments that may be, but not what a field of theirs has from one that may not."""
        changing = list(zip(args, self.modified, strict=True))
        kept = [
            (array, array.copy())
            for arg, changes in changing
            for array in (() if changes else arrays_in(arg))
            if array.flags.writeable
        ]
        spoil(tuple(arg for arg, changes in changing if changes))
        for array, numbers in kept:
            array[...] = numbers


def _overlaps_another(args: tuple[Any, ...], k: int) -> bool:
    rest = arrays_in(args[:k] + args[k + 1 :])
    return any(np.may_share_memory(mine, other) for mine in arrays_in(args[k]) for other in rest)
