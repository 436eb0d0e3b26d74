"""Sizes of arrays: which operand holds them, and which are known to be equal.

Each axis has a *key*, a hashable description of its size; equal keys mean equal sizes.  So that
`u[2:] - u[:-2]` needs no check, the key of a slice is made from the key of its base.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from numba.core import types

from splitad.ir import nodes as ir
from splitad.ir.build import Builder

Key = Hashable
ONE: Key = ("lit", 1)


@dataclass(frozen=True)
class _Known:
    operand: ir.Operand
    scope: object


class Shapes:
    """What is known of the sizes of the arrays of one function."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self._axes: dict[str, tuple[Key, ...]] = {}
        self._operands: dict[Key, list[_Known]] = {}
        self._keys: dict[str, Key] = {}

    # ---- asking ----------------------------------------------------------------------------

    def keys(self, array: ir.Var) -> tuple[Key, ...]:
        if array.name not in self._axes:
            self._axes[array.name] = tuple(
                ("dim", array.name, axis) for axis in range(array.type.ndim)
            )
        return self._axes[array.name]

    def dim(self, array: ir.Var, axis: int) -> ir.Operand:
        """The size of an axis, as an operand that can be used here."""
        key = self.keys(array)[axis]
        known = self.operand(key)
        if known is None:
            known = self.b.dim(array, axis)
            self.remember(key, known)
        return known

    def dims(self, array: ir.Var) -> tuple[ir.Operand, ...]:
        return tuple(self.dim(array, axis) for axis in range(array.type.ndim))

    def operand(self, key: Key) -> ir.Operand | None:
        """An operand of this size that can be used here, if there is one."""
        if isinstance(key, tuple) and key[0] == "lit":
            return self.b.intp(key[1])
        for known in self._operands.get(key, ()):
            if self.b.in_scope(known.scope):
                return known.operand
        return None

    def key(self, size: ir.Operand) -> Key:
        """The key of a size given as an operand."""
        if isinstance(size, ir.Lit):
            return ("lit", int(size.value))
        return self._keys.get(size.name, ("var", size.name))

    def same(self, a: ir.Operand, b: ir.Operand) -> bool:
        return self.key(a) == self.key(b)

    # ---- telling ---------------------------------------------------------------------------

    def remember(self, key: Key, operand: ir.Operand) -> None:
        """operand, defined in the block being written, has the size that key describes."""
        if isinstance(operand, ir.Var):
            self._keys.setdefault(operand.name, key)
            self._operands.setdefault(key, []).append(_Known(operand, self.b.scope()))

    def define(self, array: ir.Var, keys: Sequence[Key]) -> None:
        """The sizes of a new array."""
        assert len(keys) == array.type.ndim
        self._axes[array.name] = tuple(keys)

    def define_by_sizes(self, array: ir.Var, sizes: Sequence[ir.Operand]) -> None:
        """The same, by operands."""
        for size in sizes:
            if isinstance(size, ir.Var) and size.name not in self._keys:
                self.remember(("var", size.name), size)
        self.define(array, [self.key(size) for size in sizes])

    def intp(self, size: ir.Operand, name: str = "n") -> ir.Operand:
        """size as an intp; it stays the same size."""
        if isinstance(size, ir.Lit):
            return self.b.intp(int(size.value))
        out = self.b.cast(size, types.intp, name)
        if isinstance(out, ir.Var) and out is not size:
            self._keys[out.name] = self.key(size)
        return out

    # ---- slices ----------------------------------------------------------------------------

    def sliced(self, base: Key, entry: ir.Slice) -> Key:
        """The key of ``axis[start:stop:step]``."""
        start, stop, step = (self._bound(x) for x in (entry.start, entry.stop, entry.step))
        if step not in (None, ("lit", 1)):
            return ("slice", base, start, stop, step)
        low = _number(start, 0)
        high = _number(stop, 0)
        if low is None or high is None:
            return ("slice", base, start, stop, None)
        if low >= 0 and (stop is None or high < 0):
            return _shorter(base, low - high)
        if low >= 0 and high >= 0 and isinstance(base, tuple) and base[0] == "lit":
            return ("lit", len(range(base[1])[low:high]))
        return ("slice", base, ("lit", low), stop, None)

    def _bound(self, bound: ir.Operand | None) -> Key | None:
        if bound is None or (isinstance(bound, ir.Lit) and bound.value is None):
            return None
        return self.key(bound)


def _number(key: Key | None, default: int) -> int | None:
    if key is None:
        return default
    return key[1] if isinstance(key, tuple) and key[0] == "lit" else None


def _shorter(base: Key, by: int) -> Key:
    """max(base - by, 0); what is left of an axis when `by` elements are cut off its ends."""
    if by == 0:
        return base
    assert isinstance(base, tuple)
    if base[0] == "lit":
        return ("lit", max(base[1] - by, 0))
    if base[0] == "shorter":
        return ("shorter", base[1], base[2] + by)
    return ("shorter", base, by)
