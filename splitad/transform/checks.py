"""The checks at the boundary, as text: do the arguments overlap, do the shadows fit?

    note_array(base, 16, x)                                at the start of the forward
    code = arguments_fault(base + 16, 1, 1, 0, 0, 1, 0)
    if code != 0:
        raise AliasingError(code, "f|x")
    note_array(shadows, 0, d_x)                            at the start of the pullback, before it writes
    code = shadows_fault(base + 16, 1, shadows, 1, 1)
    if code != 0:
        raise ShadowError(code, "f|x")

A code says which arguments are at fault, and why: runtime/faults.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array, tree_leaves
from splitad.codegen.writer import Writer, identifier
from splitad.errors import UnsupportedError
from splitad.ir import nodes as ir
from splitad.rules.spelling import unique_number
from splitad.runtime import boundary, faults, overlapping
from splitad.runtime.noted import shadow_check
from splitad.tape.ops import store_at, tape_release
from splitad.transform import joined
from splitad.transform.facts import Facts, activity_of, path_name
from splitad.transform.refusals import refuse_shadows
from splitad.transform.struct_checks import write_shadow_struct_checks, write_struct_checks


def is_written(facts: Facts, leaf: ir.Leaf) -> bool:
    """Whether f may write the array that the leaf holds at entry, or puts another in its place."""
    if leaf.exit != leaf.var:
        return True
    memory = facts.active.memory
    own = memory.base_roots(leaf.var)
    return any(memory.base_roots(w.array) & own for w in memory.writes)


def _arrays(facts: Facts) -> list[ir.Leaf]:
    leaves = [leaf for leaf in facts.fn.leaves if is_array(leaf.var)]
    if len(leaves) > faults.MOST:
        raise UnsupportedError(
            f"the arguments of {facts.fn.name} hold {len(leaves)} arrays, more than {faults.MOST}",
            facts.fn.loc,
            "Put several into one array.",
        )
    return leaves


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << k for k, on in enumerate(flags) if on)


def _names(facts: Facts, leaves: list[ir.Leaf], marks: Sequence[str] = ()) -> str:
    names = [path_name(facts, leaf.path) for leaf in leaves]
    if marks:
        names = [mark + name for mark, name in zip(marks, names, strict=True)]
    return "|".join([facts.fn.name, *names])


def _has_no_shadow(facts: Facts, leaf: ir.Leaf) -> bool:
    """Whether there is no shadow of it that could overlap others, as it is Const."""
    const = is_differentiable(leaf.var.type) and activity_of(facts, leaf) == "const"
    return const and not joined.can_join(facts)


def is_made_of(dtype: types.Type, width: int) -> bool:
    """Whether an array's elements are floats of that many bits, or complex numbers of such."""
    if isinstance(dtype, types.Record):
        return True
    if isinstance(dtype, types.Complex):
        dtype = dtype.underlying_float
    return isinstance(dtype, types.Float) and dtype.bitwidth == width


def _raise(w: Writer, names: str) -> None:
    """Raise the error of `code`. Numba gives up what a block no longer needs only where the block ends with
    `raise` itself; what a call raises would leak it."""
    w.use("raise_fault", faults.raise_fault)
    w.line(f"raise_fault(code, {names!r})")
    w.line("raise AssertionError  # not reached")


def write_argument_checks(facts: Facts, w: Writer) -> None:
    """Overlapping arguments are refused where f writes one of them, unless the text was made for them."""
    write_struct_checks(facts, w)
    leaves = _arrays(facts)
    written = [is_written(facts, leaf) for leaf in leaves]
    for leaf in leaves:
        w.use("note_array", boundary.note_array)
        note = facts.layout.notes[leaf.var]
        w.line(f"note_array(base, {note}, {identifier(leaf.var.name)})")
        if leaf.var in facts.layout.entry:
            w.line(f"note_array(base, {facts.layout.entry[leaf.var]}, {identifier(leaf.var.name)})")
    if not any(written):
        return
    fixed = _bits(
        facts.args_alias
        and is_differentiable(leaf.var.type)
        and (
            (leaf.exit != leaf.var and leaf.var not in facts.layout.entry)
            or _has_no_shadow(facts, leaf)
        )
        for leaf in leaves
    )
    rebound = _bits(leaf.var in facts.layout.entry for leaf in leaves)
    doubles, singles = (
        _bits(is_made_of(leaf.var.type.dtype, width) for leaf in leaves) for width in (64, 32)
    )
    w.use("tape_release", tape_release)
    w.use("arguments_fault", faults.arguments_fault)
    first = facts.layout.notes[leaves[0].var]
    sets = f"{_bits(written)}, {fixed}, {rebound}, {doubles}, {singles}"
    w.line(f"code = arguments_fault(base + {first}, {len(leaves)}, {sets})")
    lo, hi = (faults.first_code(faults.OVERLAPPING + k) for k in (0, 1))
    with w.indented(f"if code != 0 and not {lo} <= code < {hi}:"):
        w.line("tape_release(tape)")
        marks = [
            faults.NO_SHADOW if facts.args_alias and _has_no_shadow(facts, leaf) else ""
            for leaf in leaves
        ]
        _raise(w, _names(facts, leaves, marks))
    if not facts.args_alias and len(leaves) > 1:
        write_overlapping(facts, w, "code != 0")


def write_overlapping(facts: Facts, w: Writer, test: str) -> None:
    """Where the test holds, the pair for arguments that overlap takes over."""
    w.use("ArgumentsOverlap", faults.ArgumentsOverlap)
    w.use("store_at", store_at)
    with w.indented(f"if {test}:"):
        w.line(f"store_at(tape, {overlapping.USED}, {overlapping.MARK})")
        w.line(f"raise ArgumentsOverlap({_names(facts, _arrays(facts))!r})")


def write_shadow_checks(facts: Facts, w: Writer, path: Callable[..., str]) -> None:
    """path: the text of a leaf's shadow."""
    for param, activity in zip(facts.fn.params, facts.activities, strict=True):
        if activity == "duplicated":
            check = shadow_check(param.type, param.name, facts.fn.name)
            name = w.use(f"check_type_{unique_number(check)}", check)
            w.line(f"{name}({identifier('d_' + param.name)})")
    write_shadow_struct_checks(facts, w, path)
    leaves = _arrays(facts)
    shadowed = [
        activity_of(facts, leaf) == "duplicated" and facts.active(leaf.exit) for leaf in leaves
    ]
    if not any(shadowed):
        return
    written = [facts.args_alias or is_written(facts, leaf) for leaf in leaves]
    mine = [leaf for leaf, on in zip(leaves, shadowed, strict=True) if on]
    words = [boundary.note_words(leaf.var.type.ndim) for leaf in mine]
    w.use("stack_words", boundary.stack_words)
    w.use("note_array", boundary.note_array)
    w.line(f"shadows = stack_words({sum(words)})")
    for k, leaf in enumerate(mine):
        w.line(f"note_array(shadows, {8 * sum(words[:k])}, {path(leaf.path)})")
    w.use("shadows_fault", faults.shadows_fault)
    first = facts.layout.notes[leaves[0].var]
    w.line(
        f"code = shadows_fault(base + {first}, {len(leaves)}, shadows, "
        f"{_bits(shadowed)}, {_bits(written)})"
    )
    with w.indented("if code != 0:"):
        _raise(w, _names(facts, leaves))
    _result_checks(facts, w, [path(leaf.path) for leaf in mine])


def _result_checks(facts: Facts, w: Writer, shadows: list[str]) -> None:
    def visit(tree: ir.Tree, text: str) -> None:
        if isinstance(tree, ir.TupleTree):
            for k, item in enumerate(tree.items):
                visit(item, f"{text}[{k}]")
        elif tree is not None and is_array(tree) and facts.active(tree):
            for shadow in shadows:
                w.use("bar_overlaps", boundary.bar_overlaps)
                overlap = f"bar_overlaps({text}, {shadow})"
                refuse_shadows(w, overlap, "result_bar overlaps a shadow in memory")

    if any(is_array(v) for v in tree_leaves(facts.fn.result)):
        visit(facts.fn.result, "result_bar")
