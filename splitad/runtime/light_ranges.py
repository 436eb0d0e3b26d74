"""Numba's lowering of loops over a range, with fewer instructions to the same effect.

Numba puts a range, its iterator and what that gives each time into memory, from which LLVM takes them out
again.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, types
from numba.core.lowering import Lower

_RANGE, _ITERATOR = types.range_state64_type, types.range_iter64_type
_PAIR = types.Pair(types.int64, types.boolean)  # an element, and whether there is one


class RangeLowering(Lower):  # type: ignore[misc]
    """See the module."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # (the range's value, its start, stop and step) by the id of the value
        self._ranges: dict[int, tuple[Any, Any, Any, Any]] = {}

    def lower_call(self, resty: Any, expr: Any) -> Any:
        function = self.typeof(expr.func.name)
        if (
            resty == _RANGE
            and isinstance(function, types.Function)
            and function.typing_key is range
            and not (expr.kws or expr.vararg or expr.varkwarg)
        ):
            return self._range([self._as_int64(each.name) for each in expr.args])
        return super().lower_call(resty, expr)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op in ("getiter", "iternext", "pair_first", "pair_second"):
            given = self.typeof(expr.value.name)
            value = self.loadvar(expr.value.name)
            if expr.op == "getiter" and given == _RANGE and resty == _ITERATOR:
                _, start, stop, step = self._ranges.get(id(value), (None,) * 4)
                if isinstance(step, llvm.Constant) and step.constant:
                    return self._iterator(start, stop, step)
            elif expr.op == "iternext" and given == _ITERATOR and resty == _PAIR:
                return self._next(value)
            elif given == _PAIR:
                return self.builder.extract_value(value, int(expr.op == "pair_second"))
        return super().lower_expr(resty, expr)

    def _as_int64(self, name: str) -> Any:
        return self.context.cast(self.builder, self.loadvar(name), self.typeof(name), types.int64)

    def _range(self, args: list[Any]) -> Any:
        zero, one = (self.context.get_constant(types.int64, k) for k in (0, 1))
        start = args[0] if len(args) > 1 else zero
        stop = args[1] if len(args) > 1 else args[0]
        step = args[2] if len(args) > 2 else one
        value = _packed(self.context, self.builder, _RANGE, start=start, stop=stop, step=step)
        self._ranges[id(value)] = value, start, stop, step
        return value

    def _iterator(self, start: Any, stop: Any, step: Any) -> Any:
        builder = self.builder
        zero = start.type(0)
        at = cgutils.alloca_once(builder, start.type)
        builder.store(start, at)
        left = cgutils.alloca_once(builder, start.type)
        # A known step is not 0, for which Numba has a branch here: LLVM lays code out in the order of blocks.
        # The rest is as Numba has it, the division too, which LLVM folds: from other text comes other code.
        after = builder.append_basic_block("endif")
        builder.branch(after)
        builder.position_at_end(after)
        way = builder.sub(stop, start)
        up = builder.icmp_signed(">", way, zero)
        none = builder.xor(up, builder.icmp_signed(">", step, zero))
        with builder.if_else(none) as (then, otherwise):
            with then:
                builder.store(zero, left)
            with otherwise:
                rest = builder.srem(way, step)
                rest = builder.select(up, rest, builder.neg(rest))
                uneven = builder.icmp_signed(">", rest, zero)
                more = builder.select(uneven, start.type(1), zero)
                builder.store(builder.add(builder.sdiv(way, step), more), left)
        members = {"iter": at, "stop": stop, "step": step, "count": left}
        return _packed(self.context, builder, _ITERATOR, **members)

    def _next(self, iterator: Any) -> Any:
        builder = self.builder
        at, step, left = (
            _member(self.context, builder, _ITERATOR, iterator, name)
            for name in ("iter", "step", "count")
        )
        count = builder.load(left)
        zero, one = count.type(0), count.type(1)
        there = builder.icmp_signed(">", count, zero)
        before = builder.block
        with builder.if_then(there):
            value = builder.load(at)
            builder.store(builder.sub(count, one, flags=["nsw"]), left)
            builder.store(builder.add(value, step), at)
            within = builder.block
        found = builder.phi(value.type)
        found.add_incoming(zero, before)
        found.add_incoming(value, within)
        return _packed(self.context, builder, _PAIR, first=found, second=there)


def _packed(context: Any, builder: Any, typ: Any, **members: Any) -> Any:
    """A struct with these members."""
    value = llvm.Constant(context.get_value_type(typ), llvm.Undefined)
    model = context.data_model_manager[typ]
    for name, member in members.items():
        value = builder.insert_value(value, member, model.get_field_position(name))
    return value


def _member(context: Any, builder: Any, typ: Any, value: Any, name: str) -> Any:
    return builder.extract_value(value, context.data_model_manager[typ].get_field_position(name))
