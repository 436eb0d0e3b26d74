"""The machine code that makes new arrays, whatever their type: see `empty_array` in arrays.py.

    splitad_array_new(array, ndim, itemsize, sizes, zeroed) -> 0, or what is wrong

writes Numba's array struct at address `array`: MemInfo, parent, element count, item size, data, then sizes
and strides, C-contiguous.  `sizes` is the address of ndim integers.  Numba's own allocation is compiled,
or linked and optimised again, with every function that makes an array.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core.runtime import _nrt_python

from splitad.tape.machine_code import Emit, c_function, compiled, external, i32, i64, large_pages

NEGATIVE, TOO_BIG, NO_MEMORY = 1, 2, 3
ALIGNMENT = 64  # a line of the cache, and the widest vector
MEMINFO, PARENT, NITEMS, ITEMSIZE, DATA, SHAPE = range(0, 48, 8)  # byte offsets in the struct


def emit_new(module: ir.Module, memset: ir.Function) -> ir.Function:
    """Add the function to a module."""
    helpers = _nrt_python.c_helpers
    allocate = external(module, "new_meminfo", i64, [i64, i32], helpers["MemInfo_alloc_aligned"])
    data_of = external(module, "meminfo_data", i64, [i64], helpers["MemInfo_data"])
    e = Emit(module, "splitad_array_new", i64, 5)
    b = e.b
    array, ndim, itemsize, sizes, zeroed = e.fn.args
    flag = ir.IntType(1)
    nitems, too_big, stride = b.alloca(i64), b.alloca(flag), b.alloca(i64)
    b.store(e.const(1), nitems)
    b.store(flag(0), too_big)

    def times(n: ir.Value) -> ir.Value:
        product = b.smul_with_overflow(b.load(nitems), n)
        b.store(b.or_(b.load(too_big), b.extract_value(product, 1)), too_big)
        return b.extract_value(product, 0)

    with e.loop(e.const(0), ndim) as i:
        with b.if_then(e.less(e.load(b.add(sizes, b.mul(i, e.const(8)))), e.const(0))):
            b.ret(e.const(NEGATIVE))
    with e.loop(e.const(0), ndim) as i:
        b.store(times(e.load(b.add(sizes, b.mul(i, e.const(8))))), nitems)
    total = times(itemsize)
    with b.if_then(b.load(too_big)):
        b.ret(e.const(TOO_BIG))
    b.store(itemsize, stride)
    strides = b.add(array, b.add(b.mul(ndim, e.const(8)), e.const(SHAPE)))
    with e.loop(e.const(0), ndim) as i:  # from the last dimension to the first
        at = b.mul(b.sub(b.sub(ndim, i), e.const(1)), e.const(8))
        n = e.load(b.add(sizes, at))
        e.store(n, b.add(b.add(array, at), e.const(SHAPE)))
        e.store(b.load(stride), b.add(strides, at))
        b.store(b.mul(b.load(stride), n), stride)
    meminfo = b.call(allocate, [total, i32(ALIGNMENT)])
    with b.if_then(e.is_zero(meminfo)):
        b.ret(e.const(NO_MEMORY))
    data = b.call(data_of, [meminfo])
    large_pages(module)(e, data, total)
    with b.if_then(e.not_zero(zeroed)):
        b.call(memset, [data, i32(0), total])
    words = [(meminfo, MEMINFO), (e.const(0), PARENT), (b.load(nitems), NITEMS)]
    for value, offset in [*words, (itemsize, ITEMSIZE), (data, DATA)]:
        e.store(value, array, offset)
    b.ret(e.const(0))
    return e.fn


def memset_of(module: ir.Module) -> ir.Function:
    return external(module, "memset", i64, [i64, i32, i64], c_function("memset"))


def _build() -> object:
    module = ir.Module(name="splitad_arrays")
    emit_new(module, memset_of(module))
    return compiled(module, ["splitad_array_new"])


_engine = _build()  # owns the machine code
