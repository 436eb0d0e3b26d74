"""The pair of a function in plain Python: the generated text is run as it is, without compiling it.

This is some ten times faster than compiling, and what is wrong with a pair is mostly wrong with its text.
Memory is real (the tape is a block of bytes), so that the checks of overlaps can run as they are; what the
text calls is either plain Python already, or stands here once more, or is wrapped in a compiled function
of its own, once for all programs.  `Unable` is raised for what cannot be run like this.
"""

from __future__ import annotations

import ctypes
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import _Intrinsic
from numba.np.numpy_support import as_dtype

from splitad.cache import CompiledPair, Request
from splitad.ir import activities
from splitad.pipeline import Options
from splitad.runtime import zero
from splitad.runtime.boundary import overlap
from splitad.testing import check_vjp

TAPE_BYTES = 1 << 19


class Unable(Exception):
    """Not to be run in plain Python."""


class Interpreted:
    """What ad.split returns, as far as check_vjp uses it; compiles nothing."""

    def __init__(
        self, plain: Any, kinds: tuple[Any, ...], args: tuple[Any, ...], split: dict[str, Any]
    ):
        between = split.get("modified_between", True)
        each = (between,) * len(args) if isinstance(between, bool) else between
        jit = plain.targetoptions
        self.options = Options(
            strong_zero=split.get("strong_zero", True),
            any_order=split.get("any_order", False),
            stable=tuple(not changes for changes in each) if not all(each) else (),
            args_alias=_overlapping(args),
            error_model=jit.get("error_model", "python"),
            boundscheck=bool(jit.get("boundscheck")),
        )
        types_ = tuple(numba.typeof(arg) for arg in args)
        pair = CompiledPair(Request(plain, kinds, None, self.options), types_)
        self.text = text = pair.text
        scope = {name: _in_python(name, value) for name, value in text.names.items()}
        parts = [text.forward, text.pullback, text.zero]
        for _, inner in pair.inner.values():
            scope.update({name: _in_python(name, value) for name, value in inner.names.items()})
            parts += [inner.forward, inner.pullback]
        for part in parts:
            exec(part, scope)
        name = text.facts.fn.name
        self._halves = [scope[name + half] for half in ("__forward", "__pullback", "__zero")]
        self._alone = not pair.inner

    def __call__(self, *args: Any) -> tuple[Any, Pulled]:
        tape = Tape()
        _numbered.start(self._alone)
        with np.errstate(all="ignore"):
            result, refs = self._halves[0](tape, *args)
        return plain_numbers(result), Pulled(self._halves, tape, refs, self._alone)


class Plain:
    """A function that is not compiled, for check_vjp."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func, self.__name__ = function, function.__name__

    def __call__(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            return plain_numbers(self.py_func(*args))


def plain_numbers(value: Any) -> Any:
    """The value with Python's numbers in place of NumPy's, as compiled code returns them."""
    if isinstance(value, tuple):
        items = [plain_numbers(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value.item() if isinstance(value, np.generic) else value


def check_in_python(
    function: Callable[..., Any], *args: Any, forward: Any = None, **options: Any
) -> None:
    """check_vjp of a function and of its pair, neither of them compiled."""
    kinds = tuple(activities.default(numba.typeof(arg)) for arg in args)
    if forward is None:
        forward = Interpreted(numba.njit(function), kinds, args, {})
    check_vjp(
        Plain(function), *args, activities=kinds, forward=forward, exact=False, leaks=False, **options
    )  # fmt: skip


class Pulled:
    def __init__(
        self, halves: list[Callable[..., Any]], tape: Tape, refs: Any, alone: bool
    ) -> None:
        self._halves, self._tape, self._refs, self._alone = halves, tape, refs, alone

    def __call__(self, bar: Any, *shadows: Any) -> Any:
        _numbered.start(self._alone)
        with np.errstate(all="ignore"):
            return plain_numbers(self._halves[1](self._tape, self._refs, bar, *shadows))

    def make_zero(self) -> Any:
        return self._halves[2](self._tape, self._refs)


def _overlapping(args: tuple[Any, ...]) -> bool:
    """Whether the pair for overlapping arguments is the one that runs."""
    from splitad.testing.copying import arrays_in

    arrays = [arrays_in((arg,)) for arg in args]
    return any(
        overlap(a, b)
        for k, mine in enumerate(arrays)
        for others in arrays[:k]
        for a in mine
        for b in others
    )


# ---- memory ------------------------------------------------------------------------------------------


class Tape:
    """The words of a handle: where the memory is, how much there is, how much is used."""

    def __init__(self) -> None:
        self._bytes = np.zeros(TAPE_BYTES, np.uint8)
        self._words = [int(self._bytes.ctypes.data), TAPE_BYTES, 0]

    def __getitem__(self, k: int) -> int:
        return self._words[k]

    def __setitem__(self, k: int, value: int) -> None:
        self._words[k] = int(value)


def _reserve(tape: Tape, cur: int, nbytes: int, *held: Any) -> int:
    if cur + nbytes > TAPE_BYTES:
        raise Unable("a long tape")
    return tape[0]


def _memory(address: int, count: int, dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    block = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(address))
    return np.frombuffer(block, dtype)


class Column:
    def __init__(self, address: int, dtype: Any) -> None:
        self._address, self._dtype = int(address), np.dtype(dtype)

    def _item(self, k: int) -> np.ndarray:
        if k < 0:
            raise IndexError("a negative index of a column")
        return _memory(self._address + int(k) * self._dtype.itemsize, 1, self._dtype)

    def __getitem__(self, k: int) -> Any:
        return self._item(k)[0]

    def __setitem__(self, k: int, value: Any) -> None:
        self._item(k)[0] = value


def _column(address: int, offset: int, dtype: Any) -> Column:
    return Column(address + offset, dtype)


def _snapshot_nbytes(a: np.ndarray) -> int:
    return (a.nbytes + 7 & -8) + 8 * a.ndim


def _put_array(address: int, cur: int, a: np.ndarray) -> None:
    _memory(address + cur, a.size, a.dtype)[:] = a.ravel()
    end = cur + (a.nbytes + 7 & -8)
    _memory(address + end, a.ndim, np.int64)[:] = a.shape


def _last_array(address: int, cur: int, dtype: Any, ndim: int) -> np.ndarray:
    end = cur - 8 * ndim
    shape = tuple(_memory(address + end, ndim, np.int64))
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return _memory(address + end - (nbytes + 7 & -8), int(np.prod(shape)), dtype).reshape(shape)


def _note_array(address: int, offset: int, a: np.ndarray) -> None:
    words = [a.ctypes.data, a.itemsize, a.ndim, *a.shape, *a.strides]
    _memory(address + offset, len(words), np.int64)[:] = words


def _noted(array_type: types.Array) -> Callable[[int, int], np.ndarray]:
    def noted(address: int, offset: int) -> np.ndarray:
        words = _memory(address + offset, 3 + 2 * array_type.ndim, np.int64).tolist()
        shape, strides = words[3 : 3 + array_type.ndim], words[3 + array_type.ndim :]
        return _held(words[0] or 8, shape, strides, as_dtype(array_type.dtype), None)

    return noted


# ---- array elements: never a negative index, never one too large ----------------------------------------


class Numbered:
    """Which number each element in memory is accessed under, in one call of a function of the pair: LLVM is
    told that memory of different numbers does not overlap (splitad/transform/memories.py)."""

    def __init__(self) -> None:
        self.start(False)

    def start(self, on: bool) -> None:
        """off: recursive functions number their memory anew, each for itself."""
        self._on = on
        self._number: dict[int, int] = {}
        self._alive: dict[int, np.ndarray] = {}  # so that no address is used twice

    def element(self, a: np.ndarray, index: Any, memory: int | None) -> None:
        if memory is None or not self._on:
            return
        self._alive[id(a)] = a
        k = index if isinstance(index, tuple) else (index,)
        offset = sum(int(i) * step for i, step in zip(k, a.strides, strict=True))
        address = a.__array_interface__["data"][0] + offset
        if self._number.setdefault(address, memory) != memory:
            raise AssertionError(f"an element is said to lie in memory {memory}, and in another")


_numbered = Numbered()


def _checked(index: Any) -> Any:
    for k in index if isinstance(index, tuple) else (index,):
        if k < 0:
            raise IndexError("a negative index where none was expected")
    return index


def _load_at(a: np.ndarray, index: Any, memory: int | None = None) -> Any:
    _numbered.element(a, _checked(index), memory)
    return a[index]


def _store_at(a: np.ndarray, index: Any, value: Any, memory: int | None = None) -> None:
    _numbered.element(a, _checked(index), memory)
    a[index] = value


def _clear_rows(a: np.ndarray, index: int, row: int, rows: int, width: int) -> None:
    for k in range(rows):
        a[index + k * row : index + k * row + width] = 0


def _add_at(a: np.ndarray, index: Any, value: Any, memory: int | None = None) -> None:
    _numbered.element(a, _checked(index), memory)
    a[index] += value


def _add_into(shadow: np.ndarray, bar: Any) -> bool:
    if bar is None:
        return True
    if shadow.shape != bar.shape:
        return False
    shadow += bar
    return True


# ---- tables of shadows ----------------------------------------------------------------------------------


class Table(dict):
    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


def _table_get(table: Table, key: int, shape: Any) -> np.ndarray:
    if key < 0:
        return np.zeros(shape, table.dtype)
    if key not in table:
        table[key] = np.zeros(shape, table.dtype)
    return table[key]


class OutOfBounds(Exception):
    """Compiled code would have written where it must not."""


_stack: list[np.ndarray] = []  # the last few stretches of memory that calls have taken


def _stack_words(count: int) -> int:
    _stack.append(np.zeros(count, np.int64))
    del _stack[:-64]
    return int(_stack[-1].ctypes.data)


class Root:
    """Memory around an address, kept alive by its owner."""

    def __init__(self, address: int, owner: np.ndarray) -> None:
        self.address, self.owner = int(address), owner
        self.low, self.high = np.lib.array_utils.byte_bounds(owner)

    def check(self, address: int, itemsize: int, shape: Any, strides: Any) -> None:
        before, behind = _extent(itemsize, shape, strides)
        if 0 not in shape and not self.low <= address - before <= address + behind <= self.high:
            raise OutOfBounds(
                f"a shadow outside of its root: {address - self.low} of {self.high - self.low}"
            )


def _root_of(note: int, shadow: np.ndarray) -> Root:
    itemsize, ndim = (int(w) for w in _memory(note + 8, 2, np.int64))
    shape, strides = _memory(note + 24, 2 * ndim, np.int64).reshape(2, ndim).tolist()
    if all(
        n <= 1 or step == mine for n, step, mine in zip(shape, strides, shadow.strides, strict=True)
    ):
        return Root(shadow.ctypes.data, shadow)
    return _new_root(note)


def _new_root(note: int) -> Root:
    itemsize, ndim = (int(w) for w in _memory(note + 8, 2, np.int64))
    shape, strides = _memory(note + 24, 2 * ndim, np.int64).reshape(2, ndim).tolist()
    before, behind = _extent(itemsize, shape, strides)
    block = np.zeros(before + behind, np.uint8)
    return Root(block.ctypes.data + before, block)


def _extent(itemsize: int, shape: Any, strides: Any) -> tuple[int, int]:
    reach = [max(n - 1, 0) * step for n, step in zip(shape, strides, strict=True)]
    return -sum(r for r in reach if r < 0), itemsize + sum(r for r in reach if r > 0)


def _placed(
    roots: Table, key: int, at: int, size: int, shape: Any, strides: Any, dtype: Any
) -> np.ndarray:
    dtype = np.dtype(dtype)
    root = roots.get(int(key))
    if key < 0:
        at, behind = _extent(dtype.itemsize, shape, strides)
        block = np.zeros(at + behind, np.uint8)
        root = Root(block.ctypes.data, block)  # its first element is `at` bytes behind the start
    elif root is None:
        block = np.zeros(size, np.uint8)
        root = roots[int(key)] = Root(block.ctypes.data, block)
    root.check(root.address + int(at), dtype.itemsize, shape, strides)
    return _held(root.address + int(at), shape, strides, dtype, root.owner)


def _held(address: int, shape: Any, strides: Any, dtype: np.dtype[Any], owner: Any) -> np.ndarray:
    interface = {
        "data": (int(address), False), "shape": tuple(int(n) for n in shape),
        "strides": tuple(int(n) for n in strides), "typestr": dtype.str, "version": 3,
    }  # fmt: skip
    return np.asarray(type("Held", (), {"__array_interface__": interface, "owner": owner})())


def _placed_in_order(order: str) -> Callable[..., np.ndarray]:
    def placed(roots: Table, key: int, at: int, size: int, shape: Any, dtype: Any) -> np.ndarray:
        steps = [np.dtype(dtype).itemsize] * len(shape)
        axes = list(range(len(shape)))
        for before, axis in itertools.pairwise(axes if order == "F" else axes[::-1]):
            steps[axis] = steps[before] * int(shape[before])
        return _placed(roots, key, at, size, shape, steps, dtype)

    return placed


def _move(target: np.ndarray, source: np.ndarray) -> None:
    if target.ctypes.data != source.ctypes.data:
        target[...] = source


def _refer(listed: list[Any], marks: list[Any], array: np.ndarray, its: Any) -> int:
    listed.append(array)
    marks.append(its)
    return len(listed) - 1


# ---- lists: plain ones in place of typed ones ------------------------------------------------------------


def _refer_all(listed: list[Any], marks: list[Any], arrays: Any, first: int) -> np.ndarray:
    found = [_refer(listed, marks, array, (first + k,)) for k, array in enumerate(arrays)]
    return np.array(found, np.int64)


def _marks_at_exit(marks: list[Any], numbers: np.ndarray, length: int) -> list[int]:
    return [marks[numbers[k]][0] for k in range(length)]


def _set_marked(table: Table, marks: Any, shadows: Any) -> None:
    for mark, shadow in zip(marks, shadows, strict=True):
        table[int(mark)] = shadow


def _put_shadows(shadow: Any, table: Table, first: int, arrays: Any) -> None:
    _put_items(shadow, [_table_get(table, first + k, a.shape) for k, a in enumerate(arrays)])


def _put_items(shadow: Any, items: Any) -> None:
    shadow[:] = [plain_numbers(item) for item in items]


def _add_items(shadow: Any, items: np.ndarray) -> None:
    for k in range(len(shadow)):
        shadow[k] += plain_numbers(items[k])


def _take_items(shadow: Any, items: np.ndarray) -> None:
    for k in range(len(shadow)):
        items[k] += shadow[k]


def _meet(xs: Any, ys: Any) -> bool:
    return any(overlap(x, y) for x in xs for y in ys)


LISTS: dict[str, Any] = {
    "list_items": lambda xs: np.array(list(xs), np.float64 if not len(xs) else None),
    "list_id": id,
    "refer_all": _refer_all,
    "set_shadows": lambda table, first, shadows: _set_marked(
        table, range(first, first + len(shadows)), shadows
    ),
    "set_marked": _set_marked,
    "marks_at_exit": _marks_at_exit,
    "put_shadows": _put_shadows,
    "put_items": _put_items,
    "add_items": _add_items,
    "take_items": _take_items,
    "typed_copy": list,
    "plain_copy": list,
    "overlaps_itself": lambda xs: False,
    "meets_itself": lambda xs: any(_meet(xs[:k], xs[k : k + 1]) for k in range(len(xs))),
    "meets_list": _meet,
    "meets_array": lambda xs, array: _meet(xs, [array]),
    "shadow_fault": lambda *given: 0,  # (the checks of shadows are tested elsewhere)
    "array_fault": lambda *given: 0,
    "lists_fault": lambda *given: 0,
}

KNOWN: dict[str, Any] = LISTS | {
    "vmath": math,
    "column": _column,
    "snapshot_nbytes": _snapshot_nbytes,
    "put_array": _put_array,
    "last_array": _last_array,
    "note_array": _note_array,
    "load_at": _load_at,
    "store_at": _store_at,
    "add_at": _add_at,
    "clear_rows": _clear_rows,
    "add_into": _add_into,
    "address_of": lambda array: int(array.ctypes.data),
    "empty_array": lambda shape, dtype: np.full(
        shape, np.nan if np.dtype(dtype).kind in "fc" else 77, dtype
    ),
    "zero_array": lambda shape, dtype: np.zeros(shape, dtype),
    "tape_release": lambda tape: None,
    "scratch_tape": lambda limit: Tape(),
    "refer": _refer,
    "stack_words": _stack_words,
    "root_of": _root_of,
    "new_root": _new_root,
    "move": _move,
    "shadow_a": _placed,
    "shadow_packed": _placed,
    "shadow_c": _placed_in_order("C"),
    "shadow_f": _placed_in_order("F"),
    "zeros_as": zero.make_zero,
    "shadow_table": lambda dtype, ndim, layout: Table(dtype),
    "table_get": _table_get,
    "table_set": lambda table, key, shadow: table.__setitem__(int(key), shadow),
    "table_drop": lambda table, key: table.pop(int(key), None),
}
_wrapped: dict[Any, Any] = {}


def _in_python(name: str, value: Any) -> Any:
    """What a global name of the generated text means here."""
    if name in KNOWN:
        return KNOWN[name]
    if isinstance(value, types.Type):
        return as_dtype(value).type if isinstance(value, (types.Number, types.Boolean)) else value
    if name.startswith("reserve_"):
        return _reserve
    if name.startswith("list_of_zeros_"):
        return lambda n: [0.0] * n
    if name.startswith("check_type_"):
        return lambda shadow: None
    if name.startswith("noted_"):
        closed = inspect.getclosurevars(value._defn).nonlocals
        return _noted(closed["array_type"])
    if isinstance(value, _Intrinsic):
        return _compiled(name, value)
    if "shadow_roots" in getattr(value, "__module__", "") or "runtime.lists" in getattr(
        value, "__module__", ""
    ):
        raise Unable(name)
    return value


def _compiled(name: str, intrinsic: Any) -> Any:
    """A compiled function that does what an intrinsic does."""
    if intrinsic not in _wrapped:
        names = ", ".join(list(inspect.signature(intrinsic._defn).parameters)[1:])
        scope = {"intrinsic": intrinsic}
        exec(f"def wrapper({names}): return intrinsic({names})", scope)
        _wrapped[intrinsic] = numba.njit(scope["wrapper"])
    return _wrapped[intrinsic]
