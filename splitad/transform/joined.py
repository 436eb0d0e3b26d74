"""Shadows that overlap as the arguments did, where some of the arguments are Const.

The caller gives no shadow of a Const argument, and where its own shadows lie is up to the caller.  So the
pullback makes shadows of all, works on these, and copies what the caller gave to them and back:

    x is Duplicated, w is Const         zeros = zeros_as((noted(base, 16), noted(base, 56), ))
                                        given_x = d_x
                                        d_x = zeros[0]
                                        put_back(d_x, given_x)
                                        d_w = zeros[1]
                                        ...
                                        put_back(given_x, d_x)         at the end

Only in the text for arguments that overlap.
"""

from __future__ import annotations

from collections.abc import Callable

from splitad.analysis.memory import is_array
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.rules.spelling import unique_number
from splitad.runtime.noted import noted_array
from splitad.runtime.state import put_back
from splitad.runtime.zero import zeros_as
from splitad.transform.facts import Facts, activity_of

PathText = Callable[[tuple[int | str, ...]], str]  # the text of a part of an argument's shadow
Name = Callable[[ir.Operand], str]


def can_join(facts: Facts) -> bool:
    """Not where a field holds another array at exit: what its shadow overlaps then changes on the way."""
    if (
        facts.identity.place
    ):  # control flow chooses views: each argument's shadow is a root of its own
        return False
    return not any(leaf.exit != leaf.var for leaf in facts.fn.leaves if is_array(leaf.var))


def _joined(facts: Facts) -> tuple[ir.Leaf, ...]:
    """The arrays whose shadows are made together; none where all shadows are the caller's."""
    if not facts.args_alias or facts.inner or not can_join(facts):
        return ()
    own = [leaf for leaf in facts.fn.leaves if leaf.var in facts.needs.shadowed]
    if not any(is_array(leaf.var) and activity_of(facts, leaf) == "const" for leaf in own):
        return ()
    return tuple(
        leaf
        for leaf in facts.fn.leaves
        if is_array(leaf.var)
        and facts.active(leaf.var)
        and (activity_of(facts, leaf) == "duplicated" or leaf in own)
    )


def are_joined(facts: Facts) -> bool:
    return bool(_joined(facts))


def enter(facts: Facts, w: Writer, path: PathText, shadow: Name) -> tuple[ir.Leaf, ...]:
    """Make them, with the contents of those that the caller gave; which they are."""
    leaves = _joined(facts)
    if not leaves:
        return ()
    parts = []
    for leaf in leaves:
        maker = noted_array(leaf.var.type)
        name = w.use(f"noted_{unique_number(maker)}", maker)
        parts.append(f"{name}(base, {facts.layout.notes[leaf.var]})")
    w.use("zeros_as", zeros_as)
    w.line(f"zeros = zeros_as(({''.join(part + ', ' for part in parts)}))")
    for k, leaf in enumerate(leaves):
        given = activity_of(facts, leaf) == "duplicated"
        if given:
            w.line(f"{_given(leaf)} = {path(leaf.path)}")
        w.line(f"{shadow(leaf.var)} = zeros[{k}]")
        if given:
            w.use("put_back", put_back)
            w.line(f"put_back({shadow(leaf.var)}, {_given(leaf)})")
    return leaves


def leave(facts: Facts, w: Writer, path: PathText, shadow: Name) -> None:
    """Hand back what is the caller's."""
    for leaf in _joined(facts):
        if activity_of(facts, leaf) == "duplicated":
            w.line(f"put_back({_given(leaf)}, {shadow(leaf.var)})")


def _given(leaf: ir.Leaf) -> str:
    return "given_" + leaf.var.name
