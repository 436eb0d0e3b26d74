"""Functions that are compiled at the first call from compiled code: once, from any thread, or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from splitad.runtime.late import Late

FLOAT = types.float64


def caller(late: Late) -> Any:
    """``f(x)``: what the late function returns, -1.0 where it cannot be compiled, -2.0 where it raises."""

    @intrinsic
    def call(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            out = cgutils.alloca_once_value(builder, context.get_constant(FLOAT, -1.0))
            address = late.address(context, builder)
            with builder.if_then(builder.icmp_signed("!=", address, address.type(0))):
                status, value = late.call(context, builder, address, args)
                failed = context.get_constant(FLOAT, -2.0)
                builder.store(builder.select(status.is_error, failed, value), out)
            return builder.load(out)

        return FLOAT(FLOAT), codegen

    @njit(nogil=True)
    def f(x):
        return call(x)

    return f


def test_it_is_compiled_at_the_first_call() -> None:
    made = []

    def make() -> Any:
        @njit
        def root(x):
            if x < 0.0:
                raise ValueError("negative")
            return int(np.sqrt(x))  # the signature says what this is converted to

        made.append(root)
        return root

    late = Late(make, signature(FLOAT, FLOAT))
    f = caller(late)
    f.compile((FLOAT,))
    assert not made
    assert f(9.5) == 3.0 and f(-1.0) == -2.0 and f(16.0) == 4.0
    assert len(made) == 1 and late.error is None


def test_threads_without_the_gil_compile_it_once() -> None:
    made = []

    def make() -> Any:
        made.append(1)
        return njit(lambda x: 2.0 * x)

    f = caller(late := Late(make, signature(FLOAT, FLOAT)))
    f.compile((FLOAT,))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(f, [1.0, 2.0, 3.0, 4.0])) == [2.0, 4.0, 6.0, 8.0]
    assert len(made) == 1 and late.fill() != 0


def test_what_cannot_be_compiled() -> None:
    def make() -> Any:
        raise NotImplementedError("no such function")

    late = Late(make, signature(FLOAT, FLOAT))
    assert caller(late)(1.0) == -1.0
    assert isinstance(late.error, NotImplementedError)
