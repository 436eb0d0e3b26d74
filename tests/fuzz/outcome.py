"""Load a program and check it: passed, refused, dropped, or failed, and why."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np

import splitad as ad
from splitad.errors import AliasingError, NoRuleError, NotDifferentiableError, UnsupportedError
from splitad.testing import check_vjp, copy_args
from splitad.testing.leaves import leaves

LARGEST = (
    1e3  # a program whose values grow beyond this is chaotic or overflows: differences say nothing
)
RTOL = 1e-6
_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """kind: "passed"; "refused": a SplitadError; "dropped": not a fair test; "failed"."""

    kind: str
    why: str = ""

    @property
    def headline(self) -> str:
        return self.why.strip().splitlines()[0] if self.why.strip() else ""


def load(path: Path) -> ModuleType:
    name = f"splitad_fuzz_{path.stem}_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check_file(path: Path) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = load(path)
            args = module.make_args()
            plain = numba.njit(module.f)
            reason = _unfair(plain, args)
        except Exception as error:  # numba rejects it: nothing to compare with
            return Outcome("dropped", f"numba: {type(error).__name__}: {str(error)[:200]}")
        if reason:
            return Outcome("dropped", reason)
        return _check(plain, args, module.CONST)


def _check(plain: Any, args: tuple[Any, ...], const: tuple[int, ...]) -> Outcome:
    try:
        check_vjp(plain, *args, activities=_activities(args, const), rtol=RTOL)
    except (UnsupportedError, NoRuleError, NotDifferentiableError, AliasingError) as error:
        return Outcome("refused", str(error))
    except AssertionError as error:
        if "do not settle" in str(error):
            return Outcome("dropped", "differences do not settle")
        return Outcome("failed", str(error) or traceback.format_exc())
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error}"
        return Outcome("failed", text + "\n" + traceback.format_exc())
    return Outcome("passed")


def _unfair(plain: Any, args: tuple[Any, ...]) -> str:
    """Why a program is no test of derivatives, or ""."""
    copies = copy_args(args)
    result = plain(*copies)
    for _, leaf in leaves((copies, result)):
        values = np.asarray(leaf)
        if values.dtype.kind == "f" and not np.all(np.abs(values) < LARGEST):
            return "values are not finite or grow too large"
    return ""


def _activities(args: tuple[Any, ...], const: tuple[int, ...]) -> tuple[Any, ...] | None:
    if not const:
        return None
    kinds = []
    for k, arg in enumerate(args):
        active = isinstance(arg, (float, np.floating)) or (isinstance(arg, tuple))
        mutable = isinstance(arg, np.ndarray) or hasattr(arg, "_numba_type_")
        kind = ad.Active if active else ad.Duplicated if mutable else ad.Const
        kinds.append(ad.Const if k in const else kind)
    return tuple(kinds)
