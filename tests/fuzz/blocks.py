"""Random statements with blocks: branches, loops of every kind, and ways out of them."""

from __future__ import annotations

from tests.fuzz.array_expressions import dynamic_slice, fresh_array
from tests.fuzz.expressions import all_arrays, condition, floating, integer
from tests.fuzz.scope import Name, Scope
from tests.fuzz.statements import PLAIN, new_float, result
from tests.fuzz.structs import exchange

MOST_WORK = 100  # trips of the innermost loop, all told
DEEPEST = 4


def statements(s: Scope, most: int) -> None:
    for _ in range(s.rng.randrange(1, most + 1)):
        if s.budget <= 0:
            return
        s.budget -= 1
        statement(s)


def statement(s: Scope) -> None:
    if s.exchanges and s.chance(0.5) and exchange(s):
        return
    for _ in range(10):
        if s.pick(_KINDS)(s):
            return
    new_float(s)


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
    kind = s.rng.randrange(13)
    counter = s.new("i", "i", frozen=True)
    if kind >= 11:
        found = _rare_header(s, counter)
        if found is not None:
            return found
    if arrays and kind == 0:
        chosen = s.pick(arrays)
        value = s.new("e", "f", frozen=True)
        if s.chance(0.3):
            return f"for {value.text} in {dynamic_slice(s, chosen)}:", chosen.shape[0], [value]
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


def _rare_header(s: Scope, counter: Name) -> tuple[str, int, list[Name]] | None:
    kind = s.rng.randrange(7)
    matrices = [a for a in all_arrays(s) if len(a.shape) == 2]
    if matrices and kind < 2:
        chosen = s.pick(matrices)
        row = s.new(
            "b", "a", shape=chosen.shape[1:], dtype=chosen.dtype, frozen=True, contiguous=False
        )
        if kind == 0:
            return f"for {row.text} in {chosen.text}:", chosen.shape[0], [row]
        counter.bound = chosen.shape[0]
        return (
            f"for {counter.text}, {row.text} in enumerate({chosen.text}):",
            chosen.shape[0],
            [counter, row],
        )
    if matrices and kind == 2:
        chosen, second = s.pick(matrices), s.new("i", "i", frozen=True)
        counter.bound, second.bound = chosen.shape
        header = f"for {counter.text}, {second.text} in np.ndindex({chosen.text}.shape):"
        return header, chosen.shape[0] * chosen.shape[1], [counter, second]
    if kind == 3 and s.names("l"):
        value = s.new("e", "f", frozen=True)
        return f"for {value.text} in {s.pick(s.names('l')).text}:", 6, [value]
    if kind == 4:
        arrays = [a for a in all_arrays(s) if a.contiguous and a.dtype == "f8"]
        if not arrays:
            return None
        first = s.pick(arrays)
        second = s.pick([a for a in arrays if a.shape == first.shape])
        name = s.new("b", "a", shape=first.shape, frozen=True)
        return f"for {name.text} in ({first.text}, {second.text}):", 2, [name]
    if kind == 5 and s.names("x"):
        indices = s.pick(s.names("x"))
        counter.bound = indices.bound
        return f"for {counter.text} in {indices.text}:", indices.shape[0], [counter]
    size = s.rng.randrange(1, 5)
    counter.bound = size
    return f"for {counter.text} in prange({size}):", size, [counter]


def _buffers(s: Scope) -> bool:
    """A time step between two buffers that are swapped: the commonest loop of all."""
    arrays = [
        a for a in s.names("a")
        if len(a.shape) == 1 and a.shape[0] > 2 and a.contiguous and a.dtype == "f8" and not a.frozen
    ]  # fmt: skip
    if not arrays or s.work > 5 or s.indent >= DEEPEST:
        return False
    u = s.pick(arrays)
    v = s.pick([a for a in arrays if a.shape == u.shape])
    if v is u or s.chance(0.5):
        v = s.new("b", "a", shape=u.shape)
        s.emit(
            f"{v.text} = {s.pick([f'np.zeros({u.shape!r})', f'{u.text}.copy()', fresh_array(s, u.shape)])}"
        )
        s.define(v)
    size = u.shape[0]
    step, i = s.new("i", "i", frozen=True), s.new("i", "i", frozen=True)
    with s.block(f"for {step.text} in range({s.pick(['2', '3', f'{integer(s)} % 4'])}):", 3):
        s.define(step)
        with s.block(f"for {i.text} in range(1, {size} - 1):", size):
            s.define(i)
            s.emit(
                f"{v.text}[{i.text}] = 0.4 * {u.text}[{i.text} - 1] * {floating(s, 1)}"
                f" + 0.3 * {u.text}[{i.text} + 1] + 0.2 * {s.pick([u, v]).text}[{i.text}]"
            )
        statements(s, 2)
        _way_out(s)
        s.emit(f"{u.text}, {v.text} = {v.text}, {u.text}")
    return True


def _ring(s: Scope) -> bool:
    """A loop over a ring: neighbours by wrap-around, by remainders, by branches, and ends told apart."""
    arrays = [a for a in all_arrays(s, dtype="f8") if len(a.shape) == 1]
    sources = [a for a in arrays if a.shape[0] > 1]
    if not sources or s.work > 10 or s.indent >= DEEPEST:
        return False
    u = s.pick(sources)
    size = u.shape[0]
    to = s.pick([a for a in arrays if a.shape == u.shape])
    i, n = s.new("i", "i", frozen=True, bound=size), s.pick([str(size), f"{u.text}.size"])
    left, right = s.new("k", "i"), s.new("k", "i")
    k = i.text
    total = s.new("v", "f")
    s.emit(f"{total.text} = {floating(s, 1)}")
    with s.block(f"for {k} in range({n}):", size):
        s.define(i)
        s.emit(s.pick([
            f"{left.text} = {k} - 1", f"{left.text} = {k} - {s.rng.randrange(1, size + 1)}",
            f"{left.text} = {k} - 1 if {k} > 0 else {n} - 1", f"{left.text} = ({k} - 1) % {n}",
            f"{left.text} = max({k} - 1, 0)",
        ]))  # fmt: skip
        s.emit(s.pick([
            f"{right.text} = ({k} + 1) % {n}", f"{right.text} = ({k} - 2 + {n}) % {n}",
            f"{right.text} = {k} + 1 if {k} < {n} - 1 else 0", f"{right.text} = min({k} + 1, {n} - 1)",
        ]))  # fmt: skip
        near = f"{u.text}[{left.text}] * {floating(s, 1)} + {u.text}[{right.text}]"
        inner = f"0.4 * math.sin({near}) + 0.3 * {u.text}[{k}]"
        kind = s.rng.randrange(5)
        if kind == 0:
            ends = s.pick([f"{k} == 0 or {k} == {n} - 1", f"{k} < 1", f"not ({k} + 2 <= {n} - 1)"])
            with s.block(f"if {ends}:"):
                s.emit(f"{to.text}[{k}] = {floating(s, 1)}")
            with s.block("else:"):
                s.emit(f"{to.text}[{k}] = {inner}")
        elif kind == 1:
            s.emit(f"{total.text} += {inner}")
        else:
            s.emit(f"{to.text}[{k}] {s.pick(['=', '=', '+='])} {inner}")
    s.define(total)
    return True


def _refuse(s: Scope) -> bool:
    """An exception that is never raised, an assertion that always holds."""
    if s.chance(0.5):
        s.emit(f"assert {floating(s, 1)} < 1e6")
    else:
        with s.block(f"if {floating(s, 1)} > 1e6:"):
            s.emit('raise ValueError("too large")')
    return True


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
    if s.chance(0.15):
        with s.block("else:"):
            statements(s, 2)
    s.define(counter)
    return True


def _return(s: Scope) -> bool:
    if s.indent < 2 or not s.chance(0.3):
        return False
    with s.block(f"if {condition(s)}:"):
        s.emit(f"return {result(s)}")
    return True


_KINDS = (
    PLAIN + [_if] * 7 + [_for] * 9 + [_while] * 4 + [_return] * 2 + [_buffers] * 2 + [_ring] * 3 + [_refuse]
)  # fmt: skip
