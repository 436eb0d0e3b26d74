"""What becomes of each call of numpy_table.py, kept in numpy_status.txt, and the README's table made of it.

    python -m tests.rules.numpy_status [NAME]...    goes through every call anew, for every dtype: some
                                                    minutes; or through those of a few functions

A line of the file: the function, then for float64, float32 and complex128 "yes", "no" (refused, by name),
"some" (of the forms) or "-" (Numba does not take it), then why a form is refused.  "yes": the cotangents
agree with finite differences, or those of float32 with those of float64 (single.py), where the text of the
pair is run in plain Python (tests/fuzz/interpreted.py).
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from splitad.errors import SplitadError
from splitad.frontend import arrays
from splitad.frontend.allocation import MAKERS
from splitad.frontend.joining import JOINS
from splitad.frontend.reductions import REDUCTIONS
from splitad.frontend.substitutes import SUBSTITUTES
from splitad.ir import activities
from splitad.rules import registry
from splitad.testing import check_vjp
from tests.fuzz.interpreted import Interpreted, check_in_python
from tests.rules.numpy_table import ARGUMENTS, NUMPY
from tests.rules.single import check_single

FILE = Path(__file__).with_name("numpy_status.txt")
DTYPES = ("float64", "float32", "complex128")
_MODULES = {
    "": np,
    "linalg.": np.linalg,
    "lib.stride_tricks.": np.lib.stride_tricks,
    "polynomial.polynomial.": np.polynomial.polynomial,
    "polynomial.polyutils.": np.polynomial.polyutils,
}


# ---- what Numba has ----------------------------------------------------------------------------------


def supported() -> dict[str, Any]:
    """The functions of NumPy that the installed Numba knows, by name; random numbers are not among them."""
    cpu_target.target_context.refresh()
    context = cpu_target.typing_context
    context.refresh()
    found = {}
    for prefix, module in _MODULES.items():
        for name, value in vars(module).items():
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            try:
                context.resolve_value_type(value)
            except (NumbaError, ValueError, TypeError):
                continue
            found[prefix + name] = value
    return found


_OTHERS = (np.where, np.clip, np.select, np.broadcast_shapes, np.divmod)


def function_called(name: str) -> Any:
    """The function of this name; None for methods."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def how(name: str) -> str:
    """By what a function is differentiated."""
    fn = function_called(name)
    own = (MAKERS, REDUCTIONS, JOINS, arrays._SIMPLE)
    if fn is None or any(fn in table for table in own) or fn in _OTHERS:
        return "loops or views"
    rule = registry.array_rule(fn)
    if name == "matmul" or rule is not None:
        return "rule" if name == "matmul" or rule.call else "no derivative"
    scalar = registry.scalar_rule(fn)
    if scalar is not None:
        return "no derivative" if scalar.kind == "zero" else "rule"
    return "splitad's source" if fn in SUBSTITUTES else "Numba's code"


# ---- what becomes of a call ---------------------------------------------------------------------------


_numbers = itertools.count()


def functions(lines: list[str]) -> list[Callable[..., Any]]:
    """A function around each call, in a file of its own; its parameters are the letters that it uses."""
    text = ["import numpy as np\n"]
    for k, line in enumerate(lines):
        names = {node.id for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)}
        text.append(f"\ndef call_{k}({', '.join(sorted(names & set(ARGUMENTS)))}):")
        text.append(f"    return {line}\n")
    name = f"numpy_calls_{next(_numbers)}"
    path = Path(tempfile.mkdtemp(prefix="splitad-calls-")) / f"{name}.py"
    path.write_text("\n".join(text), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return [getattr(module, f"call_{k}") for k in range(len(lines))]


def arguments(fn: Callable[..., Any], dtype: str) -> list[Any]:
    code = fn.__code__
    return [ARGUMENTS[name](np.dtype(dtype)) for name in code.co_varnames[: code.co_argcount]]


@lru_cache(maxsize=8)  # a float64 pair serves twice
def _pair(fn: Callable[..., Any], dtype: str) -> Interpreted:
    args = tuple(arguments(fn, dtype))
    return Interpreted(numba.njit(fn), _activities(args), args, {})


def _activities(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(activities.default(numba.typeof(arg)) for arg in args)


def outcome(fn: Callable[..., Any], dtype: str) -> tuple[str, str]:
    """("yes", "no", "-" or "wrong"; why not)"""
    args = tuple(arguments(fn, dtype))
    plain = numba.njit(fn)
    try:
        forward = _pair(fn, dtype)
    except SplitadError as error:
        cause: BaseException = error
        while isinstance(cause.__cause__, SplitadError):
            cause = cause.__cause__
        return ("no", str(cause).split("\n")[0]) if _compiles(plain, args) else ("-", "")
    except (NumbaError, NotImplementedError) as error:
        return ("wrong", str(error)) if _compiles(plain, args) else ("-", "")
    try:
        if dtype == "float32":  # differences would see little of it
            check_single(fn, args, _activities(args), forward, _pair(fn, "float64"))
        else:
            _check(plain, forward, args)
    except AssertionError as error:
        return "wrong", str(error).split("\n")[0]
    return "yes", ""


def _compiles(plain: Any, args: tuple[Any, ...]) -> bool:
    try:
        plain.compile(tuple(map(numba.typeof, args)))
    except Exception:
        return False
    return True


def _check(plain: Any, forward: Any, args: tuple[Any, ...]) -> None:
    """In plain Python; compiled, where that differs from Numba (the sign of a complex number, say)."""
    try:
        check_in_python(plain.py_func, *args, forward=forward, directions=1)
    except Exception:
        check_vjp(plain, *args, activities=_activities(args), directions=1)


def status(name: str, forms: list[str], dtypes: tuple[str, ...] = DTYPES) -> list[str]:
    """The line of a function, as its parts."""
    calls = functions(forms)
    words, reasons = [], []
    for dtype in dtypes:
        found = [outcome(call, dtype) for call in calls]
        kinds = {word for word, _ in found} - {"-"} or {"-"}
        words.append(kinds.pop() if len(kinds) == 1 else "some")
        reasons += [why for _, why in found if why]
    return [name, *words, reasons[0] if reasons else ""]


# ---- the table ------------------------------------------------------------------------------------------


def forms() -> Iterator[tuple[str, str, list[str]]]:
    """(section, function, its calls)"""
    for section, entries in NUMPY.items():
        for name, text in entries.items():
            yield section, name, text.split("\n")


def kept() -> dict[str, list[str]]:
    """The lines of the file, by function."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return {parts[0]: parts for parts in (line.split("\t") for line in lines)}


def table() -> str:
    """The table of the README: functions of which the same is true share a row."""
    known = kept()
    lines = ["| functions | reverse | float32 | complex | how |", "|---|---|---|---|---|"]
    for section in NUMPY:
        rows: dict[tuple[str, ...], list[str]] = {}
        for name in NUMPY[section]:
            if name in known and set(known[name][1:4]) != {"-"}:
                _, *words, _ = known[name]
                way = "refused" if words[0] == "no" else how(name)
                rows.setdefault((*words, way), []).append(name)
        lines.append(f"| **{section}** | | | | |")
        for (*words, way), names in sorted(rows.items(), key=lambda row: row[0], reverse=True):
            joined = ", ".join(sorted(names)).replace("polynomial.polynomial.", "")
            joined = joined.replace("lib.stride_tricks.", "")
            lines.append(f"| {joined} | {' | '.join(words)} | {way} |")
    return "\n".join(lines)


def main(*names: str) -> None:
    known = kept()
    for _, name, calls in forms():
        if not names or name in names:
            known[name] = status(name, calls)
            print("\t".join(known[name]), flush=True)
    lines = ["\t".join(known[name]) for _, name, _ in forms()]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
