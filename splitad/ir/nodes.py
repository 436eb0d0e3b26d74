"""The typed, structured IR: frozen data, no behaviour.

A function is a tree of blocks.  Every value is assigned once per execution of its block and is visible
in the blocks nested in it.  Scalars are values; arrays are references, and memory effects are explicit
(`Load`, `Store`, `View`, `Alloc`, `ArrayCall`).  Structs and tuples do not occur as values: their leaves
do.  A struct's field is an ordinary SSA value, loaded once at entry (`GetField`) and written back with
`SetField`, so that rebinding a field needs no rule of its own.

    x, y: Var            1.0: Lit                    For / While / If carry values explicitly:

    For k in 0..n step 1 [s = s0] -> s_out           `params` are the values at the top of an iteration,
        v = Load a[k]                                `inits` what they are at first, the block's `yields`
        t = operator.add(s, v)                       what they are for the next one, `outs` what they are
        yield t                                      after the last (the inits where there was none).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Union

from numba.core import types

from splitad.errors import Loc


@dataclass(frozen=True)
class Var:
    """An SSA value.  Names are unique in a function and are what the printed code calls it."""

    name: str
    type: types.Type = field(compare=False)


class _Undef:
    """The value of a variable on a path where it was never assigned."""

    def __repr__(self) -> str:
        return "undef"


UNDEF = _Undef()


@dataclass(frozen=True)
class Lit:
    """A compile-time constant: a number, a bool, UNDEF, or a frozen global (array, function, string)."""

    value: Any = field(compare=False)
    type: types.Type
    key: Any = None  # equality: repr of a number, id of an object

    def __post_init__(self) -> None:
        if self.key is None:
            number = isinstance(self.value, (int, float, complex, bool, str, type(None)))
            object.__setattr__(self, "key", repr(self.value) if number else id(self.value))


Operand = Union[Var, Lit]


@dataclass(frozen=True)
class Slice:
    """A slice in the index of a View; None where it was left out."""

    start: Operand | None
    stop: Operand | None
    step: Operand | None


@dataclass(frozen=True)
class NewAxis:
    """``None`` in the index of a View."""


Index = Union[Var, Lit, Slice, NewAxis]


@dataclass(frozen=True, kw_only=True)
class Node:
    loc: Loc


# ---- pure scalar operations ------------------------------------------------------------------


@dataclass(frozen=True)
class Prim(Node):
    """``out = fn(*args)``: a pure scalar operation; its derivative is a scalar rule of `fn`.

    fn is the callable itself: operator.add, math.sin, numpy.sin, abs, min, or one of splitad's own.
    """

    out: Var
    fn: Callable[..., Any]
    args: tuple[Operand, ...]


@dataclass(frozen=True)
class Cast(Node):
    """``out = out.type(arg)``: a conversion between numeric types (float to int has no derivative)."""

    out: Var
    arg: Operand


@dataclass(frozen=True)
class Impure(Node):
    """``out = fn(*args)``: a scalar that cannot be computed again (a random number); always taped."""

    out: Var
    fn: Callable[..., Any]
    args: tuple[Operand, ...]


# ---- memory --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dim(Node):
    """``out = array.shape[axis]``, an intp."""

    out: Var
    array: Var
    axis: int


@dataclass(frozen=True)
class Stride(Node):
    """``out = array.strides[axis]``, an intp."""

    out: Var
    array: Var
    axis: int


@dataclass(frozen=True)
class Distance(Node):
    """``out``: how many bytes a view's first element lies behind its base's, an intp."""

    out: Var
    array: Var
    base: Var


@dataclass(frozen=True)
class Load(Node):
    """``out = array[index]``: one element; as many indices as dimensions (none for a 0-d array)."""

    out: Var
    array: Var
    index: tuple[Operand, ...]
    wraps: bool = True  # False where every index is known not to be negative


@dataclass(frozen=True)
class Store(Node):
    """``array[index] = value``: one element; value already has the array's dtype."""

    array: Var
    index: tuple[Operand, ...]
    value: Operand
    wraps: bool = True


@dataclass(frozen=True)
class View(Node):
    """``out`` is another array over base's memory.

    kind "index":   base[index], index holding integers, Slices and NewAxis, one entry per base dimension
                    (no Ellipsis: it is expanded)
    kind "T":       base.T; with an index, np.transpose(base, index), which axis of base each axis is
    kind "real", "imag":  of a complex array
    kind "field":   base["name"] of a record array; index is (Lit(name),)
    kind "reshape": base.reshape(shape), base contiguous; index holds the sizes
    kind "contiguous": base itself with a type that says its layout, where it was tested to have it
    kind "broadcast": base with more axes in front, and axes of size one repeated; index holds the sizes,
                     which were tested to fit.  Elements of it share memory: nothing is stored in it
    """

    out: Var
    base: Var
    kind: str
    index: tuple[Index, ...] = ()


@dataclass(frozen=True)
class Alloc(Node):
    """``out = np.empty(shape, dtype)`` or ``np.zeros``; out is C-contiguous. kind: "empty", "zeros".

    In CUDA kernels: "shared", an array that a block's threads share; "dynamic", such a one whose size the
    launch says (here it is 0); and "local", the thread's own."""

    out: Var
    kind: str
    shape: tuple[Operand, ...]


@dataclass(frozen=True)
class ArrayCall(Node):
    """``outs = fn(*args)``: a function with an array rule; the rule says what it reads, writes, returns.

    outs: no, one or several values (scalars or fresh arrays).  static: keyword arguments that are
    constants (axis=0, say), as sorted (name, Lit) pairs.
    """

    outs: tuple[Var, ...]
    fn: Callable[..., Any]
    args: tuple[Operand, ...]
    static: tuple[tuple[str, Operand], ...] = ()


@dataclass(frozen=True)
class Refer(Node):
    """``out``: a number, by which Deref finds the array again; so arrays are kept in lists.

    kind: the array's type there.  marks: what identifies the array (transform/identity.py).
    """

    out: Var
    array: Operand
    kind: types.Array
    marks: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Deref(Node):
    """``outs[0]``: the array of its type to which a Refer gave this number; the others are its marks."""

    outs: tuple[Var, ...]
    ref: Operand


# ---- structs and tuples that are arguments ---------------------------------------------------------


@dataclass(frozen=True)
class GetField(Node):
    """``out = obj.field``; at entry only, obj an argument or a struct within one."""

    out: Var
    obj: Var
    field: str


@dataclass(frozen=True)
class TupleGet(Node):
    """``out = obj[index]``; at entry only, obj an argument or a tuple within one."""

    out: Var
    obj: Var
    index: int


@dataclass(frozen=True)
class SetField(Node):
    """``obj.field = value``: the side effect alone; later reads use value directly."""

    obj: Var
    field: str
    value: Operand


@dataclass(frozen=True)
class ListItems(Node):
    """``out``: a new array with the items of obj, a list argument; at entry only."""

    out: Var
    obj: Var


@dataclass(frozen=True)
class ListArrays(Node):
    """``outs[0]``: a new array of numbers, by which Deref finds the arrays in obj, a list argument; at
    entry only.  outs[1]: what identifies the first of them; the others follow.
    """

    outs: tuple[Var, ...]
    obj: Var
    kind: types.Array


@dataclass(frozen=True)
class ListOp(Node):
    """A change of a list argument, the side effect alone: what f reads is in arrays of its own.

    kind "set":               obj[args[0]] = args[1], with an index from the list's start
    kind "append":            obj.append(args[0])
    kind "pop", "clear":      obj.pop(), obj.clear()

    An array among the args is one that a Refer has given a number, too.
    """

    obj: Var
    kind: str
    args: tuple[Operand, ...] = ()


# ---- control flow ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Statements, then the values handed to the construct that owns the block."""

    stmts: tuple[Stmt, ...]
    yields: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class For(Node):
    """``for counter in range(start, stop, step)``: no break, no return inside; trip count known at entry."""

    counter: Var
    start: Operand
    stop: Operand
    step: Operand
    params: tuple[Var, ...]
    inits: tuple[Operand, ...]
    body: Block
    outs: tuple[Var, ...]
    parallel: bool = False


@dataclass(frozen=True)
class While(Node):
    """``while params[0]: body``: params[0] is a boolean; a `for` with a break becomes this too."""

    params: tuple[Var, ...]
    inits: tuple[Operand, ...]
    body: Block
    outs: tuple[Var, ...]


@dataclass(frozen=True)
class If(Node):
    cond: Operand
    then: Block
    orelse: Block
    outs: tuple[Var, ...]


@dataclass(frozen=True)
class Raise(Node):
    """Leaves the function with an exception; last statement of its block (whose yields are UNDEF).

    exc: the exception class (a Lit holding it) and its arguments, which numba must accept.
    """

    exc: type[BaseException]
    args: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Print(Node):
    """``print(*args)``: strings and scalars."""

    args: tuple[Operand, ...]


Stmt = Union[
    Prim, Cast, Impure, Dim, Stride, Distance, Load, Store, View, Alloc, ArrayCall, Refer, Deref,
    GetField, TupleGet, SetField, ListItems, ListArrays, ListOp, For, While, If, Raise, Print,
]  # fmt: skip


# ---- functions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """A part of an argument that may carry a derivative: a scalar or an array.

    path: (0,) for an argument that is a scalar or array; (0, "p1") for a field of a struct; (0, 2) for an
    item of a tuple; nested as deep as needed.  var: its value at entry.  exit: its value at exit, which
    differs from var only for a struct's field that was assigned.
    """

    path: tuple[int | str, ...]
    var: Var
    exit: Operand


@dataclass(frozen=True)
class ListArg:
    """A list argument.  f works on arrays: the first holds the items at entry.

    position: of the argument, which is param.  var: the array at entry.  exit: the array at exit; its
    first `length` elements are the list's items then.  kind: the type of the items, where they are arrays;
    then var and exit hold the numbers by which Deref finds these.
    """

    position: int
    param: Var
    var: Var
    exit: Operand
    length: Operand
    kind: types.Array | None = None


Tree = Union[None, Var, Lit, "TupleTree"]


@dataclass(frozen=True)
class TupleTree:
    """A tuple or namedtuple in a result."""

    type: types.Type
    items: tuple[Tree, ...]


@dataclass(frozen=True)
class Function:
    name: str
    params: tuple[Var, ...]  # one per argument
    leaves: tuple[Leaf, ...]  # every scalar and array in the arguments, differentiable or not
    body: Block
    result: Tree
    result_type: types.Type  # what Numba says that f returns
    loc: Loc
    lists: tuple[ListArg, ...] = ()  # the arguments that are lists of numbers
