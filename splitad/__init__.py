"""splitad: exact gradients of Numba code as it stands, by split-mode reverse differentiation."""

from importlib import import_module
from typing import Any

from splitad import testing
from splitad.api import (
    Active,
    Const,
    Duplicated,
    grad,
    make_zero,
    release_memory,
    rule,
    show,
    split,
    stop_gradient,
    value_and_grad,
    vjp,
)
from splitad.errors import (
    AliasingError,
    NoRuleError,
    NotDifferentiableError,
    ShadowError,
    SplitadError,
    TapeLimitError,
    UnsupportedError,
)

__all__ = [
    "Active", "AliasingError", "Const", "Duplicated", "NoRuleError", "NotDifferentiableError",
    "ShadowError", "SplitadError", "TapeLimitError", "UnsupportedError", "cuda", "grad", "make_zero",
    "release_memory", "rule", "show", "split", "stop_gradient", "testing", "value_and_grad", "vjp",
]  # fmt: skip
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "cuda":  # imports numba.cuda, so not before it is asked for
        return import_module("splitad.cuda")
    raise AttributeError(f"module 'splitad' has no attribute {name!r}")
