"""Makes the IR of a kernel into one that CUDA can run, and refuses what cannot be run or reversed there.

np.exp(x)            math.exp(x)            Numba's CUDA has NumPy's functions in part only
n = len(x)           at the start           so that the pullback can be given the size
x[i], unchecked      x[i]                   the unchecked access is for the CPU
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from splitad.analysis.memory import is_array
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.threads import BLOCK_DIM, GRID_DIM, GRIDSIZE, ArrayOp
from splitad.ir.walk import blocks, map_blocks, operands, outs, substitute, walk
from splitad.rules import ops

Fn = Callable[..., Any]

_MATH = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs "
    "floor fmod gamma hypot isfinite isinf isnan ldexp lgamma log log10 log1p log2 nextafter pow radians sin "
    "sinh sqrt tan tanh trunc"
).split()
_BUILTIN = (abs, min, max, pow, bool, round)
# NumPy's functions of scalars that Numba's CUDA does not have
_AS: dict[Fn, Fn] = {
    np.exp: math.exp, np.expm1: math.expm1, np.log1p: math.log1p, np.sqrt: math.sqrt,
    np.copysign: math.copysign, np.fmod: math.fmod, np.absolute: abs, np.fabs: math.fabs, operator.abs: abs,
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.negative: operator.neg, np.positive: operator.pos, np.power: operator.pow,
}  # fmt: skip
# and those that it has
_NUMPY = (
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.hypot, np.sinh, np.cosh, np.tanh,
    np.arcsinh, np.arccosh, np.arctanh, np.log, np.log2, np.log10, np.maximum, np.minimum, np.fmax, np.fmin,
    np.deg2rad, np.rad2deg, np.radians, np.degrees,
)  # fmt: skip
SIZES = (*GRIDSIZE, *BLOCK_DIM, *GRID_DIM)
_OWN = (ops.fdiv, ops.select, ops.trip_count, ops.at_most)
_KNOWN = {
    *(getattr(math, name) for name in _MATH if hasattr(math, name)),
    *_BUILTIN,
    *_OWN,
    *_NUMPY,
}


def run(fn: ir.Function, activities: tuple[str, ...]) -> ir.Function:
    for leaf in fn.leaves:
        _check_type(leaf.var, fn)
        duplicated = activities[leaf.path[0]] == "duplicated"  # type: ignore[index]
        if duplicated and not is_array(leaf.var) and isinstance(leaf.var.type, types.Float):
            name = fn.params[leaf.path[0]].name  # type: ignore[index]
            raise UnsupportedError(
                f"The tuple {name} of {fn.name} holds arrays and floats, which is not supported yet.",
                fn.loc,
                "Pass the floats as arguments of their own, or say that the tuple is Const.",
            )
    fn = replace(fn, body=_without_step_checks(fn))
    for stmt in walk(fn.body):
        _check(stmt)
    if fn.result is not None:
        raise UnsupportedError(f"{fn.name} returns a value, which a kernel cannot.", fn.loc)
    return replace(fn, body=_block(_sizes_first(fn)))


def _block(block: ir.Block) -> ir.Block:
    return ir.Block(tuple(_statement(s) for s in block.stmts), block.yields)


def _statement(stmt: ir.Stmt) -> ir.Stmt:
    if isinstance(stmt, ir.Prim):
        return replace(stmt, fn=_AS.get(stmt.fn, stmt.fn))
    return map_blocks(stmt, _block)


def brackets(fn: ir.Function) -> ir.Function:
    """fn with every access written as x[i]: the last pass over the IR."""

    def block(body: ir.Block) -> ir.Block:
        return ir.Block(tuple(map(statement, body.stmts)), body.yields)

    def statement(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, (ir.Load, ir.Store)):
            return replace(stmt, wraps=True)
        return map_blocks(stmt, block)

    return replace(fn, body=block(fn.body))


def _sizes_first(fn: ir.Function) -> ir.Block:
    """The body, with the sizes of the arguments' arrays computed once, behind what takes tuples apart."""
    arrays = {leaf.var for leaf in fn.leaves if is_array(leaf.var)}
    known: dict[tuple[ir.Var, int], ir.Dim] = {}
    same: dict[ir.Var, ir.Operand] = {}

    def block(body: ir.Block) -> ir.Block:
        stmts: list[ir.Stmt] = []
        for stmt in body.stmts:
            if isinstance(stmt, ir.Dim) and stmt.array in arrays:
                first = known.setdefault((stmt.array, stmt.axis), stmt)
                if first is not stmt:
                    same[stmt.out] = first.out
            else:
                stmts.append(map_blocks(stmt, block))
        return ir.Block(tuple(stmts), body.yields)

    made = substitute(block(fn.body), same)
    apart = sum(1 for s in made.stmts if isinstance(s, ir.TupleGet))
    return replace(made, stmts=(*made.stmts[:apart], *known.values(), *made.stmts[apart:]))


def _without_step_checks(fn: ir.Function) -> ir.Block:
    """The body without the checks that the step of a range is not zero, where it is a size of the launch."""
    by = {out: stmt for stmt in walk(fn.body) for out in outs(stmt)}

    def is_size(value: ir.Operand) -> bool:
        stmt = by.get(value) if isinstance(value, ir.Var) else None
        if isinstance(stmt, ir.Cast):
            return is_size(stmt.arg)
        if not isinstance(stmt, ir.Prim):
            return isinstance(value, ir.Lit) and value.value != 0
        return stmt.fn in SIZES or (stmt.fn is operator.mul and all(map(is_size, stmt.args)))

    for stmt in walk(fn.body):
        if isinstance(stmt, ir.For) and not is_size(stmt.step):
            raise UnsupportedError(_STEP, stmt.loc, _STEP_HINT)

    def is_needless(stmt: ir.Stmt) -> bool:
        if not (isinstance(stmt, ir.If) and stmt.then.stmts and not stmt.orelse.stmts):
            return False
        first, test = stmt.then.stmts[0], by.get(stmt.cond)  # type: ignore[arg-type]
        if not (isinstance(first, ir.Raise) and isinstance(test, ir.Prim)):
            return False
        return test.fn is operator.eq and is_size(test.args[0])

    def block(body: ir.Block) -> ir.Block:
        kept = (map_blocks(s, block) for s in body.stmts if not is_needless(s))
        return ir.Block(tuple(kept), body.yields)

    return block(fn.body)


_STEP = "The step of this range may be zero, for all that is known here."
_STEP_HINT = "Make it a constant, or a size of the grid or block; or write a while loop."

# ---- refusals ------------------------------------------------------------------------------------------


def _check_type(var: ir.Var, fn: ir.Function) -> None:
    kind = var.type.dtype if is_array(var) else types.unliteral(var.type)
    kinds = [kind]
    if is_array(var) and isinstance(kind, types.Record):
        kinds = [kind.typeof(field) for field in kind.fields]
    if not all(map(_is_known, kinds)):
        raise UnsupportedError(
            f"The argument {var.name} of {fn.name} holds values of type {kind}, which are not supported in "
            "kernels yet.",
            fn.loc,
            "Pass floats: the real and the imaginary part of complex numbers, say, as arrays of their own.",
        )
    if is_array(var) and var.type.ndim == 0:
        raise UnsupportedError(
            f"The argument {var.name} of {fn.name} has no dimensions.", fn.loc, "Pass x.reshape(1)."
        )


def _is_known(kind: types.Type) -> bool:
    return isinstance(kind, (types.Float, types.Integer, types.Boolean)) and kind != types.float16


def _check(stmt: ir.Stmt) -> None:
    def refuse(reason: str, hint: str = "") -> None:
        raise UnsupportedError(reason, stmt.loc, hint)

    for out in outs(stmt):
        if isinstance(types.unliteral(out.type), types.Complex):
            refuse("Complex numbers are not supported in kernels yet.", "Use two floats.")
    match stmt:
        case ir.Alloc() if stmt.kind not in ("shared", "dynamic", "local"):
            refuse(
                "A kernel cannot allocate memory.",
                "Use cuda.local.array, or pass an array to work in.",
            )
        case ir.ArrayCall() if not isinstance(stmt.fn, ArrayOp):
            name = getattr(stmt.fn, "__name__", "This function")
            refuse(f"{name} of arrays is not supported in kernels.", "Write a loop.")
        case ir.Impure():
            refuse("Random numbers are not supported in kernels yet.", "Pass them in an array.")
        case ir.Raise() if any("range()" in str(getattr(a, "value", "")) for a in stmt.args):
            refuse(_STEP, _STEP_HINT)
        case ir.Raise():
            refuse("A kernel cannot raise an exception.", "Write a flag into an array.")
        case ir.Print():
            refuse("print is not supported in kernels.")
        case ir.GetField() | ir.SetField() | ir.ListItems() | ir.ListArrays() | ir.ListOp():
            refuse("Structs and lists cannot be passed to a kernel.")
        case ir.Refer() | ir.Deref() | ir.Stride() | ir.Distance():
            refuse("Lists of arrays are not supported in kernels.")
        case ir.View() if stmt.kind not in ("index", "T", "field"):
            refuse(
                f"This view ({stmt.kind}) is not supported in kernels.", "Index the array itself."
            )
        case ir.Prim():
            _check_function(stmt, refuse)
        case ir.If():
            pass
    for inner in blocks(stmt):
        if any(is_array(y) for y in inner.yields):
            refuse(
                "Which array a name stands for is decided at run time here, which is not supported in "
                "kernels.",
                "Index one array, of one dimension more.",
            )
    for operand in operands(stmt):
        if isinstance(operand, ir.Lit) and isinstance(operand.type, types.Array):
            refuse("A global array is not supported in kernels yet.", "Pass it as an argument.")


def _check_function(stmt: ir.Prim, refuse: Callable[..., None]) -> None:
    fn = _AS.get(stmt.fn, stmt.fn)
    module = getattr(fn, "__module__", None)
    thread = module == "splitad.ir.threads"
    if not (thread or fn in _KNOWN or module in ("_operator", "operator")):
        name = getattr(fn, "__name__", str(fn))
        refuse(f"{name} is not supported in kernels.", "Use the functions of math.")
