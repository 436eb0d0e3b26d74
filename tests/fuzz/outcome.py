"""Load a program and check it: passed, refused, dropped, or failed, and why."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numba.typed import List

import splitad as ad
from splitad.errors import AliasingError, NoRuleError, NotDifferentiableError, UnsupportedError
from splitad.testing import check_vjp, copy_args
from splitad.testing.arguments import single_precision
from splitad.testing.leaves import leaves, snapshot
from tests.fuzz.callers import check_driver, check_gradient
from tests.fuzz.interpreted import Interpreted, OutOfBounds, Plain

LARGEST = (
    1e3  # a program whose values grow beyond this is chaotic or overflows: differences say nothing
)
RTOL = 1e-6
POINTS = 2  # arguments that each compiled program is checked at
_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """kind: "passed"; "refused": a SplitadError; "dropped": not a fair test; "failed"; "odd": forward does
    what Python does and njit something else (Numba drops stores to a struct's array in functions with a list
    comprehension, say)."""

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


def check_file(path: Path, quick: bool = False) -> Outcome:
    """What comes of a program.

    quick: its generated text is run in plain Python first, and compiled only where that is impossible or
    finds something; Python's arithmetic is not quite Numba's, so only what compiled code does counts.
    """
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        try:
            module = load(path)
            patch.setenv("SPLITAD_WITHOUT", ",".join(getattr(module, "WITHOUT", ())))
            points = _points(module)
            plain = numba.njit(module.f, **getattr(module, "JIT", {}))
            if quick and not single_precision(points):
                outcome = _interpreted(plain, points, module)
                if outcome is not None:
                    return outcome
            fair = [args for args in points if not _unfair(plain, args)]
            if not fair:
                return Outcome("dropped", _unfair(plain, points[0]))
        except Exception as error:  # numba rejects it: nothing to compare with
            return Outcome("dropped", f"numba: {type(error).__name__}: {str(error)[:400]}")
        return _outcome(plain, fair, module)


def _interpreted(plain: Any, points: list[tuple[Any, ...]], module: ModuleType) -> Outcome | None:
    """What comes of a program that is not compiled; None where that says nothing."""
    python, split = Plain(module.f), getattr(module, "SPLIT", {})
    kinds = _activities(points[0], module.CONST)
    try:
        fair = [args for args in points if not _unfair(python, args)]
        if not fair:
            return None
        forward = Interpreted(plain, kinds, fair[0], split)
        for number, args in enumerate(fair):
            check_vjp(
                python, *args, activities=kinds, rtol=RTOL, forward=forward, exact=False, leaks=False,
                directions=2 - number, modified_between=split.get("modified_between", True),
            )  # fmt: skip
    except (UnsupportedError, NoRuleError, NotDifferentiableError) as error:
        return Outcome("refused", str(error))
    except OutOfBounds as error:
        return Outcome("failed", f"in plain Python: {error}")
    except Exception:
        return None
    return Outcome("passed", "interpreted")


def _points(module: ModuleType) -> list[tuple[Any, ...]]:
    """Different arguments of the same types, so that other branches are taken too."""
    if not inspect.signature(module.make_args).parameters:
        return [module.make_args()]
    return [module.make_args(seed) for seed in range(POINTS)]


def _leaves_arrays(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether an index is out of bounds: then compiled code may do anything."""
    try:
        with np.errstate(all="ignore"):
            f(*copy_args(args))
    except IndexError:
        return True
    except Exception:
        return False
    return False


def _outcome(plain: Any, points: list[tuple[Any, ...]], module: ModuleType) -> Outcome:
    if any(_leaves_arrays(module.f, args) for args in points):
        return Outcome("dropped", "an index is out of bounds")
    try:
        settled = [_check(plain, args, module, k) for k, args in enumerate(points)]
    except (UnsupportedError, NoRuleError, NotDifferentiableError, AliasingError) as error:
        return Outcome("refused", str(error))
    except AssertionError as error:
        why = str(error) or traceback.format_exc()
        if "but f writes to it through another argument" in why:
            return Outcome("dropped", "f breaks the promise of modified_between=False")
        if ": forward " in why and any(_is_python(plain, args, module) for args in points):
            return Outcome("odd", why)
        return Outcome("failed", why)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error}"
        return Outcome("failed", text + "\n" + traceback.format_exc())
    if not any(settled):
        return Outcome("dropped", "differences do not settle")
    return Outcome("passed")


def _check(plain: Any, args: tuple[Any, ...], module: ModuleType, number: int) -> bool:
    """Raise where something is wrong; False where differences say nothing."""
    kinds = _activities(args, module.CONST)
    split = getattr(module, "SPLIT", {})
    forward = _forward(plain, kinds, split)
    between = split.get("modified_between", True)
    settled = True
    try:
        check_vjp(
            plain, *args, activities=kinds, rtol=None if single_precision(args) else RTOL,
            forward=forward, modified_between=between, leaks=number == 0, directions=2 - number,
        )  # fmt: skip
    except AssertionError as error:
        if "do not settle" not in str(error):
            raise
        settled = False
    extra = getattr(module, "EXTRA", "")
    if extra == "driver":
        check_driver(forward, args, kinds)
    elif extra == "gradient":
        check_gradient(plain, forward, args, kinds)
    return settled


def _is_python(plain: Any, args: tuple[Any, ...], module: ModuleType) -> bool:
    """Whether forward does what Python does, and njit does not."""
    forward = _forward(plain, _activities(args, module.CONST), getattr(module, "SPLIT", {}))
    here, there, python = copy_args(args), copy_args(args), copy_args(args)
    values = [
        snapshot((*here, forward(*here)[0])),
        snapshot((*there, plain(*there))),
        snapshot((*python, _in_python(module)(*python))),
    ]
    mine, njit, wanted = (np.concatenate([np.ravel(v) for v in s.values()]) for s in values)
    if not mine.shape == njit.shape == wanted.shape:
        return False
    return np.allclose(mine, wanted, 1e-10, 1e-12) and not np.allclose(njit, wanted, 1e-10, 1e-12)


def _in_python(module: ModuleType) -> Any:
    """f, with its helpers as Python functions too: compiled, they take no lambda from Python."""
    scope = {name: getattr(value, "py_func", value) for name, value in vars(module).items()}
    return FunctionType(module.f.__code__, scope, closure=module.f.__closure__)


_forwards: dict[int, Any] = {}


def _forward(plain: Any, kinds: tuple[Any, ...], split: dict[str, Any]) -> Any:
    """One pair for all points."""
    if id(plain) not in _forwards:
        _forwards.clear()
        _forwards[id(plain)] = ad.split(plain, *kinds, **split)
    return _forwards[id(plain)]


def _unfair(plain: Any, args: tuple[Any, ...]) -> str:
    """Why a program is no test of derivatives, or ""."""
    copies = copy_args(args)
    result = plain(*copies)
    for _, leaf in leaves((copies, result)):
        values = np.asarray(leaf)
        if values.dtype.kind in "fc" and not np.all(np.abs(values) < LARGEST):
            return "values are not finite or grow too large"
    return ""


def _activities(args: tuple[Any, ...], const: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(ad.Const if k in const else _activity(arg) for k, arg in enumerate(args))


def _activity(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        return ad.Duplicated if arg.dtype.kind in "fc" else ad.Const
    if hasattr(arg, "_numba_type_") or isinstance(arg, (list, List)):
        return ad.Duplicated
    if isinstance(arg, tuple):
        return ad.Duplicated if any(_activity(item) is ad.Duplicated for item in arg) else ad.Active
    return ad.Active if isinstance(arg, (float, complex, np.floating)) else ad.Const
