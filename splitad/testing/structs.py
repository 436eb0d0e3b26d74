"""Fields of jitclass and structref instances, read and written from Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import types
from numba.experimental import structref
from numba.experimental.jitclass import _box


def is_struct(value: Any) -> bool:
    """Whether value is an instance of a jitclass or of a structref's proxy."""
    return isinstance(value, (_box.Box, structref.StructRefProxy))


def field_names(struct: Any) -> tuple[str, ...]:
    """The names of the fields as Numba knows them (private ones mangled)."""
    kind = numba.typeof(struct)
    names = kind.struct if isinstance(kind, types.ClassInstanceType) else kind.field_dict
    return tuple(names)


def get_field(struct: Any, name: str) -> Any:
    return _getter(name)(struct)


def set_field(struct: Any, name: str, value: Any) -> None:
    _setter(name)(struct, value)


def address(struct: Any) -> int:
    """Where the instance's data lies: two boxes of one instance have the same address."""
    if isinstance(struct, _box.Box):
        return int(_box.box_get_dataptr(struct))
    return int(struct._meminfo.data)


# A structref's proxy shows only the fields that its author made properties of, so fields are read in
# compiled code; one accessor per name serves every type.


@cache
def _getter(name: str) -> Callable[[Any], Any]:
    return _compiled(f"def get(struct):\n    return struct.{name}\n", "get")


@cache
def _setter(name: str) -> Callable[[Any, Any], None]:
    return _compiled(f"def put(struct, value):\n    struct.{name} = value\n", "put")


def _compiled(source: str, name: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return numba.njit(namespace[name])  # type: ignore[no-any-return]
