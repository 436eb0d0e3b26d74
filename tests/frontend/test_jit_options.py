"""njit options of a function and of what it calls: taken over, without a meaning, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, jit, njit
from numba.core.compiler import CompilerBase

import splitad as ad
from splitad.frontend import jit_options


def square(x):
    y = x * 0.1
    return y * y


class OwnCompiler(CompilerBase):
    """A pipeline of the user's; it is never run."""


REFUSED = {
    "forceobj": jit(forceobj=True)(square),
    "locals": njit(locals={"y": float32})(square),
    "pipeline_class": njit(pipeline_class=OwnCompiler)(square),
}


@pytest.mark.parametrize("option", REFUSED)
def test_refused_by_name(option: str) -> None:
    for call in (ad.split, ad.grad, lambda f: ad.vjp(f, 1.0)):
        with pytest.raises(
            ad.UnsupportedError, match=f"square is compiled with the option {option}"
        ) as e:
            call(REFUSED[option])
        assert "test_jit_options.py" in str(e.value) and e.value.hint


def test_refused_in_a_callee() -> None:
    callee = REFUSED["locals"]

    def caller(x):
        return callee(x) + 1.0  # here

    with pytest.raises(ad.UnsupportedError, match="the option locals") as e:
        ad.split(caller)(1.0)
    assert "# here" in str(e.value)


def test_an_option_of_the_future() -> None:
    f = njit(square)
    f.targetoptions["relaxed_types"] = False
    assert jit_options.refused(f) is None
    f.targetoptions["relaxed_types"] = True
    why: Any = jit_options.refused(f)
    assert "relaxed_types, which splitad does not know" in why[0]


def test_without_a_meaning() -> None:
    options = dict(debug=True, inline="always", looplift=True, no_rewrites=True, parallel=True)
    plain, given = ad.split(square)(3.0), ad.split(njit(**options)(square))(3.0)
    assert plain[0] == given[0] and plain[1](1.0) == given[1](1.0)


def test_taken_over() -> None:
    f = njit(fastmath={"nnan"}, error_model="numpy", nogil=True, boundscheck=True)(square)
    assert jit_options.taken_over(f) == {
        "fastmath": {"nnan"}, "error_model": "numpy", "nogil": True, "boundscheck": True,
    }  # fmt: skip
    assert jit_options.taken_over(njit(square)) == jit_options.taken_over(square) == {}

    @njit(error_model="numpy")
    def inverse(x):
        return 1.0 / x

    assert ad.split(inverse)(0.0)[0] == np.inf


def test_a_kernel_is_no_function_of_the_cpu() -> None:
    with pytest.raises(ad.UnsupportedError, match="compiled for CUDA"):
        ad.split(cuda.jit(square))
