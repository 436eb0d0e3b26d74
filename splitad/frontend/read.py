"""The front door: from a function to its normalised form, once per function."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from splitad.frontend.cuda_names import names_cuda, without_cuda
from splitad.frontend.fence import check
from splitad.frontend.normal import NormalFunction, remembered
from splitad.frontend.normalize import normalize
from splitad.frontend.source import python_function, source_of

_KEPT = 512
_watching: list[set[CodeType]] = []


@contextmanager
def watch() -> Iterator[set[CodeType]]:
    """Collects the code of all functions that are read."""
    read: set[CodeType] = set()
    _watching.append(read)
    try:
        yield read
    finally:
        _watching.remove(read)


_read: OrderedDict[int, tuple[Any, NormalFunction]] = OrderedDict()  # by id of what it keeps alive


def read(fn: Callable[..., Any]) -> NormalFunction:
    """The normalised form of a Python function or njit dispatcher."""
    normal = _normal(fn)
    for read in _watching:
        if remembered(normal.pyfunc) is None:  # what splitad made of a part of another function
            read.add(normal.pyfunc.__code__)
    return normal


def _normal(fn: Callable[..., Any]) -> NormalFunction:
    known = _read.get(id(fn))
    if known is not None:
        return known[1]
    pyfunc = python_function(fn)
    normal = remembered(pyfunc)
    if normal is None:
        source = source_of(pyfunc)
        check(source, pyfunc)
        helpers = None
        if names_cuda(pyfunc):
            source, helpers = without_cuda(source, pyfunc, read)
        normal = normalize(source, pyfunc, getattr(fn, "locals", None), helpers)
    _read[id(fn)] = (fn, normal)
    if len(_read) > _KEPT:
        _read.popitem(last=False)
    return normal
