"""Parts of arguments that splitad does not look into, such as dicts and lists of lists.

    def f(xs, a):               xs: a dict
        ys = xs                 another name
        t = g(ys, a)            passed on: it is refused where g uses it
        return xs[0] * t        refused

Passing them on is fine, and so is not using them at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from numba.core import types

from splitad.frontend.state import Context
from splitad.frontend.values import OpaqueVal, PyVal

LISTS = (types.List, types.ListType)
_FOREIGN = {"builtins", "math", "cmath", "numpy", "operator", "random", "numba"}


def is_list_of_numbers(type: types.Type) -> bool:
    return isinstance(type, LISTS) and isinstance(type.dtype, (types.Number, types.Boolean))


def is_list_of_arrays(type: types.Type) -> bool:
    """Of arrays that can be written."""
    if not isinstance(type, LISTS) or not isinstance(type.dtype, types.Array):
        return False
    item = type.dtype
    return item == types.Array(item.dtype, item.ndim, item.layout)


def check(c: Context, stmt: ast.stmt) -> None:
    """Refuses a statement that uses what splitad does not look into."""
    if not c.has_opaque:
        return
    match stmt:
        case ast.Assign(targets=[ast.Name()], value=ast.Name() | ast.Tuple()):
            return
        case ast.Assign(value=ast.Compare(ops=[ast.Is() | ast.IsNot()])):
            return
        case ast.Assign(value=ast.Call() as call) | ast.Expr(value=ast.Call() as call):
            if _passes_on(c, call.func):
                return
    names(c, (node.id for node in ast.walk(stmt) if isinstance(node, ast.Name)))


def names(c: Context, used: Iterable[str | None]) -> None:
    for name in used:
        value = c.get(name) if name is not None else None
        if isinstance(value, OpaqueVal):
            refuse(c, value)


def refuse(c: Context, value: OpaqueVal) -> None:
    known = f"`{value.name}`" if value.name else "This"
    if isinstance(value.type, LISTS):
        if is_list_of_numbers(value.type) or is_list_of_arrays(value.type):
            c.refuse(
                f"{known} is a list ({value.type}) within another argument, which is not supported.",
                "Pass the list as an argument of its own, or use an array in its place.",
            )
        c.refuse(
            f"{known} is a list ({value.type}): of the lists in the arguments those of numbers and "
            "of arrays are supported.",
            "Pass an array, or a tuple of arrays; or make the list in the function.",
        )
    c.refuse(
        f"{known} is a {value.type}, which is not supported.",
        "splitad follows numbers, arrays, tuples and structs of these.",
    )


def _passes_on(c: Context, func: ast.expr) -> bool:
    """Whether a call is of a function that is lowered itself, or of one that asks for the type only."""
    value = c.get(func.id) if isinstance(func, ast.Name) else None
    if value is None and isinstance(func, ast.Name):
        try:
            value = PyVal(c.frame.normal.resolve(func.id))
        except NameError:
            return False
    if not isinstance(value, PyVal) or value.value in (isinstance, hasattr, getattr):
        return True
    module = getattr(value.value, "__module__", None) or "builtins"
    return hasattr(value.value, "py_func") or module.partition(".")[0] not in _FOREIGN
