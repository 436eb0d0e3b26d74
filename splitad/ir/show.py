"""IR as text, for goldens, dumps and error messages.

dot(x: array(float64, 1d, C), y: array(float64, 1d, C)) -> float64
  leaves x, y
  x_n0 = x.shape[0]
  for k in 0..x_n0 step 1 [s = 0.0] -> s_1:
    t = x[k]
    t_1 = y[k] nowrap
    t_2 = mul(t, t_1)
    s_2 = add(s, t_2)
    yield s_2
  return s_1
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from splitad.ir import nodes as ir
from splitad.ir import walk


def show(fn: ir.Function) -> str:
    """The whole function, one statement a line; no trailing newline."""
    params = ", ".join(f"{p.name}: {p.type}" for p in fn.params)
    lines = [f"{fn.name}({params}) -> {fn.result_type}"]
    if fn.leaves:
        lines.append("  leaves " + ", ".join(_leaf(fn, leaf) for leaf in fn.leaves))
    if fn.lists:
        lines.append("  lists " + ", ".join(_list_argument(each) for each in fn.lists))
    lines += _block(fn.body, 1)
    lines.append(f"  return {_tree(fn.result)}")
    return "\n".join(lines)


def show_block(block: ir.Block, indent: int = 0) -> str:
    """A block's statements and what it yields."""
    return "\n".join(_block(block, indent))


def show_stmt(stmt: ir.Stmt) -> str:
    """The first line of a statement: all of it, but for the blocks nested in it."""
    return _head(stmt)


def _leaf(fn: ir.Function, leaf: ir.Leaf) -> str:
    """``x``, or ``x = s.field`` for a part of an argument; ``=> y`` where it is another at exit."""
    root, *rest = leaf.path
    whole = fn.params[root].name if isinstance(root, int) and root < len(fn.params) else f"{root}"
    path = whole + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)
    name = leaf.var.name if leaf.var.name == path else f"{leaf.var.name} = {path}"
    return name if leaf.exit == leaf.var else f"{name} => {_use(leaf.exit)}"


def _list_argument(each: ir.ListArg) -> str:
    """``x_items = items x``, ``=> y[:n]`` for what it holds at exit."""
    return f"{each.var.name} = items {each.param.name} => {_use(each.exit)}[:{_use(each.length)}]"


def _tree(tree: ir.Tree) -> str:
    if isinstance(tree, ir.TupleTree):
        items = [_tree(item) for item in tree.items]
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    return "None" if tree is None else _use(tree)


def _block(block: ir.Block, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for stmt in block.stmts:
        lines.append(pad + _head(stmt))
        nested = walk.blocks(stmt)
        for position, inner in enumerate(nested):
            if position == 1:
                if not (inner.stmts or inner.yields):
                    continue
                lines.append(f"{pad}else:")
            lines += _block(inner, depth + 1)
    if block.yields:
        lines.append(f"{pad}yield {_list(block.yields)}")
    elif not block.stmts and depth > 1:
        lines.append(f"{pad}pass")
    return lines


def _use(operand: Any) -> str:
    if isinstance(operand, ir.Var):
        return operand.name
    if isinstance(operand, ir.Lit):
        value = operand.value
        if isinstance(value, (int, float, complex, bool, str, type(None))) or value is ir.UNDEF:
            return repr(value)
        return _callable(value) if callable(value) else f"<{operand.type}>"
    if isinstance(operand, ir.Slice):
        start, stop, step = operand.start, operand.stop, operand.step
        text = f"{_use(start)}:{_use(stop)}"
        return text if step is None else f"{text}:{_use(step)}"
    if isinstance(operand, ir.NewAxis):
        return "None"
    return "" if operand is None else repr(operand)


def _list(items: Iterable[Any]) -> str:
    return ", ".join(_use(item) for item in items)


def _callable(fn: Any) -> str:
    return str(getattr(fn, "__name__", None) or getattr(fn, "name", None) or fn)


def _head(stmt: ir.Stmt) -> str:
    """One line of text for a statement; typed where the text does not say what type it has."""
    match stmt:
        case ir.Prim():
            return f"{stmt.out.name} = {_callable(stmt.fn)}({_list(stmt.args)})"
        case ir.Cast():
            return f"{stmt.out.name} = {stmt.out.type}({_use(stmt.arg)})"
        case ir.Impure():
            return f"{stmt.out.name} = impure {_callable(stmt.fn)}({_list(stmt.args)})"
        case ir.Dim():
            return f"{stmt.out.name} = {_use(stmt.array)}.shape[{stmt.axis}]"
        case ir.Stride():
            return f"{stmt.out.name} = {_use(stmt.array)}.strides[{stmt.axis}]"
        case ir.Distance():
            return f"{stmt.out.name} = distance {_use(stmt.array)} from {_use(stmt.base)}"
        case ir.Load():
            return f"{stmt.out.name} = {_element(stmt)}"
        case ir.Store():
            return f"{_element(stmt)} = {_use(stmt.value)}"
        case ir.View():
            return f"{stmt.out.name} = view {_view(stmt)}"
        case ir.Alloc():
            array: Any = stmt.out.type
            return f"{stmt.out.name} = {stmt.kind}(({_list(stmt.shape)}), {array.dtype})"
        case ir.ArrayCall():
            args = [_use(arg) for arg in stmt.args]
            args += [f"{name}={_use(value)}" for name, value in stmt.static]
            outs = ", ".join(out.name for out in stmt.outs)
            return (f"{outs} = " if outs else "") + f"call {_callable(stmt.fn)}({', '.join(args)})"
        case ir.GetField():
            return f"{stmt.out.name} = {_use(stmt.obj)}.{stmt.field}"
        case ir.TupleGet():
            return f"{stmt.out.name} = {_use(stmt.obj)}[{stmt.index}]"
        case ir.SetField():
            return f"{_use(stmt.obj)}.{stmt.field} = {_use(stmt.value)}"
        case ir.Refer():
            return f"{stmt.out.name} = refer {_list((stmt.array, *stmt.marks))}"
        case ir.Deref():
            return f"{', '.join(out.name for out in stmt.outs)} = deref {_use(stmt.ref)}"
        case ir.ListArrays():
            return f"{', '.join(out.name for out in stmt.outs)} = arrays {_use(stmt.obj)}"
        case ir.ListItems():
            return f"{stmt.out.name} = items {_use(stmt.obj)}"
        case ir.ListOp():
            return f"{_use(stmt.obj)}.{stmt.kind}({_list(stmt.args)})"
        case ir.For():
            word = "parallel for" if stmt.parallel else "for"
            trip = f"{_use(stmt.start)}..{_use(stmt.stop)} step {_use(stmt.step)}"
            return f"{word} {stmt.counter.name} in {trip}{_carried(stmt)}:"
        case ir.While():
            return f"while{_carried(stmt)}:"
        case ir.If():
            outs = ", ".join(out.name for out in stmt.outs)
            return f"if {_use(stmt.cond)}{' -> ' + outs if outs else ''}:"
        case ir.Raise():
            return f"raise {stmt.exc.__name__}({_list(stmt.args)})"
        case ir.Print():
            return f"print({_list(stmt.args)})"
    return repr(stmt)


def _element(stmt: ir.Load | ir.Store) -> str:
    return f"{_use(stmt.array)}[{_list(stmt.index)}]{'' if stmt.wraps else ' nowrap'}"


def _view(stmt: ir.View) -> str:
    base = _use(stmt.base)
    if stmt.kind == "index":
        return f"{base}[{_list(stmt.index)}]"
    if stmt.kind == "field":
        return f"{base}[{_list(stmt.index)}]"
    return f"{base}.{stmt.kind}" + (f"({_list(stmt.index)})" if stmt.index else "")


def _carried(stmt: ir.For | ir.While) -> str:
    """`` [s = s0] -> s_out``; a missing init, param or out shows as ?, so that faults can be shown."""
    if not (stmt.params or stmt.inits or stmt.outs):
        return ""
    count = max(len(stmt.params), len(stmt.inits))
    params = [p.name for p in stmt.params] + ["?"] * (count - len(stmt.params))
    inits = [_use(i) for i in stmt.inits] + ["?"] * (count - len(stmt.inits))
    pairs = ", ".join(f"{p} = {i}" for p, i in zip(params, inits, strict=True))
    return f" [{pairs}] -> {', '.join(out.name for out in stmt.outs)}"
