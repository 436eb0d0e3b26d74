"""From a function to the text of its pair: the ordered list of passes, and what each is for.

This is the only file that knows the order.  With SPLITAD_CHECK=1 the IR is verified after every pass; with
SPLITAD_DUMP=<pass> the IR behind that pass is printed; with SPLITAD_WITHOUT=<name>,<name>,... what is in
OPTIONAL is left out, which changes how fast a derivative is, and its rounding, but nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from numba import types

from splitad.analysis import threads
from splitad.analysis.activity import Activity, activity, is_differentiable
from splitad.analysis.identity import Identity
from splitad.analysis.memory import is_array, memory
from splitad.analysis.neighbours import neighbours
from splitad.analysis.reasons import Reason, Why
from splitad.analysis.replay import is_worth, replayable
from splitad.analysis.reverse import Replay, reverse, written_by
from splitad.analysis.save_plan import Plan, save_plan
from splitad.analysis.scopes import scopes
from splitad.analysis.sums import sums
from splitad.analysis.sweeps import Sweep, sweep
from splitad.analysis.undo import undo_arrays
from splitad.codegen.writer import identifier
from splitad.errors import NoRuleError
from splitad.ir import nodes as ir
from splitad.ir.show import show
from splitad.ir.verify import verify
from splitad.ir.walk import walk
from splitad.rules import registry
from splitad.tape.layout import layout
from splitad.targets.cuda import extremes, prepare
from splitad.targets.cuda import forward as cuda_forward
from splitad.targets.cuda import pullback as cuda_pullback
from splitad.targets.cuda.pullback import Parameters
from splitad.targets.cuda.tape import Slots
from splitad.transform import augment, identity, lists, pullback, simplify, zero
from splitad.transform import names as renaming
from splitad.transform import undo as undo_pass
from splitad.transform.cleared import cleared
from splitad.transform.facts import Callees, Facts
from splitad.transform.replay import Body

for _domain in ("scalar", "arrays"):  # importing a file of rules registers them
    if importlib.util.find_spec(f"splitad.rules.{_domain}") is not None:
        importlib.import_module(f"splitad.rules.{_domain}")


# What a derivative is right without: how text is made smaller, what the tape holds, how adjoint loops run.
OPTIONAL = (
    *simplify.PASSES, "undo", "snapshots", "references", "recomputation", "adjoint_loops", "partials",
    "ring_ends", "memories", "handed_on", "replay", "sums", "sweeps", "cuda_gather",
)  # fmt: skip
# Of these, what pays only sometimes, and can be asked for everywhere.
CHOSEN = ("replay",)


def _named(variable: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = {name for name in os.environ.get(variable, "").split(",") if name}
    if names - set(known):
        raise ValueError(f"{variable} names {', '.join(sorted(names - set(known)))}")
    return tuple(sorted(names))


def _left_out() -> tuple[str, ...]:
    return _named("SPLITAD_WITHOUT", OPTIONAL)


def _always() -> tuple[str, ...]:
    return _named("SPLITAD_ALWAYS", CHOSEN)


@dataclass(frozen=True)
class Options:
    """What a pair is compiled with; fastmath to nogil are the function's own njit options."""

    fastmath: Any = False
    error_model: str = "python"
    boundscheck: bool = False
    nogil: bool = False
    strong_zero: bool = True
    vector_math: str = "pullback"  # where libmvec serves: "none", "pullback", "all" (forward too)
    combined: bool = False  # whether a pullback follows each forward: value_and_grad
    any_order: bool = False  # whether forward may add up in any order (analysis/sums.py)
    args_alias: bool = False  # the arguments may overlap each other
    stable: tuple[bool, ...] = ()  # arguments that nobody writes between forward and pullback
    inner: bool = False  # a recursive function's own pair, on the tape of its caller
    max_tape_bytes: int | None = None
    kernel: int | None = (
        None  # of a CUDA kernel: the dimensions of its launch that are larger than 1
    )
    without: tuple[str, ...] = field(default_factory=_left_out)  # of OPTIONAL
    always: tuple[str, ...] = field(default_factory=_always)  # of CHOSEN
    replayed: bool = False  # the pair of a replayed loop's body (transform/replay.py)


@dataclass(frozen=True, eq=False)
class PairText:
    """The generated functions of one specialisation."""

    facts: Facts
    forward: str
    pullback: str
    zero: str
    names: dict[str, object]  # the globals that both texts use
    callees: Callees
    slots: Slots | None = None  # of a CUDA kernel: what it puts on its tape
    given: Parameters | None = None  # and what its reverse kernel is given
    gather: str = ""  # of a CUDA kernel: what comes before the reverse kernel, if anything
    replays: dict[str, PairText] = field(default_factory=dict)  # of replayed bodies, by name


def build(
    fn: ir.Function,
    activities: tuple[str, ...],
    options: Options,
    callees: Callees | None = None,
    name: str = "",
) -> PairText:
    """The augmented forward and the pullback of a lowered function.

    activities: "active", "duplicated" or "const" for each argument.  callees: collects the recursive
    functions that are called.  name: what the functions are called, instead of fn's own name.
    """
    callees = Callees() if callees is None else callees
    pair = _build(_check("names", renaming.run(fn)), activities, options, callees, name or fn.name)
    functions = [each.facts.fn for each in (pair, *pair.replays.values())]
    variables = {identifier(v.name) for f in functions for v in renaming.variables(f)}
    clash = frozenset(pair.names) & variables
    if clash:  # a variable called like a function that the text calls: only known afterwards
        renamed = renaming.run(fn, clash)
        assert renamed != fn, f"{clash} cannot be renamed"
        return build(renamed, activities, options, callees, name)
    return pair


def _build(
    fn: ir.Function,
    activities: tuple[str, ...],
    options: Options,
    callees: Callees,
    name: str,
) -> PairText:
    wanted = frozenset(
        leaf.var
        for leaf in fn.leaves
        if activities[leaf.path[0]] != "const" and is_differentiable(leaf.var.type)  # type: ignore[index]
    )
    wanted |= {each.var for each in lists.duplicated(fn, activities)}
    wanted |= {each.param for each in lists.duplicated_arrays(fn, activities)}
    _check("lower", fn)
    if options.kernel is not None:
        fn = _check("prepare", prepare.run(fn, activities))
    # smaller code to differentiate is smaller code twice over: values shared, invariants out of loops
    fn = _check(
        "simplify",
        simplify.run(
            fn,
            options.error_model,
            options.boundscheck,
            options.strong_zero,
            options.args_alias,
            options.without,
        ),
    )
    if options.kernel is not None:
        fn = _check("brackets", prepare.brackets(fn))
    return _pair(fn, activities, wanted, options, callees, name, {})


def _pair(
    fn: ir.Function,
    activities: tuple[str, ...],
    wanted: frozenset[ir.Var],
    options: Options,
    callees: Callees,
    name: str,
    names: dict[str, object],
) -> PairText:
    """wanted: the arguments whose derivative is asked for.  names: collects the globals of the texts."""
    # an integer beside each array that control flow chooses, so that its shadow can be found
    facts = _activity(fn, wanted, options)
    fn, ids = identity.run(fn, facts, wanted)
    _check("identity", fn)
    found = _facts(fn, ids, activities, wanted, options, callees)
    replays = _replays(found, options)
    if replays:
        found = _facts(fn, ids, activities, wanted, options, callees, replays)
    if found.kernel is not None:
        text, slots = cuda_forward.run(found, name + "__forward", names)
        if "cuda_gather" not in options.without:
            near = neighbours(found.fn, found.where, found.active, found.kernel)
            found = replace(found, neighbours=near)
        back, gather, given = cuda_pullback.run(found, name, names, slots)
        return PairText(found, text, back, "", names, callees, slots, given, gather)
    bodies = {}
    for each in found.replays:
        body = Body.of(found, each)
        bodies[body.name] = _body_pair(body, each.loose, options, callees, names)
    found = replace(found, cleared=cleared(found))
    forward = augment.run(found, name + "__forward", names).text()
    reverse_ = pullback.run(found, name + "__pullback", names).text()
    alone = options.inner or options.replayed
    zeros = "" if alone else zero.run(found, name + "__zero", names).text()
    return PairText(found, forward, reverse_, zeros, names, callees, replays=bodies)


def _replays(found: Facts, options: Options) -> dict[ir.Var, Reason]:
    """The loops that are replayed, by their counters, and why."""
    if "replay" in options.without or options.inner or options.replayed or found.kernel is not None:
        return {}
    can = replayable(
        found.fn,
        found.where,
        found.active,
        found.identity,
        options.fastmath or options.any_order,
        options.vector_math == "all",
    )
    always = "replay" in options.always
    chosen = {r.loop.counter: Reason(Why.ALWAYS) for r in can if always}
    worth = [r for r in can if is_worth(r, found.plan, found.where, found.limited)]
    return chosen | {r.loop.counter: r.because for r in worth}


def _body_pair(
    body: Body, loose: bool, options: Options, callees: Callees, names: dict[str, object]
) -> PairText:
    """The pair of a replayed loop's body. It has been simplified already."""
    own = replace(options, replayed=True, args_alias=False, stable=(), max_tape_bytes=None)
    if loose:  # a part of the pullback
        own = replace(own, any_order=True)
    if loose and options.vector_math == "pullback":
        own = replace(own, vector_math="all")
    wanted = frozenset(
        param
        for param, activity in zip(body.fn.params, body.activities, strict=True)
        if activity != "const"
    )
    _check("body", body.fn)
    return _pair(body.fn, body.activities, wanted, own, callees, body.name, names)


def _facts(
    fn: ir.Function,
    ids: Identity,
    activities: tuple[str, ...],
    wanted: frozenset[ir.Var],
    options: Options,
    callees: Callees,
    replayed: Mapping[ir.Var, Reason] = MappingProxyType({}),
) -> Facts:
    """replayed: the loops of which the pullback runs the iterations again, by their counters, and why."""

    # where an array is loaded deeper than it is stored: the value that each store overwrites
    active = _activity(fn, wanted, options)
    replays = _those_of(replayed, fn, active, ids)
    undo: frozenset[ir.Var] = frozenset()
    if options.kernel is None and "undo" not in options.without:
        but = frozenset(v for each in replays for v in each.state)
        undo = undo_arrays(active.memory.scopes, active.memory, active) - but
    fn, old = undo_pass.run(fn, undo)
    _check("undo", fn)

    active = _activity(fn, wanted, options)
    if options.kernel is not None:
        fn = _check("extremes", extremes.run(fn, active))
        active = _activity(fn, wanted, options)
    where, mem = active.memory.scopes, active.memory
    replays = _those_of(replayed, fn, active, ids)
    needs = reverse(fn, active, ids, lists.duplicated(fn, activities), replays)
    stable = frozenset(
        leaf.var
        for leaf in fn.leaves
        if is_array(leaf.var)
        and options.stable
        and options.stable[leaf.path[0]]  # type: ignore[index]
        and leaf.exit == leaf.var
        and not any(mem.writes_to(leaf.var, where.root))
    )
    kernel = None
    if options.kernel is not None:
        kernel = threads.kernel(fn, where, active, options.kernel, stable)
        threads.check(fn, where, active)
    swept = None
    if options.combined and "sweeps" not in options.without and not replays:
        swept = sweep(fn, where, mem, active, needs.values)

    def plan_with(swept: Sweep | None) -> Plan:
        return save_plan(
            fn,
            where,
            mem,
            active,
            needs if swept is None else replace(needs, values=needs.values + swept.values),
            stable,
            undo,
            frozenset(old.values()),
            not options.inner,
            kernel,
            options.without,
            options.replayed,
            frozenset(v for each in replays if not each.loose for v in each.scalars),
            frozenset() if swept is None else swept.anew,
        )

    plan = plan_with(swept)
    if swept is not None and not swept.fits(plan, where):
        swept, plan = None, plan_with(None)
    noted = tuple(
        leaf.var
        for leaf in fn.leaves
        if is_array(leaf.var)
        and (not options.inner or leaf.var in ids.place)
        and options.kernel is None
        and not options.replayed
    )
    entered = tuple(
        leaf.var
        for leaf in fn.leaves
        if options.args_alias and leaf.var in noted and leaf.exit != leaf.var and not ids.place
    )
    places = layout(where, plan, active, noted, len(fn.lists), entered, replays)
    limit = f"the tape of {fn.name} would outgrow max_tape_bytes={options.max_tape_bytes}"
    return Facts(
        fn,
        where,
        active,
        ids,
        needs,
        plan,
        places,
        activities,
        old,
        options.strong_zero,
        options.args_alias,
        limit,
        options.max_tape_bytes is not None,
        options.inner,
        callees,
        options.vector_math,
        kernel,
        "partials" not in options.without,
        "adjoint_loops" not in options.without,
        "ring_ends" not in options.without,
        "memories" not in options.without,
        "handed_on" not in options.without,
        replays=replays,
        sums=sums(fn, mem) if options.any_order and "sums" not in options.without else frozenset(),
        sweep=swept,
        replayed=options.replayed,
    )


def _those_of(
    replayed: Mapping[ir.Var, Reason], fn: ir.Function, active: Activity, ids: Identity
) -> tuple[Replay, ...]:
    """What is to be known of replayed loops, in fn as it is now."""
    if not replayed:
        return ()
    can = replayable(fn, active.memory.scopes, active, ids, fastmath=False, vector=False)
    return tuple(
        replace(each, because=replayed[each.loop.counter])
        for each in can
        if each.loop.counter in replayed
    )


def _activity(fn: ir.Function, wanted: frozenset[ir.Var], options: Options) -> Any:
    where = scopes(fn)
    written = {id(s): written_by(s) for s in walk(fn.body) if isinstance(s, ir.ArrayCall)}
    mem = memory(fn, where, written, options.args_alias)
    return activity(fn, mem, wanted, differentiable_args)


def differentiable_args(
    stmt: ir.Prim | ir.ArrayCall,
) -> tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...]]:
    """The operands that a statement's results have a derivative in, and what receives one."""
    if isinstance(stmt, ir.ArrayCall):
        rule = registry.array_rule(stmt.fn)
        assert rule is not None
        reads = tuple(a for k, a in enumerate(stmt.args) if k in rule.reads)
        return reads, (*stmt.outs, *written_by(stmt))
    scalar = registry.scalar_rule(stmt.fn)
    if scalar is None:
        name = getattr(stmt.fn, "__name__", str(stmt.fn))
        reason = registry.refusal(stmt.fn) or f"the function {name} has no derivative rule"
        raise NoRuleError(reason, stmt.loc, "Register one with splitad.rule.")
    is_complex = any(isinstance(v.type, types.Complex) for v in (stmt.out, *stmt.args))
    partials = scalar.partials_for(is_complex)
    sources = tuple(a for a, p in zip(stmt.args, partials, strict=False) if p is not None)
    return sources, (stmt.out,)


def _check(name: str, fn: ir.Function) -> ir.Function:
    if os.environ.get("SPLITAD_DUMP") == name:
        print(show(fn))
    if os.environ.get("SPLITAD_CHECK") == "1":
        verify(fn)
    return fn
