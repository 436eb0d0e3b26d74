"""Random views and array expressions of a given shape."""

from __future__ import annotations

from tests.fuzz.expressions import all_arrays, bounded, floating, index, integer
from tests.fuzz.scope import Name, Scope, Shape


def view(s: Scope, name: Name) -> tuple[str, Shape]:
    """A random view of an array, and its shape."""
    if len(name.shape) == 1:
        starts = [v for v in s.names("i") if 0 < v.bound < name.shape[0]]
        if starts and s.chance(0.15):
            start = s.pick(starts).text
            return f"{name.text}[{start}:{start} + 1]", (1,)
        if s.chance(0.08) and name.contiguous and name.shape == (4,):
            return f"{name.text}.reshape(2, 2)", (2, 2)
        text, size = slice_(s, name.shape[0])
        return f"{name.text}[{text}]", (size,)
    if len(name.shape) == 3:
        return _view_of_cube(s, name)
    kind = s.rng.randrange(9)
    rows, columns = name.shape
    if kind == 0:
        return f"{name.text}.T", (columns, rows)
    if kind < 3:
        return f"{name.text}[{index(s, rows)}]", (columns,)
    if kind == 3:
        return f"{name.text}[{s.pick([':', '...'])}, {index(s, columns)}]", (rows,)
    first, n = slice_(s, rows)
    second, m = slice_(s, columns)
    if kind == 4:
        return f"{name.text}[{first}, {index(s, columns)}]", (n,)
    if kind == 5:
        return f"{name.text}[{index(s, rows)}, {second}]", (m,)
    if kind == 6 and name.contiguous:
        return s.pick([f"{name.text}.ravel()", f"{name.text}.reshape(-1)"]), (rows * columns,)
    if kind == 7:
        return f"{name.text}[{first}]", (n, columns)
    return f"{name.text}[{first}, {second}]", (n, m)


def _view_of_cube(s: Scope, name: Name) -> tuple[str, Shape]:
    planes, rows, columns = name.shape
    kind = s.rng.randrange(7)
    if kind == 0:
        return f"{name.text}.T", (columns, rows, planes)
    if kind == 1:
        return f"{name.text}[{index(s, planes)}]", (rows, columns)
    if kind == 2:
        return f"{name.text}[:, {index(s, rows)}]", (planes, columns)
    if kind == 3:
        return f"{name.text}[..., {index(s, columns)}]", (planes, rows)
    if kind == 4:
        return f"{name.text}[{index(s, planes)}, {index(s, rows)}]", (columns,)
    first, n = slice_(s, planes)
    second, m = slice_(s, columns)
    if kind == 5:
        return f"{name.text}[{first}, {index(s, rows)}, {second}]", (n, m)
    return f"{name.text}[{first}, :, {second}]", (n, rows, m)


def vector(s: Scope, name: Name) -> str:
    """A view of one dimension of an array of one dimension."""
    return f"{name.text}[{slice_(s, name.shape[0])[0]}]"


def slice_(s: Scope, size: int) -> tuple[str, int]:
    texts = [":", "1:", ":-1", "::2", "::-1", "::-2", "1:-1", ":2", "-2:", "1::2"]
    text = s.pick(texts)
    parts = [int(p) if p else None for p in text.split(":")]
    return text, len(range(size)[slice(*parts)])


def dynamic_slice(s: Scope, name: Name) -> str:
    """A view of one dimension whose size only the run decides; it may be empty."""
    n = f"{integer(s)} % {name.shape[0] + 1}"
    return f"{name.text}[{s.pick([f'{n}:', f':{n}', f'{n}::-1', f'-({n}):', f'{n}:{integer(s)}'])}]"


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
    kind = s.rng.randrange(17)
    if kind < 4:
        return s.pick(
            [
                f"np.sin({a})",
                f"np.cos({a})",
                f"np.tanh({a})",
                f"np.exp(-{a} * {a})",
                f"(-{a})",
                f"np.abs({a})",
                f"np.sqrt(1.0 + {a} ** 2)",
            ]
        )
    if kind < 6:
        return f"({a} * {bounded(s, floating(s, 1))})"
    if kind == 6:
        return _gathered(s, shape) or a
    if kind == 7 and len(shape) == 1:
        return _joined(s, shape, a)
    b = array(s, shape, depth - 1)
    if kind < 10:
        return f"(0.5 * {a} + 0.6 * {b})"
    if kind == 10:
        return f"({a} * np.sin({b}))"
    if kind == 11:
        chosen = s.pick([f"{a} > {b}", f"{a} < {floating(s, 0)}"])
        return f"np.where({chosen}, {a}, {s.pick([f'0.5 * {b}', floating(s, 0)])})"
    if kind == 12:
        return s.pick(
            [
                f"np.maximum({a}, {b})",
                f"np.minimum({a}, {floating(s, 0)})",
                f"({a} / (1.5 + {b} * {b}))",
            ]
        )
    if kind == 13:
        return _product(s, shape) or a
    if kind in (14, 15) and len(shape) == 2:
        row, column = view_of_shape(s, shape[1:]), view_of_shape(s, shape[:1])
        if row is not None and s.chance(0.5):
            return s.pick([f"(0.5 * {a} + {row})", f"({a} * np.cos({row}))"])
        if column is not None:
            return s.pick(
                [f"({a} + 0.5 * {column}[:, np.newaxis])", f"({a} - 0.4 * {column}.reshape(-1, 1))"]
            )
    return f"({a} + {floating(s, 1)})"


def _gathered(s: Scope, shape: Shape) -> str | None:
    """Elements picked by an integer array."""
    indices = [v for v in s.names("x") if v.shape == shape]
    if not indices:
        return None
    chosen = s.pick(indices)
    sources = [v for v in all_arrays(s) if len(v.shape) == 1 and v.shape[0] >= chosen.bound]
    return f"{s.pick(sources).text}[{chosen.text}]" if sources else None


def _joined(s: Scope, shape: Shape, a: str) -> str:
    size = shape[0]
    kind = s.rng.randrange(5)
    if kind == 0 and size > 1:
        b = array(s, (size - 1,), 0)
        return f"np.concatenate(({b}, {a}[:1]))"
    if kind == 1:
        return f"0.3 * np.cumsum({a})"
    if kind == 2:
        return f"np.array([{', '.join(floating(s, 1) for _ in range(size))}])"
    if kind == 3:
        counter = s.new("j", "i", bound=size, frozen=True)
        s.frames.append([counter])
        item = floating(s, 1)
        s.frames.pop()
        return f"np.array([{item} for {counter.text} in range({size})])"
    return f"({a})[::-1]"


def _product(s: Scope, shape: Shape) -> str | None:
    """A matrix product, a sum along an axis, an outer product."""
    if len(shape) == 2:
        left, right = view_of_shape(s, shape[:1]), view_of_shape(s, shape[1:])
        return f"np.outer({left}, {right})" if left and right else None
    matrices = [m for m in all_arrays(s) if len(m.shape) == 2]
    if not matrices:
        return None
    matrix = s.pick(matrices)
    rows, columns = matrix.shape
    if shape == (columns,) and s.chance(0.5):
        return f"0.4 * np.sum({matrix.text}, axis=0)"
    if shape == (rows,) and s.chance(0.4):
        return f"0.4 * {matrix.text}.sum(axis=1)"
    if shape == (rows,):
        vector = view_of_shape(s, (columns,))
        return (
            f"0.3 * (np.ascontiguousarray({matrix.text}) @ np.ascontiguousarray({vector}))"
            if vector
            else None
        )
    return None


def fresh_array(s: Scope, shape: Shape) -> str:
    """An array expression that is certainly new memory, C-contiguous, of float64."""
    kind = s.rng.randrange(7)
    if kind == 0:
        return s.pick([f"np.zeros({shape!r})", f"np.full({shape!r}, {floating(s, 1)})"])
    a = array(s, shape, 1)
    if kind == 1 and len(shape) == 1:
        return f"h_new({a}, {floating(s, 1)})"
    if kind == 2 and len(shape) == 1 and s.chance(0.2):
        return f"h_half({a}, {integer(s)} % 3)"
    if kind == 2 and len(shape) == 1 and shape[0] > 2:
        return f"h_smooth({a}, {integer(s)} % 3, {floating(s, 0)})"
    return f"({a} * 1.0).copy()" if len(shape) > 1 or kind == 3 else f"({a} + {floating(s, 1)})"
