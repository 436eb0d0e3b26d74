"""Operands as text: undefined ones as zeros, trees of them as tuples, several assigned at once.

x, y = y, x        the loop carries each on as the other
Pair(a, (b, 1))    a result
"""

from __future__ import annotations

from numba import types

from splitad.codegen.python import operand, zero
from splitad.codegen.writer import Writer, identifier
from splitad.ir import nodes as ir
from splitad.rules.spelling import unique_number


def assign(w: Writer, targets: tuple[ir.Var, ...], values: tuple[ir.Operand, ...]) -> None:
    """All at once: a value may be another one's target."""
    pairs = [
        (identifier(t.name), typed(w, v, t.type))
        for t, v in zip(targets, values, strict=True)
        if t != v
    ]
    names = {t for t, _ in pairs}
    if len(pairs) > 1 and any(value in names for _, value in pairs):
        w.line(f"{', '.join(t for t, _ in pairs)} = {', '.join(v for _, v in pairs)}")
        return
    for target, value in pairs:
        w.line(f"{target} = {value}")


def typed(w: Writer, value: ir.Operand, type: types.Type) -> str:
    """The operand; an undefined one as a zero of the target's type."""
    if isinstance(value, ir.Lit) and value.value is ir.UNDEF:
        return zero(w, type)
    return operand(w, value)


def result_text(w: Writer, tree: ir.Tree) -> str:
    """What the function returns, as an expression."""
    if tree is None:
        return "None"
    if isinstance(tree, ir.TupleTree):
        items = [result_text(w, item) for item in tree.items]
        return tuple_text(w, tree.type, items)
    return typed(w, tree, tree.type)


def tuple_text(w: Writer, type: types.Type, items: list[str]) -> str:
    """A tuple or namedtuple of these expressions."""
    if isinstance(type, types.BaseNamedTuple):
        cls = type.instance_class
        name = w.use(f"{cls.__name__}_{unique_number(cls)}", cls)
        return f"{name}({', '.join(items)})"
    return f"({''.join(item + ', ' for item in items)})"


def plus(name: str, number: int) -> str:
    """A sum with a constant."""
    if number == 0:
        return name
    return f"{name} {'-' if number < 0 else '+'} {abs(number)}"
