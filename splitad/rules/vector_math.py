"""Elementary functions that LLVM can vectorise in loops, through glibc's libmvec.

    d_u = math.cos(t) * d_v          ->        d_u = vmath.cos(t) * d_v
    y = np.tanh(x)                   ->        y = vmath.tanh(x)             of a real scalar x

vmath.cos is a call of cos in libm that tells LLVM of its vector variants (by the attribute
"vector-function-abi-variant"): called one at a time it gives what math.cos gives, in a loop that
vectorises it is within 4 ulp of that (glibc manual, "Errors in Math Functions").  Where there is no libmvec,
or the processor is not the host's own, nothing is rewritten.
"""

from __future__ import annotations

import ctypes
import math
import re
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

MODES = ("none", "pullback", "all")
_LIBRARY = "libmvec.so.1"
_ONE = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
)  # fmt: skip
_TWO = ("pow", "atan2", "hypot")
# the letter of the vector ABI, the feature that it needs, and how many float64 a register holds
_SIZES = (("b", "+sse2", 2), ("d", "+avx2", 4), ("e", "+avx512f", 8))


def _open() -> ctypes.CDLL | None:
    """libmvec, known to LLVM; None where it cannot be used."""
    if config.CPU_NAME or config.CPU_FEATURES:
        return None  # vectors are passed in other registers then than libmvec takes them in
    try:
        library = ctypes.CDLL(_LIBRARY)
        llvm.load_library_permanently(_LIBRARY)
    except (OSError, RuntimeError):
        return None
    return library


_library = _open()
_features = get_host_cpu_features().split(",") if _library is not None else []


def _variants(name: str, arity: int, single: bool) -> list[tuple[str, int]]:
    """(symbol, elements) of the vector variants that there are."""
    found = []
    for letter, feature, size in _SIZES:
        n = 2 * size if single else size
        symbol = f"_ZGV{letter}N{n}{'v' * arity}_{name}{'f' if single else ''}"
        if feature in _features and hasattr(_library, symbol):
            found.append((symbol, n))
    return found


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Nothing in the module calls the variants before the loops are vectorised; they must not be dropped."""
    word = ir.IntType(8).as_pointer()
    known = module.globals.get("llvm.compiler.used")
    if known is None:
        known = ir.GlobalVariable(module, ir.ArrayType(word, 0), "llvm.compiler.used")
        known.linkage, known.section = "appending", "llvm.metadata"
        known.initializer = ir.Constant(known.value_type, [])
    parts = list(known.initializer.constant) + [f.bitcast(word) for f in functions]
    known.value_type = ir.ArrayType(word, len(parts))
    known.initializer = ir.Constant(known.value_type, parts)


def _call(builder: Any, name: str, kind: Any, args: Any) -> Any:
    single = isinstance(kind, ir.FloatType)
    arity, module = len(args), builder.module
    libm = name + ("f" if single else "")
    scalar = ir.FunctionType(kind, [kind] * arity)
    new, mappings = [], []
    for symbol, n in _variants(name, arity, single):
        vector = ir.VectorType(kind, n)
        if symbol not in module.globals:
            new.append(ir.Function(module, ir.FunctionType(vector, [vector] * arity), symbol))
        mappings.append(f"_ZGV_LLVM_N{n}{'v' * arity}_{libm}({symbol})")
    if new:
        _keep(module, new)
    call = builder.call(cgutils.get_or_insert_function(module, scalar, libm), args)
    pure = "memory(none)" if llvm.llvm_version_info[0] >= 16 else "readnone"
    for attribute in (
        f'"vector-function-abi-variant"="{",".join(mappings)}"', "nounwind", pure, "willreturn",
    ):  # fmt: skip
        set.add(call.attributes, attribute)  # llvmlite's own `add` knows no string attributes
    return call


def _function(name: str, arity: int) -> Any:
    def typed(args: tuple[Any, ...]) -> Any:
        single = all(a == types.float32 for a in args)
        result = types.float32 if single else types.float64

        def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            return _call(builder, name, context.get_value_type(result), values)

        return result(*[result] * arity), codegen

    def of_one(typingctx: Any, x: Any) -> Any:
        return typed((x,))

    def of_two(typingctx: Any, x: Any, y: Any) -> Any:
        return typed((x, y))

    fn: Any = of_one if arity == 1 else of_two
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"math.{name} of real numbers, which loops over it may vectorise."
    return intrinsic(fn)


vmath = ModuleType("vmath", "Functions of `math` that LLVM can vectorise.")
for _names, _arity in ((_ONE, 1), (_TWO, 2)):
    for _name in _names:
        if hasattr(math, _name) and _library is not None and _variants(_name, _arity, False):
            setattr(vmath, _name, _function(_name, _arity))

_known = [name for name in (*_ONE, *_TWO) if hasattr(vmath, name)]
_CALL = re.compile(rf"\bmath\.({'|'.join(_known)})\(")
# NumPy's functions of real scalars, which are called otherwise
_OF_NUMPY = {
    getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
                 "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2"}.get(name, name)): name
    for name in _known
    if name not in ("pow", "erf", "erfc")
}  # fmt: skip


def known() -> tuple[str, ...]:
    """The functions that have vector forms here."""
    return tuple(_known)


def of_math(fn: Any, args: tuple[Any, ...]) -> Any:
    """math's function instead of NumPy's, where it has a vector form; args: types."""
    name = _OF_NUMPY.get(fn) if all(isinstance(a, types.Float) for a in args) else None
    return fn if name is None else getattr(math, name)


def run(text: str, names: dict[str, object]) -> str:
    """A function's text, with the calls of `math` that have vector forms replaced; names: its globals."""
    if not _known:
        return text
    lines = [
        line if line.lstrip().startswith("#") else _CALL.sub(r"vmath.\1(", line)  # the user's lines
        for line in text.split("\n")
    ]
    found = "\n".join(lines)
    if found != text:
        names["vmath"] = vmath
    return found
