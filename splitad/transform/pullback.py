"""The pullback: the adjoints of the statements, last one first.

    for i in range(n):                  trips_i = max(n, 0); cur -= 8 * trips_i; rec_i = cur
        t = math.sin(x[i])              for i in range(trips_i - 1, -1, -1):
        s = s + t * t                       t = tape_t[i]; x_i = ...          what the plan restores
                                            d_t = 2 * (t * d_s)               then the adjoints
                                            d_x[i] += math.cos(x_i) * d_t

`d_v` is the cotangent of a scalar v or the shadow of an array v.  A reversed block first restores the
values that its adjoints read, then binds the shadows of its arrays, then runs the adjoints backwards.
A loop's carried scalar p is one variable d_p: at the top of a reversed iteration it holds the cotangent of
what was yielded for p, at its end the cotangent of p.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numba import types

from splitad.analysis.activity import is_differentiable
from splitad.analysis.adjoint_loops import LoopPlan, accumulations, count_uses, loop_plan
from splitad.analysis.memory import is_array
from splitad.analysis.reverse import has_reverse, operand_of, terms
from splitad.analysis.save_plan import Copy
from splitad.analysis.scopes import Scope
from splitad.codegen.python import (
    access,
    dtype_name,
    index_text,
    load_text,
    operand,
    statement,
    type_name,
    view_text,
    zero,
)
from splitad.codegen.writer import Writer, identifier
from splitad.errors import ShadowError
from splitad.ir import nodes as ir
from splitad.ir.types import struct_fields
from splitad.ir.walk import blocks, operands, walk
from splitad.rules import registry
from splitad.rules.spelling import contribution, unique_number
from splitad.runtime.shadow_table import add_into, as_contiguous, table_drop, table_get, table_set
from splitad.tape.arrays import last_array, snapshot_nbytes
from splitad.tape.ops import add_at, column, load_at, store_at
from splitad.transform.augment import tuple_text
from splitad.transform.checks import write_shadow_checks
from splitad.transform.facts import Facts, zero_based
from splitad.transform.loops import LoopText

CHUNK = 512  # iterations whose additions are kept in a buffer: some rows of it fit into the L1 cache


def shadow_name(var: ir.Var) -> str:
    return "d_" + var.name


def run(facts: Facts, name: str, names: dict[str, object]) -> Writer:
    """The function's text: ``name(tape, refs, result_bar, *shadows) -> cotangents``."""
    w = Writer(names)
    work = _Pullback(facts, w)
    shadows = "".join(
        ", " + shadow_name(p)
        for p, activity in zip(facts.fn.params, facts.activities, strict=True)
        if activity == "duplicated"
    )
    with w.indented(f"def {name}(tape, refs, result_bar{shadows}):"):
        work.function()
    return w


class _Pullback:
    def __init__(self, facts: Facts, w: Writer) -> None:
        self.facts, self.w = facts, w
        self.fn, self.where, self.plan, self.layout = (
            facts.fn, facts.where, facts.plan, facts.layout,
        )  # fmt: skip
        self.active = facts.active
        self.begun: set[ir.Var] = set()  # scalars whose cotangent variable has a value
        self.slot: dict[Scope, object] = {}
        self.tables = _tables(facts)
        self.uses = count_uses(facts.fn)
        pairs = [
            pair
            for scope in self.where.all
            for pair in accumulations(scope.block, self.active.memory, self.uses)
            if self.active(pair[1].array)
        ]
        self.accumulated = frozenset(id(stmt) for pair in pairs for stmt in pair)
        self.unread = {load.out for load, _ in pairs}  # read by their accumulation alone
        self.loop = LoopPlan()  # of the innermost loop that is being written
        self.added: list[ir.Load] = []  # its gathered and deferred additions, as they are met
        self.buffers: dict[str, tuple[types.Type, int]] = {}  # name -> dtype, rows

    # ---- the function -----------------------------------------------------------------------------

    def function(self) -> None:
        w, fn, root = self.w, self.fn, self.where.root
        w.use("column", column)
        w.line("base = tape[0]")
        w.line("cur = tape[2]")
        top = w.mark()
        for k, copy in enumerate(c for c in self.plan.copies if c.by_reference):
            w.line(f"{copy_name(copy)} = refs[0][{k}]")
        write_shadow_checks(self.facts, w, self.path)
        for copy in reversed(self.plan.behind(None)):
            self.pop(copy)
        for copy in self.plan.behind(None):
            if copy.undo:  # taken back store by store; the tape itself is never written
                w.line(f"{undo_name(copy.array)} = {saved_name(copy.array)}.copy()")
        self.slot[root] = lambda c: f"{self.column_text(str(c.offset), c)}[0]"
        self.restore(root)
        self.leaf_shadows()
        self.bind_shadows(root)
        self.seed(fn.result, "result_bar")
        for leaf in fn.leaves:
            if not is_array(leaf.var) and self.is_duplicated(leaf) and self.active(leaf.exit):
                self.add(leaf.exit, self.path(leaf.path), root)
        self.adjoints(root)
        self.write_back()
        for name, (dtype, rows) in self.buffers.items():
            w.use("np", np)
            w.insert(top, [f"{name} = np.empty({rows * CHUNK}, dtype={dtype_name(w, dtype)})"])
        w.line(f"return ({''.join(t + ', ' for t in self.returned())})")

    def is_duplicated(self, leaf: ir.Leaf) -> bool:
        return self.facts.activities[leaf.path[0]] == "duplicated"  # type: ignore[index]

    def path(self, path: tuple[int | str, ...]) -> str:
        """A part of an argument's shadow."""
        text = shadow_name(self.fn.params[path[0]])  # type: ignore[index]
        for step in path[1:]:
            text += f"[{step}]" if isinstance(step, int) else f".{step}"
        return text

    def leaf_shadows(self) -> None:
        """Name the shadow of each array in the arguments; tables for arrays that control flow chooses."""
        w = self.w
        rebound = self.rebound()
        for leaf in self.fn.leaves:
            if not is_array(leaf.var) or not self.active(leaf.var):
                continue
            if not self.is_duplicated(leaf):
                if leaf.var in self.facts.needs.shadowed:
                    self.zeros(leaf.var)
            elif not (rebound and self.in_struct(leaf)) and self.path(leaf.path) != shadow_name(
                leaf.var
            ):
                w.line(f"{shadow_name(leaf.var)} = {self.path(leaf.path)}")
        for table, example in self.tables.items():
            w.use("table_get", table_get)
            w.use("table_set", table_set)
            entries = []
            for leaf in self.fn.leaves:
                fits = is_array(leaf.var) and table == table_name(leaf.var.type)
                named = fits and self.active(leaf.var) and not (rebound and self.in_struct(leaf))
                named = named and (
                    self.is_duplicated(leaf) or leaf.var in self.facts.needs.shadowed
                )
                entries.append(shadow_name(leaf.var) if named else _placeholder(w, example))
            entries = entries or [_placeholder(w, example)]
            w.line(f"{table} = [{', '.join(entries)}]")
        if rebound:
            for leaf in self.fn.leaves:
                if is_array(leaf.var) and self.active(leaf.var) and self.in_struct(leaf):
                    if self.is_duplicated(leaf):
                        table = table_name(leaf.var.type)
                        w.line(
                            f"table_set({table}, {self.id_of(leaf.exit)}, {self.path(leaf.path)})"
                        )
            for leaf in self.fn.leaves:
                if is_array(leaf.var) and self.active(leaf.var) and self.in_struct(leaf):
                    self.from_table(leaf.var)

    def rebound(self) -> bool:
        """Whether some array field of a struct holds another array at exit than at entry."""
        return any(
            is_array(leaf.var) and leaf.exit != leaf.var and self.active(leaf.var)
            for leaf in self.fn.leaves
        )

    @staticmethod
    def in_struct(leaf: ir.Leaf) -> bool:
        return any(isinstance(step, str) for step in leaf.path)

    def id_of(self, array: ir.Operand) -> str:
        identity = self.facts.identity
        if array in identity.leaf_ids:
            return str(identity.leaf_ids[array])  # type: ignore[index]
        return operand(self.w, identity.id[array])  # type: ignore[index]

    def zeros(self, array: ir.Var) -> None:
        self.w.line(f"{shadow_name(array)} = {self.zeros_text(array)}")

    def zeros_text(self, array: ir.Var) -> str:
        self.w.use("np", np)
        return f"np.zeros({self.dims(array)}, dtype={dtype_name(self.w, array.type.dtype)})"

    def dims(self, array: ir.Var) -> str:
        definition = self.where.definition.get(array)
        shape = (
            definition.shape
            if isinstance(definition, ir.Alloc)
            else self.facts.identity.dims[array]
        )
        return f"({''.join(operand(self.w, n) + ', ' for n in shape)})"

    def from_table(self, array: ir.Var) -> None:
        table = table_name(array.type)
        self.w.line(
            f"{shadow_name(array)} = table_get({table}, {self.id_of(array)}, {self.dims(array)})"
        )

    def seed(self, tree: ir.Tree, text: str) -> None:
        """Add result_bar to the cotangents of what was returned."""
        if isinstance(tree, ir.TupleTree):
            for k, item in enumerate(tree.items):
                self.seed(item, f"{text}[{k}]")
        elif tree is not None and is_array(tree):
            if self.active(tree):
                self.w.use("add_into", add_into)
                self.w.use("PlainShadowError", ShadowError)
                with self.w.indented(f"if not add_into({shadow_name(tree)}, {text}):"):  # type: ignore[arg-type]
                    reason = "result_bar has another shape than the result"
                    self.w.line(f"raise PlainShadowError({reason!r})")
        elif tree is not None and self.active(tree):
            self.add(tree, text, self.where.root, converted=True)

    def write_back(self) -> None:
        """Shadows of structs go back to what they were at entry."""
        by_path = {leaf.path: leaf for leaf in self.fn.leaves}
        for k, (param, activity) in enumerate(
            zip(self.fn.params, self.facts.activities, strict=True)
        ):
            if activity == "duplicated":
                self.write_fields(param.type, (k,), by_path)

    def write_fields(self, type: types.Type, path, by_path) -> None:  # type: ignore[no-untyped-def]
        for field, kind in (struct_fields(type) or {}).items():
            inner = (*path, field)
            if struct_fields(kind) is not None:
                self.write_fields(kind, inner, by_path)
            else:
                value = self.entry_shadow(kind, inner, by_path)
                if value != self.path(inner):
                    self.w.line(f"{self.path(inner)} = {value}")
        if isinstance(type, types.BaseTuple):
            for k, kind in enumerate(type):
                self.write_fields(kind, (*path, k), by_path)

    def entry_shadow(self, type: types.Type, path, by_path) -> str:  # type: ignore[no-untyped-def]
        """What the shadow of a struct's field holds at entry; its own text where that is no change."""
        if isinstance(type, types.BaseTuple):
            parts = [self.entry_shadow(t, (*path, k), by_path) for k, t in enumerate(type)]
            if all(part == self.path((*path, k)) for k, part in enumerate(parts)):
                return self.path(path)
            return tuple_text(self.w, type, parts)
        leaf = by_path.get(path)
        if leaf is None:
            return self.path(path)
        if is_array(leaf.var):
            if not (self.rebound() and self.active(leaf.var)):
                return self.path(path)
            table = self.tables.get(table_name(leaf.var.type))
            if leaf.var.type.layout == "C" and table is not None and table.layout != "C":
                self.w.use("as_contiguous", as_contiguous)
                return f"as_contiguous({shadow_name(leaf.var)})"
            return shadow_name(leaf.var)
        if not is_differentiable(leaf.var.type):
            return self.path(path)
        if leaf.exit == leaf.var and leaf.var not in self.begun:
            return self.path(path)
        return self.cotangent(leaf.var)

    def cotangent(self, var: ir.Var) -> str:
        return shadow_name(var) if var in self.begun else zero(self.w, var.type)

    def returned(self) -> list[str]:
        """One entry per Active argument, and per tuple of arrays and scalars."""
        texts = []
        by_path = {leaf.path: leaf for leaf in self.fn.leaves}
        for k, (param, activity) in enumerate(
            zip(self.fn.params, self.facts.activities, strict=True)
        ):
            if activity == "active" or (activity == "duplicated" and _has_scalars(param.type)):
                texts.append(self.returned_part(param.type, (k,), by_path))
        return texts

    def returned_part(self, type: types.Type, path, by_path) -> str:  # type: ignore[no-untyped-def]
        if isinstance(type, types.BaseTuple):
            parts = [self.returned_part(t, (*path, k), by_path) for k, t in enumerate(type)]
            return tuple_text(self.w, type, parts)
        leaf = by_path.get(path)
        if leaf is None or is_array(leaf.var) or not is_differentiable(type):
            return "None"
        return self.cotangent(leaf.var)

    # ---- restoring --------------------------------------------------------------------------------

    def column_text(self, offset: str, c) -> str:  # type: ignore[no-untyped-def]
        return f"column(base, {offset}, {type_name(self.w, c.var.type)})"

    def restore(self, scope: Scope) -> None:
        """The values that adjoints in this block and inside it read."""
        w = self.w
        for var in self.plan.taped.get(scope, ()):
            c = self.layout.record[scope.record].column(var)
            w.line(f"{identifier(var.name)} = {self.slot[scope.record](c)}")  # type: ignore[operator]
        for stmt in self.plan.recomputed.get(scope, ()):
            if isinstance(stmt, ir.Load) and isinstance(stmt.array, ir.Var):
                copy = self.plan.source[stmt.out]
                array = undo_name(copy.array) if copy.undo else copy_name(copy)
                w.line(f"{identifier(stmt.out.name)} = {load_text(w, stmt, array, unchecked=True)}")
            else:
                statement(w, stmt, unchecked=True)

    def pop(self, copy) -> None:  # type: ignore[no-untyped-def]
        """Find a copied array at the end of the tape."""
        if copy.by_reference:
            return
        w, array = self.w, copy.array
        w.use("last_array", last_array)
        name = saved_name(array)
        ndim = array.type.ndim
        w.use("snapshot_nbytes", snapshot_nbytes)
        w.line(f"{name} = last_array(base, cur, {dtype_name(w, array.type.dtype)}, {ndim})")
        w.line(f"cur -= snapshot_nbytes({name})")

    def bind_shadows(self, scope: Scope) -> None:
        """Shadows of the arrays that this block defines, bases before their views."""
        shadowed, identity = self.facts.needs.shadowed, self.facts.identity
        if scope.is_loop:
            for param in scope.owner.params:  # type: ignore[union-attr]
                if param in shadowed:
                    self.from_table(param)
        for stmt in scope.block.stmts:
            if isinstance(stmt, ir.View):
                if stmt.out in shadowed:
                    text = view_text(self.w, stmt, shadow_name(stmt.base))
                    self.w.line(f"{shadow_name(stmt.out)} = {text}")
            elif isinstance(stmt, (ir.Alloc, ir.ArrayCall, ir.If, ir.For, ir.While)):
                outs = (stmt.out,) if isinstance(stmt, ir.Alloc) else stmt.outs
                for out in outs:
                    if out in shadowed and is_array(out):
                        self.from_table(out) if out in identity.id else self.zeros(out)

    # ---- adjoints ---------------------------------------------------------------------------------

    def adjoints(self, scope: Scope) -> None:
        for stmt in reversed(scope.block.stmts):
            copies = self.plan.behind(stmt)
            if copies or has_reverse(stmt, self.active):
                self.w.at(stmt.loc)
            for copy in reversed(copies):
                self.pop(copy)
            if isinstance(stmt, ir.Alloc) and stmt.out in self.facts.identity.id:
                if stmt.out in self.facts.needs.shadowed:
                    self.w.use("table_drop", table_drop)
                    self.w.line(f"table_drop({table_name(stmt.out.type)}, {self.id_of(stmt.out)})")
            if has_reverse(stmt, self.active):
                self.adjoint(stmt, scope)

    def adjoint(self, stmt: ir.Stmt, scope: Scope) -> None:
        if isinstance(stmt, ir.Prim):
            self.prim(stmt, scope)
        elif isinstance(stmt, ir.Cast):
            if stmt.out in self.begun and self.active(stmt.arg):
                self.add(stmt.arg, shadow_name(stmt.out), scope, source=stmt.out)
        elif isinstance(stmt, ir.Load):
            if stmt.out in self.begun:
                self.add_load(stmt)
        elif isinstance(stmt, ir.Store):
            self.store(stmt, scope)
        elif isinstance(stmt, ir.ArrayCall):
            self.array_call(stmt, scope)
        elif isinstance(stmt, ir.For):
            self.for_loop(stmt, scope)
        elif isinstance(stmt, ir.While):
            self.while_loop(stmt, scope)
        elif isinstance(stmt, ir.If):
            self.branch(stmt, scope)

    def add(
        self,
        target: ir.Operand,
        text: str,
        scope: Scope,
        source: ir.Var | None = None,
        converted: bool = False,
    ) -> None:
        """``d_target += text``; the first time in its own block, ``=``."""
        if not isinstance(target, ir.Var) or not self.active(target) or target in self.unread:
            return
        name, type = shadow_name(target), types.unliteral(target.type)
        if source is not None and isinstance(source.type, types.Complex):
            if not isinstance(type, types.Complex):
                text = f"({text}).real"
        if type not in (types.float64, types.complex128) or converted:
            text = f"{type_name(self.w, type)}({text})"
        if target in self.begun:
            self.w.line(f"{name} += {text}")
            return
        assert self.where.of[target] is scope, f"{target.name} begun in an inner block"
        if isinstance(type, types.Complex) and not converted:
            text = (
                f"{type_name(self.w, type)}({text})"  # a real contribution to a complex cotangent
            )
        self.begun.add(target)
        self.w.line(f"{name} = {text}")

    def begin_outer(self, stmt: ir.Stmt) -> None:
        """Cotangents of outer values that the nested blocks may add to start here, at zero."""
        inside = [s for block in blocks(stmt) for s in walk(block)]
        used: dict[ir.Operand, None] = {}
        for inner in inside:
            used.update(dict.fromkeys(operands(inner)))
            for block in blocks(inner):
                used.update(dict.fromkeys(block.yields))
        for block in blocks(stmt):
            used.update(dict.fromkeys(block.yields))
        own = {self.where.at(block) for block in blocks(stmt)}
        for value in used:
            if not isinstance(value, ir.Var) or is_array(value) or not self.active(value):
                continue
            if value not in self.begun and not any(
                self.where.of[value].inside(scope) for scope in own
            ):
                self.begin(value)

    def begin(self, var: ir.Var) -> None:
        self.begun.add(var)
        self.w.line(f"{shadow_name(var)} = {zero(self.w, var.type)}")

    def prim(self, stmt: ir.Prim, scope: Scope) -> None:
        if stmt.out not in self.begun:
            return
        out_complex = isinstance(stmt.out.type, types.Complex)
        for term in terms(stmt, self.active):
            arg = stmt.args[term.arg]
            names = {name: operand(self.w, value) for name, value in term.operands.items()}
            text, used = contribution(
                term.partial,
                names,
                shadow_name(stmt.out),
                operand_complex=isinstance(arg.type, types.Complex),
                out_complex=out_complex,
                strong_zero=self.facts.strong_zero and not _finite(term.operands.values()),
                vector=self.loop.independent,
            )
            for name, value in used.items():
                self.w.use(name, value)
            self.add(arg, f"({text})" if " if " in text else text, scope)

    def element(self, stmt: ir.Load | ir.Store) -> tuple[str, str, bool]:
        return shadow_name(stmt.array), index_text(self.w, stmt.index), not stmt.wraps

    def add_element(self, stmt: ir.Load, text: str) -> None:
        shadow, index, unchecked = self.element(stmt)
        if unchecked:
            self.w.use("add_at", add_at)
            self.w.line(f"add_at({shadow}, {access(index, len(stmt.index))}, {text})")
        else:
            self.w.line(f"{shadow}[{index}] += {text}")

    def add_load(self, stmt: ir.Load) -> None:
        """The adjoint of a load; see analysis/adjoint_loops.py for the ways in which it can be put off."""
        value = shadow_name(stmt.out)
        if id(stmt) in self.loop.gathered:
            self.added.append(stmt)
            self.w.line(f"{self.sum_name(stmt)} += {value}")
        elif id(stmt) in self.loop.deferred:
            self.added.append(stmt)
            name, offset = self.buffer(stmt)
            self.w.use("store_at", store_at)
            self.w.line(f"store_at({name}, {offset}, {value})")
        else:
            self.add_element(stmt, value)

    def sum_name(self, stmt: ir.Load) -> str:
        return f"added_{stmt.out.name}"

    def buffer(self, stmt: ir.Load) -> tuple[str, str]:
        """The buffer of a deferred addition, and the index in it for this iteration."""
        name = f"buffer_{stmt.array.type.dtype}"
        row = self.loop.deferred[id(stmt)]
        dtype, rows = self.buffers.get(name, (stmt.array.type.dtype, 0))
        self.buffers[name] = (dtype, max(rows, row + 1))
        return name, f"at + {row * CHUNK}" if row else "at"

    def store(self, stmt: ir.Store, scope: Scope) -> None:
        shadow, index, unchecked = self.element(stmt)
        if unchecked:
            self.w.use("load_at", load_at)
            self.w.use("store_at", store_at)
            at = access(index, len(stmt.index))
            read, write = f"load_at({shadow}, {at})", f"store_at({shadow}, {at}, {{}})"
        else:
            read, write = f"{shadow}[{index}]", f"{shadow}[{index}] = {{}}"
        self.add(stmt.value, read, scope)
        if id(stmt) not in self.accumulated:
            self.w.line(write.format(zero(self.w, stmt.array.type.dtype)))
        if self.taken_back(stmt):
            text = write.format(identifier(self.facts.old[id(stmt)].name))
            self.w.line(text.replace(shadow, undo_name(stmt.array), 1))

    def taken_back(self, stmt: ir.Stmt) -> bool:
        """Whether the store is undone in the private copy of an array with an undo log."""
        return id(stmt) in self.facts.old and any(
            copy.undo and copy.array == stmt.array  # type: ignore[union-attr]
            for copy in self.plan.copies
        )

    def array_call(self, call: ir.ArrayCall, scope: Scope) -> None:
        """Call the rule's pullback; see rules/registry.py for its parameters."""
        w = self.w
        rule = registry.array_rule(call.fn)
        assert rule is not None
        saves = set(rule.saves([self.active(a) for a in call.args]))
        scalars = [o for o in call.outs if not is_array(o)]
        if call.outs and not is_array(call.outs[0]) and call.outs[0] not in self.begun:
            return
        del scalars
        args = []
        for need in rule.call:
            value = operand_of(need, call, rule)
            if need.kind in ("contents", "out", "residual", "shape") and need.name not in saves:
                args.append("None")
            elif value is None:
                args.append("None")
            elif need.kind == "shape":
                shaped = is_array(value) and isinstance(value, ir.Var) and self.active(value)
                args.append(f"{shadow_name(value)}.shape" if shaped else "None")  # type: ignore[arg-type]
            elif need.kind in ("contents", "out", "residual"):
                if is_array(value) and isinstance(value, ir.Var):
                    args.append(copy_name(self.plan.source[(id(call), value)]))
                else:
                    args.append(operand(w, value))
            elif need.kind == "static":
                args.append(operand(w, value))
            elif need.kind == "d_out":
                args.append(shadow_name(value))  # type: ignore[arg-type]
            elif is_array(value):
                args.append(shadow_name(value) if self.active(value) else "None")  # type: ignore[arg-type]
            else:
                args.append("True" if self.active(value) else "None")
        pullback = registry.jitted(rule)
        name = w.use(f"{rule.name}_pullback_{unique_number(pullback)}", pullback)
        text = f"{name}({', '.join(args)})"
        wanted = [
            (k, call.args[n.index])
            for k, n in enumerate(
                n for n in rule.call
                if n.kind == "shadow" and n.index < len(call.args) and not is_array(call.args[n.index])
            )
        ]  # fmt: skip
        if any(self.active(a) for _, a in wanted):
            temp = f"bars_{len(w.lines)}"
            w.line(f"{temp} = {text}")
            for k, arg in wanted:
                self.add(arg, f"{temp}[{k}]", scope)
        else:
            w.line(text)
        if rule.overwrites is not None and rule.overwrites < len(call.args):
            target = call.args[rule.overwrites]
            if self.active(target):
                w.line(f"{shadow_name(target)}[...] = {zero(w, target.type.dtype)}")  # type: ignore[arg-type]

    # ---- control flow -----------------------------------------------------------------------------

    def start_params(self, loop: ir.For | ir.While) -> list[int]:
        """Each carried cotangent starts as that of the loop's result; which ones are carried."""
        carried = []
        for k, (param, out) in enumerate(zip(loop.params, loop.outs, strict=True)):
            if is_array(param) or not self.active(param):
                continue
            carried.append(k)
            self.begun.add(param)
            value = shadow_name(out) if out in self.begun else zero(self.w, param.type)
            self.w.line(f"{shadow_name(param)} = {value}")
        return carried

    def yields(self, loop: ir.For | ir.While, carried: list[int], body: Scope) -> None:
        """Hand the carried cotangents to what the iteration yielded."""
        moves = []  # a param that is yielded unchanged keeps its cotangent
        for k in carried:
            if loop.body.yields[k] != loop.params[k]:
                moves.append((loop.params[k], loop.body.yields[k]))
        taken = {y for _, y in moves}
        swapped = any(param in taken for param, _ in moves) or any(
            y in loop.params for _, y in moves
        )
        names = {param: shadow_name(param) for param, _ in moves}
        if swapped:
            for param, _ in moves:
                names[param] = f"bar_{param.name}"
                self.w.line(f"{names[param]} = {shadow_name(param)}")
            for param, _ in moves:
                self.w.line(f"{shadow_name(param)} = {zero(self.w, param.type)}")
        for param, y in moves:
            self.add(y, names[param], body)
            if not swapped:
                self.w.line(f"{shadow_name(param)} = {zero(self.w, param.type)}")

    def finish_params(self, loop: ir.For | ir.While, carried: list[int], scope: Scope) -> None:
        for k in carried:
            self.add(loop.inits[k], shadow_name(loop.params[k]), scope)

    def for_loop(self, loop: ir.For, scope: Scope) -> None:
        w, body = self.w, self.where.at(loop.body)
        record = self.layout.record[body]
        text = LoopText.of(loop)
        self.begin_outer(loop)
        carried = self.start_params(loop)
        text.write_trips(w)
        if record.size:
            if record.pushes:
                w.line("cur -= 8")
                self.read_word(text.record)
                self.slot[body] = lambda c: f"{text.column(w, c)}[{text.index}]"
            else:
                w.line(f"cur -= {text.nbytes(record)}")
                w.line(f"{text.record} = cur")
                for c in record.columns:
                    w.line(f"tape_{identifier(c.var.name)} = {text.column(w, c)}")
                self.slot[body] = lambda c: f"tape_{identifier(c.var.name)}[{text.index}]"
        outer, outer_added = self.loop, self.added
        memory = self.active.memory
        self.loop = loop_plan(loop, memory, self.active, self.accumulated, self.uses)
        if any(self.taken_back(stmt) for stmt in loop.body.stmts):
            self.loop = replace(self.loop, ascending=False)  # in the order of an undo log, last first
        self.added = []
        for load in self.loop.loads:
            if id(load) in self.loop.gathered:
                w.line(f"{self.sum_name(load)} = {zero(w, load.array.type.dtype)}")
        if self.loop.deferred:
            self.chunks(loop, text, carried, body)
        else:
            rising = self.loop.ascending
            span = text.range(w) if rising else text.reversed_range(w)
            with w.indented(f"for {text.index} in {span}:"):
                text.write_counter(w)
                self.reversed_body(loop, carried, body)
        gathered = [load for load in self.added if id(load) in self.loop.gathered]
        if gathered:  # without an iteration, there need not be such an element
            with w.indented(f"if {text.trips} > 0:"):
                for load in gathered:
                    self.add_element(load, self.sum_name(load))
        self.loop, self.added = outer, outer_added
        if record.size and record.pushes:
            w.line(f"cur = {text.record}")
        self.finish_params(loop, carried, scope)

    def reversed_body(self, loop: ir.For, carried: list[int], body: Scope) -> None:
        self.restore(body)
        self.bind_shadows(body)
        self.yields(loop, carried, body)
        self.adjoints(body)

    def chunks(self, loop: ir.For, text: LoopText, carried: list[int], body: Scope) -> None:
        """The reversed loop, a piece at a time, what its adjoints add going through buffers."""
        w, k = self.w, text.counter
        start = operand(w, loop.start)
        first = "" if zero_based(loop) else f"{start} + "
        pieces = f"({text.trips} + {CHUNK - 1}) // {CHUNK}"
        rising = self.loop.ascending
        span = f"range({pieces})" if rising else f"range({pieces} - 1, -1, -1)"
        with w.indented(f"for piece_{k} in {span}:"):
            w.line(f"lo_{k} = {first}piece_{k} * {CHUNK}")
            w.line(f"hi_{k} = min(lo_{k} + {CHUNK}, {first}{text.trips})")
            part = f"range(lo_{k}, hi_{k})" if rising else f"range(hi_{k} - 1, lo_{k} - 1, -1)"
            with w.indented(f"for {k} in {part}:"):
                w.line(f"at = {k} - lo_{k}")
                self.reversed_body(loop, carried, body)
            for load in self.added:
                if id(load) in self.loop.deferred:
                    with w.indented(f"for {k} in range(lo_{k}, hi_{k}):"):
                        w.line(f"at = {k} - lo_{k}")
                        for stmt in self.loop.index[id(load)]:
                            statement(w, stmt, unchecked=True)
                        w.use("load_at", load_at)
                        name, offset = self.buffer(load)
                        self.add_element(load, f"load_at({name}, {offset})")

    def while_loop(self, loop: ir.While, scope: Scope) -> None:
        w, body = self.w, self.where.at(loop.body)
        record = self.layout.record[body]
        name = identifier(loop.params[0].name)
        trip, rec = "trip_" + name, "rec_" + name
        self.begin_outer(loop)
        carried = self.start_params(loop)
        w.line("cur -= 8")
        self.read_word(trip)
        self.slot[body] = lambda c: (
            f"{self.column_text(rec + (f' + {c.offset}' if c.offset else ''), c)}[0]"
        )
        with w.indented(f"for iter_{name} in range({trip} - 1, -1, -1):"):
            if record.size:
                if record.pushes:
                    w.line("cur -= 8")
                    self.read_word(rec)
                else:
                    w.line(f"cur -= {record.size}")
                    w.line(f"{rec} = cur")
            self.restore(body)
            self.bind_shadows(body)
            self.yields(loop, carried, body)
            self.adjoints(body)
            if record.size and record.pushes:
                w.line(f"cur = {rec}")
        self.finish_params(loop, carried, scope)

    def read_word(self, name: str) -> None:
        self.w.use("int64", types.int64)
        self.w.line(f"{name} = column(base, cur, int64)[0]")

    def branch(self, stmt: ir.If, scope: Scope) -> None:
        w = self.w
        self.begin_outer(stmt)
        with w.indented(f"if {operand(w, stmt.cond)}:"):
            self.side(stmt.then, stmt.outs)
        with w.indented("else:"):
            self.side(stmt.orelse, stmt.outs)

    def side(self, block: ir.Block, outs: tuple[ir.Var, ...]) -> None:
        if block.stmts and isinstance(block.stmts[-1], ir.Raise):
            return  # never reversed: the function was left
        scope = self.where.at(block)
        self.restore(scope)
        self.bind_shadows(scope)
        for out, y in zip(outs, block.yields, strict=True):
            if not is_array(out) and out in self.begun:
                self.add(y, shadow_name(out), scope)
        self.adjoints(scope)


def _finite(values: Iterable[ir.Operand]) -> bool:
    """Whether all are literals: a partial of those needs no guard against infinity times zero."""
    return all(isinstance(v, ir.Lit) for v in values)


def saved_name(array: ir.Var) -> str:
    return "saved_" + array.name


def copy_name(copy: Copy) -> str:
    """Kept and copied arrays may have different layouts, hence different names."""
    return "kept_" + copy.array.name if copy.by_reference else saved_name(copy.array)


def undo_name(array: ir.Var) -> str:
    return "undo_" + array.name


def table_name(type: types.Array) -> str:
    """Shadows are kept in one table per dtype and number of dimensions."""
    return f"shadows_{str(type.dtype).split('(')[0]}_{type.ndim}d"


def _tables(facts: Facts) -> dict[str, types.Array]:
    found: dict[str, types.Array] = {}
    for array in facts.needs.shadowed:
        if array in facts.identity.id or (
            array in facts.identity.leaf_ids and array in facts.identity.dims
        ):
            name = table_name(array.type)
            if array.type.layout == "C" and name in found:
                continue
            found[name] = array.type
    return found


def _placeholder(w: Writer, example: types.Array) -> str:
    """An empty array for a table's list, of the layout that holds all of its arrays."""
    text = zero(w, types.Array(example.dtype, example.ndim, "C"))
    # a slice with a step is of any layout for Numba
    return text if example.layout == "C" or example.ndim == 0 else f"{text}[::1]"


def _has_scalars(type: types.Type) -> bool:
    """Whether a tuple holds scalars that have cotangents."""
    return isinstance(type, types.BaseTuple) and any(
        _has_scalars(t) or (not isinstance(t, types.Array) and is_differentiable(t)) for t in type
    )
