"""Structs given twice: the checks, as text.

    if same_object(s, t):                   in the forward, where f assigns a field of one of them
        raise AliasingError("'s' and 't' of f are one object ...")
    if same_object(d_s, d_t):               in the pullback, which assigns the scalar fields of both
        raise ShadowError("the shadows of 's' and 't' are one object ...")

A field of an argument is read once, when f is entered, and what is assigned to it is known from then on:
this holds while no other argument is the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from numba import types

from splitad.analysis.memory import is_array
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.ir.types import struct_fields
from splitad.ir.walk import walk
from splitad.runtime.same_object import same_object
from splitad.transform.facts import Facts, path_name
from splitad.transform.refusals import refuse_arguments, refuse_shadows

Path = tuple[int | str, ...]


def _structs(facts: Facts) -> dict[Path, ir.Var]:
    """Every struct in the arguments, by its path."""
    found: dict[ir.Var, Path] = {param: (k,) for k, param in enumerate(facts.fn.params)}
    for stmt in facts.fn.body.stmts:
        if isinstance(stmt, ir.GetField) and stmt.obj in found:
            found[stmt.out] = (*found[stmt.obj], stmt.field)
        elif isinstance(stmt, ir.TupleGet) and stmt.obj in found:
            found[stmt.out] = (*found[stmt.obj], stmt.index)
    return {path: v for v, path in found.items() if struct_fields(v.type) is not None}


def _pairs(facts: Facts) -> Iterator[tuple[Path, Path]]:
    """Two structs of one type."""
    structs = _structs(facts)
    paths = list(structs)
    for k, one in enumerate(paths):
        for other in paths[k + 1 :]:
            if structs[one].type == structs[other].type:
                yield one, other


def write_struct_checks(facts: Facts, w: Writer) -> None:
    structs = _structs(facts)
    assigned = {s.obj for s in walk(facts.fn.body) if isinstance(s, ir.SetField)}
    for one, other in _pairs(facts):
        if not assigned & {structs[one], structs[other]}:
            continue
        w.use("same_object", same_object)
        names = [identifier(structs[path].name) for path in (one, other)]
        refuse_arguments(
            w,
            f"same_object({', '.join(names)})",
            f"'{path_name(facts, one)}' and '{path_name(facts, other)}' of {facts.fn.name} are one "
            "object, and one of its fields is assigned: pass it once, or a copy",
        )


def write_shadow_struct_checks(facts: Facts, w: Writer, text: Callable[[Path], str]) -> None:
    """text: how a part of an argument's shadow is written."""
    for one, other in _pairs(facts):
        duplicated = all(facts.activities[p[0]] == "duplicated" for p in (one, other))  # type: ignore[index]
        if not duplicated or not (_is_assigned(facts, one) or _is_assigned(facts, other)):
            continue
        w.use("same_object", same_object)
        refuse_shadows(
            w,
            f"same_object({text(one)}, {text(other)})",
            f"the shadows of '{path_name(facts, one)}' and '{path_name(facts, other)}' are one object, "
            "and each needs scalars of its own: pullback.make_zero() makes two",
        )


def _is_assigned(facts: Facts, path: Path) -> bool:
    """Whether the pullback assigns a field of the shadow."""
    return any(
        leaf.path[: len(path)] == path
        and (
            leaf.exit != leaf.var
            if is_array(leaf.var)
            else not isinstance(leaf.var.type, _DISCRETE)
        )
        for leaf in facts.fn.leaves
    )


_DISCRETE = (types.Integer, types.Boolean)
