"""Objects that take another one's place: which of them a name means is then known after all.

    parts = []                      the list made in an iteration is called as the one before the loop
    for k in range(n):              from then on: a loop carries what lists and structs hold, and not
        new = [...]                 which they are
        parts = new

    if c: s = State(1.0)            likewise after a branch, where both sides make one
    else: s = State(x)
    if c: s, t = t, s               and after one that exchanges two

This is a change of names only, and right where nothing else means the object whose name is taken: no other
variable, no other object, no function around this one, no argument of the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from splitad.frontend import merge
from splitad.frontend.state import Context, State
from splitad.frontend.values import GrowVal, ListVal, MethodVal, StructVal, TupleVal, Value

Numbers = dict[int, int]  # of objects: what they are called, to what they are called from now on


def as_in(c: Context, state: State, other: State, names: Iterable[str]) -> State:
    """`state` with its objects called as they are in `other`, seen from the variables `names`; unchanged
    where that cannot be."""
    names = list(dict.fromkeys([*names, *(name for name in state[0] if name.startswith("%"))]))
    numbers: Numbers = {}
    for name in names:
        if not _match(state, other, state[0].get(name), other[0].get(name), numbers):
            return state
    moved = {old: new for old, new in numbers.items() if old != new}
    if not moved or len(set(numbers.values())) < len(numbers):
        return state
    touched = {*moved, *moved.values()}
    if any(oid in c.roots for oid in touched):
        return state
    existing = {oid for oid, _ in state[1]}
    if any(oid < c.frame.known for oid in touched & existing):
        return state  # a function around this one may know it
    reached = {oid for name in names for oid in merge.objects(state[0].get(name), state[1])}
    for (oid, _), part in state[1].items():
        if oid < c.frame.known or oid in c.roots:
            reached.update(merge.objects(part, state[1]))
    if any(new in reached and new not in numbers for new in moved.values()):
        return state
    return _renamed(state, moved)


def _match(
    state: State, other: State, value: Value | None, wanted: Value | None, numbers: Numbers
) -> bool:
    """Collects which object stands for which; False where one would stand for two."""
    if isinstance(value, (TupleVal, ListVal)) and type(value) is type(wanted):
        pairs = zip(value.items, wanted.items, strict=False)
        return all(_match(state, other, v, w, numbers) for v, w in pairs)
    if not isinstance(value, (StructVal, GrowVal)) or type(value) is not type(wanted):
        return True
    if value.type != wanted.type:
        return False
    if value.oid in numbers:
        return numbers[value.oid] == wanted.oid
    numbers[value.oid] = wanted.oid
    return all(
        _match(state, other, part, other[1].get((wanted.oid, field)), numbers)
        for (oid, field), part in state[1].items()
        if oid == value.oid
    )


def _renamed(state: State, moved: Numbers) -> State:
    gone = set(moved.values()) - moved.keys()
    names = {name: _value(value, moved) for name, value in state[0].items()}
    heap = {
        (moved.get(oid, oid), field): _value(value, moved)
        for (oid, field), value in state[1].items()
        if oid not in gone
    }
    return names, heap


def _value(value: Value, moved: Numbers) -> Value:
    if isinstance(value, (StructVal, GrowVal)):
        return replace(value, oid=moved.get(value.oid, value.oid))
    if isinstance(value, (TupleVal, ListVal)):
        return replace(value, items=tuple(_value(item, moved) for item in value.items))
    if isinstance(value, MethodVal):
        return replace(value, owner=_value(value.owner, moved))
    return value
