"""What functions, types and constants are, whatever process they are in: for keys, and for pickles.

    content = Content()
    content.add(f, types.float64, ...)     raises Unknown for what cannot be told by its content
    content.digest() -> str                equal only where all that was added means the same
    content.saw(code) -> bool              whether the function of this code was among it

A function is its bytecode, its constants, and all that its names stand for: globals, closure cells,
defaults, attributes of modules; of functions, classes and constants found there the same, and so on.  To a
dispatcher belong its options, to a jitclass its fields and methods, to a function with an `@overload` what
implements it, to one with a rule of the user's that rule.  Code of Python, Numba, NumPy, SciPy and splitad
goes by name: their versions are added to every digest, and so are LLVM's, the CPU's, and what is set by
environment variables.  Line numbers and file names are no part of it.

    data = dump(value)           a pickle in which classes of @jitclass, namedtuples that are not to be
                                 imported, functions and pairs are names
    value = restore(data)        raises Unknown where one of these is not there in this process

Such objects are told apart by content and by how many equal ones came before: two classes with the same text
are still two types.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import inspect
import io
import os
import pickle
import struct
import sys
import sysconfig
import types as python_types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import config
from numba.core.registry import cpu_target

from splitad.ir.foreign import Foreign
from splitad.rules import user, vector_math

MOST_PARTS = 500_000  # half a second's work
_PACKAGE = Path(__file__).parent.parent
MOST_BYTES = 10**6  # a larger array is used where it is, by Numba; its contents are no constant


class Unknown(Exception):
    """Nothing can be said about it that another process could check."""


# ---- what goes by name -----------------------------------------------------------------------------------


@functools.cache
def _trusted_folders() -> tuple[str, ...]:
    folders = [os.path.dirname(package.__file__ or "") for package in (np, numba, llvmlite)]
    folders += [str(_PACKAGE), sysconfig.get_paths()["stdlib"]]
    site = sysconfig.get_paths()
    folders += [os.path.join(site[k], "scipy") for k in ("purelib", "platlib")]
    return tuple({os.path.join(os.path.realpath(f), "") for f in folders})


@functools.cache
def _is_trusted_file(file: str) -> bool:
    """Whether the version says what is in it."""
    path = os.path.realpath(file)
    rests = [path[len(f) :] for f in _trusted_folders() if path.startswith(f)]
    return any(not rest.startswith(("site-packages", "dist-packages")) for rest in rests)


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether it belongs to an installed package."""
    folders = {sysconfig.get_paths()[k] for k in ("purelib", "platlib")}
    path = os.path.realpath(file)
    return any(path.startswith(os.path.join(os.path.realpath(f), "")) for f in folders)


def _is_trusted_module(name: str | None) -> bool:
    module = sys.modules.get(name or "")
    if module is None:
        return False
    if name in sys.builtin_module_names:
        return True
    file = getattr(module, "__file__", None)
    return file is not None and _is_trusted_file(file)


def _sources() -> list[tuple[str, int, int]]:
    found = []
    for file in sorted(_PACKAGE.rglob("*.py")):
        status = file.stat()
        found.append((str(file.relative_to(_PACKAGE)), status.st_size, status.st_mtime_ns))
    return found


_SOURCES = _sources()  # now: what is edited later is not what runs in this process


@functools.cache
def versions() -> str:
    """All that code depends on besides its own content."""
    found: list[Any] = [sys.version, np.__version__, numba.__version__, llvmlite.__version__]
    found += [llvmlite.binding.llvm_version_info, sys.platform, sys.byteorder]
    found.append(vector_math.known())
    for package in ("scipy", "numba-scipy"):
        with suppress(importlib.metadata.PackageNotFoundError):
            found.append((package, importlib.metadata.version(package)))
    return repr((found, _SOURCES))


@functools.cache
def _versions_digest() -> str:
    return hashlib.sha256(versions().encode()).hexdigest()


def settings() -> str:
    """What is set for this process, and may change in it."""
    given = sorted(
        (k, v)
        for k, v in os.environ.items()
        if k.startswith(("NUMBA_", "SPLITAD_")) and "CACHE" not in k
    )
    names = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "DEBUG")
    values = [str(getattr(config, name, None)) for name in names]
    return repr((given, values, cpu_target.target_context.codegen().magic_tuple()))


# ---- telling equal things apart --------------------------------------------------------------------------

_numbered: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_of: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_counts: dict[str, int] = {}


def name_of(thing: Any, digest: Callable[[], str]) -> str:
    """A name for an object in this process: its digest, and how many equal ones came before."""
    name = _of.get(thing)
    if name is None:
        base = digest()
        number = _counts.get(base, 0)
        _counts[base] = number + 1
        name = _of[thing] = f"{base}.{number}"
        _numbered[name] = thing
    return name


def number_of(digest: str) -> int:
    """How many objects of this digest there have been."""
    return _counts.get(digest, 0)


def named(name: str) -> Any:
    """The object of that name."""
    found = _numbered.get(name)
    if found is None:
        raise Unknown(name)
    return found


# ---- contents --------------------------------------------------------------------------------------------

_PLAIN = (type(None), bool, int, str, bytes, type(Ellipsis), type(NotImplemented))
_BY_VALUE = (tuple, frozenset, np.generic, np.dtype, python_types.CodeType, slice)
_CODE = (
    "co_name co_code co_names co_varnames co_freevars co_cellvars co_argcount co_posonlyargcount "
    "co_kwonlyargcount co_exceptiontable"
).split()

_OF_EVERY_CLASS = (
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__qualname__",
    "__match_args__", "__slots__", "_field_defaults", "__orig_bases__",
)  # fmt: skip
_OF_NAMEDTUPLE = ("__new__", "_make", "_replace", "__repr__", "_asdict", "__getnewargs__")
_SLOTS = ("member_descriptor", "getset_descriptor", "_tuplegetter")


class Content:
    """See the module."""

    def __init__(self, with_overloads: bool = True, named: Any = None) -> None:
        """named: what gets a name by this content, which cannot be part of it."""
        self._with_overloads, self._named = with_overloads, named
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._count = 0
        self._kept: list[Any] = []  # so that an id stays one object's
        self._codes: set[python_types.CodeType] = set()
        self._put(_versions_digest(), settings())

    def add(self, *things: Any) -> None:
        with _anything_may_fail():
            for thing in things:
                self._add(thing)

    def digest(self) -> str:
        """Nothing can be added afterwards."""
        with _anything_may_fail():
            for primal, rule in user.registered:
                # functions of the user's are among the contents where they are called; others may be
                # called anywhere in Numba's code
                if not isinstance(primal, Foreign) and _goes_by_name(primal):
                    self._put("rule for")
                    self._add(primal)
                    self._add(rule)
        self._seen.clear()
        self._kept.clear()
        return self._hash.hexdigest()[:40]

    def saw(self, code: python_types.CodeType) -> bool:
        """Also where its version says it all."""
        return code in self._codes or _is_trusted_file(code.co_filename)

    # ---- one thing

    def _put(self, *parts: Any) -> None:
        self._count += len(parts)
        if self._count > MOST_PARTS:
            raise Unknown("too much")
        for part in parts:
            data = part if isinstance(part, bytes) else repr(part).encode()
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)

    def _add(self, x: Any) -> None:
        if isinstance(x, _PLAIN) and type(x) in _PLAIN:
            self._put(type(x).__name__, x)
            return
        if type(x) in (float, complex):
            numbers = (x,) if type(x) is float else (x.real, x.imag)
            self._put(type(x).__name__, *(struct.pack("d", n) for n in numbers))
            return
        if not isinstance(x, _BY_VALUE):  # whether equal constants are one object, is chance
            known = self._seen.get(id(x))
            if known is not None:
                self._put("again", known)
                return
            self._seen[id(x)] = len(self._seen)
            self._kept.append(x)
        self._put(type(x).__module__, type(x).__qualname__)
        self._object(x)

    def _each(self, things: Iterable[Any]) -> None:
        items = list(things)
        self._put(len(items))
        for item in items:
            self._add(item)

    def _object(self, x: Any) -> None:
        if isinstance(x, types.Type):
            self._type(x)
        elif isinstance(x, enum.Enum):
            self._add(type(x))
            self._put(x.name)
            self._add(x.value)
        elif isinstance(x, (tuple, list)):
            if type(x) not in (tuple, list):
                self._add(type(x))
            self._each(x)
        elif isinstance(x, (set, frozenset)):
            self._each(sorted(x, key=repr))
        elif type(x) in (dict, python_types.MappingProxyType):
            self._each(x.keys())
            self._each(x.values())
        elif isinstance(x, np.ndarray):
            if type(x) is not np.ndarray or x.dtype.hasobject or x.nbytes > MOST_BYTES:
                raise Unknown("an array")
            self._put(x.dtype.descr, x.shape, x.strides, x.flags.writeable, x.tobytes())
        elif isinstance(x, np.generic):
            if x.dtype.hasobject:
                raise Unknown("an object")
            self._put(x.dtype.descr, x.tobytes())
        elif isinstance(x, np.dtype):
            self._put(x.descr if x.names is None else (x.descr, x.itemsize, x.isalignedstruct))
        elif isinstance(x, python_types.CodeType):
            self._code(x)
        elif isinstance(x, python_types.ModuleType):
            self._put(x.__name__)
        elif isinstance(x, slice):
            self._each((x.start, x.stop, x.step))
        elif isinstance(x, Foreign):
            raise Unknown("a function of a C library")
        elif not callable(x):
            if not dataclasses.is_dataclass(x) or not _goes_by_name(type(x)):
                raise Unknown(type(x).__qualname__)
            for each in dataclasses.fields(x):  # rules
                self._put(each.name)
                self._add(getattr(x, each.name))
        else:
            self._callable(x)

    def _callable(self, x: Any) -> None:
        self._rules(x)
        if isinstance(x, python_types.FunctionType):
            if _is_trusted_file(x.__code__.co_filename) and x.__closure__ is None:
                self._put(x.__module__, x.__qualname__)
                if x.__code__.co_name == "<lambda>":
                    self._code(x.__code__)
            else:
                self._function(x)
        elif hasattr(x, "py_func") and hasattr(x, "targetoptions"):
            self._put(sorted((k, repr(v)) for k, v in x.targetoptions.items()))
            self._add(dict(getattr(x, "locals", None) or {}))
            self._add(x.py_func)
        elif isinstance(x, type):
            self._class(x)
        elif isinstance(x, (python_types.BuiltinFunctionType, np.ufunc)):
            owner = getattr(x, "__self__", None)
            if owner is not None and not isinstance(owner, (python_types.ModuleType, type)):
                raise Unknown("a method of an object")
            module = getattr(x, "__module__", None) or getattr(owner, "__name__", "")
            if isinstance(x, np.ufunc):
                if getattr(np, x.__name__, None) is not x:
                    raise Unknown("a ufunc")
                module = "numpy"
            elif not _is_trusted_module(module) and owner is None:
                raise Unknown("a function of an extension")
            self._put(module, getattr(x, "__qualname__", x.__name__))
        elif hasattr(x, "_defn") and type(x).__module__ == "numba.core.extending":
            self._add(x._defn)  # an intrinsic
        elif _goes_by_name(type(x)) and _is_attribute(x):  # numpy's array functions, and such
            self._put(x.__module__, x.__qualname__)
        else:
            raise Unknown(type(x).__qualname__)

    def _function(self, x: python_types.FunctionType) -> None:
        if not self._codes and self._with_overloads:
            self._put(user_overloads())
        self._codes.add(x.__code__)
        self._code(x.__code__)
        self._add(x.__defaults__)
        self._add(x.__kwdefaults__)
        cells = []
        for cell in x.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:
                cells.append(None)
        self._each(cells)
        names = set(_names(x.__code__))
        modules = []
        for name in sorted(names):
            if name in x.__globals__:
                value = x.__globals__[name]
                self._put("global", name)
                self._add(value)
                modules.append(value)
            elif hasattr(builtins, name):
                self._put("builtin", name)
        self._attributes([*modules, *cells], names)
        for implementation in _overloads(x):
            self._add(implementation)

    def _attributes(self, values: list[Any], names: set[str]) -> None:
        """What may be meant by `module.name`, where the module's version does not say it."""
        done = set()
        while values:
            module = values.pop()
            if not isinstance(module, python_types.ModuleType) or module.__name__ in done:
                continue
            done.add(module.__name__)
            trusted = _is_trusted_module(module.__name__)
            makes = "__getattr__" in vars(module) or type(module) is not python_types.ModuleType
            if makes and not trusted:
                raise Unknown("a module that makes its attributes")
            for name in sorted(names & vars(module).keys()):
                value = vars(module)[name]
                if trusted and not _may_be_put_there(value):
                    continue
                self._put(module.__name__, name)
                self._add(value)
                values.append(value)

    def _code(self, code: python_types.CodeType) -> None:
        self._codes.add(code)
        self._put(*(getattr(code, name) for name in _CODE))
        self._put(code.co_flags & ~inspect.CO_OPTIMIZED)  # Numba clears it under a profiler
        self._each(code.co_consts)

    def _class(self, x: type) -> None:
        self._put(x.__module__, x.__qualname__)
        if _goes_by_name(x):
            return
        if hasattr(x, "class_type"):  # a jitclass
            self._add(x.class_type)
            return
        if issubclass(x, types.Type):
            raise Unknown("a type of an extension of Numba")
        self._each(x.__mro__[1:])
        if issubclass(x, enum.Enum):
            self._each((name, each.value) for name, each in x.__members__.items())  # aliases too
            return
        if issubclass(x, tuple) and hasattr(x, "_fields"):
            self._each((x._fields, getattr(x, "_field_defaults", {})))
            if x is not self._named and is_local_namedtuple(x):
                self._put(namedtuple_name(x))  # of two equal ones, which
        for name, value in sorted(vars(x).items()):
            if name in _OF_EVERY_CLASS or type(value).__name__ in _SLOTS:
                continue
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            self._put(name)
            if isinstance(value, property):
                self._each((value.fget, value.fset))
            elif not (isinstance(value, python_types.FunctionType) and name in _OF_NAMEDTUPLE):
                self._add(value)

    def _rules(self, x: Any) -> None:
        for primal, rule in user.registered:
            if primal is x:
                self._put("rule")
                self._add(rule)

    # ---- Numba's types

    def _type(self, t: types.Type) -> None:
        if isinstance(t, types.ClassType):
            self._put("jitclass", t.class_name, list(t.struct))
            self._each(t.struct.values())
            for functions in (t.jit_methods, t.jit_static_methods):
                self._add(dict(functions))
            self._each(t.jit_props)
            self._each(dict(p) for p in t.jit_props.values())
        elif isinstance(t, types.ClassInstanceType):
            self._put(class_name(t.class_type))
            self._add(t.class_type)
        elif isinstance(t, types.Dispatcher):
            self._put(dispatcher_name(t.dispatcher))
            self._add(t.dispatcher)
        elif isinstance(t, types.StructRef):
            self._put(type(t).__module__, type(t).__qualname__)
            self._each(name for name, _ in t._fields)
            self._each(kind for _, kind in t._fields)
            context = cpu_target.typing_context
            context.refresh()
            for template in context._get_attribute_templates(t):
                implementation = getattr(template, "_overload_func", None)
                if implementation is not None:
                    self._put(getattr(template, "_attr", ""))
                    self._add(implementation)
        elif not _goes_by_name(type(t)):
            raise Unknown(f"a value of type {t}")
        elif isinstance(t, types.Literal):
            self._add(t.literal_value)
        elif isinstance(t, types.Omitted):
            self._add(t.value)
        elif isinstance(t, types.BaseTuple):
            if isinstance(t, types.BaseNamedTuple):
                self._add(t.instance_class)
                self._put(t.fields)
            self._each(t.types)
        elif isinstance(t, types.Record):
            self._put(t.size, t.aligned)
            for name, at in t.fields.items():
                self._put(name, at.offset, at.alignment, at.title)
                self._add(at.type)
        elif isinstance(t, types.NestedArray):
            self._put(t.shape, t.strides)
            self._add(t.dtype)
        elif isinstance(t, types.Buffer):
            self._put(t.ndim, t.layout, t.mutable, t.aligned)
            self._add(t.dtype)
        elif isinstance(t, (types.List, types.ListType, types.Optional)):
            self._put(getattr(t, "reflected", None))
            self._add(t.type if isinstance(t, types.Optional) else t.dtype)
        elif isinstance(t, (types.NumberClass, types.DType)):
            self._add(t.key if isinstance(t, types.DType) else t.instance_type)
        elif isinstance(t, types.Module):
            self._add(t.pymod)
        elif isinstance(t, types.Function):
            raise Unknown("a function that is an argument")
        elif isinstance(
            t, (types.Number, types.Boolean, types.NoneType, types.UnicodeType, types.NPDatetime,
                types.NPTimedelta, types.CharSeq, types.UnicodeCharSeq, types.Bytes, types.EllipsisType)
        ):  # fmt: skip
            self._put(t.name)
        else:
            identity = getattr(t, "content_name", None)  # splitad's own
            if identity is None:
                raise Unknown(f"a value of type {t}")
            self._put(identity())


@contextmanager
def _anything_may_fail() -> Iterator[None]:
    """Objects of the user's may do anything when they are asked what they are."""
    try:
        yield
    except Unknown:
        raise
    except Exception as error:
        raise Unknown(str(error)) from error


def _goes_by_name(x: Any) -> bool:
    """Whether it is of a package whose version says what it is."""
    code = getattr(getattr(x, "py_func", x), "__code__", None)
    if code is not None:
        return _is_trusted_file(code.co_filename)
    return _is_trusted_module(getattr(x, "__module__", None))


def _may_be_put_there(x: Any) -> bool:
    """Whether somebody may have put it into a module of a package: ``np.k = 2.0``."""
    kinds = (*_PLAIN, *_BY_VALUE, float, complex, np.ndarray, python_types.ModuleType)
    value = isinstance(x, kinds)
    function = isinstance(x, python_types.FunctionType) or hasattr(x, "py_func")
    return value or function and not _goes_by_name(x)


def _is_attribute(x: Any) -> bool:
    """Whether its name leads to it."""
    module = sys.modules.get(getattr(x, "__module__", None) or "")
    return getattr(module, getattr(x, "__qualname__", ""), None) is x


def _names(code: python_types.CodeType) -> Iterable[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, python_types.CodeType):
            yield from _names(const)


def _overloads(x: python_types.FunctionType) -> list[Callable[..., Any]]:
    """The functions that implement it, decorated with ``@overload``."""
    context = cpu_target.typing_context
    context.refresh()
    found = []
    for template in getattr(context._lookup_global(x), "templates", ()):
        if not hasattr(template, "_overload_func"):
            raise Unknown("typed and lowered by an extension of Numba")
        found.append(template._overload_func)
    return found


def user_overloads() -> list[str]:
    """The implementations that the user, or another package, gave to functions that go by name: these may be
    called anywhere, also by Numba's own code.  Those of an installed package are told by their code and the
    state of their file, the user's own by all that they read."""
    context = cpu_target.typing_context
    context.refresh()
    found = []
    known_globals = dict.copy(context._globals)  # its entries go with their functions, at any time
    for thing, known in known_globals.items():
        target = thing() if isinstance(thing, weakref.ref) else thing
        for template in getattr(known, "templates", ()):
            function = getattr(template, "_overload_func", None)
            if function is not None and _goes_by_name(target) and not _goes_by_name(function):
                code = function.__code__
                if not _is_installed(code.co_filename):
                    inner = Content(with_overloads=False)
                    inner.add(function)
                    found.append(inner.digest())
                    continue
                with suppress(OSError):
                    status = os.stat(code.co_filename)
                    found.append(f"{status.st_size} {status.st_mtime_ns}")
                found.append(f"{function.__module__} {function.__qualname__} {code.co_code!r}")
    return sorted(found)


def class_name(t: types.ClassType) -> str:
    """The name of a jitclass in this process."""
    return name_of(t, lambda: _digest_of(t))


def is_local_namedtuple(x: Any) -> bool:
    """Whether it is a class of namedtuples that cannot be imported: of a script, or of a function."""
    if not (isinstance(x, type) and issubclass(x, tuple) and hasattr(x, "_fields")):
        return False
    return x.__module__ == "__main__" or not _is_attribute(x)


def namedtuple_name(cls: type) -> str:
    """The name of such a class in this process."""

    def digest() -> str:
        content = Content(named=cls)
        content.add(cls)
        return content.digest()

    return name_of(cls, digest)


def dispatcher_name(dispatcher: Any) -> str:
    """The name of a dispatcher in this process."""
    return name_of(dispatcher, lambda: _digest_of(dispatcher))


def _digest_of(thing: Any) -> str:
    content = Content()
    content.add(thing)
    return content.digest()


# ---- pickles ---------------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, types.BaseTuple):  # its own pickle has a name that may hold an address
            cls = getattr(x, "instance_class", None)
            parts = tuple(x.types)
            return types.BaseTuple.from_types, ((parts, cls) if cls is not None else (parts,))
        if isinstance(x, types.Type) and "#" in x.name:
            raise Unknown(f"a {x}")
        if isinstance(x, (type, python_types.FunctionType)) and x.__module__ == "__main__":
            raise Unknown("of the main module")  # which may be another program's
        return NotImplemented

    def persistent_id(self, x: Any) -> Any:
        if isinstance(x, types.ClassType):
            return "class", class_name(x)
        if isinstance(x, types.ClassInstanceType):
            return "instance", class_name(x.class_type)
        if isinstance(x, types.Dispatcher):
            return "dispatcher", dispatcher_name(x.dispatcher)
        if is_local_namedtuple(x):
            return "class", namedtuple_name(x)
        name = getattr(x, "content_name", None)
        if name is not None and not isinstance(x, type):
            return "named", type(x), name()
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == "class":
            return named(pid[1])
        if pid[0] == "instance":
            return named(pid[1]).instance_type
        if pid[0] == "dispatcher":
            return types.Dispatcher(named(pid[1]))
        return pid[1].of_content_name(pid[2])


def dump(value: Any) -> bytes:
    """See the module; Unknown where it cannot be."""
    out = io.BytesIO()
    try:
        _Pickler(out, protocol=5).dump(value)
    except Unknown:
        raise
    except Exception as error:
        raise Unknown(str(error)) from error
    return out.getvalue()


def restore(data: bytes) -> Any:
    """See the module."""
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except Unknown:
        raise
    except Exception as error:
        raise Unknown(str(error)) from error
