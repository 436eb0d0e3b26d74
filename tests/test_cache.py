"""Compiled pairs on disk: a second process compiles nothing and computes the same; nothing goes stale.

The programs run in processes of their own.  Each prints its results and what functions Numba compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import splitad as ad
from splitad.cache import CompiledPair

ROOT = Path(__file__).parent.parent

HEAD = """
import json
import os
from collections import namedtuple
import numpy as np
from numba import float64, njit
from numba.core import event
from numba.experimental import jitclass
import splitad as ad
import kernels

compiled = []
class Listener(event.Listener):
    def on_start(self, e):
        f = e.data["dispatcher"].py_func
        compiled.append(f"{f.__module__}.{f.__qualname__}")
    def on_end(self, e):
        pass
event.register("numba:compile", Listener())
out = {}
"""

KERNELS = """
from numba import njit

K = 2.0

@njit
def flux(x):
    return K * x * x
"""

# what there is to load: pairs, gradients, structs, what is compiled late, exceptions
EVERYTHING = (
    HEAD
    + """
@njit
def step(u, nu):
    for i in range(1, u.shape[0]):
        u[i] -= nu * kernels.flux(u[i]) * u[i - 1]

@njit
def loss(u, nu):
    step(u, nu)
    step(u, nu)
    return u.sum()

@njit
def square(x):
    if x < 0.0:
        raise ValueError("negative")
    return x * x

@njit
def add(a, b):
    for i in range(a.shape[0]):
        a[i] += a[i] * b[i]

@jitclass([("x", float64[:]), ("t", float64)])
class State:
    def __init__(self, x, t):
        self.x = x
        self.t = t
    def scale(self):
        return 3.0 * self.t

@njit
def advance(s, dt):
    s.x[0] = s.x[0] * s.scale() * dt
    s.t = s.t + dt

@njit
def energy(s):
    s.x[0] *= s.t
    return s.x[0] * s.x[1]

@njit
def first(p):
    return p.k * p.a[0]

forward = ad.split(step, ad.Duplicated, ad.Active)
again = ad.split(step, ad.Duplicated, ad.Active)
u = np.linspace(1.0, 2.0, 5)
pullbacks = [f(u, 0.1)[1] for f in (forward, again, forward)]
bars = []
for pullback in reversed(pullbacks):
    (zero,) = pullback.make_zero()
    zero += 1.0
    bars.append([pullback(None, zero)[0], zero.tolist()])
out["step"] = bars, u.tolist()
value, (u_bar, nu_bar) = ad.value_and_grad(loss, wrt=(0, 1))(np.linspace(1.0, 2.0, 5), 0.1)
out["loss"] = value, u_bar.tolist(), nu_bar
try:
    ad.split(square)(-3.0)
except ValueError as error:
    out["error"] = str(error)
try:
    forward(np.ones(3), 0.1)[1](None, np.ones(4))
except ad.ShadowError as error:
    out["shadow"] = str(error)
both = ad.split(add, ad.Duplicated, ad.Duplicated)
for part in (slice(0, 2), slice(2, 4)), (slice(0, 4), slice(1, 5)):
    a, bar = np.arange(1.0, 6.0), np.ones(5)
    pullback = both(a[part[0]], a[part[1]])[1]
    pullback(None, bar[part[0]], bar[part[1]])
    out[str(part)] = a.tolist(), bar.tolist()
s = State(np.ones(2), 0.5)
pullback = ad.split(advance, ad.Duplicated, ad.Active)(s, 0.25)[1]
(shadow,) = pullback.make_zero()
shadow.x[0] = shadow.t = 1.0
out["struct"] = pullback(None, shadow), s.x.tolist(), s.t, shadow.x.tolist(), shadow.t
value, bar = ad.value_and_grad(energy)(s)
zero = ad.make_zero(s)
out["state"] = value, bar.x.tolist(), bar.t, zero.x.tolist(), zero.t, s.x.tolist()
equal = [namedtuple("Parts", "a k") for _ in range(2)]  # which comes first, is chance
made = [cls(np.ones(2), 3.0) for cls in equal[:: int(os.environ.get("ORDER", "1"))]]
for p in made:
    pullback = ad.split(first)(p)[1]
    (zero,) = pullback.make_zero()
    assert type(zero) is type(p) and type(pullback(1.0, zero)[0]) is type(p)
bar = ad.grad(first)(made[0])
out["namedtuple"] = type(bar) is type(made[0]), bar.a.tolist(), bar.k
gradient = ad.grad(square)
out["grad"] = gradient(3.0)

@njit(cache=True)
def user(u, n):
    tapes = [forward(u, 0.1)[1]]
    for k in range(n):
        tapes.append(forward(u, 0.1)[1])
    bar = np.ones(u.shape[0])
    total = 0.0
    while len(tapes) > 0:
        total += tapes.pop()(None, bar)[0]
    return total, bar[0], gradient(2.0)

before = len(compiled)
out["user"] = user(np.linspace(1.0, 2.0, 5), 3)
print(json.dumps([out, compiled[:before] + [f for f in compiled if "user" in f]]))
"""
)

# what may change: a function in another file, a frozen global, a rule
SMALL = (
    HEAD
    + """
table = np.array([1.0, float(kernels.K)])

@njit
def softplus(x):
    return np.log1p(np.exp(x))

ad.rule(softplus, dx=kernels.RULE if hasattr(kernels, "RULE") else "1.0", samples=[(1,)])

@njit
def f(x):
    return kernels.flux(x) + table[1] * softplus(x)

out["grad"] = ad.grad(f)(0.5)
print(json.dumps([out, compiled]))
"""
)


def start(folder: Path, text: str, kernels: str = KERNELS, **env: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(text)
    (folder / "kernels.py").write_text(kernels)
    settings = {
        "SPLITAD_CACHE_DIR": str(folder / "cache"),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",  # a file that is edited within a second is read again
    }
    given = {k: v for k, v in os.environ.items() if k not in ("SPLITAD_CACHE", "SPLITAD_CHECK")}
    return subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=folder, env={**given, **settings, **env},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[Any, list[str]]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    results, compiled = json.loads(out)
    return results, compiled


def run(*args: Any, **env: str) -> tuple[Any, list[str]]:
    return finish(start(*args, **env))


def ours(compiled: list[str]) -> list[str]:
    """What was compiled for pairs."""
    return [name for name in compiled if "splitad" in name or name.startswith("__main__.f")]


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    expected, _ = run(tmp_path, EVERYTHING, SPLITAD_CACHE="0")
    results, compiled = run(tmp_path, EVERYTHING)
    assert results == expected and ours(compiled)
    results, compiled = run(tmp_path, EVERYTHING)
    assert results == expected
    # a jitclass and its constructor are Numba's; a function of the user's that calls pairs is never cached
    assert not ours(compiled)
    assert set(compiled) <= {
        "None.ctor", "None.accessor", "None.mutator", "__main__.State.__init__", "__main__.user",
    }  # fmt: skip
    assert "__main__.user" in compiled
    # what is damaged is made again
    for k, entry in enumerate(sorted((tmp_path / "cache" / "compiled").iterdir())):
        data = entry.read_bytes()
        entry.write_bytes(data[: len(data) // 2] if k % 2 else data[:-9] + bytes(9))
    results, compiled = run(tmp_path, EVERYTHING)
    assert results == expected and ours(compiled)
    assert not ours(run(tmp_path, EVERYTHING, ORDER="-1")[1])


def test_two_processes_at_the_same_time(tmp_path: Path) -> None:
    (one, _), (two, _) = map(finish, [start(tmp_path, SMALL) for _ in range(2)])
    three, compiled = run(tmp_path, SMALL)
    assert one == two == three and not ours(compiled)


def test_nothing_goes_stale(tmp_path: Path) -> None:
    def gradient(kernels: str, **env: str) -> tuple[float, list[str]]:
        results, compiled = run(tmp_path, SMALL, kernels, **env)
        return results["grad"], ours(compiled)

    def derivative(k: float, power: float, slope: float) -> float:
        return k * power * 0.5 ** (power - 1.0) + k * slope

    value, compiled = gradient(KERNELS)
    assert value == pytest.approx(derivative(2.0, 2.0, 1.0)) and compiled
    assert gradient(KERNELS) == (value, [])
    # lines above, and functions that are not called, change nothing
    assert gradient("# a comment\n" + KERNELS + "\ndef other(): pass\n") == (value, [])
    value, compiled = gradient(KERNELS.replace("x * x", "x * x * x"))  # a function in another file
    assert value == pytest.approx(derivative(2.0, 3.0, 1.0)) and compiled
    value, compiled = gradient(KERNELS.replace("2.0", "3.0"))  # a frozen global, and a frozen array
    assert value == pytest.approx(derivative(3.0, 2.0, 1.0)) and compiled
    value, compiled = gradient(KERNELS + "\nRULE = '7.0'\n")  # a rule
    assert value == pytest.approx(derivative(2.0, 2.0, 7.0)) and compiled
    fast = KERNELS.replace("@njit", "@njit(error_model='numpy')")  # an option
    assert gradient(fast)[1]
    assert gradient(KERNELS, NUMBA_OPT="1")[1]  # a setting
    assert gradient(KERNELS)[1] == []  # what was there first is there still


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_a_folder_that_others_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    process = start(tmp_path, SMALL)
    _, error = process.communicate()
    assert process.returncode != 0
    assert "others may write to the cache folder" in error and "chmod go-w" in error


table = np.array([2.0, 3.0])


@njit
def by_table(x):
    return x * table[1]


def test_a_frozen_array_is_the_same_in_both_halves() -> None:
    forward = ad.split(by_table)
    result, pullback = forward(1.0)
    table[1] = 5.0  # after the forward was compiled, before the pullback is
    assert (result, pullback(1.0)) == (3.0, (3.0,)) and forward(1.0)[0] == 3.0
    result, pullback = ad.split(by_table)(1.0)
    assert (result, pullback(1.0)) == (5.0, (5.0,))


factor = 2.0


@njit
def by_factor(x):
    return x * factor


def test_a_half_that_is_made_later_is_of_the_same_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLITAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("SPLITAD_CACHE", "1")
    ad.split(by_factor)(1.0)
    monkeypatch.setitem(globals(), "factor", 3.0)
    result, pullback = ad.split(by_factor)(1.0)
    assert (result, pullback(1.0)) == (3.0, (3.0,))
    monkeypatch.setitem(globals(), "factor", 2.0)
    result, pullback = ad.split(by_factor)(1.0)  # as another process would: from what was kept
    assert result == 2.0
    monkeypatch.setitem(globals(), "factor", 4.0)
    with pytest.raises(ad.SplitadError, match=r"(?s)by_factor reads has changed.*split again"):
        pullback(1.0)
    monkeypatch.setitem(globals(), "factor", 2.0)
    assert pullback(1.0) == (2.0,)


def test_halves_of_two_texts_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("SPLITAD_CACHE", "1")
    monkeypatch.setitem(globals(), "factor", 7.0)
    ad.split(by_factor)(1.0)
    result, pullback = ad.split(by_factor)(1.0)
    monkeypatch.setattr(CompiledPair, "_text_digest", lambda self: "another text")
    with pytest.raises(ad.SplitadError, match=r"(?s)is not what was kept.*SPLITAD_CACHE=0"):
        pullback(1.0)


def test_what_cannot_be_told_is_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    monkeypatch.setenv("SPLITAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("SPLITAD_CACHE", "1")
    monkeypatch.setitem(globals(), "shape", Odd())  # only an attribute is called so

    @njit
    def f(x):
        return x.shape[0] * x[0]

    assert ad.grad(f)(np.ones(3)).tolist() == [3.0, 0.0, 0.0]
    assert not list(tmp_path.glob("compiled/*-pair"))
