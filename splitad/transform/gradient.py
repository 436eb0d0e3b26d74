"""The text of a gradient's compiled functions; runtime/gradient_calls.py says how they are called.

For grad(f, wrt=("u", "nu")) of f(u, nu, s), which writes u and assigns the field s.t:

    def gradient(u, nu, s):
        value_, pullback_ = forward_(u, nu, s)
        shadows_ = plain_zeros_((u,), True)
        bars_ = pullback_(1.0, shadows_[0])
        return (shadows_[0], bars_[0],)

    def save(u, nu, s):
        return ((u, contiguous_copy_(u)), (s, s.t),)

    def restore(saved_, u, nu, s):
        copy_elements_(saved_[0][0], saved_[0][1])
        saved_[1][0].t = saved_[1][1]

Names of its own end with more underscores than any argument's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from numba import types

from splitad.codegen.python import new_array
from splitad.codegen.writer import Writer
from splitad.ir.activities import Activity, is_real_or_complex
from splitad.ir.types import struct_fields
from splitad.runtime.lists import deep_copy
from splitad.runtime.plain_zero import is_plain, plain_zeros
from splitad.runtime.state import put_back
from splitad.runtime.zero import make_zero
from splitad.tape.arrays import contiguous_copy
from splitad.tape.ops import copy_elements

Path = tuple[int | str, ...]


def run(
    forward: object,
    args: Sequence[str],
    argtypes: Sequence[types.Type],
    activities: Sequence[Activity],
    gradient_of: Sequence[int],
    shape: str,
    written: Sequence[tuple[Path, bool]],
    apart: bool,
    restore: bool,
    returns: bool,
    swept: bool,
    cleared: Sequence[int],
) -> tuple[str, dict[str, object]]:
    """The functions, and the globals that they use.

    shape: what is returned, as "{value}, {gradients[0]}".  written: the leaves of the arguments that are put
    back, each with whether its contents are written (an array) or the field is assigned.  apart: whether
    arguments that overlap have shadows that do not, so that each has its own part of the gradient, unless
    f writes what they share.  returns: whether f ever returns.  swept: whether the pullback gives the value.
    cleared: the arguments whose shadows need not be zeros, since the pullback clears them.
    """
    end = "_"
    while any(name.endswith(end) for name in args):
        end += "_"
    w = Writer({"forward" + end: forward})
    listed = ", ".join(args)
    with w.indented(f"def gradient({listed}):"):
        given = "_" + end if swept else "value" + end
        w.line(f"{given}, pullback{end} = forward{end}({listed})")
        if not returns:
            w.line("raise AssertionError  # not reached")
        else:
            duplicated = {
                name: type
                for name, type, on in zip(args, argtypes, activities, strict=True)
                if on is Activity.Duplicated
            }
            shadows = [f"shadows{end}[{k}]" for k in range(len(duplicated))]
            if duplicated:
                unsure = apart and bool(written) and len(duplicated) > 1
                together = f"pullback{end}.args_overlap" if unsure else str(not apart)
                _zeros(w, duplicated, end, together, [args[k] for k in cleared])
            got = f"bars{end}, value{end}" if swept else f"bars{end}"
            w.line(f"{got} = pullback{end}({', '.join(['1.0', *shadows])})")
            found = _cotangents(w, argtypes, activities, f"bars{end}", shadows)
            gradients = [found[k] for k in gradient_of]
            w.line("return " + shape.format(value="value" + end, gradients=gradients))
    if written and restore:
        _restoring(w, written, args, argtypes, end)
    return w.text(), w.names


def _zeros(
    w: Writer, duplicated: dict[str, types.Type], end: str, together: str, cleared: Sequence[str]
) -> None:
    """Shadows for these arguments.  together: whether what they share is shared by the shadows.
    cleared: those whose shadows may hold anything."""
    if cleared:
        assert together == "False"
        rest = {name: type for name, type in duplicated.items() if name not in cleared}
        if rest:
            _zeros(w, rest, end, together, ())
        zeros = iter(range(len(rest)))
        made = (
            new_array(w, "empty", f"{name}.shape", type.dtype)
            if name in cleared
            else f"shadows{end}[{next(zeros)}]"
            for name, type in duplicated.items()
        )
        w.line(f"shadows{end} = ({''.join(text + ', ' for text in made)})")
        return
    of_all = f"({', '.join(duplicated)},)"
    if all(isinstance(t, types.Array) and is_plain(t) for t in duplicated.values()):
        w.use("plain_zeros" + end, plain_zeros)
        w.line(f"shadows{end} = plain_zeros{end}({of_all}, {together})")
        return
    # one struct given twice has one array of each kind, but scalars in two places
    shared = f"shadows{end} = pullback{end}.make_zero()"
    if together == "True":
        w.line(shared)
        return
    zero = w.use("make_zero" + end, make_zero)
    each = "".join(f"{zero}({name}), " for name in duplicated)
    apart = f"shadows{end} = ({each})"
    if together == "False":
        w.line(apart)
        return
    with w.indented(f"if {together}:"):
        w.line(shared)
    with w.indented("else:"):
        w.line(apart)


def _cotangents(
    w: Writer,
    argtypes: Sequence[types.Type],
    activities: Sequence[Activity],
    bars: str,
    shadows: list[str],
) -> dict[int, str]:
    """The expression for each argument's cotangent."""
    found: dict[int, str] = {}
    unread, returned = iter(shadows), 0
    for k, (type, activity) in enumerate(zip(argtypes, activities, strict=True)):
        if activity is Activity.Active:
            found[k] = f"{bars}[{returned}]"
            returned += 1
        elif activity is Activity.Duplicated:
            found[k] = next(unread)
            if holds_scalars(type):
                found[k] = _merged(w, type, found[k], f"{bars}[{returned}]")
                returned += 1
    return found


def holds_scalars(type: types.Type) -> bool:
    """Whether a float is an item of a tuple of this type, or of one in it; a float itself."""
    if isinstance(type, types.BaseTuple):
        return any(holds_scalars(item) for item in type.types)
    return is_real_or_complex(type)


def _merged(w: Writer, type: types.Type, shadow: str, bar: str) -> str:
    """A tuple with its shadow's arrays, and the scalars' cotangents in their places."""
    if not holds_scalars(type):
        return shadow
    if not isinstance(type, types.BaseTuple):
        return bar
    items = [_merged(w, item, f"{shadow}[{k}]", f"{bar}[{k}]") for k, item in enumerate(type.types)]
    made = "(" + "".join(item + ", " for item in items) + ")"
    if isinstance(type, types.BaseNamedTuple):
        return w.use(type.instance_class.__name__, type.instance_class) + made
    return made


def _restoring(
    w: Writer,
    written: Sequence[tuple[Path, bool]],
    args: Sequence[str],
    argtypes: Sequence[types.Type],
    end: str,
) -> None:
    listed, saved = ", ".join(args), "saved" + end
    arrays = [isinstance(_type_at(argtypes, path), types.Array) for path, _ in written]

    def use(function: object, name: str) -> str:
        return w.use(name + end, function)

    w.line("")
    with w.indented(f"def save({listed}):"):
        pairs = []
        for (path, assigned), is_array in zip(written, arrays, strict=True):
            leaf = _reach(path, args)
            if assigned:
                kept = f"{_reach(path[:-1], args)}, {leaf}"
            elif is_array:
                kept = f"{leaf}, {use(contiguous_copy, 'contiguous_copy')}({leaf})"
            else:
                kept = f"{leaf}, {use(deep_copy, 'deep_copy')}({leaf})"
            pairs.append(f"({kept}), ")
        w.line(f"return ({''.join(pairs)})")
    w.line("")
    with w.indented(f"def restore({saved}, {listed}):"):
        for k, (path, assigned) in enumerate(written):
            kept, value = f"{saved}[{k}][0]", f"{saved}[{k}][1]"
            if assigned:
                w.line(f"{kept}.{path[-1]} = {value}")
            elif arrays[k]:
                w.line(f"{use(copy_elements, 'copy_elements')}({kept}, {value})")
            else:
                w.line(f"{use(put_back, 'put_back')}({kept}, {value})")


def _type_at(argtypes: Sequence[types.Type], path: Path) -> types.Type:
    """The type of a leaf."""
    first, *rest = path
    assert isinstance(first, int)
    found = argtypes[first]
    for step in rest:
        fields = struct_fields(found)
        found = found.types[step] if fields is None else fields[str(step)]
    return found


def _reach(path: Path, args: Sequence[str]) -> str:
    """The expression for a leaf."""
    first, *rest = path
    assert isinstance(first, int)
    return args[first] + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in rest)
