"""The adjoint of one statement that has no blocks.

    t = math.sin(v)            d_v += math.cos(v) * d_t
    v = x[i]                   d_x[i] += d_v
    x[i] = t                   d_t += d_x[i]; d_x[i] = 0.0
    x[i] = x[i] + t            d_t += d_x[i]
    y = np.dot(a, b)           dot_pullback(a, b, d_y, d_a, d_b)

The values that they read are restored at the start of the reversed block.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.memory import is_array
from splitad.analysis.reverse import operand_of, terms
from splitad.analysis.scopes import Scope
from splitad.codegen.python import access, index_text, new_array, operand, zero
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction
from splitad.ir.threads import ArrayOp
from splitad.rules import registry
from splitad.rules.arrayrule import ArrayRule, Need
from splitad.rules.spelling import contribution, unique_number
from splitad.transform.additions import Additions
from splitad.transform.facts import shape_of
from splitad.transform.reversal import Reversal
from splitad.transform.shadows import shadow_name, write_element


def adjoint(r: Reversal, stmt: ir.Stmt, scope: Scope, additions: Additions) -> None:
    """scope: the statement's block. additions: those of the innermost loop around it."""
    if isinstance(stmt, ir.Prim):
        if stmt.out in r.cotangents.begun:
            _prim(r, stmt, scope, vector=additions.plan.independent)
    elif isinstance(stmt, ir.Cast):
        if stmt.out in r.cotangents.begun and r.facts.active(stmt.arg):
            r.cotangents.pass_on(stmt.arg, stmt.out, scope)
    elif isinstance(stmt, ir.Load):
        if stmt.out in r.cotangents.begun:
            additions.add(stmt, r.cotangents.name(stmt.out))
    elif isinstance(stmt, ir.Store):
        r.cotangents.add(stmt.value, additions.taken(stmt), scope)
        if id(stmt) not in r.accumulated:
            write_element(r.w, stmt, shadow_name(stmt.array), zero(r.w, stmt.array.type.dtype))
        r.tape.undo(stmt)
    elif isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, ArrayOp):
        _thread_op(r, stmt, stmt.fn, scope)
    elif isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, RecursiveFunction):
        _recursive(r, stmt, stmt.fn, scope)
    elif isinstance(stmt, ir.ArrayCall):
        if not stmt.outs or any(_has_cotangent(r, out) for out in _results(stmt)):
            _call(r, stmt, scope)


def _prim(r: Reversal, stmt: ir.Prim, scope: Scope, vector: bool) -> None:
    for term in terms(stmt, r.facts.active):
        arg, values = stmt.args[term.arg], term.operands
        # a partial of constants is finite: no guard against infinity times zero
        finite = all(isinstance(value, ir.Lit) for value in values.values())
        text, used = contribution(
            term.partial,
            {name: operand(r.w, value) for name, value in values.items()},
            r.cotangents.name(stmt.out),
            operand_complex=isinstance(arg.type, types.Complex),
            out_complex=isinstance(stmt.out.type, types.Complex),
            strong_zero=r.facts.strong_zero and not finite,
            vector=vector,
        )
        for name, value in used.items():
            r.w.use(name, value)
        if text == r.cotangents.name(stmt.out):
            r.cotangents.pass_on(arg, stmt.out, scope)
        else:
            r.cotangents.add(arg, f"({text})" if " if " in text else text, scope)


def _thread_op(r: Reversal, call: ir.ArrayCall, op: ArrayOp, scope: Scope) -> None:
    """Of a barrier, a barrier.  Of an atomic addition, the cotangent of the element, which it leaves."""
    if op.kind == "barrier":
        r.w.line("cuda.syncthreads()")
        return
    array, *index, value = call.args
    element = f"{shadow_name(array)}[{index_text(r.w, tuple(index))}]"
    if op.kind in ("max", "min"):
        _extremum(r, call, op, element, scope)
    else:
        r.cotangents.add(value, element if op.kind == "add" else f"-{element}", scope)


def _extremum(r: Reversal, call: ir.ArrayCall, op: ArrayOp, element: str, scope: Scope) -> None:
    """The winner takes the element's cotangent (targets/cuda/extremes.py)."""
    w, (array, *index, value) = r.w, call.args
    assert isinstance(array, ir.Var)
    taken, nothing = f"bars_{len(w.lines)}", zero(w, array.type.dtype)
    w.line(f"{taken} = {nothing}")
    with ExitStack() as indented:
        wins, *offered = (operand(w, value) for value in op.winner)
        if offered:  # it is claimed once for all pullbacks
            at, own = index_text(w, tuple(index)), "tape_thread + 1"
            test = f"if {wins} and {offered[0]} == tape_end_{array.name}[{at}]:"
            indented.enter_context(w.indented(test))
            place = f"tape_claim_{array.name}, {access(at, len(index))}"
            w.line(f"{taken}_by = cuda.atomic.cas({place}, 0, {own})")
            wins = f"{taken}_by == 0 or {taken}_by == {own}"
        indented.enter_context(w.indented(f"if {wins}:"))
        w.line(f"{taken} = {element}")
        w.line(f"{element} = {nothing}")
    r.cotangents.add(value, taken, scope)


# ---- functions of arrays -------------------------------------------------------------------------------


def _call(r: Reversal, call: ir.ArrayCall, scope: Scope) -> None:
    """Call the rule's pullback; see rules/registry.py for its parameters."""
    w, active = r.w, r.facts.active
    rule = registry.array_rule(call.fn)
    assert rule is not None
    saved = set(rule.saves([active(a) for a in call.args]))
    given = [
        "None" if n.kind in _SAVED and n.name not in saved else _argument(r, call, rule, n)
        for n in rule.call
    ]
    pullback = registry.jitted(rule)
    name = w.use(f"{rule.name}_pullback_{unique_number(pullback)}", pullback)
    text = f"{name}({', '.join(given)})"
    shadowed = [n.index for n in rule.call if n.kind == "shadow" and n.index < len(call.args)]
    scalars = [call.args[k] for k in shadowed if not is_array(call.args[k])]
    if any(active(arg) for arg in scalars):  # it returns what to add to those
        bars = f"bars_{len(w.lines)}"
        w.line(f"{bars} = {text}")
        for k, arg in enumerate(scalars):
            r.cotangents.add(arg, f"{bars}[{k}]", scope)
    else:
        w.line(text)
    if rule.overwrites is not None and rule.overwrites < len(call.args):
        target = call.args[rule.overwrites]
        if active(target):
            w.line(f"{shadow_name(target)}[...] = {zero(w, target.type.dtype)}")


def _recursive(r: Reversal, call: ir.ArrayCall, fn: RecursiveFunction, scope: Scope) -> None:
    """The pullback of a recursive function, which reads the tape on from `cur`.

    It wants a cotangent for each result and a shadow for each array of floats, and returns a cotangent
    for each float.
    """
    w = r.w
    bars = [_shadow(r, out) if is_array(out) else r.cotangents.text(out) for out in call.outs]
    given = [f"({''.join(bar + ', ' for bar in bars)})"]
    wanted = [arg for arg in call.args if is_differentiable(arg.type)]
    given += [_shadow(r, arg) for arg in wanted if is_array(arg)]
    scalars = [arg for arg in wanted if not is_array(arg)]
    made = f"bars_{len(w.lines)}"
    pullback = f"{r.facts.callees.name(fn)}__pullback"
    w.line(f"{made}, cur = {pullback}(tape, cur, {', '.join(given)})")
    for k, arg in enumerate(scalars):
        r.cotangents.add(arg, f"{made}[{k}]", scope)


def _shadow(r: Reversal, array: ir.Operand) -> str:
    """An array's shadow; zeros that nobody looks at where it has none."""
    if not is_differentiable(array.type):
        return "None"
    if isinstance(array, ir.Lit):
        r.w.use("np", np)
        return f"np.zeros_like({operand(r.w, array)})"
    if r.facts.active(array):
        return shadow_name(array)
    shape = "".join(operand(r.w, n) + ", " for n in shape_of(array, r.facts))
    return new_array(r.w, "zeros", f"({shape})", array.type.dtype)


def _results(call: ir.ArrayCall) -> tuple[ir.Var, ...]:
    """What the function itself returns, without the residuals of its rule."""
    rule = registry.array_rule(call.fn)
    assert rule is not None
    return call.outs[: max(1, len(rule.results))]


def _has_cotangent(r: Reversal, out: ir.Var) -> bool:
    if is_array(out):
        return r.facts.active(out)
    return out in r.cotangents.begun


_SAVED = ("contents", "out", "residual", "shape")


def _argument(r: Reversal, call: ir.ArrayCall, rule: ArrayRule, need: Need) -> str:
    """What is passed for a parameter of the rule's pullback."""
    value = operand_of(need, call, rule)
    if value is None:
        return "None"
    array, active = is_array(value), r.facts.active(value)
    if need.kind == "shape":
        return f"{shadow_name(value)}.shape" if array and active else "None"
    if need.kind == "static":
        return operand(r.w, value)
    if need.kind in _SAVED:
        if array and isinstance(value, ir.Var):
            return r.tape.contents(call, value)
        return operand(r.w, value)
    if need.kind == "d_out" and rule.results:
        if not active:
            return "None"
        return shadow_name(value) if array else r.cotangents.text(value)
    if need.kind == "d_out":
        return shadow_name(value) if array else r.cotangents.name(value)
    if not active:
        return "None"
    return shadow_name(value) if array else "True"
