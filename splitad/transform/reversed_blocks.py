"""Blocks, loops and branches reversed.

for i in range(n):                  trips_i = trip_count(n); cur -= 8 * trips_i; rec_i = cur
    t = math.sin(x[i])              for i in range(trips_i - 1, -1, -1):
    s = s + t * t                       t = tape_t[i]; x_i = ...          what the plan restores
                                        d_x = ...                         shadows of arrays made here
                                        d_t = 2 * (t * d_s)               the adjoints, last one first
                                        d_x[i] += math.cos(x_i) * d_t

A loop over a ring is reversed in two, where its iterations can be reversed in any order; the inner ones
vectorise (analysis/ring_ends.py):

for i in range(n):                      for i in range(1, trips_i - 1):
    t = x[i - 1] * x[(i + 1) % n]           ...                               no index wraps around
                                        for edge_i in range(at_most(trips_i, 2)):
                                            i = edge_i + (edge_i >= 1) * trip_count(trips_i - 2)
                                            ...                               any index
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from splitad.analysis import ring_ends
from splitad.analysis.adjoint_loops import LoopPlan, loop_plan
from splitad.analysis.handed_on import handed_on
from splitad.analysis.memory import is_array
from splitad.analysis.partials import Region, regions
from splitad.analysis.reasons import Reason, Why
from splitad.analysis.reverse import has_reverse
from splitad.analysis.ring_ends import Inner
from splitad.analysis.scopes import Scope
from splitad.codegen.python import operand
from splitad.codegen.writer import identifier
from splitad.ir import nodes as ir
from splitad.ir.walk import walk
from splitad.rules.ops import at_most, guarded_mul_branch
from splitad.transform import replay
from splitad.transform.additions import CHUNK, MARGIN, Additions
from splitad.transform.adjoints import adjoint
from splitad.transform.cotangents import ONE, Carried
from splitad.transform.facts import zero_based
from splitad.transform.handing_on import HandingOn
from splitad.transform.loops import LoopText
from splitad.transform.reversal import Reversal
from splitad.transform.sweeping import add_terms, start_sums

Iteration = Callable[..., None]  # writes one, given where additions go


def enter(r: Reversal, scope: Scope) -> None:
    """What the adjoints of a block find: its values, then the shadows of its arrays."""
    r.tape.values(scope)
    r.shadows.bind(scope)


def adjoints(
    r: Reversal, scope: Scope, additions: Additions | None = None, waits: bool = False
) -> None:
    """The block's statements backwards. additions: those of the loop whose body it is in, if any.

    waits: whether the iterations of that loop wait for each other (analysis/partials.py).
    """
    if additions is None:
        additions = Additions(r.w, r.buffers, LoopPlan(), r.facts.kernel)
    last: dict[int, Region] = {}
    done: set[int] = set()
    if waits:
        last = {id(region.stmts[-1]): region for region in ahead(r, scope)}
    inner = r.tape.inner
    for stmt in reversed(scope.block.stmts):
        if id(stmt) in last:
            _through_partial(r, last[id(stmt)], scope, additions)
            done |= {id(inner) for inner in last[id(stmt)].stmts}
        if id(stmt) in done:
            continue
        reverses = has_reverse(stmt, r.facts.active)
        if reverses or r.facts.plan.behind(stmt):
            r.w.at(stmt.loc)
        r.tape.pop(stmt)
        if isinstance(stmt, ir.Alloc):
            r.shadows.drop(stmt)
        if not reverses:
            continue
        replayed = r.facts.replay(stmt)
        if replayed is not None:
            replay.reverse(r, replayed, scope)
        elif isinstance(stmt, ir.For):
            _for(r, stmt, scope)
        elif isinstance(stmt, ir.While):
            _while(r, stmt, scope)
        elif isinstance(stmt, ir.If):
            side = inner.side(stmt) if inner is not None else None
            if side is not None:
                r.cotangents.begin_outer(stmt)
                _side(r, side, stmt.outs, additions)
            else:
                _if(r, stmt, additions)
        else:
            adjoint(r, stmt if inner is None else inner.instead(stmt), scope, additions)


def ahead(r: Reversal, scope: Scope) -> list[Region]:
    """Whose partials are found before their cotangents are known, in a loop whose iterations wait."""
    return regions(scope, r.facts.where, r.uses, r.facts.active) if r.facts.partials else []


def _through_partial(r: Reversal, region: Region, scope: Scope, additions: Additions) -> None:
    """The adjoints of a region, for a cotangent of 1; what comes of it times the cotangent."""
    if region.result not in r.cotangents.begun:
        return
    with r.cotangents.as_one(region.result) as cotangent:
        for stmt in reversed(region.stmts):
            r.w.at(stmt.loc)
            adjoint(r, stmt, scope, additions)
    partial = r.cotangents.name(region.source)
    if partial == ONE:
        r.cotangents.same[region.source] = cotangent
    elif region.source in r.cotangents.begun:
        text = f"{partial} * {cotangent}"
        if r.facts.strong_zero:
            r.w.use("guarded_mul_branch", guarded_mul_branch)
            text = f"guarded_mul_branch({partial}, {cotangent})"
        r.cotangents.same.pop(region.source, None)
        r.w.line(f"{r.cotangents.name(region.source)} = {text}")


# ---- for -----------------------------------------------------------------------------------------------


def _for(r: Reversal, loop: ir.For, scope: Scope) -> None:
    w, body = r.w, r.facts.where.at(loop.body)
    text = LoopText.of(loop)
    r.cotangents.begin_outer(loop)
    carried = Carried.start(loop, r.cotangents)
    text.write_trips(w)
    r.tape.enter_for(text, body)
    plan, inner = order(r, loop)
    start_sums(r, loop)

    def iteration(additions: Additions, waits: bool = False) -> None:
        enter(r, body)
        add_terms(r, loop)
        carried.yielded(body)
        adjoints(r, body, additions, waits)

    if inner is not None:
        with r.cotangents.twice():
            _inner(r, text, inner, plan, iteration)
        _ends(r, text, inner, iteration)
    else:
        waits = iterations_wait(r, loop, plan)
        own = tuple(array for array, of in r.facts.cleared if of is loop)
        additions = Additions(w, r.buffers, plan, r.facts.kernel, own)
        additions.start_gathered()
        additions.clearing.start()
        if plan.deferred:
            _in_pieces(r, text, additions, iteration)
        else:
            handing = additions.handing = _handing_on(r, text, plan)
            span = text.range(w) if plan.ascending else text.reversed_range(w)
            if handing is not None:
                handing.start()
            with w.indented(f"for {text.index} in {span}:"):
                text.write_counter(w)
                iteration(additions, waits)
                if handing is not None:
                    handing.finish_iteration()
            if handing is not None:
                handing.finish()
        additions.clearing.finish()
        additions.add_gathered(text.trips)
    r.tape.leave(text.record, body)
    carried.finish(scope)


def order(r: Reversal, loop: ir.For) -> tuple[LoopPlan, Inner | None]:
    """How a loop is reversed; what its inner iterations know, where these have a loop of their own."""
    facts = r.facts
    if not facts.adjoint_loops:
        plan = LoopPlan()
    else:
        plan = loop_plan(
            loop, facts.active.memory, facts.active, r.accumulated, r.uses, facts.plan.why
        )
    if facts.kernel is not None:  # a thread's own loop does not vectorise
        by_itself = Reason(Why.THREAD)
        return replace(
            plan, deferred={}, ascending=False, independent=False, because=by_itself
        ), None
    if not facts.adjoint_loops:
        return plan, None
    undone = next((stmt for stmt in walk(loop.body) if r.tape.is_undone(stmt)), None)
    if undone is not None:  # in the order of an undo log, last first
        return replace(plan, ascending=False, because=Reason(Why.UNDO_ORDER, undone)), None
    if not plan.ascending and facts.ring_ends and zero_based(loop) and _innermost(loop):
        inner = ring_ends.inner(loop, facts.where.definition, r.bounds)
        if inner is not None:
            alone = inner.loop(loop)
            accumulated = r.accumulated | {
                id(s) for k, s in inner.loads.items() if k in r.accumulated
            }
            of_inner = loop_plan(
                alone, facts.active.memory, facts.active, accumulated, r.uses, facts.plan.why
            )
            if of_inner.ascending and ring_ends.ends_apart(loop, facts.active, r.accumulated):
                return of_inner, inner
    return plan, None


def _inner(r: Reversal, text: LoopText, inner: Inner, plan: LoopPlan, iteration: Iteration) -> None:
    """The iterations that reach around no ring."""
    additions = Additions(r.w, r.buffers, plan, None)
    trips = f"{text.trips} - {inner.head + inner.tail}"
    r.tape.inner = inner
    additions.start_gathered()
    if plan.deferred:
        _in_pieces(r, text, additions, iteration, inner)
    else:
        stop = f"{text.trips} - {inner.tail}" if inner.tail else text.trips
        with r.w.indented(f"for {text.index} in range({inner.head}, {stop}):"):
            iteration(additions)
    r.tape.inner = None
    additions.add_gathered(trips)


def _ends(r: Reversal, text: LoopText, inner: Inner, iteration: Iteration) -> None:
    """The others."""
    w, both, edge = r.w, inner.head + inner.tail, f"edge_{text.counter}"
    w.use("at_most", at_most)
    with w.indented(f"for {edge} in range(at_most({text.trips}, {both})):"):
        place = edge
        if inner.tail:
            place += f" + ({edge} >= {inner.head}) * trip_count({text.trips} - {both})"
        w.line(f"{text.counter} = {place}")
        iteration(Additions(w, r.buffers, LoopPlan(independent=True), None))


def iterations_wait(r: Reversal, loop: ir.For | ir.While, plan: LoopPlan) -> bool:
    """Whether an iteration of the reversed loop needs what the one before it found."""
    return not plan.independent and r.facts.kernel is None and _innermost(loop)


def _handing_on(r: Reversal, text: LoopText, plan: LoopPlan) -> HandingOn | None:
    facts = r.facts
    if plan.independent or plan.gathered or facts.kernel is not None or not facts.handed_on:
        return None
    element = handed_on(text.loop, facts.active.memory, facts.active, r.accumulated)
    return HandingOn(r.w, text, element) if element is not None else None


def _innermost(loop: ir.For | ir.While) -> bool:
    return not any(isinstance(stmt, (ir.For, ir.While)) for stmt in walk(loop.body))


def _in_pieces(
    r: Reversal,
    text: LoopText,
    additions: Additions,
    iteration: Iteration,
    inner: Inner | None = None,
) -> None:
    """The reversed loop, a piece at a time, what its adjoints add going through buffers."""
    w, k, rising = r.w, text.counter, additions.plan.ascending
    first = "" if zero_based(text.loop) else f"{operand(w, text.loop.start)} + "
    trips = text.trips
    if inner is not None:
        first = f"{inner.head} + " if inner.head else ""
        trips = f"trip_count({trips} - {inner.head + inner.tail})"
    count = f"({trips} + {CHUNK - 1}) // {CHUNK}"
    pieces = f"range({count})" if rising else f"range({count} - 1, -1, -1)"
    with w.indented(f"for piece_{k} in {pieces}:"):
        w.line(f"lo_{k} = {first}piece_{k} * {CHUNK}")
        w.use("at_most", at_most)
        w.line(f"hi_{k} = at_most(lo_{k} + {CHUNK}, {first}{trips})")
        piece = f"range(lo_{k}, hi_{k})" if rising else f"range(hi_{k} - 1, lo_{k} - 1, -1)"
        with w.indented(f"for {k} in {piece}:"):
            w.line(f"at = {k} - lo_{k} + {MARGIN}")
            iteration(additions)
        additions.add_deferred(k)


# ---- while, if -----------------------------------------------------------------------------------------


def _while(r: Reversal, loop: ir.While, scope: Scope) -> None:
    w, body = r.w, r.facts.where.at(loop.body)
    name = identifier(loop.params[0].name)
    trip, record = "trip_" + name, "rec_" + name
    r.cotangents.begin_outer(loop)
    carried = Carried.start(loop, r.cotangents)
    r.tape.pop_word(trip)
    with w.indented(f"for iter_{name} in range({trip} - 1, -1, -1):"):
        r.tape.enter_iteration(record, body)
        enter(r, body)
        carried.yielded(body)
        adjoints(r, body, waits=iterations_wait(r, loop, LoopPlan()))
        r.tape.leave(record, body)
    carried.finish(scope)


def _if(r: Reversal, stmt: ir.If, additions: Additions) -> None:
    r.cotangents.begin_outer(stmt)
    with r.w.indented(f"if {operand(r.w, stmt.cond)}:"):
        _side(r, stmt.then, stmt.outs, additions)
    with r.w.indented("else:"):
        _side(r, stmt.orelse, stmt.outs, additions)


def _side(r: Reversal, block: ir.Block, outs: tuple[ir.Var, ...], additions: Additions) -> None:
    if block.stmts and isinstance(block.stmts[-1], ir.Raise):
        return  # never reversed: the function was left
    scope = r.facts.where.at(block)
    enter(r, scope)
    for out, y in zip(outs, block.yields, strict=True):
        if not is_array(out) and out in r.cotangents.begun:
            r.cotangents.pass_on(y, out, scope)
    adjoints(r, scope, additions)
