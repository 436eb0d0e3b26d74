"""Functions that compiled code calls, but that are compiled only when it comes to that.

    late = Late(make, signature, name)             make() -> an njit dispatcher that takes those types
    address = late.address(context, builder)       emits code that has it compiled; 0 where that is impossible
    status, value = late.call(context, builder, address, args)

The calling code holds the address of a word with the function's address, which is 0 before the first call;
then Python is called back, which compiles the function and fills the word.  A thread without the GIL
takes it for that.  Where compiling raises, the error is kept in `late.error`.  With a name (see
addresses.py) the calling code can be kept on disk.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.typing.templates import Signature

from splitad.runtime import addresses
from splitad.runtime.linking import compiled

_i64 = ir.IntType(64)
# By the address of the word; they live as long as the specialisations whose functions they are.
_known: weakref.WeakValueDictionary[int, Late] = weakref.WeakValueDictionary()


class Late:
    """One function of one signature; see the module."""

    def __init__(
        self, make: Callable[[], Any], signature: Signature, name: str | None = None
    ) -> None:
        self._make, self.signature = make, signature
        self._address = np.zeros(1, np.int64)
        self._lock = threading.Lock()
        self._result: Any = None  # Numba's compile result owns the machine code
        self.error: Exception | None = None
        where = int(self._address.ctypes.data)
        _known[where] = self
        if name is not None:
            addresses.give_name(where, name, self)

    def fill(self) -> int:
        """The function's address; 0 where it cannot be compiled."""
        with self._lock:
            if self._result is None and self.error is None:
                try:
                    dispatcher = self._make()
                    dispatcher.compile(self.signature)
                    result = compiled(dispatcher, self.signature.args)
                    name = result.fndesc.llvm_func_name
                    self._address[0] = result.library.get_pointer_to_function(name)
                    self._result = result
                except Exception as error:
                    self.error = error
        return int(self._address[0])

    def address(self, context: Any, builder: Any) -> ir.Value:
        """Emit code that finds the address, or 0."""
        word = context.add_dynamic_addr(builder, self._address.ctypes.data, info="splitad late")
        found = cgutils.alloca_once(builder, _i64)
        builder.store(builder.load(builder.bitcast(word, _i64.as_pointer())), found)
        missing = builder.icmp_signed("==", builder.load(found), _i64(0))
        with builder.if_then(missing, likely=False):
            kind = ir.FunctionType(_i64, [_i64])
            compile = cgutils.get_or_insert_function(builder.module, kind, "splitad_compile_late")
            builder.store(builder.call(compile, [builder.ptrtoint(word, _i64)]), found)
        return builder.load(found)

    def call(self, context: Any, builder: Any, address: ir.Value, args: list[Any]) -> Any:
        """Emit the call, the address not 0: (status, value), nothing raised."""
        types = self.signature.return_type, self.signature.args
        pointer = context.call_conv.get_function_type(*types).as_pointer()
        callee = builder.inttoptr(address, pointer)
        return context.call_conv.call_function(builder, callee, *types, args)


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def _compile_late(word: int) -> int:
    try:
        return _known[word].fill()
    except BaseException:  # nothing can be raised through compiled code
        return 0


llvm.add_symbol("splitad_compile_late", ctypes.cast(_compile_late, ctypes.c_void_p).value)
