"""The pullback as a whole: what it is given, and what it returns or leaves in shadows.

    def f(x, s):                    def f__pullback(tape, refs, result_bar, d_x, d_s):
        for i in range(n):              base, cur = ...                     it reads the tape backwards
            ...                         d_r = result_bar                    the cotangent of the result
        s.h = t                         d_t += d_s.h                        and of fields that were rebound
        return r                        for i in range(n - 1, -1, -1): ...  the adjoints
                                        d_s.h = d_h                         shadows as they were at entry
                                        return ()                           cotangents of scalar arguments

The adjoints are in reversed_blocks.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array, tree_leaves
from splitad.codegen.python import statement
from splitad.codegen.writer import Writer
from splitad.ir import nodes as ir
from splitad.ir.types import struct_fields
from splitad.runtime.shadow_table import add_into
from splitad.tape.ops import column, load_at
from splitad.transform import lists, memories, reversed_blocks
from splitad.transform.checks import write_shadow_checks
from splitad.transform.facts import Facts
from splitad.transform.operands import result_text, tuple_text
from splitad.transform.refusals import refuse_shadows
from splitad.transform.reversal import Reversal
from splitad.transform.shadows import shadow_name

Path = tuple[int | str, ...]


def run(facts: Facts, name: str, names: dict[str, object]) -> Writer:
    """The function's text: ``name(tape, refs, result_bar, *shadows) -> cotangents``.

    A recursive function's own: ``name(tape, cur, result_bar, *shadows) -> (cotangents, cur)``.
    With loops that are swept: ``-> (cotangents, result)``.
    """
    numbers = memories.in_pullback(facts)
    w = Writer(names, vector=facts.vector_math != "none", memories=numbers)
    shadows = "".join(
        ", " + shadow_name(p)
        for p, activity in zip(facts.fn.params, facts.activities, strict=True)
        if activity == "duplicated"
    )
    with w.indented(f"def {name}(tape, {'cur' if facts.inner else 'refs'}, result_bar{shadows}):"):
        _body(Reversal.of(facts, w))
    return w


def _body(r: Reversal) -> None:
    w, root = r.w, r.facts.where.root
    w.use("column", column)
    w.use("load_at", load_at)
    w.line("base = load_at(tape, 0)")
    if r.facts.inner:
        r.tape.find_record()
    else:
        w.line("cur = load_at(tape, 2)")
    top = w.mark()
    if not r.facts.inner:
        r.tape.references()
    if not r.facts.inner and not r.facts.replayed:
        write_shadow_checks(r.facts, w, r.shadows.path)
        lists.write_shadow_checks(r.facts, w)
    r.tape.pop(None)
    r.tape.start_undo()
    r.tape.enter_function(root)
    r.tape.values(root)
    r.shadows.of_arguments()
    lists.bind(r.facts, w, r.shadows.tables)
    r.shadows.bind(root)
    if r.facts.inner:
        for k, value in enumerate(tree_leaves(r.facts.fn.result)):
            _seed(r, value, f"result_bar[{k}]")
    else:
        _seed(r, r.facts.fn.result, "result_bar")
    for leaf in r.facts.fn.leaves:
        if not is_array(leaf.var) and r.shadows.is_duplicated(leaf) and r.facts.active(leaf.exit):
            r.cotangents.add(leaf.exit, r.shadows.path(leaf.path), root)
    lists.seed(r.facts, w)
    reversed_blocks.adjoints(r, root)
    lists.hand_back(r.facts, w)
    r.shadows.put_back()
    if r.facts.sweep is not None:
        for stmt in r.facts.sweep.behind:
            statement(w, stmt, unchecked=True)
    _Arguments(r, {leaf.path: leaf for leaf in r.facts.fn.leaves}).hand_back()
    r.buffers.write(w, top)


def _seed(r: Reversal, tree: ir.Tree, text: str) -> None:
    """Add result_bar to the cotangents of what was returned."""
    if isinstance(tree, ir.TupleTree):
        for k, item in enumerate(tree.items):
            _seed(r, item, f"{text}[{k}]")
    elif tree is None or not r.facts.active(tree):
        return
    elif is_array(tree):
        r.w.use("add_into", add_into)
        added = f"add_into({shadow_name(tree)}, {text})"
        refuse_shadows(r.w, f"not {added}", "result_bar has another shape than the result")
    else:
        r.cotangents.add(tree, text, r.facts.where.root, converted=True)


@dataclass(frozen=True, eq=False)
class _Arguments:
    """What goes back to the caller. leaves: by their paths."""

    r: Reversal
    leaves: dict[Path, ir.Leaf]

    def hand_back(self) -> None:
        """Shadows of structs go back to what they were at entry; then the `return`, with one entry per
        Active argument, and per tuple of arrays and scalars."""
        facts = self.r.facts
        arguments = list(zip(facts.fn.params, facts.activities, strict=True))
        for k, (param, activity) in enumerate(arguments):
            if activity == "duplicated":
                self.write_fields(param.type, (k,))
        returned = [
            self.returned(param.type, (k,))
            for k, (param, activity) in enumerate(arguments)
            if activity == "active" or (activity == "duplicated" and _has_scalars(param.type))
        ]
        text = f"({''.join(text + ', ' for text in returned)})"
        if facts.inner:
            text += ", rec_root"
        elif facts.sweep is not None:
            text += f", {result_text(self.r.w, facts.fn.result)}"
        self.r.w.line(f"return {text}")

    def write_fields(self, type: types.Type, path: Path) -> None:
        for field, kind in (struct_fields(type) or {}).items():
            inner = (*path, field)
            if struct_fields(kind) is not None:
                self.write_fields(kind, inner)
                continue
            here, value = self.r.shadows.path(inner), self.at_entry(kind, inner)
            if value != here:
                self.r.w.line(f"{here} = {value}")
        if isinstance(type, types.BaseTuple):
            for k, kind in enumerate(type):
                self.write_fields(kind, (*path, k))

    def at_entry(self, type: types.Type, path: Path) -> str:
        """What the shadow of a struct's field holds at entry; its own text where that is no change."""
        here = self.r.shadows.path(path)
        if isinstance(type, types.BaseTuple):
            parts = [self.at_entry(t, (*path, k)) for k, t in enumerate(type)]
            same = all(p == self.r.shadows.path((*path, k)) for k, p in enumerate(parts))
            return here if same else tuple_text(self.r.w, type, parts)
        leaf = self.leaves.get(path)
        if leaf is None:
            return here
        if is_array(leaf.var):
            return self.r.shadows.at_entry(leaf)
        untouched = leaf.exit == leaf.var and leaf.var not in self.r.cotangents.begun
        if untouched or not is_differentiable(leaf.var.type):
            return here
        return self.r.cotangents.text(leaf.var)

    def returned(self, type: types.Type, path: Path) -> str:
        if isinstance(type, types.BaseTuple):
            parts = [self.returned(t, (*path, k)) for k, t in enumerate(type)]
            return tuple_text(self.r.w, type, parts)
        leaf = self.leaves.get(path)
        if leaf is None or is_array(leaf.var) or not is_differentiable(type):
            return "None"
        return self.r.cotangents.text(leaf.var)


def _has_scalars(type: types.Type) -> bool:
    """Whether a tuple holds scalars that have cotangents."""
    return isinstance(type, types.BaseTuple) and any(
        _has_scalars(t) or (not isinstance(t, types.Array) and is_differentiable(t)) for t in type
    )
