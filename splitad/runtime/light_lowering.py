"""Numba's lowering of typed code to LLVM's, without what it does again and again to no effect.

The function behind an operator is looked for anew at each use, through all that NumPy overloads it with; here
once for the types of its operands.  Numbers are not counted, so nothing happens where one ends.

What is used in other blocks than its own goes through memory, from which LLVM brings it back into values.  A
variable that is assigned once, before all its uses, is its value here.

An argument is held by the caller until the function returns.  Numba counts one more reference to it while the
function uses it; here there is none.

And without fastmath for values of the primal that a pullback computes again.  Sums of cotangents may be
reassociated, but ``(x + big) - big`` of the user's is x rounded, not x.  Numba gives the flags of fastmath to
each instruction that has none; these get one that is empty.  What Numba compiles as a function of its own,
the product of complex numbers for one, is compiled for them apart.

    mark_primal(pullback, {12, 13})    the lines of its file that compute such values
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import ir
from numba.core.analysis import must_use_alloca
from numba.core.compiler_machinery import register_pass
from numba.core.fastmathpass import FastFloatBinOpVisitor
from numba.core.postproc import VariableLifetime
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering

from splitad.runtime.light_ranges import RangeLowering

_PRIMAL = "splitad_primal"
_NO_FLAG = [""]
_EXACT: dict[Any, Any] = {}  # Numba's internal functions, for these values


def mark_primal(function: Any, lines: Iterable[int]) -> None:
    """See the module."""
    setattr(function, _PRIMAL, frozenset(lines))


def is_pullback(function: Any) -> bool:
    """Whether lines of it were marked, or none of it that there are."""
    return hasattr(function, _PRIMAL)


class _Lower(RangeLowering):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._operators: dict[Any, Any] = {}
        self._are_counted: dict[Any, bool] = {}
        self._primal: frozenset[int] = getattr(self.func_ir.func_id.func, _PRIMAL, frozenset())
        self._held = self._held_by_caller()

    def _held_by_caller(self) -> frozenset[str]:
        """The variables that are arguments as they were given, and nothing else."""
        types = self.fndesc.typemap
        return frozenset(
            stmt.target.name
            for block in self.func_ir.blocks.values()
            for stmt in block.find_insts(ir.Assign)
            if isinstance(stmt.value, ir.Arg)
            and stmt.target.name in self._once
            and types["arg." + stmt.value.name] == types[stmt.target.name]
        )

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        if inst.target.name in self._held:
            return self.fnargs[inst.value.index]
        if inst.loc.line not in self._primal:
            return super().lower_assign(ty, inst)
        block, blocks = self.builder.block, len(self.function.blocks)
        since = len(block.instructions)
        with self._exactly():
            value = super().lower_assign(ty, inst)
        made = [
            block.instructions[since:],
            *(b.instructions for b in self.function.blocks[blocks:]),
        ]
        for instruction in (each for part in made for each in part):
            if instruction.opname in FastFloatBinOpVisitor.float_binops and not instruction.flags:
                instruction.flags = _NO_FLAG
        return value

    @contextmanager
    def _exactly(self) -> Iterator[None]:
        """For a while, Numba's internal functions are those without fastmath."""
        context = self.context
        given = context.fastmath, context.cached_internal_func
        context.fastmath, context.cached_internal_func = False, _EXACT
        flags = self.flags.copy()
        flags.fastmath = False
        try:
            with ConfigStack().enter(flags):
                yield
        finally:
            context.fastmath, context.cached_internal_func = given

    def _find_singly_assigned_variable(self) -> None:
        """As Numba's, which finds those that are only used in the block that assigns them, before their use.

        Of the others that are assigned once, it also finds those whose assignment comes before each use.
        """
        blocks = self.func_ir.blocks
        generator = self.func_ir.func_id.is_generator
        self._once = {} if generator else _assigned_once(blocks)
        self._singly_assigned_vars: set[str] = set()
        self._blk_local_varmap: dict[str, Any] = {}
        self._everywhere: set[str] = set()  # assigned once, before each use in other blocks
        self._values: dict[str, Any] = {}  # of these, once they are there
        if generator or self._disable_sroa_like_opt:
            return
        lifetime = self.func_ir.variable_lifetime  # by the pass that put in where variables end
        if lifetime is None or lifetime._blocks is not blocks:
            lifetime = VariableLifetime(blocks)
        used_in: dict[str, list[int]] = {}  # but not where it is assigned before
        for label, names in lifetime.usedefs.usemap.items():
            for name in names:
                used_in.setdefault(name, []).append(label)
        in_memory = must_use_alloca(blocks)
        dominators = lifetime.cfg.dominators()
        # a handler of exceptions is entered from the midst of a block
        handles = bool(self.func_ir.func_id.func.__code__.co_exceptiontable)
        for name, home in self._once.items():
            if name in in_memory:
                continue
            if name not in used_in:
                self._singly_assigned_vars.add(name)
            elif not handles and all(
                label > home and home in dominators[label] for label in used_in[name]
            ):  # blocks are lowered in the order of their labels
                self._everywhere.add(name)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        if expr.static_lhs is not ir.UNDEFINED or expr.static_rhs is not ir.UNDEFINED:  # x ** 2
            return super().lower_binop(resty, expr, op)
        context, builder = self.context, self.builder
        signature = self.fndesc.calltypes[expr]
        key = op, signature.args
        if key not in self._operators:
            function = context.typing_context.resolve_value_type(op)
            found = function.get_call_type(context.typing_context, signature.args, {})
            self._operators[key] = context.get_function(function, found)
        operands = [
            context.cast(builder, self.loadvar(each.name), self.typeof(each.name), wanted)
            for each, wanted in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        result = self._operators[key](builder, operands)
        return context.cast(builder, result, signature.return_type, resty)

    def _is_counted(self, typ: Any) -> bool:
        """Whether values of the type hold references."""
        found = self._are_counted.get(typ)
        if found is None:
            found = self.context.data_model_manager[typ].contains_nrt_meminfo()
            self._are_counted[typ] = found
        return found

    def incref(self, typ: Any, val: Any) -> None:
        if self._is_counted(typ):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        if self._is_counted(typ):
            super().decref(typ, val)

    def _alloca_var(self, name: str, fetype: Any) -> None:
        if name not in self._everywhere or self._is_counted(fetype):
            super()._alloca_var(name, fetype)

    def loadvar(self, name: str) -> Any:
        found = self._values.get(name)
        return super().loadvar(name) if found is None else found

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        fetype = self.typeof(name)
        counted = self._is_counted(fetype)
        if counted or name not in self._everywhere:
            if counted or argidx is not None or name in self._singly_assigned_vars:
                super().storevar(value, name, argidx)
            else:  # nothing ends with what was there before
                self._alloca_var(name, fetype)
                self.builder.store(value, self.getvar(name))
        if name in self._everywhere:
            self._values[name] = value

    def delvar(self, name: str) -> None:
        if name not in self._held and self._is_counted(self.typeof(name)):
            super().delvar(name)


def _assigned_once(blocks: Any) -> dict[str, int]:
    """The block of each variable that one statement assigns."""
    found: dict[str, int] = {}
    again: set[str] = set()
    for label, block in blocks.items():
        for stmt in block.body:
            if isinstance(stmt, ir.Assign):
                name = stmt.target.name
                if name in found:
                    again.add(name)
                found[name] = label
    return {name: label for name, label in found.items() if name not in again}


@register_pass(mutates_CFG=True, analysis_only=False)
class LightLowering(NativeLowering):  # type: ignore[misc]
    """See the module."""

    _name = "splitad_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower
