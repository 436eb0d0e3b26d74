"""From a function to its syntax tree, with proof that the tree is the code that runs.

The file may have been edited since it was imported, and a line may hold two lambdas.  So the statement
that was found is compiled again, and bytecode, names and constants are compared with the function's own.
Equal code means equal behaviour, whatever else the file says.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitad.errors import Loc, NoRuleError, UnsupportedError
from splitad.frontend.quiet import compile_quietly, parse_quietly

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FAR = 1 << 24  # more lines than any file has: marks the definition that is being compiled
_HINT_FILE = (
    "splitad reads the source: put the function in a file (or a notebook cell) and import it."
)
_HINT_LOOP = "Write the loop in a function with @njit."
_NOT_YET = {
    "DUFunc": "Functions made by @vectorize",
    "GUFunc": "Functions made by @guvectorize",
    "StencilFunc": "Functions made by @stencil",
}
_HINT_EDITED = (
    "The file was edited after it was imported: reload it.  (Or a tool rewrote the function, as "
    "pytest does with assert in test files.)"
)


@dataclass(frozen=True, eq=False)
class Source:
    """A definition and where it stands."""

    node: Definition
    file: str
    class_name: str | None  # the class whose body it is in, which mangles private names


def python_function(fn: Callable[..., Any]) -> types.FunctionType:
    """The Python function behind a function or a dispatcher."""
    pyfunc = getattr(fn, "py_func", fn)
    if isinstance(pyfunc, types.MethodType):
        pyfunc = pyfunc.__func__
    if isinstance(pyfunc, types.FunctionType):
        return pyfunc
    if not callable(fn) or isinstance(fn, type):
        raise TypeError(f"{fn!r:.80} is not a function")
    kind = type(fn).__name__
    if kind in _NOT_YET:
        raise UnsupportedError(f"{_NOT_YET[kind]} are not supported yet.", hint=_HINT_LOOP)
    if is_derivative(fn):
        raise UnsupportedError(f"{fn!r} is a derivative. {SECOND}", hint=SECOND_HINT)
    name = getattr(fn, "__name__", None)
    if name is None:
        raise NoRuleError(f"A {kind} has no Python source.", hint="Call it in a function of yours.")
    called = f"{_module(fn)}{name}(x)"
    raise NoRuleError(
        f"{name} ({kind}) has no Python source.",
        hint=f"Call it in a function of yours: def f(x): return {called}",
    )


def to_differentiate(fn: Callable[..., Any]) -> types.FunctionType:
    """The Python function behind what a user wants the derivative of."""
    pyfunc = getattr(fn, "py_func", fn)
    if isinstance(pyfunc, types.MethodType):
        raise _bound(pyfunc)
    return python_function(fn)


def _bound(method: types.MethodType) -> UnsupportedError:
    owner, name = type(method.__self__), method.__name__
    jitclass = getattr(method.__self__, "_numba_type_", None) is not None
    return UnsupportedError(
        f"`{name}` is a bound method.",
        hint=f"Pass the object as an argument: {owner.__name__}.{name} is the function, as in "
        f"splitad.vjp({owner.__name__}.{name}, obj, ...)."
        if jitclass
        else "Differentiate a function of the numbers and arrays, or make the class a jitclass.",
    )


def _module(fn: Any) -> str:
    """What is written in front of its name, as in math.sin."""
    name = "numpy" if isinstance(fn, np.ufunc) else getattr(fn, "__module__", None)
    if name in (None, "builtins"):
        return ""
    return "np" + name[5:] + "." if name.split(".")[0] == "numpy" else f"{name}."


SECOND = "Derivatives of derivatives are not supported."
SECOND_HINT = (
    "Write the first derivative out by hand; or call it in an njit function and give that a rule with "
    "splitad.rule."
)


def is_derivative(fn: Any) -> bool:
    """Whether it is what splitad made, a forward, a pullback or a gradient; or the type of one."""
    return bool(getattr(type(fn), "is_derivative", False))


def definition(pyfunc: Callable[..., Any]) -> Loc:
    """Where a function is defined, its decorators skipped."""
    code = pyfunc.__code__
    line = code.co_firstlineno
    text = linecache.getlines(code.co_filename)[line - 1 :]
    if text and text[0].lstrip().startswith("@"):
        heads = (k for k, each in enumerate(text) if each.lstrip().startswith("def "))
        line += next(heads, 0)
    return Loc(code.co_filename, line, code.co_qualname)


_lock = threading.RLock()
_found: dict[int, tuple[types.CodeType, Source]] = {}  # by id: equal code may stand in two files


def source_of(fn: Callable[..., Any]) -> Source:
    """The definition of a function or dispatcher, proven to be the code that runs."""
    pyfunc = python_function(fn)
    code = pyfunc.__code__
    with _lock:  # compiling a candidate marks the shared tree
        known = _found.get(id(code))
        if known is None:
            known = _found[id(code)] = (code, _find(pyfunc))
        return known[1]


def _find(pyfunc: types.FunctionType) -> Source:
    code = pyfunc.__code__
    loc = Loc(code.co_filename, code.co_firstlineno, code.co_qualname)
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, pyfunc.__globals__))
    if not text:
        raise NoRuleError(f"The source of {code.co_qualname} cannot be read.", loc, _HINT_FILE)
    try:
        tree = _parse(text)
    except SyntaxError as error:
        reason = f"{code.co_filename} does not parse any more: {error.msg}."
        raise UnsupportedError(reason, loc, _HINT_EDITED) from None
    candidates = [c for c in _definitions(tree) if _name(c.node) == code.co_name]
    # where the function was first; then anywhere, since lines above it may have been added
    candidates.sort(key=lambda c: _first_line(c.node) != code.co_firstlineno)
    imports = _imports(tree)
    for candidate in candidates:
        if _compiles_to(candidate, [*imports, candidate.top], code):
            return Source(candidate.node, code.co_filename, candidate.class_name)
    raise UnsupportedError(
        f"The source of {code.co_qualname} is not what was compiled.", loc, _HINT_EDITED
    )


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> ast.Module:
    return parse_quietly(text)


# ---- candidates ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Candidate:
    node: Definition
    top: ast.stmt  # the statement of the module that contains it: decides what names mean
    class_name: str | None


def _definitions(tree: ast.Module) -> Iterator[_Candidate]:
    for top in tree.body:
        yield from _within(top, top, None)


def _within(node: ast.AST, top: ast.stmt, class_name: str | None) -> Iterator[_Candidate]:
    if isinstance(node, Definition):
        yield _Candidate(node, top, class_name)
    if isinstance(node, ast.ClassDef):
        class_name = node.name
    for child in ast.iter_child_nodes(node):
        yield from _within(child, top, class_name)


def _name(node: Definition) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _first_line(node: Definition) -> int:
    return _first(node).lineno


def _first(node: Definition) -> Any:
    """The node whose line is the code's first line: the first decorator, if there is one."""
    decorators = getattr(node, "decorator_list", [])
    return decorators[0] if decorators else node


# ---- the proof -------------------------------------------------------------------------------


def _imports(tree: ast.Module) -> list[ast.stmt]:
    """An import of every name that the module imports: Python calls methods of these differently."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif not isinstance(node, _SCOPES):
            pending.extend(ast.iter_child_nodes(node))
    aliases = [ast.alias(name) for name in sorted(names - {"*"})]
    return [ast.Import(aliases, lineno=1, col_offset=0)] if aliases else []


def _compiles_to(candidate: _Candidate, body: list[ast.stmt], code: types.CodeType) -> bool:
    _shift(candidate.node, _FAR)
    try:
        module = ast.fix_missing_locations(ast.Module(body, type_ignores=[]))
        flags = code.co_flags & _FUTURE
        compiled = compile_quietly(module, code.co_filename, flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    finally:
        _shift(candidate.node, -_FAR)
    for found in _nested(compiled):
        if found.co_firstlineno > _FAR and found.co_name == code.co_name:
            return same_code(found, code)  # what follows is within it
    return False


def _shift(node: Definition, lines: int) -> None:
    """Moves a definition with its body (as a whole: bytecode depends on what shares a line)."""
    for part in {node, _first(node)}:
        part.lineno += lines
        part.end_lineno += lines
    for part in node.body if isinstance(node.body, list) else [node.body]:
        ast.increment_lineno(part, lines)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


_COMPARED = (
    "co_name co_code co_names co_varnames co_freevars co_cellvars co_argcount co_posonlyargcount "
    "co_kwonlyargcount co_exceptiontable"
).split()


def same_code(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects do the same: everything but places in files."""
    if any(getattr(one, name) != getattr(other, name) for name in _COMPARED):
        return False
    if (one.co_flags ^ other.co_flags) & ~inspect.CO_OPTIMIZED:  # Numba clears it under a profiler
        return False
    if (
        "__firstlineno__" in one.co_names
    ):  # a class inside the function: the fence has the better message
        return True
    return _same_const(one.co_consts, other.co_consts)


def _same_const(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, types.CodeType):
        return same_code(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same_const, one, other))
    if isinstance(one, frozenset):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    # -0.0 is not 0.0, and nan is nan
    return repr(one) == repr(other) if isinstance(one, float | complex) else bool(one == other)
