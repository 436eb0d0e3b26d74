"""The augmented forward: the primal, statement by statement, plus the recording.

    for i in range(n):                 trips_i = trip_count(n); rec_i = cur; cur += 8 * trips_i
        t = math.sin(x[i])             tape_t = column(base, rec_i, float64)
        s = s + t * t                  for i in range(n):
                                           t = math.sin(x[i]); tape_t[i] = t
                                           s = s + t * t

`cur` is where the tape ends, `base` the address of its block.  Of a loop that is replayed, only what each
iteration starts from goes to the tape (transform/replay.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from numba import types

from splitad.analysis.held import Held
from splitad.analysis.memory import is_array, tree_leaves
from splitad.analysis.offsets import unit_loop
from splitad.analysis.reverse import has_reverse
from splitad.analysis.save_plan import Copy
from splitad.analysis.scopes import Scope
from splitad.codegen.python import operand, statement, type_name, zero
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.ir.recursive import RecursiveFunction, jitted, parts
from splitad.ir.walk import walk
from splitad.rules import registry, user
from splitad.rules.ops import ANY_ORDER
from splitad.rules.spelling import unique_number
from splitad.runtime.boundary import note_array, overlap
from splitad.tape.arrays import put_array, snapshot_nbytes
from splitad.tape.layout import Column
from splitad.tape.ops import column, load_at, store_at, tape_release
from splitad.tape.reserve import reserve_for
from splitad.transform import lists, memories
from splitad.transform.checks import write_argument_checks
from splitad.transform.facts import Facts
from splitad.transform.identity import fresh_id
from splitad.transform.loops import LoopText
from splitad.transform.operands import assign, result_text, typed
from splitad.transform.refusals import refuse_arguments

_TAKES_APART = (ir.GetField, ir.TupleGet, ir.Dim, ir.Stride, ir.ListItems, ir.ListArrays)
WHILE_CHUNK = 1024  # iterations of a `while` that are reserved at a time

TRUE = ir.Lit(True, types.boolean)


def run(facts: Facts, name: str, names: dict[str, object]) -> Writer:
    """The function's text: ``name(tape, *args) -> (result, refs)``.

    A recursive function's own: ``name(tape, cur, *args) -> (results, cur)``, which appends to the tape.
    """
    w = Writer(names, vector=facts.vector_math == "all", memories=memories.in_forward(facts))
    work = Augment(facts, w)
    params = "".join(", " + identifier(p.name) for p in facts.fn.params)
    with w.indented(f"def {name}(tape{', cur' if facts.inner else ''}{params}):"):
        work.inner_function() if facts.inner else work.function()
    return w


class Augment:
    def __init__(self, facts: Facts, w: Writer) -> None:
        self.facts, self.w = facts, w
        self.where, self.plan, self.layout = facts.where, facts.plan, facts.layout
        # how a taped value is stored, for each record that is open: variable -> target text
        self.slot: dict[Scope, Callable[[Column], str]] = {}
        self.checked = facts.replayed  # whether the arguments were
        self.held = Held(facts.fn, facts.where) if facts.limited else None
        self.now: tuple[ir.Stmt, Scope] | None = None  # the statement that is being written
        self.draws_ids = any(
            (isinstance(s, ir.Impure) and s.fn is fresh_id) or isinstance(s, ir.ListArrays)
            for s in facts.where.definition.values()
        )

    # ---- the function -----------------------------------------------------------------------------

    def function(self) -> None:
        w, fn, root = self.w, self.facts.fn, self.where.root
        w.use("load_at", load_at)
        w.use("store_at", store_at)
        w.line("base = load_at(tape, 0)")
        w.line("cur = 0")
        self.reserve(str(self.layout.header))
        w.line(f"cur = {self.layout.header}")
        if self.draws_ids:
            w.line(f"next_id = {len(fn.leaves)}")
        lists.start(fn, w)
        left = self.never_returned() if never_ends(fn.body) else None
        if left is not None:  # Numba needs a way out that it can type
            with w.indented("if base < 0:"):
                w.line(left)
        w.use("column", column)
        self.slot[root] = lambda c: self.place(str(c.offset), c)
        for var in fn.params:
            self.save(var, root)
        self.block(root)
        self.check_arguments()
        if left is not None:
            w.line(left)
            return
        for copy in self.plan.behind(None):
            self.keep(copy)
        for leaf in fn.leaves:
            if leaf.var in self.layout.notes and leaf.exit != leaf.var:
                w.use("note_array", note_array)
                w.line(f"note_array(base, {self.layout.notes[leaf.var]}, {operand(w, leaf.exit)})")
        lists.write_notes(self.facts, w)
        w.line("store_at(tape, 2, cur)")
        refs = [identifier(c.array.name) for c in self.plan.copies if c.by_reference]
        # (of what is replayed, the results are known)
        # (of what is swept, the pullback returns them)
        swept = self.facts.sweep is not None
        returned = _undefined(fn, fn.result) if swept else fn.result
        result = "()" if self.facts.replayed else result_text(w, returned)
        # the arguments' arrays are kept too, so that a shadow in their memory can be told from a shadow
        # in memory that was theirs
        held = [operand(w, leaf.exit) for leaf in fn.leaves if leaf.var in self.layout.notes]
        held += lists.held(self.facts, w)
        kept, own = ("".join(name + ", " for name in names) for names in (refs, held))
        w.line(f"return {result}, (({kept}), ({own}))")

    def never_returned(self) -> str:
        """Of the type of what is returned; never run."""
        kept = [c.array.type for c in self.plan.copies if c.by_reference]
        result = result_text(self.w, _undefined(self.facts.fn, self.facts.fn.result))
        result = "()" if self.facts.replayed else result
        return f"return {result}, (({''.join(zero(self.w, t) + ', ' for t in kept)}), ())"

    def inner_function(self) -> None:
        """Its record starts where the tape ended; where that was, the tape says last."""
        w, fn, root = self.w, self.facts.fn, self.where.root
        w.line("rec_root = cur")
        w.use("load_at", load_at)
        w.line("base = load_at(tape, 0)")
        if any(isinstance(s, ir.Raise) for s in walk(fn.body)):
            # Numba needs a way out that it can type, where all others are behind a call of itself
            with w.indented("if cur < 0:"):
                nothing = [zero(w, v.type) for v in tree_leaves(fn.result)]
                w.line(f"return ({''.join(r + ', ' for r in nothing)}), cur")
        self.reserve(str(self.layout.header))
        w.line(f"cur += {self.layout.header}")
        if self.draws_ids:
            w.line(f"next_id = {len(fn.leaves)}")
        lists.start(fn, w)
        self.slot[root] = lambda c: self.place(f"rec_root + {c.offset}", c)
        for var, offset in self.layout.notes.items():
            w.use("note_array", note_array)
            w.line(f"note_array(base, rec_root + {offset}, {operand(w, var)})")
        self.checked = True
        for var in fn.params:
            self.save(var, root)
        self.block(root)
        for copy in self.plan.behind(None):
            self.keep(copy)
        self.push_word("rec_root")
        results = [typed(w, v, v.type) for v in tree_leaves(fn.result)]
        w.line(f"return ({''.join(r + ', ' for r in results)}), cur")

    def recursive(self, call: ir.ArrayCall, scope: Scope) -> None:
        """A call of a recursive function: recording, if the call has an adjoint."""
        w, fn = self.w, call.fn
        assert isinstance(fn, RecursiveFunction)
        args = "".join(", " + operand(w, a) for a in call.args)
        outs = [identifier(out.name) for out in call.outs]
        if has_reverse(call, self.facts.active):
            made = f"rec_{len(w.lines)}_made"
            w.line(f"{made}, cur = {self.facts.callees.name(fn)}__forward(tape, cur{args})")
            w.line("base = load_at(tape, 0)")
            for k, name in enumerate(outs):
                w.line(f"{name} = {made}[{k}]")
        else:
            plain = jitted(fn.function)
            name = w.use(f"{fn.__name__}_{unique_number(plain)}", plain)
            if not outs:
                w.line(f"{name}({args[2:]})")
            else:
                made = f"rec_{len(w.lines)}_made"
                w.line(f"{made} = {name}({args[2:]})")
                for target, (_, pick) in zip(outs, parts(fn.returned), strict=True):
                    w.line(f"{target} = {made}{pick}")
        for out in call.outs:
            self.save(out, scope)

    def block(self, scope: Scope) -> None:
        for stmt in scope.block.stmts:
            if scope.parent is None and not isinstance(stmt, _TAKES_APART):
                self.check_arguments()  # once the arguments are taken apart, before anything is written
            self.w.at(stmt.loc)
            self.now = stmt, scope
            if scope.parent is not None or not self.facts.is_swept(stmt):
                self.stmt(stmt, scope)
            self.now = stmt, scope
            for copy in self.plan.behind(stmt):
                self.keep(copy)

    def check_arguments(self) -> None:
        if not self.checked:
            self.checked = True
            write_argument_checks(self.facts, self.w)
            lists.write_argument_checks(self.facts, self.w)

    def stmt(self, stmt: ir.Stmt, scope: Scope) -> None:
        if isinstance(stmt, ir.For):
            self.for_loop(stmt, scope)
        elif isinstance(stmt, ir.While):
            self.while_loop(stmt, scope)
        elif isinstance(stmt, ir.If):
            self.branch(stmt, scope)
        elif isinstance(stmt, lists.STATEMENTS):
            for made in lists.statement(self.w, stmt):
                self.save(made, scope)
        elif isinstance(stmt, ir.Raise):
            self.w.use("tape_release", tape_release)
            self.w.line("tape_release(tape)")
            statement(self.w, stmt, unchecked=True)
        elif isinstance(stmt, ir.Impure) and stmt.fn is fresh_id:
            self.w.line(f"{identifier(stmt.out.name)} = next_id")
            self.w.line("next_id += 1")
            self.save(stmt.out, scope)
        elif isinstance(stmt, ir.ArrayCall) and isinstance(stmt.fn, RecursiveFunction):
            self.recursive(stmt, scope)
        else:
            written: ir.Stmt = stmt
            if isinstance(stmt, ir.ArrayCall):
                written = self.with_forward(stmt)
            elif isinstance(stmt, ir.Prim) and stmt.out in self.facts.sums:
                written = replace(stmt, fn=ANY_ORDER[stmt.fn])
            statement(self.w, written, unchecked=True)
            if isinstance(stmt, ir.ArrayCall):
                self.check_results(stmt)
            outs = stmt.outs if isinstance(stmt, ir.ArrayCall) else (getattr(stmt, "out", None),)
            for out in outs:
                if out is not None:
                    self.save(out, scope)

    def with_forward(self, call: ir.ArrayCall) -> ir.ArrayCall:
        """The call of the rule's own forward, where it has one."""
        rule = registry.array_rule(call.fn)
        if rule is None or rule.forward is None:
            return call
        return replace(call, fn=registry.jitted_forward(rule))

    def check_results(self, call: ir.ArrayCall) -> None:
        """Results lie in memory of their own, as all analyses take for granted: a user's function may be
        otherwise."""
        if not user.is_users(call.fn):
            return
        w, name = self.w, getattr(call.fn, "__name__", "a function")
        for out in call.outs:
            for arg in call.args:
                if is_array(out) and isinstance(arg, ir.Var) and is_array(arg):
                    w.use("overlap", overlap)
                    refuse_arguments(
                        w,
                        f"overlap({identifier(out.name)}, {operand(w, arg)})",
                        f"what {name}, which has a rule, returns overlaps an argument of it in memory: "
                        "it must return a copy",
                    )

    # ---- control flow -----------------------------------------------------------------------------

    def for_loop(self, loop: ir.For, scope: Scope) -> None:
        w, body = self.w, self.where.at(loop.body)
        record = self.layout.record[body]
        text = LoopText.of(loop)
        recorded = has_reverse(loop, self.facts.active) and record.size > 0
        if recorded or not unit_loop(loop):
            text.write_trips(w)
        if recorded:
            self.reserve(text.nbytes(record))
            w.line(f"{text.record} = cur")
            w.line(f"cur += {text.nbytes(record)}")
            self.columns(text, body)
        assign(self.w, loop.params, loop.inits)
        with w.indented(f"for {text.index} in {text.range(w)}:"):
            text.write_counter(w)
            for var in loop.params:
                self.save(var, body)
            replay = self.facts.replay(loop)
            if replay is not None:  # what the iteration changes
                self.now = loop.body.stmts[0], body
                for array in replay.state:
                    self.put(array)
            self.block(body)
            assign(self.w, loop.params, loop.body.yields)
        assign(self.w, loop.outs, loop.params)
        if recorded and record.pushes:
            self.push_word(text.record)
        for out in loop.outs:
            self.save(out, scope)

    def while_loop(self, loop: ir.While, scope: Scope) -> None:
        w, body = self.w, self.where.at(loop.body)
        record = self.layout.record[body]
        recorded = has_reverse(loop, self.facts.active) and not self.facts.is_replayed(body)
        trip = "trip_" + identifier(loop.params[0].name)
        rec = "rec_" + identifier(loop.params[0].name)
        assign(self.w, loop.params, loop.inits)
        if recorded:
            w.line(f"{trip} = 0")
        with w.indented(f"while {identifier(loop.params[0].name)}:"):
            if recorded and record.size:
                if record.pushes:
                    self.reserve(str(record.size))
                else:
                    with w.indented(f"if {trip} % {WHILE_CHUNK} == 0:"):
                        self.reserve(str(WHILE_CHUNK * record.size))
                w.line(f"{rec} = cur")
                w.line(f"cur += {record.size}")
                self.slot[body] = lambda c: self.place(
                    rec + (f" + {c.offset}" if c.offset else ""), c
                )
            for var in loop.params:
                self.save(var, body)
            self.block(body)
            if recorded:
                if record.size and record.pushes:
                    self.push_word(rec)
                w.line(f"{trip} += 1")
            assign(self.w, loop.params, loop.body.yields)
        assign(self.w, loop.outs, loop.params)
        if recorded:
            self.push_word(trip)
        for out in loop.outs:
            self.save(out, scope)

    def branch(self, stmt: ir.If, scope: Scope) -> None:
        w = self.w
        with w.indented(f"if {operand(w, stmt.cond)}:"):
            self.side(stmt.then, stmt.outs)
        if stmt.orelse.stmts or stmt.outs:
            with w.indented("else:"):
                self.side(stmt.orelse, stmt.outs)
        for out in stmt.outs:
            self.save(out, scope)

    def side(self, block: ir.Block, outs: tuple[ir.Var, ...]) -> None:
        self.block(self.where.at(block))
        if not (block.stmts and isinstance(block.stmts[-1], ir.Raise)):
            assign(self.w, outs, block.yields)

    # ---- the tape ---------------------------------------------------------------------------------

    def save(self, var: ir.Var, scope: Scope) -> None:
        """Store a value that was just computed, if the plan tapes it."""
        place = self.layout.of(var, self.where) if not is_array(var) else None
        if place is not None:
            self.w.line(f"{self.slot[scope.record](place[1])} = {identifier(var.name)}")

    def place(self, offset: str, c: Column) -> str:
        """What a value that lies there is assigned to."""
        self.w.use("column", column)
        return f"column(base, {offset}, {type_name(self.w, c.var.type)})[0]"

    def columns(self, text: LoopText, body: Scope) -> None:
        """How the values of a loop's iterations are stored."""
        w, record = self.w, self.layout.record[body]
        if record.pushes:  # the block may move: the column is found anew at each store
            self.slot[body] = lambda c: f"{text.column(w, c)}[{text.index}]"
            return
        for c in record.columns:
            w.line(f"tape_{identifier(c.var.name)} = {text.column(w, c)}")
        self.slot[body] = lambda c: f"tape_{identifier(c.var.name)}[{text.index}]"

    def keep(self, copy: Copy) -> None:
        """Copy an array's contents to the tape, if they are."""
        if not copy.by_reference:
            self.put(copy.array)

    def put(self, array: ir.Var) -> None:
        """Copy an array's contents to the tape."""
        w, name = self.w, identifier(array.name)
        w.use("snapshot_nbytes", snapshot_nbytes)
        w.use("put_array", put_array)
        w.line(f"need = snapshot_nbytes({name})")
        self.reserve("need")
        w.line(f"put_array(base, cur, {name})")
        w.line("cur += need")

    def push_word(self, name: str) -> None:
        self.reserve("8")
        self.w.use("column", column)
        self.w.use("int64", types.int64)
        self.w.line(f"column(base, cur, int64)[0] = {name}")
        self.w.line("cur += 8")

    def reserve(self, nbytes: str) -> None:
        if nbytes != "0":
            held = self.held_now()
            reserve = reserve_for(self.facts.limit_message, len(held))
            name = self.w.use(f"reserve_{unique_number(reserve)}", reserve)
            self.w.line(f"base = {name}({', '.join(['tape', 'cur', nbytes, *held])})")

    def held_now(self) -> list[str]:
        """What would leak if there is no room on the tape.  Outside of loops Numba gives back everything."""
        if self.held is None or self.now is None:
            return []
        stmt, scope = self.now
        if not (isinstance(stmt, (ir.For, ir.While)) or any(s.is_loop for s in scope.chain())):
            return []
        names = [identifier(v.name) for v in self.held.at(stmt, scope)]
        return names + lists.collections(self.facts.fn)


def never_ends(block: ir.Block) -> bool:
    """Whether the function is left, by an exception, in this block."""
    for stmt in block.stmts:
        match stmt:
            case ir.Raise():
                return True
            case ir.If() if never_ends(stmt.then) and never_ends(stmt.orelse):
                return True
            case ir.While() if stmt.inits[0] == TRUE:
                if stmt.body.yields[0] == TRUE or never_ends(stmt.body):
                    return True
    return False


def _undefined(fn: ir.Function, tree: ir.Tree) -> ir.Tree:
    """A result of these types."""
    if isinstance(tree, ir.TupleTree):
        return replace(tree, items=tuple(_undefined(fn, item) for item in tree.items))
    return tree if tree is None or tree in fn.params else ir.Lit(ir.UNDEF, tree.type)
