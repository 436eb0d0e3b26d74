"""Loops of which the pullback runs the iterations again (analysis/replay.py).

for t in range(steps):      trips_t = ...
    ...                     tape_again_t = scratch_tape(NO_LIMIT)
                            for t in range(trips_t - 1, -1, -1):
                                total = tape_total[t]                       what the iteration started from
                                again_x = last_array(base, cur, np.float64, 1)
                                cur -= snapshot_nbytes(again_x)
                                again_x = copy_array(again_x)               it writes to a copy
                                again_bars_t, again_rec_t = f_again_t__forward(
                                    again_tape_t, total, dt, again_x, kept_m)
                                bars_t = f_again_t__pullback(
                                    again_tape_t, again_rec_t, (d_total, ), d_x, d_m)
                                d_total = bars_t[0]
                                d_dt += bars_t[1]
                            tape_release(tape_again_t)

The body is a function of its own, which has a pair as any other:

    def f_again_t(total, dt, x, m):
        ...
        return (total_1, )

Its forward returns (): the results are known.  Its tape is used again in each iteration, so it stays in the
cache.  Where there is no memory for it, reserve() gives its block back; its handle lies in the frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import types

from splitad.analysis.memory import is_array
from splitad.analysis.reverse import Replay
from splitad.analysis.scopes import Scope
from splitad.codegen.writer import identifier
from splitad.ir import nodes as ir
from splitad.ir.walk import map_blocks, operands, rename, walk_blocks
from splitad.tape.arrays import copy_array
from splitad.tape.ops import scratch_tape, tape_release
from splitad.transform.cotangents import Carried
from splitad.transform.facts import Facts
from splitad.transform.loops import LoopText
from splitad.transform.reversal import Reversal
from splitad.transform.shadows import shadow_name

NO_LIMIT = 1 << 62


@dataclass(frozen=True, eq=False)
class Body:
    """The body as a function. results: which of the values that the loop carries it returns, by number: those
    with a cotangent."""

    name: str
    fn: ir.Function
    activities: tuple[str, ...]
    results: tuple[int, ...]

    @staticmethod
    def of(facts: Facts, replay: Replay) -> Body:
        loop, active = replay.loop, facts.active
        results = tuple(
            k for k, y in enumerate(loop.body.yields) if active(y) and active(loop.params[k])
        )
        returned = [loop.body.yields[k] for k in results]
        body = ir.Block(_without_effects(loop.body).stmts)
        used = {v for block in walk_blocks(body) for s in block.stmts for v in operands(s)}
        used |= {y for block in walk_blocks(body) for y in block.yields} | set(returned)
        params = [v for v in (*replay.scalars, *replay.state, *replay.read) if v in used]
        # a copy is contiguous
        own = {v: ir.Var(v.name, _passed(v, facts, replay)) for v in params}
        body = rename(body, own)
        items = tuple(own.get(y, y) if isinstance(y, ir.Var) else y for y in returned)
        result = ir.TupleTree(types.Tuple([y.type for y in items]), items)
        name = f"{facts.fn.name}_again_{identifier(loop.counter.name)}"
        leaves = tuple(ir.Leaf((k,), own[v], own[v]) for k, v in enumerate(params))
        fn = ir.Function(
            name, tuple(own[v] for v in params), leaves, body, result, result.type, loop.loc
        )
        return Body(name, fn, tuple(_activity(facts, v) for v in params), results)


def _without_effects(block: ir.Block) -> ir.Block:
    kept = (s for s in block.stmts if not isinstance(s, (ir.SetField, ir.Print)))
    return ir.Block(tuple(map_blocks(s, _without_effects) for s in kept), block.yields)


def _passed(var: ir.Var, facts: Facts, replay: Replay) -> types.Type:
    """The type of an argument."""
    if not is_array(var):
        return var.type
    if var in replay.read and facts.plan.source[(id(replay.loop), var)].by_reference:
        return var.type
    return types.Array(var.type.dtype, var.type.ndim, "C")


def _activity(facts: Facts, var: ir.Var) -> str:
    if not facts.active(var):
        return "const"
    return "duplicated" if is_array(var) else "active"


def reverse(r: Reversal, replay: Replay, scope: Scope) -> None:
    """The loop reversed; scope: the block that it stands in."""
    w, loop, body = r.w, replay.loop, replay.body
    made, text = Body.of(r.facts, replay), LoopText.of(loop)
    r.cotangents.begin_outer(loop)
    carried = Carried.start(loop, r.cotangents)
    text.write_trips(w)
    r.tape.enter_for(text, body)
    # no array is called like what stands behind "again_" here
    tape, out, refs = (f"again_{part}_{text.counter}" for part in ("tape", "bars", "rec"))
    bars = f"bars_{text.counter}"
    w.line(f"{tape} = {w.use('scratch_tape', scratch_tape)}({NO_LIMIT})")
    with w.indented(f"for {text.index} in {text.reversed_range(w)}:"):
        text.write_counter(w)
        r.tape.values(body)
        for array in reversed(replay.state):
            name = _again(array)
            r.tape.last(array, name)
            w.line(f"{name} = {w.use('copy_array', copy_array)}({name})")
        given = "".join(", " + _argument(r, replay, v) for v in made.fn.params)
        w.line(f"{out}, {refs} = {made.name}__forward({tape}{given})")
        result_bar = "".join(f"{shadow_name(loop.params[k])}, " for k in made.results)
        with_activity = list(zip(made.fn.params, made.activities, strict=True))
        shadows = "".join(f", {shadow_name(v)}" for v, a in with_activity if a == "duplicated")
        w.line(f"{bars} = {made.name}__pullback({tape}, {refs}, ({result_bar}){shadows})")
        scalars = [v for v, a in with_activity if a == "active"]
        for k in carried.at:
            param = loop.params[k]
            if param in scalars:
                w.line(f"{shadow_name(param)} = {bars}[{scalars.index(param)}]")
            else:
                r.cotangents.clear(param)
        for k, value in enumerate(scalars):
            if value not in loop.params:
                r.cotangents.add(value, f"{bars}[{k}]", scope)
    w.line(f"{w.use('tape_release', tape_release)}({tape})")
    r.tape.leave(text.record, body)
    carried.finish(scope)


def _again(array: ir.Var) -> str:
    return "again_" + array.name


def _argument(r: Reversal, replay: Replay, var: ir.Var) -> str:
    if var in replay.state:
        return _again(var)
    if var in replay.read:
        return r.tape.contents(replay.loop, var)
    return identifier(var.name)
