"""What an argument is to the derivative: Active, Duplicated or Const, given or by its type."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from numba import types

from splitad.errors import NotDifferentiableError


class Activity(enum.Enum):
    """The activity of an argument."""

    Active = "active"
    Duplicated = "duplicated"
    Const = "const"

    def __repr__(self) -> str:
        return self.name


def is_real_or_complex(type: types.Type) -> bool:
    return isinstance(types.unliteral(type), (types.Float, types.Complex))


def is_scalars(type: types.Type) -> bool:
    """A float, or a tuple (of tuples) of scalars with a float among them."""
    if isinstance(type, types.BaseTuple):
        return all(_is_scalar_tree(t) for t in type) and any(is_scalars(t) for t in type)
    return is_real_or_complex(type)


def _is_scalar_tree(type: types.Type) -> bool:
    if isinstance(type, types.BaseTuple):
        return all(_is_scalar_tree(t) for t in type)
    return isinstance(
        types.unliteral(type), (types.Number, types.Boolean, types.NoneType, types.UnicodeType)
    )


def holds_mutable_floats(type: types.Type, seen: tuple[types.Type, ...] = ()) -> bool:
    """Whether a value of this type has float data that can be written: arrays, structs, containers."""
    if type in seen:
        return False
    seen = (*seen, type)
    if isinstance(type, types.Array):
        if isinstance(type.dtype, types.Record):
            return any(is_real_or_complex(type.dtype.typeof(f)) for f in type.dtype.fields)
        return is_real_or_complex(type.dtype)
    if isinstance(type, types.BaseTuple):
        return any(holds_mutable_floats(t, seen) for t in type)
    if isinstance(type, types.ClassInstanceType):
        fields = type.struct.values()
    elif isinstance(type, types.StructRef):
        fields = [t for _, t in type._fields]
    elif isinstance(type, (types.List, types.ListType)):
        fields = [type.dtype]
    else:
        return False
    return any(is_real_or_complex(t) or holds_mutable_floats(t, seen) for t in fields)


def default(type: types.Type) -> Activity:
    """The activity that follows from the type."""
    if is_scalars(type):
        return Activity.Active
    return Activity.Duplicated if holds_mutable_floats(type) else Activity.Const


def check_given(function: str, count: int, activities: Sequence[object] | None) -> None:
    """Refuse what cannot be the activities of so many arguments; none: they follow from the types."""
    if activities and len(activities) != count:
        raise TypeError(
            f"{function} takes {count} arguments, but {len(activities)} activities were given"
        )
    for activity in activities or ():
        if not isinstance(activity, Activity):
            raise TypeError(f"an activity is Active, Duplicated or Const, not {activity!r}")


def stable(count: int, modified_between: bool | Sequence[bool]) -> tuple[bool, ...]:
    """For each argument whether nobody writes to it between forward and pullback."""
    between = (
        (modified_between,) * count if isinstance(modified_between, bool) else modified_between
    )
    if len(between) != count:
        raise TypeError(f"modified_between has {len(between)} entries for {count} arguments")
    return tuple(not b for b in between)


def check(given: Activity, type: types.Type, name: str, function: str) -> None:
    """Refuse an activity that the type of the argument cannot have."""
    where = f"the argument '{name}' of {function}"
    if given is Activity.Active and not is_scalars(type):
        if isinstance(types.unliteral(type), (types.Integer, types.Boolean)):
            raise NotDifferentiableError(
                f"{where} is Active, but an integer was passed", None, "Pass a float: 1.0, not 1."
            )
        hint = "It is Duplicated." if holds_mutable_floats(type) else "It is Const."
        raise NotDifferentiableError(f"{where} is Active, but its type is {type}", None, hint)
    if given is Activity.Duplicated and not holds_mutable_floats(type):
        hint = "It is Active." if is_scalars(type) else "It is Const."
        raise NotDifferentiableError(
            f"{where} is Duplicated, but a {type} holds no floats that can be written", None, hint
        )
