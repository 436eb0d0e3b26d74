"""Every generated kernel is compiled for a GPU, as a launch would do it, and what it takes is looked at.

Needs numba-cuda with its compilers (the extra cuda13), but neither a GPU nor a driver.
"""

from __future__ import annotations

import inspect
import linecache
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, typeof, types
from numba.cuda import libdevice

from splitad.testing import cubins
from tests.targets.cuda.kernels import CASES

pytestmark = pytest.mark.skipif(not cubins.usable(), reason="numba-cuda is not installed")


def type_of(x: Any) -> types.Type:
    if isinstance(x, tuple):
        return types.BaseTuple.from_types([type_of(item) for item in x])
    return typeof(x)


@cache
def built(name: str) -> tuple[cubins.Built, ...]:
    """The plain kernel, the augmented one, the reverse one, and the gather kernel if there is one."""
    import splitad as ad
    from splitad.targets.cuda.launch import Launch

    case = CASES[name]
    argtypes = tuple(map(type_of, case.make(np.random.default_rng(1))))
    dims = Launch.of(case.launch).dims
    spec = ad.cuda.split(case.kernel).compiled(argtypes, dims)
    forward, reverse = ad.cuda.kernel_types(spec, argtypes)
    kernels = [(case.kernel, argtypes), (spec.forward, forward), (spec.reverse, reverse)]
    if spec.gather is not None:
        kernels.append((spec.gather, (*[types.int64] * dims, *reverse)))
    return tuple(cubins.build(kernel, kinds) for kernel, kinds in kernels)


@pytest.mark.parametrize("name", CASES)
def test_resources(name: str) -> None:
    plain, *others = built(name)
    for made in others:
        assert made.cubin.startswith(b"\x7fELF")
        assert made.registers <= plain.registers + CASES[name].registers
        assert made.spills <= plain.spills
        # local memory: a local array, and its shadow in the reverse; the range reduction of sin and cos
        assert made.stack <= max(2 * plain.stack, 40)


@pytest.mark.parametrize("name", CASES)
def test_barriers(name: str) -> None:
    plain, forward, reverse = built(name)[:3]
    # (loops are unrolled differently)
    assert (forward.count("bar.sync") > 0) == (plain.count("bar.sync") > 0)
    assert (reverse.count("bar.sync") > 0) == (plain.count("bar.sync") > 0)


@cuda.jit
def cell(x, y, a):
    i = cuda.grid(1)
    if i < x.shape[0]:
        r = x[i] * x[i] + float32(0.01)
        w = float32(1.0) / (r * math.sqrt(r))
        s = float32(1.0) / (float32(1.0) + math.exp(-w * a))
        y[i] = math.tanh(max(s, y[i])) * math.hypot(s, w) + abs(math.log(r) - a)


@pytest.mark.parametrize("name", ["cell", "single", "shared_single", "softmax"])
def test_single_precision_stays(name: str) -> None:
    """No constant of a partial derivative turns floats into doubles."""
    if name == "cell":
        import splitad as ad

        array = types.Array(types.float32, 1, "C")
        argtypes = (array, array, types.float32)
        spec = ad.cuda.split(cell).compiled(argtypes)
        _, kinds = ad.cuda.kernel_types(spec, argtypes)
        plain, reverse = cubins.build(cell, argtypes), cubins.build(spec.reverse, kinds)
    else:
        plain, _, reverse = built(name)
    assert reverse.ptx.count(".f64") <= plain.ptx.count(".f64")


@cuda.jit
def by_libdevice(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        v = libdevice.sinf(x[i]) + libdevice.fast_expf(x[i]) * libdevice.hypotf(x[i], float32(0.5))
        y[i] = v + libdevice.powf(x[i], float32(1.5)) + libdevice.tgammaf(x[i])


def test_libdevice() -> None:
    """(Not in the simulator, which does not have it.)"""
    import splitad as ad

    argtypes = (types.Array(types.float32, 1, "C"),) * 2
    spec = ad.cuda.split(by_libdevice).compiled(argtypes)
    forward, reverse = ad.cuda.kernel_types(spec, argtypes)
    text = inspect.getsource(spec.forward.py_func)
    assert "libdevice.sinf(" in text and "libdevice.fast_expf(" in text
    assert "math.cos(" in inspect.getsource(spec.reverse.py_func)
    plain = cubins.build(by_libdevice, argtypes)
    for kernel, kinds in ((spec.forward, forward), (spec.reverse, reverse)):
        made = cubins.build(kernel, kinds)
        assert made.spills == 0 and made.registers <= plain.registers + 40
    assert "cvt.f64" not in cubins.build(spec.forward, forward).ptx  # single precision stays


@pytest.mark.parametrize("bits", [32, 64])
def test_all_of_libdevice(bits: int) -> None:
    """Each function of floats is there, and compiled, and so is its derivative."""
    import splitad as ad
    from splitad.ir.libdevice import FUNCTIONS, count

    chosen = {name: count(fn) for name, (fn, of) in FUNCTIONS.items() if of == bits}
    assert all(hasattr(libdevice, name) for name in chosen) and len(chosen) > 60
    calls = [f"libdevice.{name}({', '.join('vwu'[:n])})" for name, n in chosen.items()]
    lines = ["def kernel(x, y):", "    i = cuda.grid(1)", "    if i < x.shape[0]:"]
    lines += ["        v, w, u = x[i], x[i + 1], x[i + 2]", "        s = x[i]"]
    lines += [f"        s += {call} * v" for call in calls] + ["        y[i] = s"]
    text = "\n".join(lines) + "\n"
    file = f"<libdevice {bits}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"cuda": cuda, "libdevice": libdevice}
    exec(compile(text, file, "exec"), scope)
    argtypes = (types.Array(getattr(types, f"float{bits}"), 1, "C"),) * 2
    spec = ad.cuda.split(cuda.jit(scope["kernel"])).compiled(argtypes)
    for kernel, kinds in zip(
        (spec.forward, spec.reverse), ad.cuda.kernel_types(spec, argtypes), strict=True
    ):
        assert cubins.build(kernel, kinds).cubin.startswith(b"\x7fELF")
    made = inspect.getsource(spec.forward.py_func)
    assert all(f"libdevice.{name}(" in made for name in chosen)


def test_options() -> None:
    """(The simulator does not keep those of cuda.jit.)"""
    import splitad as ad

    def kernel(x):
        i = cuda.grid(1)
        x[i] = x[i] * x[i]

    array = (types.Array(types.float32, 1, "C"),)
    given = {"fastmath": True, "lineinfo": True, "opt": True, "max_registers": 40}
    spec = ad.cuda.split(cuda.jit(**given)(kernel)).compiled(array)
    for made in (spec.forward, spec.reverse):
        assert given.items() <= made.targetoptions.items()
    with pytest.raises(TypeError, match="cannot be launched"):
        ad.cuda.split(cuda.jit(device=True)(kernel))
    with pytest.raises(ad.UnsupportedError, match="the option cooperative"):
        ad.cuda.split(cuda.jit(cooperative=True)(kernel))


@cuda.jit
def by_math(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        v = math.remainder(x[i], y[i]) + math.exp2(x[i]) + math.nextafter(x[i], 2.0)
        y[i] = v * math.ldexp(x[i], 3) + math.radians(v) * math.ceil(v) + v * math.trunc(v)


def test_math() -> None:
    """What is not in the simulator's kernels."""
    import splitad as ad

    for kind in (types.float32, types.float64):
        argtypes = (types.Array(kind, 1, "C"),) * 2
        spec = ad.cuda.split(by_math).compiled(argtypes)
        for kernel, kinds in zip(
            (spec.forward, spec.reverse), ad.cuda.kernel_types(spec, argtypes), strict=True
        ):
            assert cubins.build(kernel, kinds).spills == 0


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].adds is not None])
def test_atomics(name: str) -> None:
    """What is a thread's own is added without atomics, and what neighbours load of it."""
    reverse, *gather = built(name)[2:]
    assert reverse.count("atom") + reverse.count("red") == CASES[name].adds
    assert len(gather) == CASES[name].gathers
    for made in gather:
        assert made.count("atom") + made.count("red") == 0
