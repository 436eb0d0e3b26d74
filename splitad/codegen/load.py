"""Generated source: written to a real file, imported as a real module.

    load_source(stem, source, injected) -> module
    module_name(stem, source) -> "splitad_generated.<stem>_<hash>"

A real file makes Numba's messages show the line, lets inspect.getsource and a debugger work, and is what
Numba's own disk cache wants.  The name is made of `stem` (the function) and a hash of the content, hence a
file never changes: two processes that write it write the same, and what is there is compared before it is
used.  `injected` holds what the text refers to but cannot import (njit functions, constants); it is put into
the module's globals before the text runs, and a module already loaded is returned as it is, so things
that differ must lead to a different text (a comment with their keys will do).

The files are in the cache folder; see store.py.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from splitad.store import cache_folder, write_file

PACKAGE = "splitad_generated"
_lock = threading.RLock()


def _file_stem(stem: str, source: str) -> str:
    plain = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_") or "f"
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return f"{plain[:60]}_{digest}"


def module_name(stem: str, source: str) -> str:
    """What the module of this text is called in sys.modules."""
    return f"{PACKAGE}.{_file_stem(stem, source)}"


def load_source(stem: str, source: str, injected: Mapping[str, Any] | None = None) -> ModuleType:
    """The module made of `source`, from sys.modules if it is there already."""
    name = module_name(stem, source)
    with _lock:
        if name in sys.modules:
            return sys.modules[name]
        _ensure_package()
        path = write_file(cache_folder(), _file_stem(stem, source) + ".py", source.encode())
        linecache.checkcache(str(path))
        loader = _Loader(name, str(path), source)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__dict__.update(injected or {})
        sys.modules[name] = module
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        setattr(sys.modules[PACKAGE], name.rpartition(".")[2], module)
        return module


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs the text that it was given, not what may be in the file by then."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.text = source

    def get_code(self, fullname: str) -> Any:
        # no .pyc either: it could be somebody else's
        return compile(self.text, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds generated modules by name, for a pickle or a Numba cache that is loaded before splitad made
    them again.  What they were injected is not known here, so only their text's own imports work."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PACKAGE + "."):
            return None
        stem = fullname.removeprefix(PACKAGE + ".")
        file = cache_folder() / f"{stem}.py"
        if file.is_symlink() or not file.is_file():
            return None
        source = file.read_text(encoding="utf-8")
        function, _, _digest = stem.rpartition("_")
        if _file_stem(function, source) != stem:  # truncated, or not ours
            return None
        loader = _Loader(fullname, str(file), source)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


def _ensure_package() -> None:
    """The parent that generated modules hang in."""
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE, "What splitad generated in this process.")
        package.__path__ = []
        sys.modules[PACKAGE] = package
        sys.meta_path.append(_Finder())


_ensure_package()
