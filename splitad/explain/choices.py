"""What was chosen for each value that the reverse pass reads, for each array it keeps and for each loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from splitad.analysis.adjoint_loops import LoopPlan
from splitad.analysis.reasons import Reason, Why
from splitad.analysis.reverse import has_reverse
from splitad.analysis.save_plan import Copy, size_of
from splitad.analysis.scopes import Scope
from splitad.codegen.writer import Writer
from splitad.errors import Loc
from splitad.explain.words import Words
from splitad.ir import nodes as ir
from splitad.ir.types import numpy_dtype
from splitad.transform.facts import Facts
from splitad.transform.reversal import Reversal
from splitad.transform.reversed_blocks import ahead, iterations_wait, order

_LAST_FIRST = "last iteration first"


@dataclass(frozen=True)
class Choice:
    """One choice.

    line, text, function: the source line, and the function that it is in.
    value: what it is about, as the user calls it: a value, "contents of x", "loop over i".
    choice: "free", "computed again", "loaded again from ...", "taped", "copied ...", "kept by reference",
    "in forward order", "last iteration first", "replayed, last iteration first", ...
    bytes, often: what it takes on the tape, 8 "per iteration of i, j"; 0 where it takes nothing.
    depth: how many loops, and axes of an array that is copied, that is to be multiplied by.
    """

    line: int
    text: str
    value: str
    choice: str
    reason: str
    bytes: int = 0
    often: str = ""
    depth: int = 0
    function: str = ""


def choices(facts: Facts, bodies: Iterable[Facts] = ()) -> tuple[Choice, ...]:
    """All choices, by function and line; the function itself first.  bodies: of its replayed loops."""
    words = Words(facts)
    found = [*_values(facts, words), *_contents(facts, words), *_loops(facts, words)]
    for body in bodies:
        found += _of_replay(body)
    own = facts.fn.loc.function
    return tuple(sorted(found, key=lambda c: (c.function != own, c.function, c.line)))


def _of_replay(body: Facts) -> Iterator[Choice]:
    """What is chosen in the body of a replayed loop: its small tape is there once, whatever is on it."""
    words = Words(body)
    for choice in (*_values(body, words), *_contents(body, words), *_loops(body, words)):
        if choice.line == body.fn.loc.line and choice.function == body.fn.loc.function:
            continue  # what it is given
        plural = "s" * (choice.bytes != 1)
        size = f", {choice.bytes} byte{plural} {choice.often}" if choice.bytes else ""
        yield replace(
            choice, choice=f"{choice.choice}{size}, when replayed", bytes=0, often="", depth=0
        )


def _at(
    loc: Loc,
    value: str,
    choice: str,
    reason: str,
    bytes: int = 0,
    often: str = "",
    depth: int = 0,
) -> Choice:
    text = loc.text().strip()
    return Choice(loc.line, text, value, choice, reason, bytes, often, depth, loc.function)


# ---- values --------------------------------------------------------------------------------------------


def _values(facts: Facts, words: Words) -> Iterator[Choice]:
    plan, where = facts.plan, facts.where
    taped = {var for values in plan.taped.values() for var in values}
    for var, why in plan.why.items():
        stmt = where.definition[var]
        loc = facts.fn.loc if stmt is None else stmt.loc
        value, reason = words.value(var), words.reason(why, var)
        if var in taped:
            scope = where.of[var].record
            often = words.often(scope)
            yield _at(loc, value, "taped", reason, size_of(var.type), often, scope.depth)
        elif why.why in (Why.COUNTED, Why.GIVEN):
            yield _at(loc, value, "free", reason)
        elif isinstance(stmt, ir.Load):
            yield _at(loc, value, f"loaded again from {_source(facts, words, var, stmt)}", reason)
        else:
            yield _at(loc, value, "computed again", reason)


def _source(facts: Facts, words: Words, var: object, load: ir.Load) -> str:
    copy = facts.plan.source.get(var)
    return words.array(load.array) if copy is None else _kept(facts, words, copy)


def _kept(facts: Facts, words: Words, copy: Copy) -> str:
    """An array that is kept, as what it is loaded from."""
    array = words.array(copy.array)
    if copy.by_reference:
        return array + (" as it was at the launch" if facts.kernel is not None else " itself")
    if copy.undo:
        return f"a copy of {array} at the end, undone store by store"
    return f"a copy of {array} made {when(facts, words, copy)}"


def when(facts: Facts, words: Words, copy: Copy) -> str:
    """When an array is copied, and how often."""
    if copy.after is None:
        return "at the end"
    often = words.often(_behind(facts, copy)[1])
    once = often if often.startswith("once") else f"once {often}"
    return f"{once}, {_behind_what(facts, words, copy)}"


def _behind_what(facts: Facts, words: Words, copy: Copy) -> str:
    if copy.after is None:
        return "at the end"
    stmt, _ = _behind(facts, copy)
    loop = "the loop in " if isinstance(stmt, (ir.For, ir.While)) else ""
    return f"behind {loop}line {words.line(stmt.loc)}"


def _behind(facts: Facts, copy: Copy) -> tuple[ir.Stmt, Scope]:
    """The statement behind which an array is copied, and its scope."""
    assert copy.after is not None
    scope = facts.where.holding(copy.after)
    return next(stmt for stmt in scope.block.stmts if id(stmt) == copy.after), scope


# ---- arrays --------------------------------------------------------------------------------------------


def _contents(facts: Facts, words: Words) -> Iterator[Choice]:
    """The arrays that are kept, and what calls read of them."""
    for copy in facts.plan.copies:
        stmt, scope = (None, facts.where.root) if copy.after is None else _behind(facts, copy)
        loc = facts.fn.loc if stmt is None else stmt.loc
        name, reason = words.array(copy.array), words.reason(copy.because, copy.array)
        value = f"contents of {name}"
        if facts.kernel is not None:
            yield _at(loc, value, "kept by the launch", reason)
        elif copy.by_reference:
            yield _at(loc, value, "kept by reference", reason)
        else:
            log = ", with an undo log" if copy.undo else ""
            often = words.often(scope) + " and " if scope.depth else "per "
            yield _at(
                loc,
                value,
                f"copied {_behind_what(facts, words, copy)}{log}",
                reason,
                numpy_dtype(copy.array.type.dtype).itemsize,
                f"{often}element of {name}",
                scope.depth + copy.array.type.ndim,
            )
    for replay in facts.replays:
        for array in replay.state:
            write = next(facts.active.memory.writes_to(array, replay.body))
            name = words.array(array)
            yield _at(
                replay.loop.loc,
                f"contents of {name}",
                "copied before each iteration",
                words.reason(Reason(Why.STATE, write.stmt), array),
                numpy_dtype(array.type.dtype).itemsize,
                f"{words.often(replay.body)} and element of {name}",
                replay.body.depth + array.type.ndim,
            )
    for call, array in facts.needs.contents:
        copy = facts.plan.source[(id(call), array)]
        yield _at(
            call.loc,
            f"contents of {words.array(array)}",
            f"loaded again from {_kept(facts, words, copy)}",
            words.reason(copy.because, copy.array),
        )


# ---- loops ---------------------------------------------------------------------------------------------


def _loops(facts: Facts, words: Words) -> Iterator[Choice]:
    """How each loop with an adjoint is reversed, as transform/reversed_blocks.py finds it."""
    r = Reversal.of(facts, Writer({}))
    for scope in facts.where.all:
        loop = scope.owner
        replay = facts.replay(loop)
        if replay is None and facts.is_replayed(scope):
            continue
        if isinstance(loop, (ir.For, ir.While)) and has_reverse(loop, facts.active):
            name = words.loop(loop)
            name = name if name.startswith("the ") else f"loop over {name}"
            if replay is not None:
                yield _at(loop.loc, name, f"replayed, {_LAST_FIRST}", words.reason(replay.because))
            elif isinstance(loop, ir.For):
                yield from _for(r, loop, name, words)
            else:
                yield _at(loop.loc, name, _LAST_FIRST, words.reason(Reason(Why.WHILE)))
                yield from _ahead(r, loop, LoopPlan(), words)


def _for(r: Reversal, loop: ir.For, name: str, words: Words) -> Iterator[Choice]:
    plan, inner = order(r, loop)
    what = "in forward order" if plan.ascending else _LAST_FIRST
    if inner is not None:
        ends = [f"the {end} {n}" for end, n in (("first", inner.head), ("last", inner.tail)) if n]
        what += f", but {' and '.join(ends)} by themselves"
    yield _at(loop.loc, name, what, words.reason(plan.because))
    if inner is None:
        yield from _ahead(r, loop, plan, words)
    for load in plan.loads:
        cotangent = f"cotangent of {words.array(load.array)}"
        if id(load) in plan.gathered:
            yield _at(
                load.loc,
                cotangent,
                f"summed in a scalar, added once behind the loop over {words.loop(loop)}",
                "each iteration adds to the same element",
            )
        elif id(load) in plan.deferred:
            yield _at(
                load.loc,
                cotangent,
                "added through a buffer",
                "an iteration adds to several of its elements",
            )


def _ahead(r: Reversal, loop: ir.For | ir.While, plan: LoopPlan, words: Words) -> Iterator[Choice]:
    """What is differentiated before its cotangent is known (analysis/partials.py)."""
    if not iterations_wait(r, loop, plan):
        return
    for region in ahead(r, r.facts.where.at(loop.body)):
        yield _at(
            region.stmts[-1].loc,
            f"cotangent of {words.value(region.result)}",
            f"multiplied by a partial that is found ahead, that in {words.value(region.source)}",
            "the iterations wait for each other",
        )
