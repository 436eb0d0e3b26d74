"""Random statements without blocks: assignments of every kind, calls that change what they are given."""

from __future__ import annotations

from tests.fuzz.array_expressions import (
    array,
    dynamic_slice,
    fresh_array,
    vector,
    view,
    view_of_shape,
)
from tests.fuzz.expressions import (
    all_arrays,
    complex_,
    condition,
    element,
    floating,
    integer,
    list_index,
)
from tests.fuzz.scope import Scope

# ---- floats and integers -------------------------------------------------------------------------------


def new_float(s: Scope) -> bool:
    name = s.new("v", "f")
    s.emit(f"{name.text} = {floating(s)}")
    s.define(name)
    return True


def _set_float(s: Scope) -> bool:
    names = [v for v in s.names("f") if not v.frozen]
    if not names:
        return new_float(s)
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
    if s.names("p") and s.chance(0.3):
        name = s.new("w", "p")
        s.emit(f"{name.text} = Point({floating(s, 1)}, {floating(s, 1)})")
        s.define(name)
        return True
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


def _chain(s: Scope) -> bool:
    """Two names at once: ``v = w = ...``, ``v, w = w, v``."""
    names = [v.text for v in s.names("f") if not v.frozen]
    if len(names) < 2:
        return False
    a, b = s.pick(names), s.pick(names)
    s.emit(
        s.pick(
            [
                f"{a}, {b} = {b}, {a}",
                f"{a} = {b} = {floating(s, 1)}",
                f"{a}, {b} = {b}, {a} + 0.3 * {b}",
            ]
        )
    )
    return True


def _complex(s: Scope) -> bool:
    names = [v for v in s.names("c") if not v.frozen]
    arrays = all_arrays(s, dtype="c16")
    if not (names or arrays):
        return False
    kind = s.rng.randrange(6)
    if arrays and kind < 3:
        target = element(s, s.pick(arrays))
        part = s.pick(["", "", ".real", ".imag"])
        if part:
            chosen = s.pick(arrays)
            s.emit(f"{chosen.text}{part}[{s.rng.randrange(chosen.shape[0])}] = {floating(s, 1)}")
        else:
            s.emit(f"{target} {s.pick(['=', '*=', '+='])} 0.8 * {complex_(s, 1)}")
    elif arrays and kind == 3:
        chosen = s.pick(arrays)
        s.emit(f"{chosen.text}[:] = 0.7 * {chosen.text}[::-1] + {complex_(s, 1)}")
    else:
        name = s.pick(names) if names and s.chance(0.5) else s.new("z", "c")
        s.emit(f"{name.text} = {complex_(s, 2)}")
        if name not in names:
            s.define(name)
    return True


def _list(s: Scope) -> bool:
    """A list of floats of its own, or a change of one."""
    names = s.names("l")
    if names and s.chance(0.7):
        items = s.pick(names)
        kind = s.rng.randrange(6)
        if kind < 2:
            s.emit(f"{items.text}.append({floating(s, 1)})")
        elif kind < 4:
            s.emit(
                f"{items.text}[{list_index(s, items)}] {s.pick(['=', '+=', '*='])} {floating(s, 1)}"
            )
        elif kind == 4:
            name = s.new("v", "f")
            s.emit(f"{items.text}.append({floating(s, 1)})")
            s.emit(f"{name.text} = {items.text}.pop()")
            s.define(name)
        else:
            with s.block(f"if len({items.text}) > {items.bound}:"):
                s.emit(f"{items.text}.pop()")
        return True
    arrays = [a for a in all_arrays(s) if len(a.shape) == 1]
    kind = s.rng.randrange(3)
    if arrays and kind == 0:
        source = s.pick(arrays)
        item = s.new("e", "f", frozen=True)
        s.frames.append([item])
        value = floating(s, 1)
        s.frames.pop()
        name = s.new("l", "l", bound=source.shape[0])
        s.emit(f"{name.text} = [{value} for {item.text} in {source.text}]")
    elif kind == 1:
        size = s.rng.randrange(1, 4)
        name = s.new("l", "l", bound=size)
        s.emit(f"{name.text} = [{', '.join(floating(s, 1) for _ in range(size))}]")
    else:
        size = s.rng.randrange(1, 4)
        counter = s.new("j", "i", bound=size, frozen=True)
        s.frames.append([counter])
        value = floating(s, 1)
        s.frames.pop()
        name = s.new("l", "l", bound=size)
        s.emit(f"{name.text} = [{value} for {counter.text} in range({size})]")
    s.define(name)
    return True


def _inner_function(s: Scope) -> bool:
    """A function in the function, of one float; it may use a constant of the outer one."""
    if s.indent > 1:
        return False
    constant = s.new("k", "f", frozen=True, constant=True)
    s.emit(f"{constant.text} = {s.number()}")
    s.define(constant)
    name, parameter = s.new("g", "g"), s.new("u", "f", frozen=True)
    hidden = s.frames
    s.frames = [[parameter, *(v for frame in hidden for v in frame if v.constant)]]
    body = floating(s, 2)
    if s.chance(0.4):
        s.emit(f"{name.text} = lambda {parameter.text}: {body}")
    else:
        with s.block(f"def {name.text}({parameter.text}):"):
            s.emit(f"return {body}")
    s.frames = hidden
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
    if not text.endswith("]"):  # no target of an assignment
        return False
    if not chosen.frozen and s.chance(0.15):
        s.emit(f"{chosen.text} {s.pick(['+=', '*=', '-='])} 0.5 * {array(s, chosen.shape)}")
        return True
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


def _store_many(s: Scope) -> bool:
    """Stores at a mask, at an integer array, into a slice of a size that the run decides, and by ``out``."""
    arrays = [a for a in all_arrays(s) if len(a.shape) == 1]
    if not arrays:
        return False
    chosen = s.pick(arrays)
    kind = s.rng.randrange(8)
    if kind < 2:
        mask = s.pick([f"{chosen.text} > {floating(s, 0)}", f"{chosen.text} < {s.number()}"])
        masks = [v.text for v in s.names("b") if v.shape == chosen.shape]
        mask = s.pick(masks) if masks and s.chance(0.5) else mask
        other = view_of_shape(s, chosen.shape)
        s.emit(
            s.pick(
                [
                    f"{chosen.text}[{mask}] = {floating(s, 1)}",
                    f"{chosen.text}[{mask}] *= {floating(s, 1)}",
                    f"{chosen.text}[{mask}] += 0.5 * {floating(s, 1)}",
                    f"{chosen.text}[{mask}] = {other}[{mask}]",
                ]
            )
        )
    elif kind < 4:
        indices = [v for v in s.names("x") if v.bound <= chosen.shape[0]]
        if not indices:
            return False
        at = s.pick(indices)
        value = s.pick([floating(s, 1), array(s, at.shape, 1)])
        s.emit(f"{chosen.text}[{at.text}] {s.pick(['=', '=', '+=', '*='])} {value}")
    elif kind < 6:
        s.emit(f"{dynamic_slice(s, chosen)} {s.pick(['=', '*=', '+='])} {floating(s, 1)}")
    elif kind == 6:
        a, b = view_of_shape(s, chosen.shape), view_of_shape(s, chosen.shape)
        s.emit(s.pick([f"np.multiply({a}, {b}, {chosen.text})", f"np.sin({a}, {chosen.text})"]))
    else:
        s.emit(f"{chosen.text}.fill({floating(s, 1)})")
    return True


def _choose(s: Scope) -> bool:
    """An array variable that a condition binds to one of two arrays."""
    arrays = all_arrays(s)
    if not arrays:
        return False
    shape, dtype = s.pick([(a.shape, a.dtype) for a in arrays])
    alike = [a for a in all_arrays(s, shape) if a.dtype == dtype]
    a, b = s.pick(alike), s.pick(alike)
    if len(shape) == 1 and s.chance(0.2):
        name = s.new("b", "a", shape=shape, dtype=dtype, contiguous=a.contiguous and b.contiguous)
        s.emit(f"{name.text} = h_which({a.text}, {b.text}, {floating(s, 1)})")
        s.define(name)
        return True
    name = s.new("b", "a", shape=shape, dtype=dtype, contiguous=a.contiguous and b.contiguous)
    first, second = a.text, b.text
    if dtype == "f8" and b.contiguous and s.chance(0.3):
        second = fresh_array(s, shape)
    if s.chance(0.5):
        s.emit(f"{name.text} = {first} if {condition(s, 1)} else {second}")
    else:
        with s.block(f"if {condition(s, 1)}:"):
            s.emit(f"{name.text} = {first}")
        with s.block("else:"):
            s.emit(f"{name.text} = {second}")
    s.define(name)
    return True


def _new_array(s: Scope) -> bool:
    arrays = all_arrays(s)
    if not arrays:
        return False
    shape = s.pick(arrays).shape
    kind = s.rng.randrange(8)
    name = s.new("b", "a", shape=shape)
    like = s.pick(all_arrays(s, shape))
    if kind == 5 and like.dtype == "f4":
        name.dtype = "f4"
        s.emit(f"{name.text} = {s.pick([f'{like.text}.copy()', f'np.zeros_like({like.text})'])}")
        s.define(name)
        return True
    if kind == 7 and len(shape) == 1 and shape[0] > 1:
        chosen = s.pick(all_arrays(s, shape))
        name.shape, name.contiguous, name.dtype = (shape[0] - 1,), chosen.contiguous, chosen.dtype
        s.emit(f"{name.text} = h_tail({chosen.text})")
    elif kind == 6:
        first, second = s.pick(all_arrays(s, shape)), s.pick(all_arrays(s, shape))
        if len(shape) != 1 or not (first.contiguous and second.contiguous):
            return False
        other = s.new("b", "a", shape=shape, dtype=first.dtype)
        name.dtype = second.dtype
        s.emit(f"{name.text}, {other.text} = h_pair({first.text}, {second.text}, {floating(s, 1)})")
        s.define(other)
    elif kind < 2:  # an alias or a view
        chosen = s.pick(arrays)
        text, name.shape = (chosen.text, chosen.shape) if s.chance(0.4) else view(s, chosen)
        if 0 in name.shape:
            return False
        name.contiguous, name.dtype = text == chosen.text and chosen.contiguous, chosen.dtype
        s.emit(f"{name.text} = {text}")
    elif kind == 2 and len(shape) == 1:
        chosen = s.pick(all_arrays(s, shape))
        name.contiguous, name.dtype = chosen.contiguous, chosen.dtype
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
        if v.shape == chosen.shape and v.dtype == chosen.dtype and v is not chosen
        and (v.contiguous == chosen.contiguous or s.chance(0.05))
    ]  # fmt: skip
    if s.chance(0.2) and not chosen.contiguous:
        from_view = view_of_shape(s, chosen.shape)
        if from_view is not None and chosen.dtype == "f8":
            s.emit(f"{chosen.text} = {from_view}")
            return True
    if alike and s.chance(0.6):
        other = s.pick(alike)
        a, b = chosen.text, other.text
        s.emit(s.pick([f"{a}, {b} = {b}, {a}", f"{a} = {b}", f"{a}, {b} = {b}, {a}"]))
        return True
    if not chosen.contiguous or chosen.dtype != "f8":
        return False
    text = f"{chosen.text} + {floating(s, 1)}" if s.chance(0.4) else fresh_array(s, chosen.shape)
    s.emit(f"{chosen.text} = {text}")
    return True


def _call(s: Scope) -> bool:
    arrays = [a for a in all_arrays(s) if len(a.shape) == 1]
    if not arrays:
        return False
    chosen = s.pick(arrays)
    text = chosen.text if s.chance(0.6) else vector(s, chosen)
    if s.chance(0.4):
        other = s.pick(arrays)
        s.emit(f"h_two({text}, {s.pick([other.text, dynamic_slice(s, other)])}, {floating(s, 1)})")
    else:
        s.emit(f"h_fill({text}, {floating(s, 1)})")
    return True


def _integers(s: Scope) -> bool:
    """Changes arrays of integers and bools, which decide what others do."""
    names = [*s.names("x"), *s.names("b")]
    if not names:
        return False
    chosen = s.pick(names)
    at = s.rng.randrange(chosen.shape[0])
    if chosen.kind == "x":
        s.emit(f"{chosen.text}[{at}] = ({integer(s)}) % {chosen.bound}")
    else:
        s.emit(f"{chosen.text}[{at}] = {condition(s, 0)}")
    return True


def _array_list(s: Scope) -> bool:
    """A list of arrays: made, added to, its items changed or replaced."""
    names = s.names("la")
    if names and s.chance(0.75):
        items = s.pick(names)
        kind = 3 if items.frozen else s.rng.randrange(5)
        held = [v.text for v in s.names("a", items.shape) if v.contiguous and v.dtype == "f8"]
        value = s.pick(held) if held and s.chance(0.5) else fresh_array(s, items.shape)
        if kind < 2:
            s.emit(f"{items.text}.append({value})")
        elif kind == 2:
            s.emit(f"{items.text}[{s.rng.randrange(items.bound)}] = {value}")
        elif kind == 3:
            at = (
                f"{items.text}[{integer(s)} % len({items.text})][{s.rng.randrange(items.shape[0])}]"
            )
            s.emit(_augment(s, at))
        else:
            s.emit(f"{items.text}[0], {items.text}[-1] = {items.text}[-1], {items.text}[0]")
        return True
    held = [v.text for v in s.names("a", (4,)) if v.contiguous and v.dtype == "f8"]
    size = s.rng.randrange(1, 3)
    parts = [s.pick(held) if held and s.chance(0.5) else fresh_array(s, (4,)) for _ in range(size)]
    name = s.new("h", "la", shape=(4,), bound=size)
    s.emit(f"{name.text} = [{', '.join(parts)}]")
    s.define(name)
    return True


def _of_any_size(s: Scope) -> bool:
    """An array of a size that the run decides."""
    names = s.names("d")
    vectors = [a for a in all_arrays(s) if len(a.shape) == 1]
    if names and s.chance(0.75):
        text = s.pick(names).text
        kind = s.rng.randrange(7)
        if kind == 0:
            s.emit(f"{text} = h_grow({text}, {floating(s, 1)})")
        elif kind == 1:
            s.emit(f"{text} = np.concatenate(({text}, np.array([{floating(s, 1)}])))")
        elif kind == 2:
            s.emit(
                f"{text} = {s.pick([f'{text} * {floating(s, 1)}', f'np.zeros({integer(s)} + 1)'])}"
            )
        elif kind == 3:
            s.emit(f"h_fill({text}, {floating(s, 1)})")
        elif kind == 4:
            s.emit(_augment(s, f"{text}[{integer(s)} % {text}.size]"))
        elif kind == 5 and s.work < 10:
            counter = s.new("i", "i", frozen=True)
            with s.block(f"for {counter.text} in range({text}.size):", 6):
                s.define(counter)
                s.emit(f"{text}[{counter.text}] = 0.7 * {text}[{counter.text}] + {floating(s, 1)}")
        else:
            s.emit(f"{text} = h_early({text}, {floating(s, 1)}).copy()")
        return True
    name = s.new("d", "d")
    made = [f"np.zeros({integer(s)} + 1)", f"np.full({integer(s)} + 1, {floating(s, 1)})"]
    if vectors:
        made.append(f"h_early({s.pick(vectors).text}, {floating(s, 1)}).copy()")
    s.emit(f"{name.text} = {s.pick(made)}")
    s.define(name)
    return True


# ---- structs ---------------------------------------------------------------------------------------------


def _struct(s: Scope) -> bool:
    structs = s.names("s")
    if not structs or s.chance(0.15):
        return s.chance(0.3) and _new_struct(s)
    struct = s.pick(structs)
    text = struct.text
    field = f"{text}.{s.pick('hg')}"
    kind = s.rng.randrange(10)
    if kind == 0:
        s.emit(f"{text}.c = {floating(s)}")
    elif kind == 1:
        s.emit(_augment(s, f"{text}.c"))
    elif kind == 2:
        s.emit(f"{field} = {fresh_array(s, struct.shape)}")
    elif kind == 3:
        names = [v for v in s.names("a", struct.shape) if v.contiguous and v.dtype == "f8"]
        if not names:
            return False
        rows = [
            f"{m.text}[{s.rng.randrange(m.shape[0])}]" for m in s.names("a", (3, 4)) if m.contiguous
        ]
        s.emit(f"{field} = {s.pick([*(v.text for v in names), *rows])}")
    elif kind == 4:
        s.emit(
            s.pick([f"{text}.swap()", f"{text}.h, {text}.g = {text}.g, {text}.h", f"{text}.k += 1"])
        )
    elif kind == 5:
        s.emit(f"{text}.nudge({s.rng.randrange(struct.shape[0])}, {floating(s, 1)})")
    elif kind == 6:
        other = s.pick(structs).text
        s.emit(
            s.pick(
                [f"{field} = {other}.{s.pick('hg')}", f"{text}.h, {other}.g = {other}.g, {text}.h"]
            )
        )
    elif kind == 7:
        name = s.new("b", "a", shape=struct.shape)
        s.emit(f"{name.text} = {s.pick([field, f'h_field({text})'])}")
        s.define(name)
    else:
        name = s.new("v", "f")
        call = (
            f"{text}.step({floating(s, 1)})" if kind == 8 else f"h_struct({text}, {floating(s, 1)})"
        )
        s.emit(f"{name.text} = {call}")
        s.define(name)
    return True


def _new_struct(s: Scope) -> bool:
    """A struct of f's own, or another name of one."""
    structs = s.names("s")
    shape = (4,)
    name = s.new("r", "s", shape=shape)
    if structs and s.chance(0.4):
        a, b = s.pick(structs).text, s.pick(structs).text
        chosen = f"{a} if {condition(s, 1)} else {b}"
        s.emit(f"{name.text} = {s.pick([a, chosen, f'h_self({a}, {floating(s, 1)})'])}")
    else:
        held = [v.text for v in s.names("a", shape) if v.contiguous and v.dtype == "f8"]
        first = s.pick(held) if held and s.chance(0.3) else fresh_array(s, shape)
        s.emit(f"{name.text} = State({first}, {fresh_array(s, shape)}, {floating(s, 1)})")
    s.define(name)
    return True


def result(s: Scope) -> str:
    """An expression for ``return``."""
    if s.result == "f":
        parts = [v.text for v in s.names("f")][-4:] if s.chance(0.7) else []
        return " + ".join([*(f"{s.number()} * {part}" for part in parts), floating(s)])
    if s.result == "c":
        return complex_(s)
    if s.result == "tuple":
        return f"({floating(s, 1)}, {floating(s, 1)})"
    arrays = [v for v in s.names("a") if len(v.shape) == 1 and v.contiguous and v.dtype == "f8"]
    text = s.pick(arrays).text if arrays and s.chance(0.6) else fresh_array(s, (4,))
    if s.exchanges and s.chance(0.5):
        text = f"{s.pick(s.names('s')).text}.{s.pick('hg')}"
    if s.result == "array":
        return text
    if s.result == "both":
        return f"({text}, {floating(s, 1)})"
    if s.result == "twice":
        return f"({text}, {text})"
    if s.result == "point":
        return f"Point({floating(s, 1)}, {floating(s, 1)})"
    return "None"


PLAIN = (
    [new_float] * 6 + [_set_float] * 6 + [_augment_float] * 6 + [_set_integer] * 2 + [_tuple] * 2
    + [_chain] + [_store] * 10 + [_swap_elements] + [_store_slice] * 6 + [_store_many] * 4
    + [_new_array] * 5 + [_choose] * 2 + [_rebind] * 6 + [_call] * 2 + [_struct] * 6 + [_complex] * 3
    + [_list] * 2 + [_inner_function] + [_integers] * 3 + [_array_list] * 2 + [_of_any_size] * 3
)  # fmt: skip
