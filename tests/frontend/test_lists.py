"""List arguments and lists made in the function: what is lowered to what, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from numba import types

from splitad.errors import UnsupportedError
from splitad.frontend.lower import CompileFlags, lower
from splitad.ir import nodes as ir
from splitad.ir.walk import walk
from splitad.rules import ops, registry

LIST = types.ListType(types.float64)


def lowered(f: Any, *kinds: types.Type) -> ir.Function:
    return lower(f, kinds, CompileFlags(), registry, ops)


def test_changes_are_done_to_the_list_as_well() -> None:
    def f(xs, a):
        xs[-1] = a
        xs.append(1)
        xs.extend(xs)
        t = xs.pop()
        xs.clear()
        return t

    fn = lowered(f, LIST, types.float64)
    done = [s for s in walk(fn.body) if isinstance(s, ir.ListOp)]
    assert [s.kind for s in done] == ["set", "append", "append", "pop", "clear"]
    assert all(s.obj == fn.params[0] for s in done)
    (known,) = fn.lists
    assert (known.position, known.var.type) == (0, types.Array(types.float64, 1, "C"))
    assert known.exit != known.var
    assert known.length == ir.Lit(0, types.intp)


def test_a_list_that_is_only_read() -> None:
    def f(xs, a):
        ys = xs
        zs = [a, a]
        zs.append(ys[0])
        return zs[1]

    fn = lowered(f, LIST, types.float64)
    assert not any(isinstance(s, ir.ListOp) for s in walk(fn.body))
    assert fn.lists[0].exit == fn.lists[0].var


def test_a_loop_whose_list_changes() -> None:
    def f(xs, a):
        ys = xs
        for x in xs:
            ys.append(x)
        return a

    with pytest.raises(UnsupportedError, match="changes the length of the list") as caught:
        lowered(f, LIST, types.float64)
    assert caught.value.loc.line == f.__code__.co_firstlineno + 2


def test_returned_lists() -> None:
    def f(xs, a):
        if a > 0.0:
            return xs
        return xs

    with pytest.raises(UnsupportedError, match="returns a list") as caught:
        lowered(f, LIST, types.float64)
    assert caught.value.loc.line == f.__code__.co_firstlineno + 2
