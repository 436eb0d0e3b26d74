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

A list of arrays among the arguments may hold other arrays at exit than at entry; its shadow runs backwards:

    xs_at_entry = typed_copy(xs)                      set_marked(shadows, marks, d_xs)      those at exit
    ...                                               ...
    (marks_at_exit(...) is kept)                      put_shadows(d_xs, shadows, first, xs_at_entry)
"""

from __future__ import annotations

from collections.abc import Iterator

from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import changed_lists, is_array, kind_of, list_root
from splitad.codegen.python import operand, zero
from splitad.codegen.writer import Writer, identifier
from splitad.errors import AliasingError, UnsupportedError
from splitad.ir import nodes as ir
from splitad.ir.walk import outs, walk
from splitad.rules.spelling import unique_number
from splitad.runtime import faults
from splitad.runtime import lists as runtime
from splitad.tape.ops import column
from splitad.transform import checks, joined
from splitad.transform.facts import Facts, activity_of, path_name
from splitad.transform.operands import typed
from splitad.transform.refusals import refuse_arguments, refuse_shadows
from splitad.transform.shadows import shadow_name, table_name


def duplicated(fn: ir.Function, activities: tuple[str, ...]) -> tuple[ir.ListArg, ...]:
    """The lists that have a shadow of the caller's."""
    return tuple(
        each
        for each in fn.lists
        if activities[each.position] == "duplicated" and is_differentiable(each.var.type)
    )


def duplicated_arrays(fn: ir.Function, activities: tuple[str, ...]) -> tuple[ir.ListArg, ...]:
    """Likewise the lists of arrays."""
    return tuple(
        each
        for each in fn.lists
        if activities[each.position] == "duplicated"
        and each.kind is not None
        and is_differentiable(each.kind)
    )


def is_written(facts: Facts, each: ir.ListArg) -> bool:
    """Whether f may change the list, or write an array in it."""
    if each in changed_lists(facts.fn):
        return True
    if each.kind is not None:
        memory = facts.active.memory
        root = list_root(each.param, facts.args_alias)
        return any(root in memory.base_roots(write.array) for write in memory.writes)
    return any(isinstance(s, ir.ListOp) and s.obj == each.param for s in walk(facts.fn.body))


# ---- the forward ---------------------------------------------------------------------------------------


STATEMENTS = (ir.ListItems, ir.ListArrays, ir.ListOp, ir.Refer, ir.Deref)
Statement = ir.ListItems | ir.ListArrays | ir.ListOp | ir.Refer | ir.Deref


def start(fn: ir.Function, w: Writer) -> None:
    """The arrays that lists hold, one collection for each type of them."""
    for type, marks in _collected(fn).items():
        name = _collection(type)
        w.line(f"{name} = [{_nothing(w, type)}]")
        w.line(f"{name}_marks = [({'0, ' * max(len(marks), 1)})]")


def _collected(fn: ir.Function) -> dict[types.Array, tuple[ir.Operand, ...]]:
    """The types of arrays that lists hold, and the marks of one array of each."""
    kinds = (ir.Refer, ir.Deref, ir.ListArrays)
    used = [stmt for stmt in walk(fn.body) if isinstance(stmt, kinds)]
    found: dict[types.Array, tuple[ir.Operand, ...]] = {}
    for stmt in used:
        found.setdefault(kind_of(stmt), marks_of(stmt))
    return found


def collections(fn: ir.Function) -> list[str]:
    """The variables that hold them."""
    names = [_collection(type) for type in _collected(fn)]
    return [*names, *(name + "_marks" for name in names)]


def marks_of(stmt: ir.Refer | ir.Deref | ir.ListArrays) -> tuple[ir.Operand, ...]:
    return stmt.marks if isinstance(stmt, ir.Refer) else stmt.outs[1:]


def _nothing(w: Writer, type: types.Array) -> str:
    """An empty array of the type."""
    text = zero(w, type)
    # a slice with a step is of any layout for Numba
    return f"{text}[::1]" if type.layout == "A" else text


def _collection(type: types.Array) -> str:
    return f"listed_{str(type.dtype).split('(')[0]}_{type.ndim}d_{type.layout}"


def statement(w: Writer, stmt: Statement) -> tuple[ir.Var, ...]:
    """Write it; what it defines."""
    _write(w, stmt)
    return outs(stmt)


def _write(w: Writer, stmt: Statement) -> None:
    if isinstance(stmt, ir.ListArrays):
        w.use("refer_all", runtime.refer_all)
        name, given = _collection(stmt.kind), operand(w, stmt.obj)
        first = "-1"
        if len(stmt.outs) > 1:
            first = identifier(stmt.outs[1].name)
            w.line(f"{first} = next_id")
            w.line(f"next_id += len({given})")
        made = identifier(stmt.outs[0].name)
        w.line(f"{made} = refer_all({name}, {name}_marks, {given}, {first})")
        return
    if isinstance(stmt, ir.Refer):
        w.use("refer", runtime.refer)
        name = _collection(stmt.kind)
        marks = "".join(operand(w, mark) + ", " for mark in stmt.marks) or "0, "
        array = typed(w, stmt.array, stmt.kind)
        w.line(f"{identifier(stmt.out.name)} = refer({name}, {name}_marks, {array}, ({marks}))")
        return
    if isinstance(stmt, ir.Deref):
        array_, *marks_ = stmt.outs
        name, ref = _collection(array_.type), operand(w, stmt.ref)
        w.line(f"{identifier(array_.name)} = {name}[{ref}]")
        for k, mark in enumerate(marks_):
            w.line(f"{identifier(mark.name)} = {name}_marks[{ref}][{k}]")
        return
    if isinstance(stmt, ir.ListItems):
        w.use("list_items", runtime.list_items)
        w.line(f"{identifier(stmt.out.name)} = list_items({operand(w, stmt.obj)})")
        return
    item = stmt.obj.type.dtype
    args = [typed(w, a, item) if is_array(a) else operand(w, a) for a in stmt.args]
    owner = operand(w, stmt.obj)
    if stmt.kind == "set":
        w.line(f"{owner}[{args[0]}] = {args[1]}")
    else:
        w.line(f"{owner}.{stmt.kind}({', '.join(args)})")


def write_argument_checks(facts: Facts, w: Writer) -> None:
    """Which lists and arrays in them may not be the same; and what the caller's lists hold at entry."""
    _same_list(facts, w)
    _check_arrays(facts, w)
    for each in _changed(facts):
        w.use("typed_copy", runtime.typed_copy)
        w.line(f"{_at_entry(each)} = typed_copy({_param(each)})")


def _check_arrays(facts: Facts, w: Writer) -> None:
    """Arrays in lists that overlap others, where one of them is written: the text for arguments that overlap
    (runtime/overlapping.py) is right for them, unless one of them has no shadow of the caller's."""
    found = [each for each in facts.fn.lists if each.kind is not None]
    written = {each.param: is_written(facts, each) for each in found}
    roots = {list_root(each.param, facts.args_alias) for each in found}
    for leaf in facts.fn.leaves:
        rebound = is_array(leaf.var) and leaf.exit != leaf.var
        if rebound and roots & facts.active.memory.base_roots(leaf.exit):
            raise UnsupportedError(
                f"'{path_name(facts, leaf.path)}' may be assigned an array of a list argument",
                facts.fn.loc,
                "Assign a copy of it (x.copy()).",
            )
    _check_changed(facts)

    def overlapping(test: str, what: str, why: str) -> None:
        """why: what speaks against the text for arguments that overlap, or ""."""
        if not facts.args_alias:
            checks.write_overlapping(facts, w, test)
        elif why:
            refuse_arguments(
                w, test, f"{what} of {facts.fn.name} overlap in memory and are changed, {why}"
            )

    for k, each in enumerate(found):
        assert each.kind is not None
        name, why = each.param.name, _only_apart(facts, each)
        if written[each.param]:
            w.use("overlaps_itself", runtime.overlaps_itself)
            w.use("meets_itself", runtime.meets_itself)
            reason = (
                f"an array in the list '{name}' of {facts.fn.name} overlaps itself and is written"
            )
            refuse_arguments(w, f"overlaps_itself({_param(each)})", reason)
            overlapping(f"meets_itself({_param(each)})", f"arrays in the list '{name}'", why)
        for other in found[:k]:
            assert other.kind is not None
            if written[each.param] or written[other.param]:
                w.use("meets_list", runtime.meets_list)
                test = f"meets_list({_param(each)}, {_param(other)})"
                what = f"arrays in the lists '{other.param.name}' and '{name}'"
                overlapping(
                    test, what, why or _only_apart(facts, other) or _unlike(each.kind, other.kind)
                )
        for leaf in facts.fn.leaves:
            if is_array(leaf.var) and (written[each.param] or checks.is_written(facts, leaf)):
                w.use("meets_array", runtime.meets_array)
                test = f"meets_array({_param(each)}, {identifier(leaf.var.name)})"
                what = f"'{path_name(facts, leaf.path)}' and an array in '{name}'"
                against = why or _leaf_only_apart(facts, leaf) or _unlike(each.kind, leaf.var.type)
                overlapping(test, what, against)


_NOT_CONST = "which needs both to be Duplicated"


def _only_apart(facts: Facts, each: ir.ListArg) -> str:
    """Why arrays of a list argument must not overlap others, where any of these is written; or ""."""
    assert each.kind is not None
    if not is_differentiable(each.kind):
        return ""
    if facts.activities[each.position] != "duplicated":
        return _NOT_CONST
    if each in changed_lists(facts.fn):
        return "while the list is given other arrays: copy one of them before the call"
    return ""


def _leaf_only_apart(facts: Facts, leaf: ir.Leaf) -> str:
    if not is_differentiable(leaf.var.type):
        return ""
    if activity_of(facts, leaf) != "duplicated" or joined.are_joined(facts):
        return _NOT_CONST
    if leaf.exit != leaf.var:
        return "while the field is assigned: copy one of them before the call"
    return ""


def _unlike(kind: types.Array, other: types.Array) -> str:
    if any(
        checks.is_made_of(kind.dtype, n) and checks.is_made_of(other.dtype, n) for n in (32, 64)
    ):
        return ""
    if kind.dtype == other.dtype:
        return ""
    return "but their elements are of different types"


def _check_changed(facts: Facts) -> None:
    """What may be in the caller's list in the end must have a shadow there, and no other one."""
    kinds = {each.kind for each in _changed(facts)}
    if not kinds:
        return
    for kind in kinds:
        if kind is not None and kind.layout == "F" and kind.ndim > 1:
            raise UnsupportedError(
                "the items of a list of arrays in Fortran order are replaced",
                facts.fn.loc,
                "Use arrays in C order.",
            )
    memory = facts.active.memory
    for stmt in walk(facts.fn.body):
        if not (isinstance(stmt, ir.Refer) and kind_of(stmt) in kinds):
            continue
        roots = memory.base_roots(stmt.array)
        for leaf in facts.fn.leaves:
            if not (is_array(leaf.var) and memory.base_roots(leaf.var) & roots):
                continue
            name = path_name(facts, leaf.path)
            if activity_of(facts, leaf) != "duplicated" and facts.active(leaf.var):
                raise UnsupportedError(
                    f"'{name}', which is Const, is put into a list that is an argument",
                    stmt.loc,
                    f"Make '{name}' Duplicated, or put a copy of it into the list (x.copy()).",
                )
            if leaf.exit != leaf.var:
                raise UnsupportedError(
                    f"'{name}', which is assigned too, is put into a list that is an argument",
                    stmt.loc,
                    "Put a copy of it into the list (x.copy()).",
                )


def _changed(facts: Facts) -> list[ir.ListArg]:
    """The lists that have a shadow of the caller's, and hold other arrays in the end."""
    changed = changed_lists(facts.fn)
    mine = duplicated_arrays(facts.fn, facts.activities)
    return [each for each in mine if each in changed]


def _same_list(facts: Facts, w: Writer) -> None:
    """One list given twice, and changed, would not be changed in the other's array."""
    changed = changed_lists(facts.fn)
    for each, other in _pairs(facts.fn.lists):
        if each.kind is None:
            written = is_written(facts, each) or is_written(facts, other)
        else:
            written = each in changed or other in changed
        if written:
            w.use("list_id", runtime.list_id)
            refuse_arguments(
                w,
                f"list_id({_param(each)}) == list_id({_param(other)})",
                f"'{other.param.name}' and '{each.param.name}' of {facts.fn.name} are the same "
                "list, and it is changed: pass it once, or a copy",
            )


def write_notes(facts: Facts, w: Writer) -> None:
    """At the end: how long each list is, and which."""
    for each, offset in zip(facts.fn.lists, facts.layout.lists, strict=True):
        w.use("list_id", runtime.list_id)
        length = operand(w, each.length)
        w.line(f"{_word(w, offset)} = {length}")
        w.line(f"{_word(w, offset + 8)} = list_id({_param(each)})")


def held(facts: Facts, w: Writer) -> list[str]:
    """What the pullback keeps, so that a shadow that is the list itself can be told."""
    kept = [_param(each) for each in _kept(facts)]
    for each in duplicated_arrays(facts.fn, facts.activities):
        w.use("typed_copy", runtime.typed_copy)
        kept.append(f"typed_copy({_param(each)})")
    for each in _changed(facts):
        w.use("marks_at_exit", runtime.marks_at_exit)
        assert each.kind is not None
        marks, numbers = _collection(each.kind) + "_marks", operand(w, each.exit)
        kept.append(_at_entry(each))
        kept.append(f"marks_at_exit({marks}, {numbers}, {operand(w, each.length)})")
    return kept


# ---- the pullback --------------------------------------------------------------------------------------


def write_shadow_checks(facts: Facts, w: Writer) -> None:
    """Before anything is written."""
    offsets = dict(zip((each.param for each in facts.fn.lists), facts.layout.lists, strict=True))
    first = len(facts.layout.notes)
    mine = duplicated(facts.fn, facts.activities)
    for each in (*mine, *duplicated_arrays(facts.fn, facts.activities)):
        w.use("list_id", runtime.list_id)
        name = each.param.name
        refuse_shadows(
            w,
            f"len({_shadow(each)}) != {_word(w, offsets[each.param])}",
            f"the shadow of '{name}' has another length than '{name}' had when "
            f"{facts.fn.name} ended: pullback.make_zero() makes one that fits",
        )
        for k, other in enumerate(_kept(facts)):
            if other.param.type == each.param.type:
                refuse_shadows(
                    w,
                    f"list_id({_shadow(each)}) == list_id(refs[1][{first + k}])",
                    f"the shadow of '{name}' is the list '{other.param.name}' itself",
                )
    _check_shadow_arrays(facts, w)
    for each, other in _pairs(mine):
        ids = [_word(w, offsets[x.param] + 8) for x in (each, other)]
        shadows = f"list_id({_shadow(each)}) == list_id({_shadow(other)})"
        refuse_shadows(
            w,
            f"{shadows} and {ids[0]} != {ids[1]}",
            f"'{other.param.name}' and '{each.param.name}' have one shadow, but were two lists",
        )


def _check_shadow_arrays(facts: Facts, w: Writer) -> None:
    """The arrays in a list's shadow: their shapes, and that they overlap as the primals do."""
    mine = duplicated_arrays(facts.fn, facts.activities)
    changed = _changed(facts)
    leaves = [leaf for leaf in facts.fn.leaves if leaf.var in facts.layout.notes]

    def like_primals(call: str, what: str, where: str) -> None:
        w.line(f"kind = {call}")
        refuse_shadows(
            w,
            f"kind == {faults.SEPARATE}",
            f"{where} overlapped in memory, so their shadows must overlap at the same byte offsets: "
            "make_zero() gives such shadows",
            AliasingError,
        )
        refuse_shadows(
            w,
            f"kind == {faults.TOUCHING}",
            f"{what} overlap in memory, but {where} did not, or not at the same byte offsets",
        )

    for position, each in enumerate(mine):
        for used in ("shadow_fault", "lists_fault", "array_fault", "meets_list", "meets_array"):
            w.use(used, getattr(runtime, used))
        shadow, name = _shadow(each), each.param.name
        own, again = _held(facts, position), facts.args_alias or each in changed
        like_primals(
            f"shadow_fault({shadow}, {own}, {again or is_written(facts, each)})",
            f"arrays in the shadow of '{name}'",
            f"those in '{name}'",
        )
        refuse_shadows(
            w,
            f"kind == {faults.WRONG_SHAPE}",
            f"an array in the shadow of '{name}' has another shape than the one in '{name}' had",
        )
        for k, other in enumerate(mine):
            there, named = _held(facts, k), other.param.name
            refuse_shadows(
                w,
                f"meets_list({shadow}, {there})",
                f"an array in the shadow of '{name}' overlaps one in '{named}' in memory",
            )
            if k < position:
                written = again or other in changed
                like_primals(
                    f"lists_fault({shadow}, {own}, {_shadow(other)}, {there}, {written})",
                    f"the shadows of '{named}' and '{name}'",
                    f"arrays in '{named}' and '{name}'",
                )
        for k, leaf in enumerate(leaves):
            primal, named = f"refs[1][{k}]", path_name(facts, leaf.path)
            refuse_shadows(
                w,
                f"meets_array({shadow}, {primal})",
                f"an array in the shadow of '{name}' overlaps '{named}' in memory",
            )
            if activity_of(facts, leaf) == "duplicated" and facts.active(leaf.exit):
                text = path_text(facts, leaf)
                refuse_shadows(
                    w,
                    f"meets_array({own}, {text})",
                    f"the shadow of '{named}' overlaps an array in '{name}' in memory",
                )
                like_primals(
                    f"array_fault({shadow}, {own}, len({own}), {text}, {primal}, {again})",
                    f"the shadows of '{named}' and '{name}'",
                    f"'{named}' and an array in '{name}'",
                )


def path_text(facts: Facts, leaf: ir.Leaf) -> str:
    first, *steps = leaf.path
    assert isinstance(first, int)
    text = shadow_name(facts.fn.params[first])
    return text + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)


def bind(facts: Facts, w: Writer, tables: dict[str, types.Array]) -> None:
    """The shadows of the arrays in lists are found in the tables, as those of other arrays are."""
    made, changed = _identified(facts), _changed(facts)
    for each in duplicated_arrays(facts.fn, facts.activities):
        assert each.kind is not None
        table = table_name(ir.Var("", each.kind))
        if each in changed:
            w.use("set_marked", runtime.set_marked)
            marks = _held_of_changed(facts, changed.index(each))[1]
            w.line(f"set_marked({table}, {marks}, {_shadow(each)})")
        elif each.param in made and table in tables:
            w.use("set_shadows", runtime.set_shadows)
            w.line(f"set_shadows({table}, {_first(facts, w, each)}, {_shadow(each)})")


def _identified(facts: Facts) -> dict[ir.Var, ir.ListArrays]:
    """By the argument, where its arrays are identified."""
    return {
        s.obj: s for s in facts.fn.body.stmts if isinstance(s, ir.ListArrays) and len(s.outs) > 1
    }


def _first(facts: Facts, w: Writer, each: ir.ListArg) -> str:
    """What identifies the first of its arrays at entry."""
    return operand(w, _identified(facts)[each.param].outs[1])


def seed(facts: Facts, w: Writer) -> None:
    """The cotangent of what a list holds at exit."""
    for each in duplicated(facts.fn, facts.activities):
        if is_written(facts, each):
            w.use("take_items", runtime.take_items)
            w.line(f"take_items({_shadow(each)}, {shadow_name(each.exit)})")


def hand_back(facts: Facts, w: Writer) -> None:
    """Shadows become what they are at entry."""
    for each in duplicated(facts.fn, facts.activities):
        name = "put_items" if is_written(facts, each) else "add_items"
        w.use(name, getattr(runtime, name))
        w.line(f"{name}({_shadow(each)}, {shadow_name(each.var)})")
    for k, each in enumerate(_changed(facts)):
        assert each.kind is not None
        w.use("put_shadows", runtime.put_shadows)
        table, arrays = table_name(ir.Var("", each.kind)), _held_of_changed(facts, k)[0]
        w.line(f"put_shadows({_shadow(each)}, {table}, {_first(facts, w, each)}, {arrays})")


def zeros(facts: Facts, w: Writer, position: int) -> str | None:
    """A zero shadow for a list argument: the same for the same list.  None where it is not a list."""
    offsets = dict(zip((each.param for each in facts.fn.lists), facts.layout.lists, strict=True))
    mine = duplicated(facts.fn, facts.activities)
    for k, each in enumerate(duplicated_arrays(facts.fn, facts.activities)):
        if each.position == position:
            if isinstance(each.param.type, types.ListType):
                return _held(facts, k)
            w.use("plain_copy", runtime.plain_copy)
            return f"plain_copy({_held(facts, k)})"
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
    typed_lists = (each for each in facts.fn.lists if isinstance(each.param.type, types.ListType))
    return [each for each in typed_lists if each.kind is None]


def _held(facts: Facts, k: int) -> str:
    """The copy of list of arrays number k that the pullback keeps."""
    return f"refs[1][{len(facts.layout.notes) + len(_kept(facts)) + k}]"


def _held_of_changed(facts: Facts, k: int) -> tuple[str, str]:
    """Of changed list number k: its arrays at entry, and what identifies those at exit."""
    first = len(facts.layout.notes) + len(_kept(facts))
    first += len(duplicated_arrays(facts.fn, facts.activities)) + 2 * k
    return f"refs[1][{first}]", f"refs[1][{first + 1}]"


def _at_entry(each: ir.ListArg) -> str:
    return identifier(each.param.name) + "_at_entry"


def _param(each: ir.ListArg) -> str:
    return identifier(each.param.name)


def _shadow(each: ir.ListArg) -> str:
    return shadow_name(each.param)


def _word(w: Writer, offset: int) -> str:
    w.use("column", column)
    w.use("int64", types.int64)
    return f"column(base, {offset}, int64)[0]"
