"""The njit options of a function: which a pair takes over, which say nothing of meaning, which are refused.

taken over          fastmath, error_model, boundscheck, nogil (and cache: the pair has a cache of its own)
without a meaning   parallel (the pair is serial), debug, inline and what else is about the code only
refused             forceobj, locals, a pipeline_class, and what is not known here
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TAKEN_OVER = ("fastmath", "error_model", "boundscheck", "nogil")
_WITHOUT_MEANING = {
    "parallel", "debug", "inline", "forceinline", "looplift", "nopython", "no_rewrites",
    "no_cpython_wrapper", "no_cfunc_wrapper", "writable_args", "_nrt", "_dbg_extend_lifetimes",
    "_dbg_optnone",
}  # fmt: skip


def is_dispatcher(f: Any) -> bool:
    """Whether it is what njit makes of a function (and not the function itself)."""
    return hasattr(f, "py_func") and hasattr(f, "targetoptions")


def taken_over(f: Any) -> dict[str, Any]:
    """The options of f that its pair has too; {} for a plain function."""
    given = f.targetoptions if is_dispatcher(f) else {}
    return {k: given[k] for k in TAKEN_OVER if given.get(k) is not None}


def refused(f: Any) -> tuple[str, str] | None:
    """Why f cannot be compiled as its options say, and what to do; None where it can."""
    if not is_dispatcher(f):
        return None
    name = f.py_func.__name__
    if "cuda" in type(f).__module__.split("."):
        return (
            f"{name} is compiled for CUDA, and this is for functions that run on the CPU",
            "Pass the plain function, or one compiled by njit.",
        )
    given: dict[str, Any] = dict(f.targetoptions)
    if getattr(f, "locals", None):
        given["locals"] = f.locals
    compiler: Callable[..., Any] | None = getattr(
        getattr(f, "_compiler", None), "pipeline_class", None
    )
    if compiler is not None and not compiler.__module__.startswith("numba."):
        given["pipeline_class"] = compiler
    for option, value in given.items():
        if option not in TAKEN_OVER and option not in _WITHOUT_MEANING and value:
            return f"{name} is compiled with the option {option}, {_WHY.get(option, _UNKNOWN)}", (
                _HINT.get(option, "Leave the option out.")
            )
    return None


_UNKNOWN = "which splitad does not know"
_WHY = {
    "forceobj": "and code of Python objects has no derivative",
    "locals": "which gives its variables other types than their values have",
    "pipeline_class": "a compiler of your own, which splitad cannot follow",
}
_HINT = {
    "forceobj": "Use njit.",
    "locals": "Convert the values where they are assigned: y = np.float32(x).",
}
