"""What `show` prints: the generated functions, the tape, and for each source line what was chosen and why."""

from __future__ import annotations

from typing import Any

from splitad.analysis.scopes import Scope
from splitad.errors import Loc
from splitad.explain.choices import choices, when
from splitad.explain.table import table
from splitad.explain.words import Words
from splitad.gradients import specialised, types_of
from splitad.ir import nodes as ir
from splitad.runtime.callables import Forward


class Shown:
    """The pair of a function for some argument types, as text.

    forward_source, pullback_source: the generated Python; what replays loops is with the latter.
    tape: the layout, bytes per source line.
    choices: for each value that the pullback reads, each array that is kept and each loop, what was chosen
    and why (explain/choices.py).
    """

    def __init__(self, forward: Forward, args: tuple[Any, ...]) -> None:
        bound = forward._pair.signature.bind(*args)
        bound.apply_defaults()
        text = specialised(forward, types_of(tuple(bound.arguments.values()))).text
        bodies = text.replays.values()
        self.forward_source = text.forward
        again = (part for body in bodies for part in (body.forward, body.pullback))
        self.pullback_source = "\n".join([text.pullback, *again])
        self.tape = tape_table(text.facts)
        self.choices = choices(text.facts, [body.facts for body in bodies])

    def __str__(self) -> str:
        return (
            f"{self.forward_source}\n{self.pullback_source}\n{self.tape}\n\n{table(self.choices)}"
        )

    __repr__ = __str__


def tape_table(facts: Any) -> str:
    """One line for each thing on the tape, and one for each value that is recomputed."""
    rows = ["tape:"]
    for scope, record in facts.layout.record.items():
        for column in record.columns:
            stmt = facts.where.definition[column.var]
            rows.append(
                f"  {column.size:3d} bytes {_how_often(scope):28s} {column.var.name:12s} {_line(stmt, facts)}"
            )
    words = Words(facts)
    for copy in facts.plan.copies:
        what = "kept by reference" if copy.by_reference else "copied"
        undo = ", with an undo log" if copy.undo else ""
        rows.append(
            f"  the contents of {copy.array.name} are {what} {when(facts, words, copy)}{undo}"
        )
    for replay in facts.replays:
        for array in replay.state:
            rows.append(
                f"  the contents of {array.name} are copied {_how_often(replay.body)}, before it"
            )
    if len(rows) == 1:
        rows.append("  nothing")
    names = [
        stmt.out.name
        for statements in facts.plan.recomputed.values()
        for stmt in statements
        if hasattr(stmt, "out")
    ]
    rows.append("recomputed in the pullback: " + (", ".join(names) or "nothing"))
    return "\n".join(rows)


def _how_often(scope: Scope) -> str:
    loops = [s.owner for s in scope.chain() if s.is_loop]
    if not loops:
        return "once"
    names = [loop.counter.name if isinstance(loop, ir.For) else "while" for loop in reversed(loops)]
    return "per iteration of " + ", ".join(names)


def _line(stmt: ir.Stmt | None, facts: Any) -> str:
    loc: Loc = stmt.loc if stmt is not None else facts.fn.loc
    return f"{loc.line}: {loc.text().strip()}"
