"""Random expressions: floats, integers, conditions and arrays, smooth and of moderate size.

Every float expression stays within a few units whatever goes into it, or grows at most by a factor below
two, so that programs neither overflow nor become chaotic (the runner drops those that do).
"""

from __future__ import annotations

from tests.fuzz.scope import Name, Scope, Shape

# Helper functions that every program's file defines (see program.PRELUDE).
SCALAR_HELPERS = ("h_mix", "h_branch", "h_power")


def floating(s: Scope, depth: int = 2) -> str:
    """A float expression."""
    if depth <= 0 or s.chance(0.2):
        return _float_leaf(s)
    kind = s.rng.randrange(20)
    a = floating(s, depth - 1)
    if kind < 6:
        return _unary(s, a)
    b = floating(s, depth - 1)
    if kind < 9:
        return f"(0.6 * {a} + 0.5 * {b})"
    if kind < 11:
        return f"({a} * {_bounded(s, b)})"
    if kind == 11:
        return f"({a} - 0.5 * {b})"
    if kind == 12:
        return f"{a} / (1.5 + {b} * {b})"
    if kind == 13:
        return s.pick([f"max({a}, {b})", f"min({a}, {b})", f"abs({a})"])
    if kind == 14:
        return f"({a} if {condition(s, depth - 1)} else {b})"
    if kind == 15:
        return f"{s.pick(SCALAR_HELPERS)}({a}, {b})"
    if kind == 16:
        return f"0.1 * {integer(s)} * {_bounded(s, a)}"
    if kind == 17 and s.chance(0.05):
        return f"h_deep({a}, {integer(s)} % 3)"
    if kind == 17:
        return f"math.atan2({a}, 1.5 + {b} * {b})"
    return _reduction(s, depth) or a


def _float_leaf(s: Scope) -> str:
    choices = [v.text for v in s.names("f")] * 2
    choices += [f"{v.text}[{s.rng.randrange(2)}]" for v in s.names("t")]
    choices += [f"{v.text}.c" for v in s.names("s")]
    arrays = all_arrays(s)
    if arrays and (not choices or s.chance(0.45)):
        return element(s, s.pick(arrays))
    if not choices or s.chance(0.12):
        return s.number()
    return s.pick(choices)


def _unary(s: Scope, a: str) -> str:
    return s.pick(
        [
            f"math.sin({a})",
            f"math.cos({a})",
            f"math.tanh({a})",
            f"np.sin({a})",
            f"math.exp(-{a} * {a})",
            f"{a} / (1.0 + {a} * {a})",
            f"(math.sqrt(1.0 + {a} * {a}) - 1.0)",
            f"(1.0 + {a} * {a}) ** 0.3",
            f"math.log(2.0 + math.sin({a}))",
            f"0.4 * {a} ** 2 / (1.0 + abs({a}))",
            f"(-{a})",
            f"math.atan({a})",
        ]
    )


def _bounded(s: Scope, a: str) -> str:
    return f"{s.pick(['math.sin', 'math.cos', 'math.tanh'])}({a})"


def _reduction(s: Scope, depth: int) -> str | None:
    arrays = all_arrays(s)
    if not arrays:
        return None
    chosen = s.pick(arrays)
    size = max(_size(chosen.shape), 1)
    if s.chance(0.3):
        return (
            f"0.5 * h_sum({view(s, chosen)[0]})"
            if len(chosen.shape) == 1
            else f"h_sum2({chosen.text})"
        )
    text = array(s, chosen.shape, depth - 1)
    return s.pick([f"({text}).sum() / {size}", f"np.sum({text}) / {size}", f"({text}).mean()"])


def integer(s: Scope) -> str:
    """A non-negative integer expression."""
    choices = [v.text for v in s.names("i")] * 3
    choices += [f"{v.text}.shape[0]" for v in all_arrays(s)] + [str(s.rng.randrange(4))]
    a, b = s.pick(choices), s.pick(choices)
    kind = s.rng.randrange(6)
    if kind < 3:
        return a
    return {3: f"({a} + {b})", 4: f"({a} * {b} + 1)", 5: f"({a} // 2)"}[kind]


def index(s: Scope, size: int) -> str:
    """An index in range for an axis of this size, negative ones included."""
    counters = [v.text for v in s.names("i") if 0 < v.bound <= size]
    kind = s.rng.randrange(8)
    if counters and kind < 4:
        return s.pick(counters)
    if counters and kind == 4:
        counter = s.pick(counters)
        return s.pick([f"{size - 1} - {counter}", f"{counter} - {size}", f"-1 - {counter}"])
    if kind < 7:
        return str(s.rng.randrange(-size, size))
    return f"{integer(s)} % {size}"


def element(s: Scope, name: Name) -> str:
    return f"{name.text}[{', '.join(index(s, size) for size in name.shape)}]"


def condition(s: Scope, depth: int = 1) -> str:
    kind = s.rng.randrange(10)
    if kind < 5:
        return f"{floating(s, depth)} {s.pick(['<', '>', '<=', '>='])} {floating(s, depth)}"
    if kind < 7:
        return f"{integer(s)} % {s.rng.randrange(2, 4)} {s.pick(['==', '!='])} 0"
    if kind == 7:
        return f"{s.number()} - 1.0 < {floating(s, depth)} < 1.1"
    joined = f"{condition(s, 0)} {s.pick(['and', 'or'])} {condition(s, 0)}"
    return f"({joined})" if kind == 8 else f"not ({joined})"


# ---- arrays ------------------------------------------------------------------------------------------


def all_arrays(s: Scope, shape: Shape | None = None) -> list[Name]:
    """Array variables and array fields; none of them empty."""
    found = [v for v in s.names("a", shape) if _size(v.shape)]
    for struct in s.names("s"):
        if shape in (None, struct.shape):
            found.append(Name(f"{struct.text}.h", "a", struct.shape, frozen=True))
    return found


def _size(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def view(s: Scope, name: Name) -> tuple[str, Shape]:
    """A random view of an array, and its shape."""
    if len(name.shape) == 1:
        text, size = _slice(s, name.shape[0])
        return f"{name.text}[{text}]", (size,)
    kind = s.rng.randrange(7)
    rows, columns = name.shape
    if kind == 0:
        return f"{name.text}.T", (columns, rows)
    if kind < 3:
        return f"{name.text}[{index(s, rows)}]", (columns,)
    if kind == 3:
        return f"{name.text}[:, {index(s, columns)}]", (rows,)
    first, n = _slice(s, rows)
    second, m = _slice(s, columns)
    if kind == 4:
        return f"{name.text}[{first}, {index(s, columns)}]", (n,)
    if kind == 5:
        return f"{name.text}[{index(s, rows)}, {second}]", (m,)
    return f"{name.text}[{first}, {second}]", (n, m)


def _slice(s: Scope, size: int) -> tuple[str, int]:
    texts = [":", "1:", ":-1", "::2", "::-1", "::-2", "1:-1", ":2", "-2:", "1::2"]
    text = s.pick(texts)
    parts = [int(p) if p else None for p in text.split(":")]
    return text, len(range(size)[slice(*parts)])


def view_of_shape(s: Scope, shape: Shape) -> str | None:
    """An array variable, or a view of one, with exactly this shape."""
    for _ in range(6):
        arrays = all_arrays(s)
        if not arrays:
            return None
        chosen = s.pick(arrays)
        if chosen.shape == shape and s.chance(0.6):
            return chosen.text
        text, got = view(s, chosen)
        if got == shape:
            return text
    same = all_arrays(s, shape)
    return s.pick(same).text if same else None


def array(s: Scope, shape: Shape, depth: int = 1) -> str:
    """An array expression of a shape; may be a mere variable or view."""
    leaf = view_of_shape(s, shape)
    if leaf is None:
        return f"np.ones({shape!r}) * {floating(s, 1)}"
    if depth <= 0 or s.chance(0.2):
        return leaf
    a = array(s, shape, depth - 1)
    kind = s.rng.randrange(12)
    if kind < 4:
        return s.pick(
            [f"np.sin({a})", f"np.cos({a})", f"np.tanh({a})", f"np.exp(-{a} * {a})", f"(-{a})"]
        )
    if kind < 6:
        return f"({a} * {_bounded(s, floating(s, 1))})"
    b = array(s, shape, depth - 1)
    if kind < 8:
        return f"(0.5 * {a} + 0.6 * {b})"
    if kind == 8:
        return f"({a} * np.sin({b}))"
    if kind == 9:
        return f"np.where({a} > {b}, {a}, 0.5 * {b})"
    if kind == 10 and len(shape) == 2:
        row, column = view_of_shape(s, shape[1:]), view_of_shape(s, shape[:1])
        if row is not None and s.chance(0.5):
            return f"(0.5 * {a} + {row})"
        if column is not None:
            return f"({a} + 0.5 * {column}[:, np.newaxis])"
    return f"({a} + {floating(s, 1)})"


def fresh_array(s: Scope, shape: Shape) -> str:
    """An array expression that is certainly new memory, C-contiguous."""
    kind = s.rng.randrange(5)
    if kind == 0:
        return s.pick([f"np.zeros({shape!r})", f"np.full({shape!r}, {floating(s, 1)})"])
    a = array(s, shape, 1)
    if kind == 1 and len(shape) == 1:
        return f"h_new({a}, {floating(s, 1)})"
    return f"({a}).copy()" if len(shape) == 2 or kind == 2 else f"({a} + {floating(s, 1)})"
