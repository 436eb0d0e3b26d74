"""The text of a function's pair, without compiling it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numba

from splitad.frontend.lower import lower
from splitad.frontend.state import CompileFlags
from splitad.ir import activities
from splitad.pipeline import Options, PairText, build
from splitad.rules import ops, registry


def pair_text(
    f: Callable[..., Any], *args: Any, const: tuple[int, ...] = (), **options: Any
) -> PairText:
    """const: positions of Const arguments."""
    argtypes = tuple(map(numba.typeof, args))
    fn = lower(f, argtypes, CompileFlags(), registry, ops)
    kinds = tuple(
        "const" if k in const else activities.default(t).value for k, t in enumerate(argtypes)
    )
    options = {"vector_math": "none"} | options  # the same text everywhere
    return build(fn, kinds, Options(**options))


def stable(text: PairText) -> str:
    """Forward and pullback, with the names that are numbered as a process meets them made the same."""
    both = f"{text.forward}\n{text.pullback}"
    for name in text.names:
        base, _, number = name.rpartition("_")
        if number.isdigit():
            both = re.sub(rf"\b{name}\b", base, both)
    return re.sub(r"^( *# )\d+: ", r"\1", both, flags=re.M)
