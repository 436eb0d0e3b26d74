"""The sums of loops that only the pullback runs, in its reversed loops (analysis/sweeps.py).

    s_2 = 0.0
    for i in range(trips_i):
        e = ...                          what the plan computes in each iteration
        s_2 = add_any_order(s_2, e)
        d_e = ...                        the adjoints

Which iteration comes first, and which of a body's statements, makes no difference: a sum has one name, that
of its last value.
"""

from __future__ import annotations

from splitad.codegen.python import operand
from splitad.codegen.writer import identifier
from splitad.ir import nodes as ir
from splitad.rules.ops import ANY_ORDER
from splitad.transform.operands import typed
from splitad.transform.reversal import Reversal


def start_sums(r: Reversal, loop: ir.For) -> None:
    """Before a loop."""
    swept = r.facts.sweep
    if swept is not None and any(loop is each for each in swept.loops):
        for out, init in zip(loop.outs, loop.inits, strict=True):
            r.w.line(f"{identifier(out.name)} = {typed(r.w, init, out.type)}")


def add_terms(r: Reversal, loop: ir.For) -> None:
    """In an iteration, once its values are there."""
    swept = r.facts.sweep
    for term in swept.terms.get(id(loop.body), ()) if swept is not None else ():
        fn = ANY_ORDER[term.addition.fn]
        name = identifier(term.sum.name)
        r.w.use(fn.__name__, fn)
        r.w.line(f"{name} = {fn.__name__}({name}, {operand(r.w, term.value)})")
