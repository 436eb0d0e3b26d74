"""Array expressions that are not computed yet, and which names may hold one.

`_t1 = a * b; _t2 = _t1 + c` is one loop: `_t1` stands for the expression until it is used.  Whatever may
write to an array makes all expressions that are pending, but its own operands, be computed first.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from typing import Any

import numpy as np
from numba.core import types

from splitad.frontend import arrays, scalars
from splitad.frontend.normal import NormalFunction, is_temp
from splitad.frontend.state import Context
from splitad.frontend.structure import structure
from splitad.frontend.structured import names_assigned
from splitad.frontend.values import MethodVal, PyVal
from splitad.ir import nodes as ir


class Shape:
    """What follows from the normalised function alone, without types."""

    def __init__(self, normal: NormalFunction) -> None:
        self.nodes = structure(normal.body)
        every = [node for stmt in normal.body for node in ast.walk(stmt)]
        names = [node for node in every if isinstance(node, ast.Name)]
        stmts = [node for node in every if isinstance(node, ast.stmt)]
        targets = {n for stmt in stmts for n in names_assigned(stmt)}
        targets |= {s.target.id for s in stmts if isinstance(s, ast.For)}  # type: ignore[attr-defined]
        self.assigned = frozenset(targets)
        counts = Counter(node.id for node in names)
        written = Counter(n for stmt in stmts for n in names_assigned(stmt))
        # temporaries that are written once and read once may hold a pending array expression
        self.once = {n for n in counts if is_temp(n) and written[n] == 1 and counts[n] == 2}


@functools.lru_cache(maxsize=512)
def shape_of(normal: NormalFunction) -> Shape:
    return Shape(normal)


def is_arrayish(value: object) -> bool:
    """An array or an array expression."""
    return isinstance(value, arrays.LazyMap) or (
        isinstance(value, (ir.Var, ir.Lit)) and isinstance(value.type, types.Array)
    )


def settle(c: Context, keep: tuple[ast.AST, ...] = (), fused: bool = False) -> None:
    """Computes the pending array expressions, but those that are operands of the coming statement.

    fused: Numba goes on to fuse them with what they are operands of, so they are not rounded yet.
    """
    kept = {node.id for node in keep if isinstance(node, ast.Name)}
    for name, value in list(c.frame.names.items()):
        if isinstance(value, arrays.LazyMap) and name not in kept:
            stored = arrays.unrounded if fused else arrays.materialize
            c.frame.names[name] = stored(c.arrays, value)
        elif isinstance(value, MethodVal) and isinstance(value.owner, arrays.LazyMap):
            if name not in kept:
                owner = arrays.materialize(c.arrays, value.owner)
                c.frame.names[name] = MethodVal(owner, value.name)


def method_of_pending(
    c: Context, node: ast.expr, name: str, type: types.Type | None
) -> MethodVal | None:
    """``(a * b).sum``, where the function of that name takes an expression as it is; else None."""
    if not isinstance(type, types.BoundFunction) or arrays.function_of(name) is None:
        return None
    if not isinstance(node, ast.Name) or not isinstance(c.get(node.id), arrays.LazyMap):
        return None
    return MethodVal(take(c, node), name)


def take(c: Context, node: ast.expr) -> Any:
    """An operand; a pending array expression as it is, and then it is not pending any more."""
    if isinstance(node, ast.Name) and isinstance(c.get(node.id), arrays.LazyMap):
        return c.frame.names.pop(node.id)
    return scalars.name_value(c, node)


def only_reads(c: Context, fn: Any, node: ast.Call) -> bool:
    """Whether a call of this function, or method of an array, writes to no array that was there before."""
    count = len(node.args)
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return False
    if isinstance(fn, MethodVal):
        same = arrays.function_of(fn.name) if is_arrayish(fn.owner) else None
        return same is not None and arrays.only_reads(c.arrays, same, count + 1, node.keywords)
    if not isinstance(fn, PyVal) or not is_hashable(fn.value):
        return False
    if c.rules.scalar_rule(fn.value) is not None and not isinstance(fn.value, np.ufunc):
        return True
    return arrays.only_reads(c.arrays, fn.value, count, node.keywords)


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
