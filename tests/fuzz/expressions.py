"""Random expressions of single values: floats, integers, complex numbers and conditions.

Every float expression stays within a few units whatever goes into it, or grows at most by a factor below
two, so that programs neither overflow nor become chaotic (the runner drops those that do).
"""

from __future__ import annotations

from tests.fuzz.scope import Name, Scope, Shape

SCALAR_HELPERS = ("h_mix", "h_branch", "h_power")


def floating(s: Scope, depth: int = 2) -> str:
    """A float expression."""
    if depth <= 0 or s.chance(0.25):
        return _leaf(s)
    kind = s.rng.randrange(24)
    a = floating(s, depth - 1)
    if kind < 6:
        return _unary(s, a)
    if kind in (18, 19, 20):
        return _reduction(s, depth) or a
    b = floating(s, depth - 1)
    if kind < 9:
        return f"(0.6 * {a} + 0.5 * {b})"
    if kind < 11:
        return f"({a} * {bounded(s, b)})"
    if kind == 11:
        return f"({a} - 0.5 * {b})"
    if kind == 12:
        return f"{a} / (1.5 + {b} * {b})"
    if kind == 13:
        return s.pick([f"max({a}, {b})", f"min({a}, {b})", f"abs({a})", f"np.maximum({a}, {b})"])
    if kind == 14:
        return f"({a} if {condition(s, depth - 1)} else {b})"
    if kind == 15:
        return f"{s.pick(SCALAR_HELPERS)}({a}, {b})"
    if kind == 16:
        return f"0.1 * {integer(s)} * {bounded(s, a)}"
    if kind == 17:
        return s.pick(
            [f"math.atan2({a}, 1.5 + {b} * {b})", f"0.5 * math.hypot({a}, 1.0 + abs({b}))"]
        )
    return _rare(s, a, b)


def _rare(s: Scope, a: str, b: str) -> str:
    kind = s.rng.randrange(10)
    inner = s.names("g")
    if inner and kind < 4:
        g = s.pick(inner).text
        return f"h_apply({g}, {a})" if s.chance(0.2) else f"{g}({a})"
    if s.names("c") and kind < 7:
        z = complex_(s, 1)
        return s.pick([f"({z}).real", f"({z}).imag", f"abs({z})", f"np.real({z})"])
    arrays = [v for v in all_arrays(s) if len(v.shape) == 1 and v.shape[0] > 1]
    if kind == 7 and arrays and s.chance(0.3):
        return f"h_walk({s.pick(arrays).text}, {integer(s)} % 3)"
    if kind == 7 and s.names("s") and s.chance(0.3):
        return f"h_count({s.pick(s.names('s')).text}, {integer(s)} % 3)"
    if kind == 8 and s.chance(0.3):
        return f"h_deep({a}, {integer(s)} % 3)"
    if kind == 9:
        return f"0.1 * {s.pick(['math.floor', 'np.ceil', 'np.sign', 'round'])}(2.0 * {a})"
    return (
        f"np.where({condition(s, 0)}, {a}, {b}).item()" if s.chance(0.05) else f"({a} - {b} * 0.4)"
    )


def _leaf(s: Scope) -> str:
    choices = [v.text for v in s.names("f")] * 2
    choices += [f"{v.text}[{s.rng.randrange(2)}]" for v in [*s.names("t"), *s.names("p")]]
    choices += [f"{v.text}.{s.pick('uw')}" for v in s.names("p")]
    choices += [f"{v.text}.c" for v in s.names("s")]
    choices += [f"{v.text}.g" for v in s.names("q")]
    choices += [f"{v.text}[{list_index(s, v)}]" for v in s.names("l")]
    choices += [
        f"{v.text}[{s.pick(['0', '-1', f'{integer(s)} % {v.text}.size'])}]" for v in s.names("d")
    ]
    choices += [f"GLOBAL[{index(s, 4)}]"] if s.chance(0.1) else []
    arrays = all_arrays(s)
    if arrays and (not choices or s.chance(0.45)):
        return element(s, s.pick(arrays))
    if not choices or s.chance(0.12):
        return s.number()
    return s.pick(choices)


def list_index(s: Scope, items: Name) -> str:
    """An index of a list that has at least ``bound`` items."""
    if s.chance(0.6):
        return index(s, items.bound)
    return s.pick([f"len({items.text}) - 1", "-1", f"{integer(s)} % len({items.text})"])


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


def bounded(s: Scope, a: str) -> str:
    return f"{s.pick(['math.sin', 'math.cos', 'math.tanh'])}({a})"


def _reduction(s: Scope, depth: int) -> str | None:
    # each of the two files needs the other: sums of arrays are floats, and arrays are made of floats
    from tests.fuzz.array_expressions import array, dynamic_slice, vector

    arrays = all_arrays(s)
    if not arrays:
        return None
    chosen = s.pick(arrays)
    size = max(total(chosen.shape), 1)
    kind = s.rng.randrange(13)
    if kind == 12 and s.names("d"):
        text = s.pick(s.names("d")).text
        return s.pick(
            [f"h_sum({text})", f"0.3 * {text}.sum()", f"0.2 * ({text} * np.sin({text})).sum()"]
        )
    if kind < 3:
        if len(chosen.shape) == 2:
            return f"h_sum2({chosen.text})"
        if len(chosen.shape) == 3:
            return f"h_sum3({chosen.text})"
        return f"0.5 * h_sum({s.pick([vector(s, chosen), dynamic_slice(s, chosen)])})"
    if kind == 3 and len(chosen.shape) == 1:
        return s.pick(
            [
                f"0.3 * {dynamic_slice(s, chosen)}.sum()",
                f"0.3 * {chosen.text}[{chosen.text} > {floating(s, 0)}].sum()",
                f"0.3 * np.sum({dynamic_slice(s, chosen)} * {floating(s, 0)})",
            ]
        )
    a = array(s, chosen.shape, depth - 1)
    if kind == 4 and len(chosen.shape) == 1 and chosen.shape[0] > 0:
        b = array(s, chosen.shape, depth - 1)
        return s.pick(
            [f"np.dot({a}, {b}) / {size}", f"({a} @ {b}) / {size}", f"({a} * {b}).sum() / {size}"]
        )
    if kind == 5:
        return s.pick([f"np.max({a})", f"np.min({a})", f"({a}).max()", f"({a}).min()"])
    if kind == 6 and len(chosen.shape) < 3:
        return s.pick(
            [
                f"np.linalg.norm({a}) / {size}",
                f"np.var({a})",
                f"0.5 * np.std({a} + 0.1 * {chosen.text})",
            ]
        )
    if kind == 7:
        return f"np.prod(np.cos({a}))"
    if kind == 8 and len(chosen.shape) == 1 and s.chance(0.5):
        with_index = [v.text for v in s.names("x") if v.bound <= chosen.shape[0]]
        if with_index:
            return f"{chosen.text}[{s.pick(with_index)}].sum() / {size}"
    structs = s.names("s")
    if kind == 9 and structs:
        return f"{s.pick(structs).text}.energy"
    if kind == 10 and s.names("l"):
        items = s.pick(s.names("l")).text
        return s.pick([f"0.2 * sum({items})", f"0.2 * np.array({items}).sum()"])
    return s.pick([f"({a}).sum() / {size}", f"np.sum({a}) / {size}", f"({a}).mean()"])


# ---- integers ----------------------------------------------------------------------------------------


def integer(s: Scope) -> str:
    """A non-negative integer expression."""
    choices = [v.text for v in s.names("i")] * 3
    choices += [f"{v.text}.shape[0]" for v in all_arrays(s)] + [str(s.rng.randrange(4))]
    choices += [f"len({v.text})" for v in s.names("l")]
    choices += [f"{v.text}[{index(s, v.shape[0])}]" for v in s.names("x")]
    choices += [f"{v.text}.k" for v in s.names("s")]
    a, b = s.pick(choices), s.pick(choices)
    kind = s.rng.randrange(9)
    if kind < 5:
        return a
    return {
        5: f"({a} + {b})",
        6: f"({a} * {b} + 1)",
        7: f"({a} // 2)",
        8: f"{s.pick(['max', 'min'])}({a}, {b})",
    }[kind]


def index(s: Scope, size: int) -> str:
    """An index in range for an axis of this size, negative ones included."""
    counters = [v.text for v in s.names("i") if 0 < v.bound <= size]
    counters += [
        f"{v.text}[{s.rng.randrange(v.shape[0])}]" for v in s.names("x") if v.bound <= size
    ]
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
    kind = s.rng.randrange(11)
    if kind < 5:
        return f"{floating(s, depth)} {s.pick(['<', '>', '<=', '>='])} {floating(s, depth)}"
    if kind < 7:
        return f"{integer(s)} % {s.rng.randrange(2, 4)} {s.pick(['==', '!='])} 0"
    if kind == 7:
        return f"{s.number()} - 1.0 < {floating(s, depth)} < 1.1"
    flags = s.names("b")
    if kind == 8 and flags:
        flag = s.pick(flags)
        return f"{flag.text}[{index(s, flag.shape[0])}]"
    joined = f"{condition(s, 0)} {s.pick(['and', 'or'])} {condition(s, 0)}"
    return f"({joined})" if kind < 10 else f"not ({joined})"


# ---- complex numbers ---------------------------------------------------------------------------------


def complex_(s: Scope, depth: int = 2) -> str:
    """A complex expression."""
    choices = [v.text for v in s.names("c")] + [element(s, v) for v in all_arrays(s, dtype="c16")]
    if not choices:
        return f"complex({floating(s, 1)}, {floating(s, 1)})"
    a = s.pick(choices)
    if depth <= 0:
        return a
    b = complex_(s, depth - 1)
    return s.pick(
        [
            f"({a} * np.exp(1j * {floating(s, 0)}))",
            f"({a} * {bounded(s, floating(s, 0))} + 0.4 * {b})",
            f"(0.5 * {a} + 0.6j * {b})",
            f"{a}.conjugate()",
            f"np.conj({b})",
            f"{a} / (2.0 + abs({b}))",
            f"complex({floating(s, 0)}, {a}.imag)",
            f"0.4 * {a} * {b} / (1.0 + abs({a} * {b}))",
            f"0.5 * h_complex({a}, {floating(s, 0)}) / (1.0 + abs({a}) ** 2)",
            f"({a} - 0.3j)",
            f"np.sin({a} / (1.0 + abs({a})))",
        ]
    )


# ---- arrays in sight ---------------------------------------------------------------------------------


def all_arrays(s: Scope, shape: Shape | None = None, dtype: str = "f") -> list[Name]:
    """Array variables and array fields of a dtype (all real ones by default); none of them empty."""
    found = [v for v in s.names("a", shape) if total(v.shape) and v.dtype.startswith(dtype)]
    if not "f8".startswith(dtype):
        return found
    for struct in s.names("s"):
        if shape in (None, struct.shape):
            found += [Name(f"{struct.text}.{f}", "a", struct.shape, frozen=True) for f in "hg"]
    for items in s.names("la"):
        if shape in (None, items.shape):
            found.append(
                Name(
                    f"{items.text}[{s.rng.randrange(-items.bound, items.bound)}]",
                    "a",
                    items.shape,
                    frozen=True,
                )
            )
    for box in s.names("q"):
        if shape in (None, box.shape):
            found.append(Name(f"{box.text}.arr", "a", box.shape, frozen=True))
    return found


def total(shape: Shape) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
