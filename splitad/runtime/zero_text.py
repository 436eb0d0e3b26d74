"""The function that makes a zero shadow, generated from a type as straight code.

For (State(u, v), u), that is a tuple of a struct with two arrays and one of them:

    def impl(x):
        table, seen, counters = words((3, 6), ...), words((1, 2), ...), words((3,), ...)
        v0 = x[0]                                       first pass: what memory the arrays span
        if find(seen, counters, identity(v0)) < 0:      (a struct is looked at once)
            enter(seen, counters, identity(v0), 0)
            v1 = v0.u; note(table, counters, v1)
            ...
        group(table, counters)
        v4 = x[0]                                       second pass, in the same order: build
        row = find(seen, counters, identity(v4))
        if row >= 0:
            v5 = again(v4, seen[row, 1])
        else:
            v5 = new_like(v4); enter(seen, counters, identity(v4), identity(v5))
            v6 = v4.u; v5.u = shadow_array(table, counters, v6)
            ...
        drop_groups(table, counters)
        return (v5, v9)

With at most one array nothing can share its memory, so there is no first pass then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype
from numba.typed.listobject import new_list

from splitad.runtime.extents import COLUMNS
from splitad.runtime.plain_zero import is_plain, plain_zeros
from splitad.runtime.zero_parts import (
    again,
    copy_discrete,
    drop_groups,
    enter,
    find,
    group,
    identity,
    new_like,
    note,
    shadow_array,
    zeros_like,
)
from splitad.tape.arrays import zero_array

_LISTS = (types.ListType, types.List)
_STRUCTS = (types.ClassInstanceType, types.StructRef)
_REFERENCES = _LISTS + _STRUCTS
_SCOPE: dict[str, Any] = {
    f.__name__: f
    for f in (
        again, copy_discrete, drop_groups, enter, find, group, identity, new_like, new_list, note,
        shadow_array, zeros_like,
    )
} | {"np": np, "words": zero_array}  # fmt: skip


def zero_function(x: types.Type, reads: bool = True) -> Callable[[Any], Any]:
    """The Python function ``impl(x)`` for this type, to be compiled.

    reads: whether it may read the arrays' elements, to copy integers; else these are zeros.
    """
    if is_plain(x):
        return lambda x: plain_zeros(x, True)
    text = _Text(reads)
    with text.block("def impl(x):"):
        counts = _static_count(x)
        text.shares = counts is None or counts[0] > 1
        text.repeats = counts is None or counts[1] > 1
        if text.shares or text.repeats:
            arrays, seen = text.count(x)
            text.line(f"table = words(({arrays}, {COLUMNS}), np.int64)")
            text.line(f"seen = words(({seen}, 2), np.int64)")
            text.line("counters = words((3,), np.int64)")
        if text.shares:
            text.scan("x", x)
            text.line("group(table, counters)")
        result = text.build("x", x)
        if text.shares:
            text.line("drop_groups(table, counters)")
        text.line(f"return {result}")
    scope = _SCOPE | text.constants
    exec("\n".join(text.lines), scope)
    return scope["impl"]  # type: ignore[no-any-return]


def _parts(x: types.Type) -> list[tuple[str, types.Type]]:
    """How the parts of a tuple or struct are written after its name, and their types."""
    if isinstance(x, types.BaseTuple):
        return [(f"[{k}]", item) for k, item in enumerate(x.types)]
    fields = x.struct if isinstance(x, types.ClassInstanceType) else x.field_dict
    return [(f".{name}", typ) for name, typ in fields.items()]


def _static_count(x: types.Type) -> tuple[int, int] | None:
    """How many arrays and structs there are; None where there are lists."""
    if isinstance(x, _LISTS):
        return None
    if isinstance(x, types.Array):
        return 1, 0
    arrays, seen = 0, int(isinstance(x, _STRUCTS))
    if isinstance(x, (types.BaseTuple, *_STRUCTS)):
        for _, part in _parts(x):
            inner = _static_count(part)
            if inner is None:
                return None
            arrays, seen = arrays + inner[0], seen + inner[1]
    return arrays, seen


class _Text:
    """The lines of the function."""

    def __init__(self, reads: bool) -> None:
        self.reads = reads
        self.lines: list[str] = []
        self.depth = self.names = 0
        self.shares = self.repeats = True  # there are several arrays; several structs or lists
        self.constants: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self, value: str | None = None) -> str:
        """A new variable, set to `value`."""
        name = f"v{self.names}"
        self.names += 1
        if value is not None:
            self.line(f"{name} = {value}")
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    # ---- how many ----

    def count(self, x: types.Type) -> tuple[str, str]:
        """Expressions for upper bounds of the numbers of arrays, and of structs and lists."""
        known = _static_count(x)
        if known is not None:
            return str(known[0]), str(known[1])
        self.line("arrays = seen_ = 0")
        self.add_count("x", x)
        return "arrays", "seen_"

    def add_count(self, expr: str, x: types.Type) -> None:
        known = _static_count(x)
        if known is not None:
            if any(known):
                self.line(f"arrays += {known[0]}; seen_ += {known[1]}")
        elif not isinstance(x, _LISTS):
            self.line(f"seen_ += {int(isinstance(x, _STRUCTS))}")
            for path, part in _parts(x):
                self.add_count(expr + path, part)
        else:
            self.line("seen_ += 1")
            each = _static_count(x.dtype)
            if each is not None:
                self.line(f"arrays += len({expr}) * {each[0]}; seen_ += len({expr}) * {each[1]}")
                return
            k = self.name()
            with self.block(f"for {k} in range(len({expr})):"):
                self.add_count(self.name(f"{expr}[{k}]"), x.dtype)

    # ---- the first pass ----

    def scan(self, expr: str, x: types.Type) -> None:
        if isinstance(x, types.Array):
            self.line(f"note(table, counters, {expr})")
        elif isinstance(x, types.BaseTuple):
            self.scan_parts(expr, x)
        elif isinstance(x, _REFERENCES):
            with self.block(f"if find(seen, counters, identity({expr})) < 0:"):
                self.line(f"enter(seen, counters, identity({expr}), 0)")
                if isinstance(x, _STRUCTS):
                    self.scan_parts(expr, x)
                elif _static_count(x.dtype) != (0, 0):
                    k = self.name()
                    with self.block(f"for {k} in range(len({expr})):"):
                        self.scan(self.name(f"{expr}[{k}]"), x.dtype)

    def scan_parts(self, expr: str, x: types.Type) -> None:
        for path, part in _parts(x):
            if _static_count(part) != (0, 0):
                self.scan(self.name(expr + path), part)

    # ---- the second pass ----

    def build(self, expr: str, x: types.Type) -> str:
        """The variable that holds the shadow."""
        if isinstance(x, types.Array):
            return self.build_array(expr, x)
        if isinstance(x, types.BaseTuple):
            items = [self.build(self.name(expr + path), part) for path, part in _parts(x)]
            listed = "".join(item + ", " for item in items)
            named = isinstance(x, types.BaseNamedTuple)
            return self.name((self.constant(x.instance_class) if named else "") + f"({listed})")
        if isinstance(x, _REFERENCES):
            return self.build_reference(expr, x)
        if isinstance(x, (types.Float, types.Complex)):
            return self.constant(as_dtype(x).type(0))
        return expr

    def build_array(self, expr: str, x: types.Array) -> str:
        if self.shares:
            shadow = self.name(f"shadow_array(table, counters, {expr})")
        else:
            shadow = self.name(f"zeros_like({expr})")
        if self.reads and not isinstance(x.dtype, (types.Float, types.Complex)):
            self.line(f"copy_discrete({shadow}, {expr})")
        return shadow

    def build_reference(self, expr: str, x: types.Type) -> str:
        shadow = self.name()
        if not self.repeats:
            self.fill_reference(shadow, expr, x)
            return shadow
        row = self.name(f"find(seen, counters, identity({expr}))")
        with self.block(f"if {row} >= 0:"):
            self.line(f"{shadow} = again({expr}, seen[{row}, 1])")
        with self.block("else:"):
            self.fill_reference(shadow, expr, x)
        return shadow

    def fill_reference(self, shadow: str, expr: str, x: types.Type) -> None:
        if isinstance(x, types.ListType):
            self.line(f"{shadow} = new_list({self.constant(x.dtype)})")
        else:
            self.line(
                f"{shadow} = {expr}[:0]"
                if isinstance(x, _LISTS)
                else f"{shadow} = new_like({expr})"
            )
        if self.repeats:
            self.line(f"enter(seen, counters, identity({expr}), identity({shadow}))")
        if isinstance(x, _STRUCTS):
            for path, part in _parts(x):
                self.line(f"{shadow}{path} = {self.build(self.name(expr + path), part)}")
            return
        k = self.name()
        with self.block(f"for {k} in range(len({expr})):"):
            self.line(f"{shadow}.append({self.build(self.name(f'{expr}[{k}]'), x.dtype)})")
