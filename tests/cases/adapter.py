"""Drives splitad through one of the handout cases: ``run_case(case)`` raises AssertionError if it fails."""

from __future__ import annotations

from typing import Any

import numpy as np

import splitad as ad
from splitad.testing.copying import arrays_in
from tests.cases.handout_cases import compile_case
from tests.pairs import pair

_PARALLEL_REPEATS = 20


def run_case(case: Any) -> None:
    try:
        forward = pair(compile_case(case), *(_activities(case) if case.const else ()))
        if case.kind == "script":
            _run_script(case, forward)
        elif case.kind == "error":
            _run_error(case, forward)
        else:
            for _ in range(_PARALLEL_REPEATS if case.kind == "parallel" else 1):
                _run(case, forward)
    except ad.SplitadError:
        if not case.allow_error:
            raise


def _activities(case: Any) -> list[Any]:
    args = case.script[0][2]({}) if case.kind == "script" else case.args()
    return [ad.Const if k in case.const else activity(arg) for k, arg in enumerate(args)]


def activity(arg: Any) -> Any:
    if isinstance(arg, (float, complex, np.floating, np.complexfloating)):
        return ad.Active
    if isinstance(arg, np.ndarray):
        return ad.Duplicated if arg.dtype.kind in "fc" else ad.Const
    return ad.Duplicated if hasattr(arg, "_numba_type_") else ad.Const


def _positions(case: Any, args: tuple[Any, ...], kind: Any) -> list[int]:
    return [k for k, a in enumerate(_activities(case)) if a is kind]


def _run(case: Any, forward: Any) -> None:
    args = case.args()
    result, pullback = forward(*args)
    if case.value is not None:
        _same(case, "value", result, case.value, 1e-12, 1e-12)
    for key, content in case.post.items():
        _same(case, f"post {key}", leaf(args, key), content, 1e-12, 1e-12)
    before = [a.tobytes() for a in arrays_in(args)]
    gradient = _gradient(case, pullback, args)
    assert before == [a.tobytes() for a in arrays_in(args)], "the pullback wrote to an argument"
    fresh = case.args()
    for key in case.unchanged:
        _same(case, f"unchanged {key}", leaf(args, key), leaf(fresh, key), 0, 0)
    if case.accept is not None:
        assert case.accept(gradient), f"not a subgradient: {gradient}"
        return
    for key, want in case.expected.items():
        have = gradient[key]
        start = leaf(fresh, key)
        if isinstance(start, np.ndarray):
            assert have.dtype == start.dtype, f"cotangent of {key} is {have.dtype}"
        _same(case, f"cotangent of {key}", have, want, case.rtol, case.atol)


def _gradient(case: Any, pullback: Any, args: tuple[Any, ...]) -> dict[Any, Any]:
    """The cotangents by key, for shadows that start as the case's seeds."""
    duplicated, active = _positions(case, args, ad.Duplicated), _positions(case, args, ad.Active)
    shadows = dict(zip(duplicated, pullback.make_zero(), strict=True))
    for group in case.aliases:
        mine = [leaf(shadows, key) for key in group]
        assert all(np.shares_memory(mine[0], other) for other in mine), f"{group} do not share"
    for key, seed in case.seeds.items():
        _seed(shadows, key, seed)
    returned = pullback(case.cotangent, *shadows.values())
    found = {**shadows, **dict(zip(active, returned, strict=True))}
    return {key: leaf(found, key) for key in case.expected}


def _seed(shadows: dict[int, Any], key: Any, seed: Any) -> None:
    target = leaf(shadows, key)
    if isinstance(target, np.ndarray):
        target[...] = seed
    else:
        setattr(leaf(shadows, key[:-1]), key[-1], seed)


def _run_script(case: Any, forward: Any) -> None:
    env: dict[str, Any] = {}
    tapes: dict[str, Any] = {}
    shadows: dict[str, Any] = {}
    for step in case.script:
        if step[0] == "args":
            env[step[1]] = step[2](env)
        elif step[0] == "forward":
            tapes[step[1]] = forward(*env[step[2]])[1]
        elif step[0] == "write":
            env[step[1]][step[2]][...] = step[3]
        elif step[0] == "pullback":
            _, tape, cotangent, names = step
            zeros = tapes[tape].make_zero()
            used = [
                shadows.setdefault(name, zero)
                for (_, name), zero in zip(sorted(names.items()), zeros, strict=True)
            ]
            tapes[tape](cotangent, *used)
        else:
            _, name, field, want = step
            have = shadows[name] if field is None else getattr(shadows[name], field)
            _same(case, f"shadow {name}", have, want, case.rtol, case.atol)


def _run_error(case: Any, forward: Any) -> None:
    """The error must come, at the place stated at the latest, unless the right answer is allowed too."""
    args = case.args()
    try:
        _, pullback = forward(*args)
        gradient = _gradient(case, pullback, args)
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
        if case.error_at == "forward":
            assert raised == case.error, raised
        else:
            assert isinstance(error, ad.SplitadError), raised
    else:
        assert case.expected, "no error was raised"
        for key, want in case.expected.items():
            _same(case, f"cotangent of {key}", gradient[key], want, case.rtol, case.atol)
    fresh = case.args()
    for key in case.unchanged:
        _same(case, f"unchanged {key}", leaf(args, key), leaf(fresh, key), 0, 0)


def leaf(values: Any, key: Any) -> Any:
    if not isinstance(key, tuple):
        return values[key]
    found = values[key[0]]
    for name in key[1:]:
        found = getattr(found, name)
    return found


def _same(case: Any, what: str, have: Any, want: Any, rtol: float, atol: float) -> None:
    alike = np.shape(have) == np.shape(want)
    alike = alike and np.allclose(have, want, rtol=rtol, atol=atol)
    assert alike, f"{case.id}: {what} is {have!r}, expected {want!r}"
