"""Lists in the generated functions: list arguments, and arrays in lists.

    def f(xs):                          forward                             pullback
        xs.append(t)                    xs_items = list_items(xs)           (checks of d_xs)
                                        ...                                 d_items = np.zeros(cap)
                                        xs.append(t)                        take_items(d_xs, d_items)
                                        items[n] = t                        ...
                                        (its length goes on the tape)       put_items(d_xs, d_xs_items)

Where f only reads a list, the cotangents are added to its shadow in the end instead.

A list of arrays is a list of numbers in the IR.  The forward keeps the arrays themselves, and beside each
what identifies it, which goes on the tape where the array is taken out of the list again:

    listed_1 = [(nothing)]; listed_1_marks = [(0, )]
    ref = refer(listed_1, listed_1_marks, u, (id_u, ))
    item = listed_1[ref]; (id_item, ) = listed_1_marks[ref]
"""

from __future__ import annotations

from collections.abc import Iterator

from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import kind_of
from splitad.codegen.python import operand, zero
from splitad.codegen.writer import Writer, identifier
from splitad.errors import AliasingError, ShadowError
from splitad.ir import nodes as ir
from splitad.ir.walk import outs, walk
from splitad.rules.spelling import unique_number
from splitad.runtime import lists as runtime
from splitad.tape.ops import column, tape_release
from splitad.transform.facts import Facts
from splitad.transform.operands import typed
from splitad.transform.shadows import shadow_name


def duplicated(fn: ir.Function, activities: tuple[str, ...]) -> tuple[ir.ListArg, ...]:
    """The lists that have a shadow of the caller's."""
    return tuple(
        each
        for each in fn.lists
        if activities[each.position] == "duplicated" and is_differentiable(each.var.type)
    )


def is_written(fn: ir.Function, each: ir.ListArg) -> bool:
    """Whether f may change the list."""
    return any(isinstance(s, ir.ListOp) and s.obj == each.param for s in walk(fn.body))


# ---- the forward ---------------------------------------------------------------------------------------


def start(fn: ir.Function, w: Writer) -> None:
    """The arrays that lists hold, one collection for each type of them."""
    used = [stmt for stmt in walk(fn.body) if isinstance(stmt, (ir.Refer, ir.Deref))]
    for type in dict.fromkeys(kind_of(stmt) for stmt in used):
        marks = next(marks_of(stmt) for stmt in used if kind_of(stmt) == type)
        name = _collection(w, type)
        w.line(f"{name} = [{_nothing(w, type)}]")
        w.line(f"{name}_marks = [({'0, ' * max(len(marks), 1)})]")


def marks_of(stmt: ir.Refer | ir.Deref) -> tuple[ir.Operand, ...]:
    return stmt.marks if isinstance(stmt, ir.Refer) else stmt.outs[1:]


def _nothing(w: Writer, type: types.Array) -> str:
    """An empty array of the type."""
    text = zero(w, type)
    # a slice with a step is of any layout for Numba
    return f"{text}[::1]" if type.layout == "A" else text


def _collection(w: Writer, type: types.Array) -> str:
    return f"listed_{str(type.dtype).split('(')[0]}_{type.ndim}d_{type.layout}"


def statement(
    w: Writer, stmt: ir.ListItems | ir.ListOp | ir.Refer | ir.Deref
) -> tuple[ir.Var, ...]:
    """Write it; what it defines."""
    _write(w, stmt)
    return outs(stmt)


def _write(w: Writer, stmt: ir.ListItems | ir.ListOp | ir.Refer | ir.Deref) -> None:
    if isinstance(stmt, ir.Refer):
        w.use("refer", runtime.refer)
        name = _collection(w, stmt.kind)
        marks = "".join(operand(w, mark) + ", " for mark in stmt.marks) or "0, "
        array = typed(w, stmt.array, stmt.kind)
        w.line(f"{identifier(stmt.out.name)} = refer({name}, {name}_marks, {array}, ({marks}))")
        return
    if isinstance(stmt, ir.Deref):
        array_, *marks_ = stmt.outs
        name, ref = _collection(w, array_.type), operand(w, stmt.ref)
        w.line(f"{identifier(array_.name)} = {name}[{ref}]")
        for k, mark in enumerate(marks_):
            w.line(f"{identifier(mark.name)} = {name}_marks[{ref}][{k}]")
        return
    if isinstance(stmt, ir.ListItems):
        w.use("list_items", runtime.list_items)
        w.line(f"{identifier(stmt.out.name)} = list_items({operand(w, stmt.obj)})")
        return
    args = [operand(w, a) for a in stmt.args]
    owner = operand(w, stmt.obj)
    if stmt.kind == "set":
        w.line(f"{owner}[{args[0]}] = {args[1]}")
    else:
        w.line(f"{owner}.{stmt.kind}({', '.join(args)})")


def write_argument_checks(facts: Facts, w: Writer) -> None:
    """One list given twice, and changed, would not be changed in the other's array."""
    for each, other in _pairs(facts.fn.lists):
        if is_written(facts.fn, each) or is_written(facts.fn, other):
            w.use("list_id", runtime.list_id)
            w.use("PlainAliasingError", AliasingError)
            w.use("tape_release", tape_release)
            same = f"list_id({_param(each)}) == list_id({_param(other)})"
            with w.indented(f"if {same}:"):
                w.line("tape_release(tape)")
                reason = (
                    f"'{other.param.name}' and '{each.param.name}' of {facts.fn.name} are the same "
                    "list, and it is changed"
                )
                w.line(f"raise PlainAliasingError({reason!r})")


def write_notes(facts: Facts, w: Writer) -> None:
    """At the end: how long each list is, and which."""
    for each, offset in zip(facts.fn.lists, facts.layout.lists, strict=True):
        w.use("list_id", runtime.list_id)
        length = operand(w, each.length)
        w.line(f"{_word(w, offset)} = {length}")
        w.line(f"{_word(w, offset + 8)} = list_id({_param(each)})")


def held(facts: Facts) -> list[str]:
    """What the pullback keeps, so that a shadow that is the list itself can be told."""
    return [_param(each) for each in _kept(facts)]


# ---- the pullback --------------------------------------------------------------------------------------


def write_shadow_checks(facts: Facts, w: Writer) -> None:
    """Before anything is written."""
    offsets = dict(zip((each.param for each in facts.fn.lists), facts.layout.lists, strict=True))
    first = len(facts.layout.notes)
    mine = duplicated(facts.fn, facts.activities)
    for each in mine:
        w.use("PlainShadowError", ShadowError)
        w.use("list_id", runtime.list_id)
        name = each.param.name
        with w.indented(f"if len({_shadow(each)}) != {_word(w, offsets[each.param])}:"):
            reason = (
                f"the shadow of '{name}' has another length than '{name}' had when "
                f"{facts.fn.name} ended: pullback.make_zero() makes one that fits"
            )
            w.line(f"raise PlainShadowError({reason!r})")
        for k, other in enumerate(_kept(facts)):
            if other.param.type == each.param.type:
                with w.indented(f"if list_id({_shadow(each)}) == list_id(refs[1][{first + k}]):"):
                    reason = f"the shadow of '{name}' is the list '{other.param.name}' itself"
                    w.line(f"raise PlainShadowError({reason!r})")
    for each, other in _pairs(mine):
        ids = [_word(w, offsets[x.param] + 8) for x in (each, other)]
        shadows = f"list_id({_shadow(each)}) == list_id({_shadow(other)})"
        with w.indented(f"if {shadows} and {ids[0]} != {ids[1]}:"):
            reason = (
                f"'{other.param.name}' and '{each.param.name}' have one shadow, but were two lists"
            )
            w.line(f"raise PlainShadowError({reason!r})")


def seed(facts: Facts, w: Writer) -> None:
    """The cotangent of what a list holds at exit."""
    for each in duplicated(facts.fn, facts.activities):
        if is_written(facts.fn, each):
            w.use("take_items", runtime.take_items)
            w.line(f"take_items({_shadow(each)}, {shadow_name(each.exit)})")


def hand_back(facts: Facts, w: Writer) -> None:
    """Shadows become what they are at entry."""
    for each in duplicated(facts.fn, facts.activities):
        name = "put_items" if is_written(facts.fn, each) else "add_items"
        w.use(name, getattr(runtime, name))
        w.line(f"{name}({_shadow(each)}, {shadow_name(each.var)})")


def zeros(facts: Facts, w: Writer, position: int) -> str | None:
    """A zero shadow for a list argument: the same for the same list.  None where it is not a list."""
    offsets = dict(zip((each.param for each in facts.fn.lists), facts.layout.lists, strict=True))
    mine = duplicated(facts.fn, facts.activities)
    for each in (each for each in mine if each.position == position):
        maker = runtime.list_of_zeros(each.param.type)
        name = w.use(f"list_of_zeros_{unique_number(maker)}", maker)
        w.line(f"{_shadow(each)} = {name}({_word(w, offsets[each.param])})")
        for other in (other for one, other in _pairs(mine) if one is each):
            ids = [_word(w, offsets[x.param] + 8) for x in (each, other)]
            with w.indented(f"if {ids[0]} == {ids[1]}:"):
                w.line(f"{_shadow(each)} = {_shadow(other)}")
        return _shadow(each)
    return None


# ---- names ---------------------------------------------------------------------------------------------


def _pairs(found: tuple[ir.ListArg, ...]) -> Iterator[tuple[ir.ListArg, ir.ListArg]]:
    """Those that can be one list."""
    for k, each in enumerate(found):
        for other in found[:k]:
            if each.param.type == other.param.type:
                yield each, other


def _kept(facts: Facts) -> list[ir.ListArg]:
    # (Numba cannot take a reflected list out of a tuple again)
    return [each for each in facts.fn.lists if isinstance(each.param.type, types.ListType)]


def _param(each: ir.ListArg) -> str:
    return identifier(each.param.name)


def _shadow(each: ir.ListArg) -> str:
    return shadow_name(each.param)


def _word(w: Writer, offset: int) -> str:
    w.use("column", column)
    w.use("int64", types.int64)
    return f"column(base, {offset}, int64)[0]"
