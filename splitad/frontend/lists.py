"""Lists: arrays that grow, and a length.

    a = []                  a.data = empty(8)      a.len = 0
    a.append(x)             if a.len == a.data.shape[0]: a.data = a bigger copy
                            a.data[a.len] = x      a.len += 1

Both live in the state like the fields of an object, so loops carry them and branches merge them.  A list of
tuples has one array for each number in a tuple.

A list of arrays has numbers in such an array that stand for them (ir.Refer, ir.Deref).

A list argument is copied into such an array at entry.  What changes it is done to the list as well, so
that the caller sees it:

    xs.append(t)            (as above)             xs.append(t)
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from numba.core import types

from splitad.frontend import merge, scalars
from splitad.frontend.control import choose
from splitad.frontend.elements import LazyMap, materialize
from splitad.frontend.state import Context
from splitad.frontend.values import NONE, GrowVal, ListVal, TupleVal, Value, is_none, is_scalar
from splitad.ir import nodes as ir
from splitad.ir.types import type_of, unify

_FIRST = 8  # capacity of a list that gets its first item
_LIMITS = "Lists of numbers and arrays, or of tuples of these, are supported."


def make(
    c: Context, items: tuple[Value, ...], type: types.Type | None, room: Any = None
) -> GrowVal:
    """A new list with these items; room: its capacity, if that is known."""
    if not isinstance(type, (types.List, types.ListType)):
        c.refuse("The type of this list is not known.", _LIMITS)
    made = c.new_list(type)
    template = _template(c, made)
    size = room if room is not None else c.b.intp(max(len(items), _FIRST))
    for k, slot in enumerate(merge.slots(template)):
        item = types.unliteral(slot.type)
        if isinstance(item, types.Array):
            item = types.intp
        kind = types.Array(item, 1, "C")
        c.heap[(made.oid, f"data{k}")] = c.arrays.alloc((size,), kind, name="items")
    c.heap[(made.oid, "len")] = c.b.intp(len(items))
    for k, item in enumerate(items):
        _store(c, made, c.b.intp(k), item)
    return made


def type_by_use(c: Context, name: str) -> types.Type | None:
    """The type of the list `name` by what is appended to it.

    Numba replaces ``np.array([... for ...])`` by a loop that fills the array, and types no list.
    """
    stmts = [s for top in c.frame.normal.body for s in ast.walk(top) if isinstance(s, ast.stmt)]
    methods: set[str] = set()
    kinds: list[types.Type] = []
    for stmt in stmts:
        match stmt:
            case ast.Assign(
                targets=[ast.Name(id=bound)],
                value=ast.Attribute(value=ast.Name(id=owner), attr="append"),
            ) if owner == name:
                methods.add(bound)
            case ast.Expr(value=ast.Call(func=ast.Name(id=called), args=[item])) if (
                called in methods
            ):
                kinds += _types_of(c, item, stmts)
    kind = unify(kinds) if kinds else None
    return None if kind is None else types.List(kind)


def _types_of(c: Context, item: ast.expr, stmts: list[ast.stmt]) -> list[types.Type]:
    if isinstance(item, ast.Constant):
        return [type_of(item.value)]
    assert isinstance(item, ast.Name)
    found = [c.frame.typing.type_of(stmt, item.id) for stmt in stmts]
    return [types.unliteral(kind) for kind in found if kind is not None]


def grown(c: Context, value: Any) -> Any:
    """A list display as a list that can be changed; other values as they are."""
    return make(c, value.items, value.type) if isinstance(value, ListVal) else value


def from_outside(c: Context, argument: ir.Var) -> tuple[GrowVal, ir.Var]:
    """A list argument, and the array that its items are in now."""
    made = c.new_list(argument.type)
    c.roots[made.oid] = argument
    item = argument.type.dtype
    arrays = isinstance(item, types.Array)
    kind = types.Array(types.intp if arrays else item, 1, "C")
    items = c.b.fresh(f"{argument.name}_items", kind)
    if arrays:
        c.b.emit(ir.ListArrays((items,), argument, item, loc=c.b.loc))
    else:
        c.b.emit(ir.ListItems(items, argument, loc=c.b.loc))
    c.arrays.origins.fresh(items)
    c.heap[(made.oid, "data0")] = items
    c.heap[(made.oid, "len")] = c.arrays.shapes.dim(items, 0)
    return made, items


def at_exit(c: Context, owner: GrowVal) -> tuple[ir.Operand, ir.Operand]:
    """The array that its items are in, and how many there are."""
    return _data(c, owner)[0], length(c, owner)


def _effect(c: Context, owner: GrowVal, kind: str, *args: Value) -> None:
    """The same change of the caller's list."""
    if owner.oid in c.roots:
        operands = tuple(slot for arg in args for slot in merge.slots(arg))
        c.b.emit(ir.ListOp(c.roots[owner.oid], kind, operands, loc=c.b.loc))


def _template(c: Context, owner: GrowVal) -> Value:
    found = c.undefined(owner.type.dtype)
    kinds = [types.unliteral(slot.type) for slot in merge.slots(found)]
    if found is None or not kinds or not all(map(_is_item, kinds)):
        copied = isinstance(owner.type.dtype, types.Array)
        hint = "Copy the array first (x.copy())." if copied else _LIMITS
        c.refuse(f"A list of {owner.type.dtype} is not supported.", hint)
    return found


def _is_item(kind: types.Type) -> bool:
    if isinstance(kind, types.Array):
        return kind == types.Array(kind.dtype, kind.ndim, kind.layout)  # not read-only, not packed
    return isinstance(kind, (types.Number, types.Boolean))


def length(c: Context, owner: GrowVal) -> ir.Operand:
    value = c.heap[(owner.oid, "len")]
    assert isinstance(value, (ir.Var, ir.Lit))
    return value


def _data(c: Context, owner: GrowVal) -> list[ir.Var]:
    found: list[ir.Var] = []
    while (key := (owner.oid, f"data{len(found)}")) in c.heap:
        array = c.heap[key]
        assert isinstance(array, ir.Var)
        found.append(array)
    return found


def _store(c: Context, owner: GrowVal, k: ir.Operand, item: Value) -> None:
    item = c.conform(_whole(c, item), owner.type.dtype)
    template = merge.slots(_template(c, owner))
    for array, slot, wanted in zip(_data(c, owner), merge.slots(item), template, strict=True):
        if isinstance(wanted.type, types.Array):
            slot = _refer(c, slot, wanted.type)
        c.b.store(array, (k,), slot, wraps=False)


def _whole(c: Context, item: Any) -> Value:
    """The item with its elementwise expressions computed."""
    if isinstance(item, TupleVal):
        return TupleVal(tuple(_whole(c, part) for part in item.items), item.type)
    return materialize(c.arrays, item) if isinstance(item, LazyMap) else item


def _refer(c: Context, array: ir.Operand, kind: types.Array) -> ir.Operand:
    """The number that stands for an array."""
    known = c.listed.get(array.name) if isinstance(array, ir.Var) else None
    if known is not None and array.type == kind:
        return known  # it came out of a list
    out = c.b.fresh("ref", types.intp)
    c.b.emit(ir.Refer(out, array, kind, loc=c.b.loc))
    return out


def _deref(c: Context, ref: ir.Operand, kind: types.Array) -> ir.Var:
    out = c.b.fresh("item", kind)
    c.b.emit(ir.Deref((out,), ref, loc=c.b.loc))
    c.listed[out.name] = ref
    return out


def _load(c: Context, owner: GrowVal, k: ir.Operand) -> Value:
    if c.dead:  # the index is known to be wrong
        return _template(c, owner)
    loaded: list[ir.Operand] = [c.b.load(array, k, wraps=False) for array in _data(c, owner)]
    template = _template(c, owner)
    items: list[ir.Operand] = [
        _deref(c, value, wanted.type) if isinstance(wanted.type, types.Array) else value
        for value, wanted in zip(loaded, merge.slots(template), strict=True)
    ]
    return merge.rebuild(template, items)


# ---- items ---------------------------------------------------------------------------------------


def getitem(c: Context, owner: GrowVal, k: ir.Operand, within: bool) -> Value:
    """``owner[k]``; within: k is known to be an index, in a loop over the list."""
    if within and not merge.same(c.iterated.get(owner.oid), length(c, owner)):
        c.refuse("The loop changes the length of the list it runs over.", "Loop over a range.")
    return _load(c, owner, k if within else _checked(c, owner, k, "getitem out of range"))


def loop_begins(c: Context, value: Value) -> None:
    """The loop at hand runs over this, if it is a list: as far as it is long now."""
    if isinstance(value, GrowVal):
        c.iterated[value.oid] = length(c, value)


def setitem(c: Context, owner: GrowVal, k: ir.Operand, value: Value) -> None:
    k = _checked(c, owner, k, "setitem out of range")
    if c.dead:
        return
    value = c.conform(_whole(c, value), owner.type.dtype)
    _effect(c, owner, "set", k, value)
    _store(c, owner, k, value)


def _checked(c: Context, owner: GrowVal, k: ir.Operand, message: str) -> ir.Operand:
    """An index counted from the start, or an IndexError."""
    if isinstance(owner.type, types.ListType):
        message = "list index out of range"
    n = length(c, owner)
    k, zero = c.cast(k, types.intp), c.b.intp(0)
    if not isinstance(k, ir.Lit):
        name = "%index"
        index = k
        choose(
            c,
            scalars.prim(c, operator.lt, index, zero),
            lambda: c.set(name, scalars.prim(c, operator.add, index, n)),
            lambda: c.set(name, index),
            frozenset({name, *c.frame.names}),
        )
        k = c.frame.names.pop(name)  # type: ignore[assignment]
    elif k.value < 0:
        k = scalars.prim(c, operator.add, k, n)
    low = scalars.prim(c, operator.lt, k, zero)
    scalars.raise_if(
        c, scalars.either(c, low, scalars.prim(c, operator.ge, k, n)), IndexError, message
    )
    return k


# ---- methods ---------------------------------------------------------------------------------------


def method(c: Context, owner: GrowVal, name: str, args: list[Any]) -> Any:
    match name, args:
        case "append", [item]:
            append(c, owner, item)
        case "extend", [other] if isinstance(other := grown(c, other), GrowVal):
            _extend(c, owner, other)
        case "clear", []:
            _effect(c, owner, "clear")
            c.heap[(owner.oid, "len")] = c.b.intp(0)
        case "pop", []:
            return _pop(c, owner)
        case "copy", []:
            return times(c, owner, c.b.intp(1))
        case _:
            c.refuse(f"The method `{name}` of a list is not supported in this form.")
    return NONE


def inplace_binop(c: Context, fn: Any, owner: GrowVal, value: Any) -> None:
    """``owner += value`` changes the list itself."""
    if fn is operator.add and isinstance(other := grown(c, value), GrowVal):
        _extend(c, owner, other)
        return
    c.refuse("This operator of a list is not supported in place.", "Write out the new list.")


def append(c: Context, owner: GrowVal, item: Value) -> None:
    n = length(c, owner)
    after = scalars.prim(c, operator.add, n, c.b.intp(1), name="n")
    item = c.conform(_whole(c, item), owner.type.dtype)
    _effect(c, owner, "append", item)
    _reserve(c, owner, after)
    _store(c, owner, n, item)
    c.heap[(owner.oid, "len")] = after


def _extend(c: Context, owner: GrowVal, other: GrowVal) -> None:
    n, more = length(c, owner), length(c, other)
    after = scalars.prim(c, operator.add, n, more, name="n")
    _reserve(c, owner, after)
    with c.b.loop(more, "k") as k:
        item = c.conform(_load(c, other, k), owner.type.dtype)
        _effect(c, owner, "append", item)
        _store(c, owner, scalars.prim(c, operator.add, n, k), item)
    c.heap[(owner.oid, "len")] = after


def _reserve(c: Context, owner: GrowVal, needed: ir.Operand) -> None:
    """Makes room for `needed` items, and then for twice as many as there was room for."""
    n, data = length(c, owner), _data(c, owner)
    room = c.arrays.shapes.dim(data[0], 0)

    def grow() -> None:
        bigger = scalars.prim(c, operator.mul, room, c.b.intp(2), name="room")
        bigger = scalars.prim(c, max, bigger, needed, name="room")
        bigger = scalars.prim(c, max, bigger, c.b.intp(_FIRST), name="room")
        for k, array in enumerate(data):
            made = c.arrays.alloc((bigger,), array.type, name="items")
            with c.b.loop(n, "k") as i:
                c.b.store(made, (i,), c.b.load(array, i, wraps=False), wraps=False)
            c.heap[(owner.oid, f"data{k}")] = made

    full = scalars.prim(c, operator.gt, needed, room, name="full")
    if not isinstance(full, ir.Lit):
        choose(c, full, grow, lambda: None, frozenset(c.frame.names))
    elif full.value:
        grow()


def _pop(c: Context, owner: GrowVal) -> Value:
    n = length(c, owner)
    scalars.raise_if(
        c, scalars.prim(c, operator.eq, n, c.b.intp(0)), IndexError, "pop from empty list"
    )
    if c.dead:
        return _template(c, owner)
    last = scalars.prim(c, operator.sub, n, c.b.intp(1), name="n")
    _effect(c, owner, "pop")
    c.heap[(owner.oid, "len")] = last
    return _load(c, owner, last)


# ---- whole lists -------------------------------------------------------------------------------------


def times(c: Context, owner: GrowVal, count: ir.Operand) -> GrowVal:
    """``owner * count``: a new list."""
    n = length(c, owner)
    copies = scalars.prim(c, max, c.cast(count, types.intp), c.b.intp(0), name="copies")
    total = scalars.prim(c, operator.mul, n, copies, name="n")
    made = make(c, (), owner.type, total)
    with c.b.loop(copies, "j") as j, c.b.loop(n, "k") as k:
        at = scalars.prim(c, operator.add, scalars.prim(c, operator.mul, j, n), k)
        _store(c, made, at, _load(c, owner, k))
    c.heap[(made.oid, "len")] = total
    return made


def plus(c: Context, left: GrowVal, right: GrowVal) -> GrowVal:
    """``left + right``: a new list."""
    n, m = length(c, left), length(c, right)
    total = scalars.prim(c, operator.add, n, m, name="n")
    made = make(c, (), left.type, total)
    with c.b.loop(n, "k") as k:
        _store(c, made, k, _load(c, left, k))
    with c.b.loop(m, "k") as k:
        _store(c, made, scalars.prim(c, operator.add, n, k), _load(c, right, k))
    c.heap[(made.oid, "len")] = total
    return made


def _of(owner: GrowVal) -> str:
    arrays = isinstance(owner.type.dtype, types.Array)
    return "a list of arrays" if arrays else "a list of tuples"


def to_array(c: Context, owner: GrowVal, type: types.Type | None) -> Any:
    """``np.array(owner)``"""
    data = _data(c, owner)
    if not is_scalar(_template(c, owner)) or not isinstance(type, types.Array):
        c.refuse(f"An array of {_of(owner)} is not supported.", "Fill the array in a loop.")
    made = c.arrays.alloc((length(c, owner),), type, name="a")
    with c.b.loop(length(c, owner), "k") as k:
        value = c.b.load(data[0], k, wraps=False)
        c.b.store(made, (k,), c.cast(value, type.dtype), wraps=False)
    return made


def total(c: Context, owner: GrowVal, start: Any, type: types.Type | None) -> Value:
    """``sum(owner, start)``"""
    if not is_scalar(_template(c, owner)):
        c.refuse(f"The sum of {_of(owner)} is not supported.", "Add the items in a loop.")
    kind = type if type is not None else owner.type.dtype
    (data,) = _data(c, owner)
    init = c.cast(c.b.intp(0) if start is None or is_none(start) else start, kind)

    def body(index: Any, values: Any) -> list[ir.Operand]:
        item = c.b.load(data, index[0], wraps=False)
        return [scalars.prim(c, operator.add, values[0], item, type=kind)]

    return c.arrays.fold((length(c, owner),), (init,), body, name="sum")[0]


__all__ = ["append", "getitem", "grown", "length", "make", "method", "setitem", "times", "to_array"]
