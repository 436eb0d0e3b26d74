"""From the normalised, typed function to IR: an abstract interpretation of its statements.

Names stand for values (values.py): IR operands, or things of compile time, which are taken apart and never
reach the IR.  Statements are here; control flow is in control.py, calls in calls.py, objects in structs.py.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from numba.core import types

from splitad.frontend import (
    arrays,
    calls,
    control,
    kernels,
    lists,
    merge,
    naming,
    opaque,
    operators,
    recursive_structs,
    scalars,
    structs,
    subscripts,
)
from splitad.frontend.array_context import ArrayContext
from splitad.frontend.constants import tuple_type
from splitad.frontend.normal import is_temp, plain
from splitad.frontend.pending import is_arrayish, method_of_pending, settle, shape_of, take
from splitad.frontend.read import read
from splitad.frontend.state import CompileFlags, Context, Frame, describe, parameters
from splitad.frontend.structured import (
    RESULT,
    Branch,
    ForLoop,
    Node,
    SetFlag,
    SetResult,
    Simple,
    WhileLoop,
)
from splitad.frontend.typing import infer
from splitad.frontend.values import (
    NONE,
    GrowVal,
    ListVal,
    PyVal,
    StructVal,
    TupleVal,
    Value,
)
from splitad.ir import nodes as ir
from splitad.ir import walk
from splitad.ir.build import Builder
from splitad.ir.recursive import RecursiveFunction

__all__ = ["CompileFlags", "lower", "lower_recursive"]


def lower(
    pyfunc: Callable[..., Any],
    argtypes: tuple[types.Type, ...],
    flags: CompileFlags,
    rules: Any,
    ops: Any,
) -> ir.Function:
    """The IR of a function for these argument types, one per parameter; what it calls is inlined.

    rules: splitad.rules.registry; ops: splitad.rules.ops.
    """
    normal = read(pyfunc)
    typing = infer(normal, argtypes)
    frame = Frame(normal, typing, flags, assigned=shape_of(normal).assigned)
    c = Context(frame, ArrayContext(Builder(normal.loc), rules, ops), activate)
    params = [c.b.fresh(name, types.unliteral(kind)) for name, kind in parameters(normal, argtypes)]
    entry = structs.Entry(c)
    values = [entry.argument(param, i) for i, param in enumerate(params)]
    c.active_calls.append(normal.pyfunc)
    result = activate(c, frame, values)
    name = normal.name.rpartition(".")[2]
    made = ir.Function(
        name if name.isidentifier() else "f",  # a lambda
        tuple(params),
        tuple(entry.leaves()),
        ir.Block(c.b.root),
        _tree(c, result),
        types.unliteral(typing.return_type),
        normal.loc,
        tuple(entry.list_arguments()),
    )
    if flags.kernel:
        made = kernels.finish(made)
    return naming.run(walk.substitute(made, c.frozen), c.b.bases, c.hints)


def lower_recursive(fn: RecursiveFunction, rules: Any, ops: Any) -> ir.Function:
    """The IR of a recursive function's own pair: structs among its parameters are their fields."""
    normal = read(fn.function)
    typing = infer(normal, fn.params)
    frame = Frame(normal, typing, fn.flags, assigned=shape_of(normal).assigned)
    c = Context(frame, ArrayContext(Builder(normal.loc), rules, ops), activate)
    entry = recursive_structs.Entry(c)
    named = zip(parameters(normal, fn.params), fn.rooted, strict=True)
    values = [entry.argument(name, kind, rooted) for (name, kind), rooted in named]
    c.active_calls.append(normal.pyfunc)
    value = activate(c, frame, values)
    result: ir.Tree = None
    if fn.returned != types.none:
        result = entry.result(value) or _tree(c, value)
    made = ir.Function(
        fn.__name__,
        tuple(entry.params),
        tuple(entry.leaves),
        ir.Block(c.b.root),
        ir.TupleTree(types.none, (result, *entry.exits())),
        types.unliteral(typing.return_type),
        normal.loc,
    )
    return naming.run(walk.substitute(made, c.frozen), c.b.bases, c.hints)


def _tree(c: Context, value: Value) -> ir.Tree:
    """What the function returns, as its leaves."""
    if c.dead or merge.is_undefined(value):
        return _undefined_tree(c.frame.typing.return_type)
    match value:
        case ir.Lit(value=None):
            return None
        case ir.Var() | ir.Lit():
            return value
        case TupleVal():
            return ir.TupleTree(value.type, tuple(_tree(c, item) for item in value.items))
        case StructVal():
            c.refuse(
                "Returning an instance of a jitclass or structref is not supported yet.",
                "Return its fields.",
            )
    c.refuse(f"{describe(value)} cannot be returned.")


def _undefined_tree(type: types.Type) -> ir.Tree:
    """The result of a function that always raises."""
    return None if type == types.none else ir.Lit(ir.UNDEF, types.unliteral(type))


# ---- one activation ------------------------------------------------------------------------------


def activate(c: Context, frame: Frame, values: list[Value]) -> Value:
    """Runs a function's statements with these arguments; its result."""
    names = [name for name, _ in parameters(frame.normal, frame.typing.arg_types)]
    frame.names = dict(zip(names, values, strict=True))
    frame.known = len(c.objects)
    with c.within(frame):
        block(c, shape_of(frame.normal).nodes)
        result = c.get(RESULT)
        if result is None:
            return NONE
        return c.conform(result, frame.typing.return_type, "result")


def block(c: Context, nodes: list[Node]) -> None:
    for node in nodes:
        if c.dead:
            return
        stmt = node.stmt
        with c.at(stmt):
            one(c, node)
    if not c.dead:
        settle(c)


def one(c: Context, node: Node) -> None:
    match node:
        case Simple(stmt=stmt):
            statement(c, stmt)
        case SetFlag(name=name, value=value):
            if isinstance(value, str):
                c.set(name, c.get(value) or scalars.resolve(c, value))
            else:
                c.set(name, ir.Lit(value, types.boolean))
        case SetResult(value=value):
            if isinstance(value, ast.Name):
                opaque.names(c, [value.id])
            result = NONE if value is None else scalars.name_value(c, value)
            if isinstance(result, (GrowVal, ListVal)) and not c.frame.path:
                c.refuse(
                    "A function that returns a list is not supported.",
                    "Return an array (np.array(...)), or change a list that is an argument.",
                )
            c.set(RESULT, c.conform(result, c.frame.typing.return_type, "result"))
        case Branch():
            opaque.names(c, [node.test])
            settle(c)
            control.branch(c, node, block)
        case ForLoop():
            settle(c)
            control.for_loop(c, node, block)
        case WhileLoop():
            settle(c)
            control.while_loop(c, node, block)


# ---- pending array expressions -----------------------------------------------------------------------


def bind(c: Context, name: str, value: Any, type: types.Type | None) -> None:
    if isinstance(value, arrays.LazyMap):
        if name not in shape_of(c.frame.normal).once:
            value = arrays.materialize(c.arrays, value, name if not is_temp(name) else "a")
    elif isinstance(value, ListVal):
        if name not in shape_of(c.frame.normal).once:
            if value.type is None:
                value = ListVal(value.items, lists.type_by_use(c, name))
            value = lists.grown(c, value)
    else:
        value = c.conform(value, type, name)
    if isinstance(value, ir.Var) and not is_temp(name) and _is_generic(c.b.bases[value.name]):
        c.hints.setdefault(value.name, name)
    c.set(name, value)


def _is_generic(base: str) -> bool:
    """Whether a result is called so because the user's name for it was not known yet."""
    return base in {"t", "a", "acc", "copy", "joined"} or base.endswith("_v")


# ---- statements ----------------------------------------------------------------------------------------


def statement(c: Context, stmt: ast.stmt) -> None:
    opaque.check(c, stmt)
    match stmt:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            type = c.frame.typing.type_of(stmt)
            bind(c, name, expression(c, value, type, plain(name)), type)
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            settle(c, (value,))
            subscripts.setitem(c, target, value, getattr(stmt, "writeback", False))
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=attr)], value=value):
            settle(c)
            new = scalars.name_value(c, value)
            structs.set_attribute(
                c, scalars.name_value(c, owner), attr, new, getattr(stmt, "writeback", False)
            )
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            settle(c)
            unpack(c, stmt, targets, scalars.name_value(c, value))
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            augmented(c, stmt, name, scalars.BINARY[op.__class__], value)
        case ast.Expr(value=ast.Call() as call):
            calls.call(c, call, None, "t")
        case ast.Raise(exc=exc):
            settle(c)
            raise_(c, exc)
        case ast.Pass():
            pass
        case _:
            c.refuse(f"{stmt.__class__.__name__} statements are not supported here.")


def raise_(c: Context, exc: ast.expr | None) -> None:
    cls, args = (exc.func, exc.args) if isinstance(exc, ast.Call) else (exc, [])
    assert cls is not None
    known = scalars.name_value(c, cls)
    assert isinstance(known, PyVal)
    values = []
    for arg in args:
        value = scalars.name_value(c, arg)
        if not isinstance(value, (ir.Var, ir.Lit)):
            c.refuse(
                f"{describe(value)} is an argument of an exception here.",
                "Pass a string or a number.",
            )
        values.append(value)
    c.b.emit(ir.Raise(known.value, tuple(values), loc=c.b.loc))
    c.dead = True


def unpack(c: Context, stmt: ast.stmt, targets: list[ast.expr], value: Value) -> None:
    count = len(targets)
    if isinstance(value, (TupleVal, ListVal)):
        if len(value.items) != count:
            c.refuse(f"{len(value.items)} values are unpacked into {count} names.")
        items: list[Any] = list(value.items)
    elif merge.is_slot(value) and isinstance(value.type, types.Array):
        # (Numba unpacks arrays nowhere else than here, and does not check the length either)
        items = [
            arrays.getitem(c.arrays, value, [c.b.intp(k)], _item_type(value.type))
            for k in range(count)
        ]
    elif isinstance(value, GrowVal):
        wrong = scalars.prim(c, operator.ne, lists.length(c, value), c.b.intp(count))
        scalars.raise_if(c, wrong, ValueError)
        items = [lists.getitem(c, value, c.b.intp(k), False) for k in range(count)]
    else:
        c.refuse(f"{describe(value)} cannot be unpacked.")
    for target, item in zip(targets, items, strict=True):
        assert isinstance(target, ast.Name)
        bind(c, target.id, item, c.frame.typing.type_of(stmt, target.id))


def _item_type(array: types.Array) -> types.Type:
    if array.ndim == 1:
        return array.dtype
    return array.copy(ndim=array.ndim - 1, layout="C" if array.layout == "C" else "A")


def augmented(c: Context, stmt: ast.AugAssign, name: str, fn: Any, node: ast.expr) -> None:
    settle(c, (node,))
    target: Any = scalars.name_value(c, stmt.target)
    value = take(c, node)
    type = c.frame.typing.type_of(stmt)
    if is_arrayish(target):
        arrays.inplace_binop(c.arrays, fn, target, value)
        return
    if isinstance(target, GrowVal):
        lists.inplace_binop(c, fn, target, value)
        return
    bind(c, name, operators.binary(c, fn, target, value, type, plain(name)), type)


# ---- expressions ---------------------------------------------------------------------------------------


def expression(c: Context, node: ast.expr, type: types.Type | None, name: str) -> Any:
    """The value of a one-operation expression; type: what Numba says it is."""
    match node:
        case ast.Name() | ast.Constant():
            return scalars.name_value(c, node)
        case ast.BinOp(left=left, op=op, right=right):
            return operators.binary(
                c, scalars.BINARY[op.__class__], take(c, left), take(c, right), type, name
            )
        case ast.UnaryOp(op=op, operand=arg):
            return operators.unary(c, scalars.UNARY[op.__class__], take(c, arg), type, name)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return operators.compare(c, op, left, right, type, name)
        case ast.Call():
            if getattr(node, "iter_len", False):
                lists.loop_begins(c, scalars.name_value(c, node.args[0]))
            return calls.call(c, node, type, name)
        case ast.Attribute(value=owner, attr=attr):
            bound = method_of_pending(c, owner, attr, type)
            if bound is not None:
                return bound
            return structs.attribute(c, scalars.name_value(c, owner), attr, type, name)
        case ast.Subscript(value=owner, slice=index):
            return subscripts.getitem(c, owner, index, type, name, getattr(node, "iterates", False))
        case ast.Tuple(elts=items):
            values = tuple(scalars.name_value(c, item) for item in items)
            kind = type if isinstance(type, types.BaseTuple) else tuple_type(values)
            return TupleVal(values, kind)  # type: ignore[arg-type]
        case ast.List(elts=items):
            return ListVal(tuple(scalars.name_value(c, item) for item in items), type)
    c.refuse(f"{node.__class__.__name__} is not supported here.")
