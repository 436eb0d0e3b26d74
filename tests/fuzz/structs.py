"""Programs about structs whose arrays change hands: fields rebound, exchanged, set to arguments and locals.

The structs share arrays among themselves and with the other arguments, when f starts and when it ends.
"""

from __future__ import annotations

from tests.fuzz.array_expressions import fresh_array
from tests.fuzz.expressions import condition, floating
from tests.fuzz.scope import Name, Scope

SHAPE = (4,)


def struct_arguments(s: Scope) -> tuple[list[tuple[Name, str]], list[str], bool]:
    """Two or three structs with what makes them, lines before these, and whether any arrays overlap."""
    new = "rng.uniform(-1.2, 1.2, 4)"
    lines = ["w = rng.uniform(-1.2, 1.2, 8)"]
    shared = s.chance(0.4)
    taken: list[str] = []
    made = []
    numbers = {"s": 0.8, "r": 0.3, "e": 0.5}  # a tie would be a kink of max
    for text in list(numbers)[: s.pick([2, 2, 3])]:
        arrays = []
        for _ in "hg":
            parts = ["x", "m[1]", "w[:4]", "w[4:]", "w[2:6]"]
            pool = [new, *parts, *taken, *taken] if shared else [new]
            arrays.append(s.pick(pool))
        lines.append(f"{text} = State({arrays[0]}, {arrays[1]}, {numbers[text]})")
        taken += [f"{text}.h", f"{text}.g"]
        made.append((Name(text, "s", SHAPE), text))
    return made, lines, shared


def exchange(s: Scope) -> bool:
    """A statement by which a struct's array becomes another one's, or that reads or changes such an array."""
    structs = s.names("s")
    if not structs:
        return False
    a, b = s.pick(structs).text, s.pick(structs).text
    fields = [f"{struct.text}.{name}" for struct in structs for name in "hg"]
    first, second, third = (s.pick(fields) for _ in range(3))
    kind = s.rng.randrange(12)
    if kind < 3:
        s.emit(f"{first} = {_array(s, fields)}")
    elif kind < 5:
        s.emit(f"{first}, {second} = {second}, {first}")
    elif kind == 5:
        s.emit(f"{first}, {second}, {third} = {second}, {third}, {first}")
    elif kind == 6:
        s.emit(f"{first} = {_array(s, fields)} if {condition(s, 1)} else {_array(s, fields)}")
    elif kind == 7:
        name = s.new("b", "a", shape=SHAPE)
        s.emit(f"{name.text} = {first}")
        s.define(name)
        s.emit(f"{first} = {_array(s, fields)}")
    elif kind == 8:
        s.emit(f"h_hand_over({a}, {b}, {_array(s, fields)}, {floating(s, 1)})")
    elif kind == 9:
        s.emit(s.pick([f"{a}.swap()", f"{a}.nudge({s.rng.randrange(4)}, {floating(s, 1)})"]))
    else:
        at = s.rng.randrange(-4, 4)
        s.emit(f"{first}[{at}] {s.pick(['=', '+=', '*='])} {floating(s, 1)}")
    return True


def _array(s: Scope, fields: list[str]) -> str:
    """An array that a field can hold."""
    held = [v.text for v in s.names("a", SHAPE) if v.contiguous and v.dtype == "f8"]
    kind = s.rng.randrange(10)
    if kind < 4 or not held:
        return s.pick(fields)
    if kind < 8:
        return s.pick(held)
    if kind == 8 and s.chance(0.3):
        return f"{s.pick(held)}[:]"  # refused where it is the field's at exit
    return fresh_array(s, SHAPE)
