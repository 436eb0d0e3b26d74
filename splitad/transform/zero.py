"""The zero shadows of a pullback: ``f__zero(tape, refs)``.

They have the shapes and the aliasing of the arguments as f left them, which the forward noted.  Where the
arguments are arrays of floats, what the forward returns of them is enough, and the function is not called:
`plain` says where.
"""

from __future__ import annotations

from numba import types

from splitad.codegen.python import literal, new_array, type_name, zero
from splitad.codegen.writer import Writer
from splitad.errors import ShadowError
from splitad.ir import nodes as ir
from splitad.ir.activities import is_real_or_complex
from splitad.ir.types import struct_fields
from splitad.rules.spelling import unique_number
from splitad.runtime.lists import LISTS
from splitad.runtime.noted import new_struct, noted_array
from splitad.runtime.plain_zero import is_plain, plain_arrays
from splitad.runtime.zero import zeros_as
from splitad.tape.ops import column, load_at
from splitad.transform import augment, lists
from splitad.transform.facts import Facts, path_name
from splitad.transform.operands import tuple_text

Path = tuple[int | str, ...]


def run(facts: Facts, name: str, names: dict[str, object]) -> Writer:
    w = Writer(names)
    work = _Zero(facts, w)
    with w.indented(f"def {name}(tape, refs):"):
        w.use("load_at", load_at)
        w.line("base = load_at(tape, 0)")
        texts = [
            work.part(param.type, (k,))
            for k, (param, activity) in enumerate(
                zip(facts.fn.params, facts.activities, strict=True)
            )
            if activity == "duplicated"
        ]
        if work.missing:
            w.use("PlainShadowError", ShadowError)
            w.line(f"raise PlainShadowError({work.missing!r})")
        w.use("zeros_as", zeros_as)
        w.line(f"return zeros_as(({''.join(t + ', ' for t in texts)}))" if texts else "return ()")
    return w


def plain(facts: Facts) -> tuple[int, ...] | None:
    """Where the arrays of the Duplicated arguments are among those that the forward returns to be kept; None
    where more than these are needed to make zeros, or they are not plain."""
    fn = facts.fn
    if facts.kernel is not None or augment.never_ends(fn.body):
        return None
    kept = [leaf for leaf in fn.leaves if leaf.var in facts.layout.notes]
    found = []
    for k, (param, activity) in enumerate(zip(fn.params, facts.activities, strict=True)):
        if activity == "duplicated":
            if not is_plain(param.type):
                return None
            own = [n for n, leaf in enumerate(kept) if leaf.path[0] == k]
            assert len(own) == len(list(plain_arrays(param.type)))
            if any(kept[n].exit != kept[n].var for n in own):
                return None
            found += own
    return tuple(found)


class _Zero:
    def __init__(self, facts: Facts, w: Writer) -> None:
        self.facts, self.w = facts, w
        self.leaf = {leaf.path: leaf for leaf in facts.fn.leaves}
        self.count = 0
        self.missing = ""  # what no shadow can be made of

    def part(self, type: types.Type, path: Path) -> str:
        """An expression for the part of the arguments at `path` as it was at exit."""
        w = self.w
        if isinstance(type, types.BaseTuple):
            return tuple_text(w, type, [self.part(t, (*path, k)) for k, t in enumerate(type)])
        if isinstance(type, types.Array):
            return self.array(type, path)
        fields = struct_fields(type)
        if fields is None:
            made = lists.zeros(self.facts, w, path[0]) if len(path) == 1 else None  # type: ignore[arg-type]
            if made is None and isinstance(type, LISTS):
                self.missing = (
                    f"'{path_name(self.facts, path)}' is a list within another argument, of which "
                    "pullback.make_zero() makes no shadow: splitad.make_zero(argument) does"
                )
            return self.scalar(type, path) if made is None else made
        self.count += 1
        made = f"struct_{self.count}"
        maker = new_struct(type)
        w.line(f"{made} = {w.use(f'new_struct_{unique_number(maker)}', maker)}()")
        for field, kind in fields.items():
            w.line(f"{made}.{field} = {self.part(kind, (*path, field))}")
        return made

    def array(self, type: types.Array, path: Path) -> str:
        w, leaf = self.w, self.leaf[path]
        maker = noted_array(leaf.exit.type)
        name = w.use(f"noted_{unique_number(maker)}", maker)
        text = f"{name}(base, {self.facts.layout.notes[leaf.var]})"
        if is_real_or_complex(type.dtype) or isinstance(type.dtype, types.Record):
            return text
        return new_array(w, "zeros", f"{text}.shape", type.dtype)

    def scalar(self, type: types.Type, path: Path) -> str:
        w, leaf = self.w, self.leaf.get(path)
        if isinstance(type, types.NoneType) or leaf is None:
            return "None"
        if isinstance(leaf.exit, ir.Lit) and not is_real_or_complex(type):
            return literal(w, leaf.exit)
        place = (
            self.facts.layout.of(leaf.exit, self.facts.where)
            if isinstance(leaf.exit, ir.Var) and not is_real_or_complex(type)
            else None
        )
        if place is None:
            return zero(w, type)
        w.use("column", column)
        return f"column(base, {place[1].offset}, {type_name(w, type)})[0]"
