"""The checks at the boundary, as text: do the arguments overlap, do the shadows fit?

    if first_overlap((x, y), (True, False)) >= 0:      at the start of the forward
        raise ArgumentsOverlap("...")
    code = shadow_fault(base, 16, d_x, True)           at the start of the pullback, before it writes
    if code == 1:
        raise ShadowError("the shadow of 'x' has another shape than 'x' had")
"""

from __future__ import annotations

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array, tree_leaves
from splitad.codegen.writer import Writer, identifier
from splitad.errors import AliasingError, ArgumentsOverlap, ShadowError
from splitad.ir import nodes as ir
from splitad.rules.spelling import unique_number
from splitad.runtime import boundary
from splitad.runtime.noted import shadow_check
from splitad.tape.ops import tape_release
from splitad.transform.facts import Facts


def leaf_name(facts: Facts, leaf: ir.Leaf) -> str:
    """What the user calls a part of an argument: x, cell.h, pair[0]."""
    text = facts.fn.params[leaf.path[0]].name  # type: ignore[index]
    for step in leaf.path[1:]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text


def is_written(facts: Facts, leaf: ir.Leaf) -> bool:
    """Whether f may write the array that the leaf holds at entry."""
    memory = facts.active.memory
    own = memory.base_roots(leaf.var)
    return any(memory.base_roots(w.array) & own for w in memory.writes)


def write_argument_checks(facts: Facts, w: Writer, args_alias: bool) -> None:
    """Overlapping arguments are refused where f writes one of them, unless the text was made for them."""
    leaves = [leaf for leaf in facts.fn.leaves if is_array(leaf.var)]
    written = [is_written(facts, leaf) for leaf in leaves]
    names = [leaf_name(facts, leaf) for leaf in leaves]
    if args_alias:
        # with one root for all arguments, what is written is not known one by one
        written = [any(written)] * len(leaves)
    w.use("tape_release", tape_release)
    for leaf, on, name in zip(leaves, written, names, strict=True):
        if on:
            w.use("overlaps_itself", boundary.overlaps_itself)
            w.use("AliasingError", AliasingError)
            with w.indented(f"if overlaps_itself({identifier(leaf.var.name)}):"):
                w.line("tape_release(tape)")
                reason = f"the argument '{name}' of {facts.fn.name} overlaps itself in memory and is written"
                w.line(f"raise AliasingError({reason!r})")
    if any(written) and args_alias:
        _refuse_constants(facts, w, leaves)
    if any(written) and len(leaves) > 1 and not args_alias:
        w.use("first_overlap", boundary.first_overlap)
        w.use("ArgumentsOverlap", ArgumentsOverlap)
        arrays = ", ".join(identifier(leaf.var.name) for leaf in leaves)
        flags = ", ".join(map(str, written))
        listed = ", ".join(f"'{n}'" for n in names)
        changed = ", ".join(f"'{n}'" for n, on in zip(names, written, strict=True) if on)
        reason = (
            f"of the arguments {listed} of {facts.fn.name} two overlap in memory, and {changed} "
            f"{'is' if sum(written) == 1 else 'are'} written"
        )
        with w.indented(f"if first_overlap(({arrays},), ({flags},)) >= 0:"):
            w.line("tape_release(tape)")
            w.line(f"raise ArgumentsOverlap({reason!r})")


def _refuse_constants(facts: Facts, w: Writer, leaves: list[ir.Leaf]) -> None:
    """A Const argument has a shadow of the pullback's own, which cannot overlap another as it does."""
    floats = [leaf for leaf in leaves if is_differentiable(leaf.var.type)]
    for k, leaf in enumerate(floats):
        for other in floats[:k]:
            kinds = {facts.activities[x.path[0]] for x in (leaf, other)}  # type: ignore[index]
            if "const" not in kinds:
                continue
            w.use("overlap", boundary.overlap)
            w.use("AliasingError", AliasingError)
            with w.indented(
                f"if overlap({identifier(other.var.name)}, {identifier(leaf.var.name)}):"
            ):
                w.line("tape_release(tape)")
                reason = (
                    f"'{leaf_name(facts, other)}' and '{leaf_name(facts, leaf)}' of {facts.fn.name} "
                    "overlap in memory and one of them is written, so both must be Duplicated"
                )
                w.line(f"raise AliasingError({reason!r})")


def write_shadow_checks(facts: Facts, w: Writer, path, args_alias: bool) -> None:  # type: ignore[no-untyped-def]
    """path: the text of a leaf's shadow."""
    for param, activity in zip(facts.fn.params, facts.activities, strict=True):
        if activity == "duplicated":
            check = shadow_check(param.type, param.name, facts.fn.name)
            name = w.use(f"check_type_{unique_number(check)}", check)
            w.line(f"{name}({identifier('d_' + param.name)})")
    leaves = [
        leaf
        for leaf in facts.fn.leaves
        if facts.activities[leaf.path[0]] == "duplicated"  # type: ignore[index]
        and is_array(leaf.var)
        and facts.active(leaf.exit)
    ]
    written = [args_alias or is_written(facts, leaf) for leaf in leaves]
    for leaf in leaves:
        w.use("shadow_fault", boundary.shadow_fault)
        w.line(f"code = shadow_fault(base, {facts.layout.notes[leaf.var]}, {path(leaf.path)}, True)")
        for code in (boundary.WRONG_SHAPE, boundary.ON_PRIMAL):
            _raise(w, code, leaf_name(facts, leaf))
        for other in facts.fn.leaves:
            if is_array(other.var) and other is not leaf:
                w.use("overlap_noted", boundary.overlap_noted)
                w.use("ShadowError", ShadowError)
                note = facts.layout.notes[other.var]
                with w.indented(f"if overlap_noted(base, {note}, {path(leaf.path)}):"):
                    _, text = boundary.fault(
                        boundary.ON_PRIMAL, leaf_name(facts, leaf), leaf_name(facts, other)
                    )
                    w.line(f"raise ShadowError({text!r})")
    for k, leaf in enumerate(leaves):
        for j in range(k):
            other = leaves[j]
            w.use("pair_fault", boundary.pair_fault)
            notes = facts.layout.notes
            w.line(
                f"code = pair_fault(base, {notes[leaf.var]}, {path(leaf.path)}, "
                f"{notes[other.var]}, {path(other.path)}, {written[k] or written[j]})"
            )
            for code in (boundary.TOUCHING, boundary.SEPARATE):
                _raise(w, code, leaf_name(facts, leaf), leaf_name(facts, other))
    _result_checks(facts, w, [path(leaf.path) for leaf in leaves])


def _raise(w: Writer, code: int, name: str, other: str = "") -> None:
    error, text = boundary.fault(code, name, other)
    w.use(error.__name__, error)
    with w.indented(f"if code == {code}:"):
        w.line(f"raise {error.__name__}({text!r})")


def _result_checks(facts: Facts, w: Writer, shadows: list[str]) -> None:
    def visit(tree: ir.Tree, text: str) -> None:
        if isinstance(tree, ir.TupleTree):
            for k, item in enumerate(tree.items):
                visit(item, f"{text}[{k}]")
        elif tree is not None and is_array(tree) and facts.active(tree):
            for shadow in shadows:
                w.use("bar_overlaps", boundary.bar_overlaps)
                w.use("ShadowError", ShadowError)
                with w.indented(f"if bar_overlaps({text}, {shadow}):"):
                    w.line("raise ShadowError('result_bar overlaps a shadow in memory')")

    if any(is_array(v) for v in tree_leaves(facts.fn.result)):
        visit(facts.fn.result, "result_bar")

