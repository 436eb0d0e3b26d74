"""Numba's lowering of typed code to LLVM's, without what it does again and again to no effect.

The function behind an operator is looked for anew at each use, through all that NumPy overloads it with; here
once for the types of its operands.  Numbers are not counted, so nothing happens where one ends.

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
from numba.core.compiler_machinery import register_pass
from numba.core.fastmathpass import FastFloatBinOpVisitor
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering

_PRIMAL = "splitad_primal"
_NO_FLAG = [""]
_EXACT: dict[Any, Any] = {}  # Numba's internal functions, for these values


def mark_primal(function: Any, lines: Iterable[int]) -> None:
    """See the module."""
    setattr(function, _PRIMAL, frozenset(lines))


def is_pullback(function: Any) -> bool:
    """Whether lines of it were marked, or none of it that there are."""
    return hasattr(function, _PRIMAL)


class _Lower(Lower):  # type: ignore[misc]
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._operators: dict[Any, Any] = {}
        self._are_counted: dict[Any, bool] = {}
        self._primal: frozenset[int] = getattr(self.func_ir.func_id.func, _PRIMAL, frozenset())

    def lower_assign(self, ty: Any, inst: Any) -> Any:
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

    def delvar(self, name: str) -> None:
        # a variable that is not in a block's own was, or will be, set in another one: Numba's has it noted
        if name not in self._blk_local_varmap or self._is_counted(self.typeof(name)):
            super().delvar(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class LightLowering(NativeLowering):  # type: ignore[misc]
    """See the module."""

    _name = "splitad_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower
