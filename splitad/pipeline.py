"""From a function to the text of its pair: the ordered list of passes, and what each is for.

This is the only file that knows the order.  With SPLITAD_CHECK=1 the IR is verified after every pass; with
SPLITAD_DUMP=<pass> the IR behind that pass is printed; with SPLITAD_WITHOUT=<name>,<name>,... what is in
OPTIONAL is left out, which changes how fast a derivative is, and its rounding, but nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import dataclass, field, replace
from typing import Any

from numba import types

from splitad.analysis import threads
from splitad.analysis.activity import activity, is_differentiable
from splitad.analysis.memory import is_array, memory
from splitad.analysis.neighbours import neighbours
from splitad.analysis.reverse import reverse, written_by
from splitad.analysis.save_plan import save_plan
from splitad.analysis.scopes import scopes
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
from splitad.transform.facts import Callees, Facts

for _domain in ("scalar", "arrays"):  # importing a file of rules registers them
    if importlib.util.find_spec(f"splitad.rules.{_domain}") is not None:
        importlib.import_module(f"splitad.rules.{_domain}")


# What a derivative is right without: how text is made smaller, what the tape holds, how adjoint loops run.
OPTIONAL = (
    *simplify.PASSES, "undo", "snapshots", "references", "recomputation", "adjoint_loops", "partials",
    "ring_ends", "memories", "handed_on", "cuda_gather",
)  # fmt: skip


def _left_out() -> tuple[str, ...]:
    names = {name for name in os.environ.get("SPLITAD_WITHOUT", "").split(",") if name}
    if names - set(OPTIONAL):
        raise ValueError(f"SPLITAD_WITHOUT names {', '.join(sorted(names - set(OPTIONAL)))}")
    return tuple(sorted(names))


@dataclass(frozen=True)
class Options:
    """What a pair is compiled with; fastmath to nogil are the function's own njit options."""

    fastmath: Any = False
    error_model: str = "python"
    boundscheck: bool = False
    nogil: bool = False
    strong_zero: bool = True
    vector_math: str = "pullback"  # where libmvec serves: "none", "pullback", "all" (forward too)
    args_alias: bool = False  # the arguments may overlap each other
    stable: tuple[bool, ...] = ()  # arguments that nobody writes between forward and pullback
    inner: bool = False  # a recursive function's own pair, on the tape of its caller
    max_tape_bytes: int | None = None
    kernel: int | None = (
        None  # of a CUDA kernel: the dimensions of its launch that are larger than 1
    )
    without: tuple[str, ...] = field(default_factory=_left_out)  # of OPTIONAL


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
    clash = frozenset(pair.names) & {identifier(v.name) for v in renaming.variables(pair.facts.fn)}
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
    # an integer beside each array that control flow chooses, so that its shadow can be found
    facts = _activity(fn, wanted, options)
    fn, ids = identity.run(fn, facts, wanted)
    _check("identity", fn)

    # where an array is loaded deeper than it is stored: the value that each store overwrites
    active = _activity(fn, wanted, options)
    undo: frozenset[ir.Var] = frozenset()
    if options.kernel is None and "undo" not in options.without:
        undo = undo_arrays(active.memory.scopes, active.memory, active)
    fn, old = undo_pass.run(fn, undo)
    _check("undo", fn)

    active = _activity(fn, wanted, options)
    if options.kernel is not None:
        fn = _check("extremes", extremes.run(fn, active))
        active = _activity(fn, wanted, options)
    where, mem = active.memory.scopes, active.memory
    needs = reverse(fn, active, ids, lists.duplicated(fn, activities))
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
    plan = save_plan(
        fn,
        where,
        mem,
        active,
        needs,
        stable,
        undo,
        frozenset(old.values()),
        not options.inner,
        kernel,
        options.without,
    )
    noted = tuple(
        leaf.var
        for leaf in fn.leaves
        if is_array(leaf.var)
        and (not options.inner or leaf.var in ids.place)
        and options.kernel is None
    )
    entered = tuple(
        leaf.var
        for leaf in fn.leaves
        if options.args_alias and leaf.var in noted and leaf.exit != leaf.var and not ids.place
    )
    places = layout(where, plan, active, noted, len(fn.lists), entered)
    limit = f"the tape of {fn.name} would outgrow max_tape_bytes={options.max_tape_bytes}"
    found = Facts(
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
    )
    names: dict[str, object] = {}
    if kernel is not None:
        text, slots = cuda_forward.run(found, name + "__forward", names)
        if "cuda_gather" not in options.without:
            found = replace(found, neighbours=neighbours(fn, where, active, kernel))
        back, gather, given = cuda_pullback.run(found, name, names, slots)
        return PairText(found, text, back, "", names, callees, slots, given, gather)
    forward = augment.run(found, name + "__forward", names).text()
    reverse_ = pullback.run(found, name + "__pullback", names).text()
    zeros = "" if options.inner else zero.run(found, name + "__zero", names).text()
    return PairText(found, forward, reverse_, zeros, names, callees)


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
