"""Why a value is taped or computed again, an array copied or kept, a loop reversed in its order or replayed.

The analyses note a reason with what they decide; `show` words it (explain/).  The texts are completed with
what the reason is about: {array} or {function}; {value}, {operands} of `about`; {line}, {what} of `by`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from splitad.ir import nodes as ir


class Why(Enum):
    """The text of each reason."""

    # a value is free
    COUNTED = "the loop counts it again"
    GIVEN = "the launch gives it to the pullback"
    # it is computed again
    CHEAP = "cheap"
    INTEGER = "arithmetic of integers"
    CONSTANT = "{array} is a constant"
    SWEPT = "the pullback alone runs the loop"
    # or cannot be: it is taped
    OLD = "undo log of {array}: loaded deeper than it is stored"
    NO_RULE = "{function} has no rule that says what it costs"
    DEAR = "{function} is dearer than a load"
    INEXACT = "it hangs on the last bits of a float, which may come out differently a second time"
    FEWEST = "computing it again would need {operands}, which is no less"
    ARGUMENT = "an argument"
    CARRIED = "carried from one iteration to the next"
    AFTER_LOOP = "a loop's last value"
    BRANCH = "the result of a branch"
    RANDOM = "a random number is not drawn twice"
    CALLED = "the result of a call"
    SIZE = "known in the forward only"
    # or its array is not kept: what is loaded from it is taped
    THREADS = "line {line} writes {array}, of which a thread makes no copy"
    PART = "{array} is a part of an argument, of which a thread makes no copy"
    STORED_BEHIND = "the store behind it, line {line}, is taken back only later"
    WRITTEN = "line {line} writes {array} in the same iteration"
    LOCAL = "{array} is made in each iteration"
    LARGER = "a copy of all of {array} would be larger"
    # an array is kept by reference
    PROMISED = "nobody writes {array} before the pullback: modified_between=False"
    OWN = "nothing writes {array} any more, and the caller cannot reach it"
    LAUNCH = "no thread writes {array}"
    # or copied
    CALLERS = "the caller may write {array} before the pullback"
    ARGUMENTS = "the caller may write {array} before the pullback, unless modified_between=False"
    LATER = "line {line} writes {array} later"
    INNER = "{array} is made or chosen in a loop or branch"
    RECURSIVE = "the pair of a recursive function keeps no arrays"
    UNDONE = "{array} is loaded deeper than it is stored"
    # a loop is reversed in forward order
    INDEPENDENT = "no iteration reads what another one adds"
    # or with the last iteration first
    THREAD = "a thread's own loop"
    WHILE = "a while loop, or one with a break"
    NESTED = "it holds {what}, line {line}"
    CHOSEN = "{array} is another array in each iteration: line {line}"
    READ_AND_STORED = "it loads from {array}, line {line}, and stores to it"
    SAME_ELEMENT = "iterations may load the same element of {array}: line {line}"
    UNKNOWN_ELEMENT = "the index of {array} in line {line} is not the counter and a constant"
    STORED_TWICE = "iterations may store to the same element, or to one of two arrays"
    STEP = "its step is not 1"
    ONWARD = "{value} goes from one iteration to the next"
    UNDO_ORDER = "stores to {array} are taken back, the last one first"
    # or its iterations are run again
    REPLAYED = "an iteration would tape a higher power of the sizes than it starts from"
    ALWAYS = "SPLITAD_ALWAYS"
    STATE = "the loop is replayed, and line {line} writes {array}"
    # any of these
    LEFT_OUT = "SPLITAD_WITHOUT"


@dataclass(frozen=True)
class Reason:
    """by: the statement that is the reason, where there is one.  about: a value, where it is not that of
    the decision."""

    why: Why
    by: ir.Stmt | None = None
    about: tuple[ir.Var, ...] = ()


def origin(var: ir.Var, stmt: ir.Stmt | None) -> Why:
    """Why a value that is no operation's result cannot be computed again; stmt: what defines it."""
    match stmt:
        case None | ir.GetField() | ir.TupleGet():
            return Why.ARGUMENT
        case ir.For() | ir.While():
            return Why.CARRIED if var in stmt.params else Why.AFTER_LOOP
        case ir.If():
            return Why.BRANCH
        case ir.Impure() if is_random(stmt):
            return Why.RANDOM
        case ir.ArrayCall():
            return Why.CALLED
    return Why.SIZE


def is_random(stmt: ir.Stmt | None) -> bool:
    """Whether it draws a random number: a method of a generator, NumPy's or Python's."""
    if not isinstance(stmt, ir.Impure):
        return False
    generator = type(getattr(stmt.fn, "__self__", None))
    return "random" in f"{stmt.fn.__module__} {generator.__module__}"
