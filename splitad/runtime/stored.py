"""Compiled functions that are kept on disk: what Numba compiled once is loaded in the next process.

    dispatcher = keeping_jit(function, Keeper(key), **options)       an njit dispatcher

key(argument types) -> str | None: what the function is, in this process and in others, for these types;
None: it is not kept.  Keeper(key, stands_for): the dispatcher is a mere signature; stands_for() makes the one
that compiles.  Keeper(key, still=...): what was compiled is kept if still() is true afterwards.

Numba has a disk cache of its own, which takes a function for unchanged as long as its file is, and knows
neither jitclass arguments nor code that holds addresses.  Here the key says everything; it goes through
Numba's hook for caches, and a compile result is rebuilt as Numba would.

What is compiled holds addresses of this process (Numba's "dynamic globals").  Those that have a name
(addresses.py) become symbols, which LLVM resolves when the code is loaded; with any other, the code is not
kept.  Nor is it where a symbol would not be found in a new process, or where Python objects are pickled into
it by value (a class of __main__ would come back as another class); classes of namedtuples are found by their
name in content.py.  All that is linked into a kept function
becomes internal to it, and what it is called has a random number in it: Numba's names repeat in other
processes, for other functions.

need(context, function, *args), called while a function is lowered, notes what has to be called before it is
loaded: function(*args), which gives names to what the code refers to.

A result is shared within the process, as long as anybody needs it.
"""

from __future__ import annotations

import hashlib
import pickle
import secrets
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from llvmlite import ir
from llvmlite.binding import Linkage
from numba import _dynfunc, njit, types
from numba.core import cgutils, compiler, sigutils
from numba.core.environment import Environment, lookup_environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.experimental.jitclass import boxing

from splitad import store
from splitad.errors import SplitadError
from splitad.runtime import addresses
from splitad.runtime.content import (
    Content,
    Unknown,
    class_name,
    dump,
    is_local_namedtuple,
    named,
    namedtuple_name,
    restore,
)
from splitad.runtime.numba_pipeline import GeneratedCompiler, GeneratedLibrary

Key = Callable[[tuple[types.Type, ...]], "str | None"]
_DYNAMIC = "numba.dynamic.globals."
_ENVIRONMENT = "_ZN08NumbaEnv"
_PICKLE, _PICKLED = ".const.picklebuf", ".const.pickledata"


# ---- compiling what can be kept --------------------------------------------------------------------------


class KeptLibrary(GeneratedLibrary):
    """The machine code of one kept function."""

    def __init__(self, codegen: Any, name: str, mark: str = "") -> None:
        super().__init__(codegen, name)
        self.mark = mark  # is in the names of all that others call
        self.why_not = ""  # why it cannot be kept
        self.symbols: list[str] = []  # what it needs
        self.needs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.environments: dict[str, Environment] = {}  # of functions that are linked into this one

    def add_ir_module(self, ir_module: ir.Module) -> None:
        for thing, pickled in getattr(ir_module, "_PythonAPI__serialized", {}).items():
            if is_local_namedtuple(thing):
                with suppress(Unknown):
                    _pickle_by_name(ir_module, pickled, namedtuple_name(thing))
                    self.needs.append((_is_there, (thing,)))
        for value in list(ir_module.global_values):
            if value.name.startswith(_DYNAMIC):
                address = value.name.removeprefix(_DYNAMIC).partition(".")[0]
                name = addresses.name_of(int(address, 16))
                if name is not None:
                    _by_symbol(ir_module, value, name)
            elif value.name.startswith(_PICKLED) and "cloudpickle" in str(value.initializer):
                self.why_not = "an object is pickled by value"
        super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        # the environments of linked functions: those that are not used go
        for each in self._final_module.global_variables:
            if self._is_of_another(each):
                each.linkage = Linkage.linkonce_any
        super()._optimize_final_module()
        for each in self._final_module.global_variables:
            if self._is_of_another(each):
                each.linkage = Linkage.common
                environment = lookup_environment(each.name)
                if environment is None:
                    self.why_not = "the environment of another function is not known"
                else:
                    each.name = f"{each.name}.{self.mark}"
                    self.environments[each.name] = environment

    def _is_of_another(self, value: Any) -> bool:
        return (
            value.name.startswith(_ENVIRONMENT)
            and not value.is_declaration
            and self.mark not in value.name
        )

    def _finalize_final_module(self) -> None:
        module = self._final_module
        for each in (*module.functions, *module.global_variables):
            if each.is_declaration:
                if not each.name.startswith("llvm."):
                    self.symbols.append(each.name)
            elif self.mark not in each.name and not each.name.startswith((_ENVIRONMENT, "llvm.")):
                each.linkage = Linkage.internal
        super()._finalize_final_module()
        self.set_environments()

    def set_environments(self) -> None:
        for name, environment in self.environments.items():
            self._codegen.set_env(name, environment)


def _by_symbol(module: ir.Module, holder: ir.GlobalVariable, name: str) -> None:
    """Let a dynamic global be a constant, the address of a symbol."""
    known = module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(module, ir.IntType(8), name)
    holder.initializer = known
    holder.name = module.get_unique_name("splitad.address")
    holder.linkage, holder.global_constant = "internal", True


def _pickle_by_name(module: ir.Module, pickled: ir.GlobalVariable, name: str) -> None:
    """Let what Numba unpickles be what has this name.  pickled: a struct (data, size, hash of data, ...)"""
    data = pickle.dumps(_Named(name), protocol=4)
    by_value = module.globals[pickled.name.replace(_PICKLE, _PICKLED)]
    parts = list(pickled.initializer.constant)
    for k, part in (0, data), (2, hashlib.sha1(data).digest()):
        value = cgutils.make_bytearray(part)
        held = cgutils.global_constant(module, f"splitad.named.{k}", value)
        parts[k] = held.bitcast(cgutils.voidptr_t)
    parts[1] = ir.Constant(ir.IntType(32), len(data))
    pickled.initializer = ir.Constant.literal_struct(parts)
    by_value.initializer = ir.Constant(by_value.type.pointee, None)  # not used any more


class _Named:
    """Is unpickled as what has a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        return named, (self.name,)


def _is_there(cls: type) -> None:
    """See stored.need: that it was found by its name is all."""


class _KeepingCompiler(GeneratedCompiler):
    """Into a library that can be kept."""

    def new_library(self) -> GeneratedLibrary:
        number = secrets.randbits(60)
        codegen, identity = self.state.targetctx.codegen(), self.state.func_id
        identity.unique_id = number
        return KeptLibrary(codegen, identity.func_qualname, str(number))


def keeping_jit(function: Callable[..., Any], keeper: Keeper, **options: Any) -> Any:
    """njit(**options)(function), which keeps what it compiles, and looks there first."""
    if not store.enabled():
        return njit(pipeline_class=GeneratedCompiler, **options)(function)
    dispatcher = njit(pipeline_class=_KeepingCompiler, **options)(function)
    dispatcher._cache = keeper
    return dispatcher


def need(context: Any, function: Callable[..., Any], *args: Any) -> None:
    """See the module.  function: of a module of splitad."""
    library = context.active_code_library
    if isinstance(library, KeptLibrary) and (function, args) not in library.needs:
        library.needs.append((function, args))


# ---- keeping and loading ---------------------------------------------------------------------------------

# By key: the machine code of this process, which holds its compile result.
_results: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class Keeper:
    """Numba's interface to a cache, for one dispatcher; see the module."""

    cache_path = None

    def __init__(
        self,
        key: Key,
        stands_for: Callable[[], Any] | None = None,
        still: Callable[[], bool] = lambda: True,
    ) -> None:
        self._key, self._stands_for, self._still = key, stands_for, still
        self._keys: dict[Any, str | None] = {}
        self._other: Any = None

    def enable(self) -> None:
        pass

    disable = flush = enable

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        args, returned = sigutils.normalize_signature(sig)
        key = self._key_of(tuple(args), returned)
        found = None if key is None else find(key, tuple(args), target_context)
        if found is None and self._stands_for is not None:
            if self._other is None:
                self._other = self._stands_for()
            self._other.compile(sig)
            found = self._other.overloads[tuple(args)]
        # Numba measures how long the compilation took, once for each result
        return None if found is None else found._replace(metadata=None)

    def save_overload(self, sig: Any, result: Any) -> None:
        args, returned = sigutils.normalize_signature(sig)
        key = self._key_of(tuple(args), returned)
        if key is not None and key not in _results and self._still():
            _known(key, result)
            keep(key, result)

    def _key_of(self, args: tuple[types.Type, ...], returned: types.Type | None) -> str | None:
        """returned: what the result is cast to, where whoever has it compiled says so."""
        if (args, returned) not in self._keys:
            key = None
            with suppress(Unknown):
                name_boxes(args)
                key = self._key(args)
                if key is not None and returned is not None:
                    key = key_of(key, returned)
            self._keys[args, returned] = key
        return self._keys[args, returned]


def key_of(*parts: Any) -> str:
    """A key from strings and types; Unknown where a type cannot be told by its content."""
    content = Content()
    content.add(*parts)
    return content.digest()


def find(key: str, args: tuple[types.Type, ...], target_context: Any) -> Any:
    """The compile result of this key, of this process or loaded; None where there is none."""
    library = _results.get(key)
    if library is None:
        data = store.load(key)
        if data is None:
            return None
        target_context.refresh()  # it must have been made ready, as for Numba's own cache
        try:
            result = _rebuild(data, args, target_context)
        except (Unknown, SplitadError):
            return None
        _known(key, result)
        return result
    return library.result


def keep(key: str, result: Any) -> None:
    """Keep a compile result on disk, if that can be."""
    library, descriptor = result.library, result.fndesc
    fine = (
        isinstance(library, KeptLibrary)
        and not library.why_not
        and not library.has_dynamic_globals
        and not library._reload_init
        and not result.objectmode
        and not result.lifted
        and all(map(addresses.is_known, library.symbols))
    )
    if not fine:
        return
    slots = {name: getattr(descriptor, name) for name in _SLOTS}
    environment = result.environment
    names = [each.name for each in library.get_defined_functions()]
    exported = [name for name in names if library.mark in name]
    try:
        data = dump(
            (
                library.needs,
                library.symbols,
                library._get_compiled_object(),
                exported,
                slots,
                result.signature.return_type,
                list(environment.consts),
                environment.env_name,
                {name: list(other.consts) for name, other in library.environments.items()},
            )
        )
    except Unknown:
        return
    store.save(key, data)


_SLOTS = (
    "native", "modname", "qualname", "args", "kws", "mangled_name", "unique_name", "env_name", "inline",
    "noalias", "abi_tags", "uid",
)  # fmt: skip


def _known(key: str, result: Any) -> None:
    _results[key] = result.library
    result.library.result = result
    name = result.fndesc.llvm_func_name
    address = result.library.get_pointer_to_function(name)
    addresses.give_name(address, f"splitad.code.{key}", result.library)


def _rebuild(data: bytes, args: tuple[types.Type, ...], target_context: Any) -> Any:
    # first what the code refers to; only then is the rest sure to mean something
    needs, symbols, code, exported, slots, returned, consts, env_name, others = restore(data)
    for function, given in needs:
        function(*given)
    if not all(map(addresses.is_known, symbols)):  # LLVM would end the process
        raise Unknown("a symbol")
    codegen = target_context.codegen()
    library = KeptLibrary(codegen, slots["qualname"])
    library.needs = needs
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    codegen._engine._defined_symbols |= set(exported)
    descriptor = PythonFunctionDescriptor.__new__(PythonFunctionDescriptor)
    for name, value in slots.items():
        setattr(descriptor, name, value)
    descriptor.restype, descriptor.argtypes = returned, args
    descriptor.doc = descriptor.typemap = descriptor.calltypes = descriptor.global_dict = None
    environment = _environment(env_name, consts)
    library.environments = {name: _environment(name, held) for name, held in others.items()}
    library.set_environments()
    wrapper = library.get_pointer_to_function(descriptor.llvm_cpython_wrapper_name)
    module = sys.modules.get(slots["modname"]) or sys.modules[__name__]
    entry = _dynfunc.make_function(
        module, slots["qualname"].split(".")[-1], "kept", wrapper, environment, (library,)
    )
    codegen.set_env(env_name, environment)
    return compiler.compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=entry,
        fndesc=descriptor,
        library=library,
        environment=environment,
        signature=returned(*args),
        objectmode=False,
        lifted=(),
        type_annotation="",
        reload_init=(),
        referenced_envs=(),
    )


def _environment(name: str, consts: list[Any]) -> Environment:
    made = Environment({})
    made.env_name = name
    made.consts.extend(consts)
    return made


# ---- jitclass instances that a wrapper makes -------------------------------------------------------------


def name_boxes(args: tuple[types.Type, ...]) -> None:
    """Give names to the Python classes of the jitclass instances in these types."""
    for t in args:
        if isinstance(t, types.ClassInstanceType):
            box = boxing._specialize_box(t)
            name = f"splitad.box.{class_name(t.class_type)}"
            if addresses.name_of(id(box)) != name:
                addresses.give_name(id(box), name, box)
                name_boxes(tuple(t.struct.values()))
        elif isinstance(t, types.BaseTuple):
            name_boxes(tuple(t.types))
