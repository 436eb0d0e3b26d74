"""Random statements: assignments of every kind, loops, branches and ways out of them."""

from __future__ import annotations

from tests.fuzz.expressions import (
    all_arrays,
    array,
    condition,
    element,
    floating,
    fresh_array,
    integer,
    view,
    view_of_shape,
)
from tests.fuzz.scope import Name, Scope

MOST_WORK = 150  # trips of the innermost loop, all told
DEEPEST = 4


def statements(s: Scope, most: int) -> None:
    for _ in range(s.rng.randrange(1, most + 1)):
        if s.budget <= 0:
            return
        s.budget -= 1
        statement(s)


def statement(s: Scope) -> None:
    for _ in range(10):
        if s.pick(_KINDS)(s):
            return
    _new_float(s)


# ---- floats and integers -------------------------------------------------------------------------------


def _new_float(s: Scope) -> bool:
    name = s.new("v", "f")
    s.emit(f"{name.text} = {floating(s)}")
    s.define(name)
    return True


def _set_float(s: Scope) -> bool:
    names = [v for v in s.names("f") if not v.frozen]
    if not names:
        return _new_float(s)
    s.emit(f"{s.pick(names).text} = {floating(s)}")
    return True


def _augment(s: Scope, target: str) -> str:
    return s.pick(
        [
            f"{target} += 0.5 * {floating(s, 1)}",
            f"{target} -= 0.3 * {floating(s, 1)}",
            f"{target} *= math.cos({floating(s, 1)})",
            f"{target} /= 1.2 + math.sin({floating(s, 1)}) ** 2",
        ]
    )


def _augment_float(s: Scope) -> bool:
    names = [v for v in s.names("f") if not v.frozen]
    if not names:
        return False
    s.emit(_augment(s, s.pick(names).text))
    return True


def _set_integer(s: Scope) -> bool:
    names = [v for v in s.names("i") if not v.frozen and v.bound == 7]
    text = f"({integer(s)}) % 7" if s.chance(0.8) else f"int({condition(s)})"
    if names and s.chance(0.6):
        s.emit(f"{s.pick(names).text} = {text}")
        return True
    name = s.new("k", "i", bound=7)
    s.emit(f"{name.text} = {text}")
    s.define(name)
    return True


def _tuple(s: Scope) -> bool:
    names = s.names("t")
    if names and s.chance(0.5):
        a, b = s.new("v", "f"), s.new("v", "f")
        s.emit(f"{a.text}, {b.text} = {s.pick(names).text}")
        s.define(a)
        s.define(b)
        return True
    if names and s.chance(0.6):
        s.emit(f"{s.pick(names).text} = ({floating(s, 1)}, {floating(s, 1)})")
        return True
    name = s.new("t", "t")
    s.emit(f"{name.text} = ({floating(s, 1)}, {floating(s, 1)})")
    s.define(name)
    return True


# ---- arrays --------------------------------------------------------------------------------------------


def _store(s: Scope) -> bool:
    arrays = all_arrays(s)
    if not arrays:
        return False
    target = element(s, s.pick(arrays))
    s.emit(f"{target} = {floating(s)}" if s.chance(0.5) else _augment(s, target))
    return True


def _swap_elements(s: Scope) -> bool:
    arrays = all_arrays(s)
    if not arrays:
        return False
    a, b = element(s, s.pick(arrays)), element(s, s.pick(arrays))
    s.emit(f"{a}, {b} = {b}, {a}")
    return True


def _store_slice(s: Scope) -> bool:
    arrays = all_arrays(s)
    if not arrays:
        return False
    chosen = s.pick(arrays)
    text, shape = view(s, chosen)
    if text.endswith(".T"):
        return False
    value = floating(s, 1) if s.chance(0.3) else array(s, shape)
    if len(shape) == 2 and s.chance(0.2):
        value = view_of_shape(s, shape[1:]) or value
    operator = s.pick(["=", "=", "+=", "*="])
    if operator == "*=":
        value = f"np.cos({value})"
    elif operator == "+=":
        value = f"0.4 * {value}"
    s.emit(f"{text} {operator} {value}")
    return True


def _new_array(s: Scope) -> bool:
    arrays = all_arrays(s)
    if not arrays:
        return False
    shape = s.pick(arrays).shape
    kind = s.rng.randrange(8)
    name = s.new("b", "a", shape=shape)
    if kind == 7 and len(shape) == 1 and shape[0] > 1:
        chosen = s.pick(all_arrays(s, shape))
        name.shape, name.contiguous = (shape[0] - 1,), chosen.contiguous
        s.emit(f"{name.text} = h_tail({chosen.text})")
    elif kind == 6:
        first, second = s.pick(all_arrays(s, shape)), s.pick(all_arrays(s, shape))
        if len(shape) != 1 or not (first.contiguous and second.contiguous):
            return False
        other = s.new("b", "a", shape=shape)
        s.emit(f"{name.text}, {other.text} = h_pair({first.text}, {second.text}, {floating(s, 1)})")
        s.define(other)
    elif kind < 2:  # an alias or a view
        chosen = s.pick(arrays)
        text, name.shape = (chosen.text, chosen.shape) if s.chance(0.4) else view(s, chosen)
        if 0 in name.shape:
            return False
        name.contiguous = text == chosen.text and chosen.contiguous
        s.emit(f"{name.text} = {text}")
    elif kind == 2 and len(shape) == 1:
        chosen = s.pick(all_arrays(s, shape))
        name.contiguous = chosen.contiguous
        s.emit(f"{name.text} = h_same({chosen.text}, {floating(s, 1)})")
    else:
        s.emit(f"{name.text} = {fresh_array(s, shape)}")
    s.define(name)
    return True


def _rebind(s: Scope) -> bool:
    """``u = u + 1.0``, ``u = w``, or two names swapped."""
    names = [v for v in s.names("a") if not v.frozen]
    if not names:
        return False
    chosen = s.pick(names)
    alike = [
        v for v in names
        if v.shape == chosen.shape and v.contiguous == chosen.contiguous and v is not chosen
    ]  # fmt: skip
    if alike and s.chance(0.6):
        other = s.pick(alike)
        a, b = chosen.text, other.text
        s.emit(s.pick([f"{a}, {b} = {b}, {a}", f"{a} = {b}", f"{a}, {b} = {b}, {a}"]))
        return True
    if not chosen.contiguous:
        return False
    text = f"{chosen.text} + {floating(s, 1)}" if s.chance(0.4) else fresh_array(s, chosen.shape)
    s.emit(f"{chosen.text} = {text}")
    return True


def _call(s: Scope) -> bool:
    arrays = [a for a in all_arrays(s) if len(a.shape) == 1]
    if not arrays:
        return False
    chosen = s.pick(arrays)
    text = chosen.text if s.chance(0.6) else view(s, chosen)[0]
    s.emit(f"h_fill({text}, {floating(s, 1)})")
    return True


# ---- structs ---------------------------------------------------------------------------------------------


def _field(s: Scope) -> bool:
    structs = s.names("s")
    if not structs:
        return False
    struct = s.pick(structs)
    kind = s.rng.randrange(6)
    if kind == 0:
        s.emit(f"{struct.text}.c = {floating(s)}")
    elif kind == 1:
        s.emit(_augment(s, f"{struct.text}.c"))
    elif kind == 2:
        s.emit(f"{struct.text}.h = {fresh_array(s, struct.shape)}")
    elif kind == 3:
        names = [v for v in s.names("a", struct.shape) if v.contiguous]
        if not names:
            return False
        s.emit(f"{struct.text}.h = {s.pick(names).text}")
    else:
        name = s.new("v", "f")
        s.emit(f"{name.text} = {struct.text}.step({floating(s, 1)})")
        s.define(name)
    return True


# ---- control flow ----------------------------------------------------------------------------------------


def _if(s: Scope) -> bool:
    if s.indent > DEEPEST:
        return False
    with s.block(f"if {condition(s)}:"):
        statements(s, 3)
    if s.chance(0.3):
        with s.block(f"elif {condition(s)}:"):
            statements(s, 3)
    if s.chance(0.5):
        with s.block("else:"):
            statements(s, 3)
    return True


def _for(s: Scope) -> bool:
    if s.indent > DEEPEST:
        return False
    header, trips, counters = _loop_header(s)
    if s.work * max(trips, 1) > MOST_WORK:
        return False
    with s.block(header, max(trips, 1)):
        for counter in counters:
            s.define(counter)
        statements(s, 4)
        _way_out(s)
        if s.chance(0.3):
            statements(s, 2)
    if s.chance(0.15):
        with s.block("else:"):
            statements(s, 2)
    return True


def _loop_header(s: Scope) -> tuple[str, int, list[Name]]:
    """The line, an upper limit of its trips, and the variables it defines."""
    arrays = [a for a in all_arrays(s) if len(a.shape) == 1]
    kind = s.rng.randrange(8)
    counter = s.new("i", "i", frozen=True)
    if arrays and kind == 0:
        chosen = s.pick(arrays)
        value = s.new("e", "f", frozen=True)
        return f"for {value.text} in {chosen.text}:", chosen.shape[0], [value]
    if arrays and kind == 1:
        chosen = s.pick(arrays)
        value = s.new("e", "f", frozen=True)
        counter.bound = chosen.shape[0]
        header = f"for {counter.text}, {value.text} in enumerate({chosen.text}):"
        return header, chosen.shape[0], [counter, value]
    if arrays and kind == 2:
        a, b = s.pick(arrays), s.pick(arrays)
        left, right = s.new("e", "f", frozen=True), s.new("e", "f", frozen=True)
        header = f"for {left.text}, {right.text} in zip({a.text}, {b.text}):"
        return header, min(a.shape[0], b.shape[0]), [left, right]
    if kind == 3:
        return f"for {counter.text} in range({integer(s)} % 4):", 3, [counter]
    if kind == 4:
        outer = [v for v in s.names("i") if 0 < v.bound <= 6]
        if outer:
            first = s.pick(outer)
            counter.bound = first.bound
            header = f"for {counter.text} in range({first.text}, {first.bound}):"
            return header, first.bound, [counter]
    if kind == 5:
        size = s.rng.randrange(1, 6)
        counter.bound = size
        return (
            f"for {counter.text} in range({size - 1}, -1, -{s.rng.randrange(1, 3)}):",
            size,
            [counter],
        )
    if arrays and kind == 6:
        chosen = s.pick(arrays)
        counter.bound = chosen.shape[0]
        return f"for {counter.text} in range({chosen.text}.size):", counter.bound, [counter]
    size = s.pick([0, 1, 2, 3, 4, 5])
    counter.bound = size
    return f"for {counter.text} in range({size}):", size, [counter]


def _way_out(s: Scope) -> None:
    if s.loops and s.chance(0.35):
        kind = s.rng.randrange(5)
        with s.block(f"if {condition(s)}:"):
            if s.chance(0.4):
                statements(s, 2)
            if kind < 2:
                s.emit("break")
            elif kind < 4:
                s.emit("continue")
            else:
                s.emit(f"return {result(s)}")


def _while(s: Scope) -> bool:
    if s.indent > DEEPEST or s.work * 5 > MOST_WORK:
        return False
    counter = s.new("n", "i", frozen=True)
    s.emit(f"{counter.text} = 0")
    header = s.pick(["while True:", f"while {counter.text} < 4 and {condition(s)}:"])
    with s.block(header, 5):
        s.emit(f"{counter.text} += 1")
        s.define(counter)
        if header == "while True:":
            with s.block(f"if {counter.text} > 4 or {condition(s)}:"):
                s.emit("break")
        statements(s, 3)
        _way_out(s)
    s.define(counter)
    return True


def _return(s: Scope) -> bool:
    if s.indent < 2 or not s.chance(0.3):
        return False
    with s.block(f"if {condition(s)}:"):
        s.emit(f"return {result(s)}")
    return True


def result(s: Scope) -> str:
    if s.result == "f":
        return floating(s)
    if s.result == "tuple":
        return f"({floating(s, 1)}, {floating(s, 1)})"
    if s.result == "array":
        arrays = [v for v in s.names("a") if len(v.shape) == 1 and v.contiguous]
        return s.pick(arrays).text if arrays and s.chance(0.6) else fresh_array(s, (4,))
    return "None"


_KINDS = (
    [_new_float] * 3 + [_set_float] * 3 + [_augment_float] * 3 + [_set_integer] + [_tuple]
    + [_store] * 5 + [_swap_elements] + [_store_slice] * 3 + [_new_array] * 2 + [_rebind] * 3
    + [_call] + [_field] * 2 + [_if] * 3 + [_for] * 4 + [_while] * 2 + [_return]
)  # fmt: skip
