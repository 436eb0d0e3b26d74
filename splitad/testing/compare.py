"""Cotangents against finite differences, in random directions, and where they differ most.

Single precision: a float32 pullback rounds each operation to 6e-8, and sums of some thousand terms with
cancellation lose three digits and more of these seven.  The differences are taken in double precision where
the arguments can be widened (not inside structs and lists); where they cannot, the differences themselves
are good to 1e-4 at best (rounding to the power 4/5, and values that are larger than what changes in them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from splitad.testing.arguments import add, direction, vector
from splitad.testing.case import Case
from splitad.testing.copying import copy_args
from splitad.testing.differences import Estimate, directional
from splitad.testing.leaves import Path, Values, active_leaves, path_text, shared_scalars, snapshot

RTOL = 1e-7
RTOL_SINGLE = 3e-4  # differences in double precision
RTOL_SINGLE_BOTH = 2e-2  # differences in single precision too
SETTLED = (
    1e-4  # differences that are no better than this, relative to the derivative, prove nothing
)
SETTLED_SINGLE = 5e-2
_MOST_ENTRIES = 200
_MOST_LEAVES = 12


@dataclass(frozen=True)
class Report:
    """What was found: the largest relative disagreement, and in how many directions it was looked for."""

    worst: float = 0.0
    directions: int = 0

    def merge(self, other: Report) -> Report:
        return Report(max(self.worst, other.worst), self.directions + other.directions)


@dataclass(frozen=True)
class Problem:
    case: Case
    result_bar: Any
    seeds: Values
    single: bool
    seed: int


@dataclass(frozen=True)
class _Point:
    """Where differences are taken: the arguments (widened or not), the loss's weights and tolerances."""

    case: Case
    args: tuple[Any, ...]
    paths: list[Path]
    weights: np.ndarray
    rounding: float  # how much of the loss is lost to rounding
    rtol: float
    settled: float

    def estimate(self, along: Values) -> Estimate:
        def run(h: float) -> np.ndarray | None:
            args = self.case.moved(self.args)
            args = tuple(add(arg, along, (k,), h) for k, arg in enumerate(args))
            try:
                return vector(self.case.run(args), self.paths)
            except Exception:  # outside of f's domain at this distance
                return None

        return directional(run, self.weights)

    def tolerance(self, scale: float, found: Estimate) -> float:
        floor = self.rounding / found.step if found.step else 0.0
        return self.rtol * scale + 4 * found.error + floor


def compare(
    problem: Problem,
    cotangents: Values,
    rng: np.random.Generator,
    rtol: float | None,
    each_leaf: bool,
) -> Report:
    """Raise AssertionError where the cotangents disagree with differences."""
    point = _point(problem, rtol)
    case = problem.case
    everything = direction(case.args, case.wanted, rng)
    if not everything:
        return Report()
    cotangents = _summed(case, cotangents)
    rest = [{path: everything[path]} for path in everything] if len(everything) > 1 else []
    if len(rest) > _MOST_LEAVES:
        rest = [rest[k] for k in sorted(rng.choice(len(rest), _MOST_LEAVES, replace=False))]
    overall, worst = 0.0, 0.0
    for along in [everything, *rest] if each_leaf else [everything]:
        mine, size = _along(cotangents, along)
        found = point.estimate(along)
        scale = max(size, abs(found.value)) if np.isfinite(found.value) else size
        overall = max(overall, scale)
        if np.isfinite(mine) and not 4 * found.error <= point.settled * overall:
            raise case.fail(_unsettled(along, mine, found))
        off = abs(mine - found.value)
        if not off <= point.tolerance(scale, found):
            raise case.fail(_disagreement(problem, point, cotangents, along, mine, found))
        worst = max(worst, off / scale if scale else 0.0)
    return Report(worst, 1 + len(rest) * each_leaf)


def _point(problem: Problem, rtol: float | None) -> _Point:
    case = problem.case
    args, default, settled = case.args, RTOL, SETTLED
    values = case.run(copy_args(args))
    if problem.single:
        settled = SETTLED_SINGLE
        try:
            wide = copy_args(args, widen=True)
            values = case.run(copy_args(wide))
            args, default = wide, RTOL_SINGLE
        except Exception:  # cannot be widened, or f insists on its types
            default = RTOL_SINGLE_BOTH
    weights = {**snapshot(problem.result_bar, ("result",)), **problem.seeds}
    paths = list(weights)
    flat, outputs = vector(weights, paths), vector(values, paths)
    if flat is None or outputs is None or flat.shape != outputs.shape:
        raise case.fail("result_bar or the exit state has another structure than f's")
    size = float(np.sum(np.abs(np.where(flat == 0, 0, flat * outputs)))) if flat.size else 0.0
    rounding = size * (1e-7 if default == RTOL_SINGLE_BOTH else 1e-15)
    return _Point(case, args, paths, flat, rounding, default if rtol is None else rtol, settled)


def _summed(case: Case, cotangents: Values) -> Values:
    """A struct given twice has two shadows, each with its own part of a scalar field's cotangent; but what
    differences change is the one field."""
    summed = dict(cotangents)
    for paths in shared_scalars(case.args):
        known = [path for path in paths if path in cotangents]
        for path in known:
            summed[path] = np.asarray(sum(cotangents[p] for p in known))
    return summed


def _along(cotangents: Values, along: Values) -> tuple[float, float]:
    """The directional derivative that the cotangents give, and the size of what it sums up."""
    parts = [(np.conj(cotangents[p]) * d).real[d != 0].astype(np.float64) for p, d in along.items()]
    total = float(sum(np.sum(part) for part in parts))
    return total, float(np.sqrt(sum(np.sum(part**2) for part in parts)))


def _unsettled(along: Values, mine: float, found: Estimate) -> str:
    return (
        f"finite differences do not settle {_where(along)}: the best are {found.value:.10g} +- "
        f"{found.error:.1g}, the pullback gives {mine:.10g}.  Is f smooth there?"
    )


def _where(along: Values) -> str:
    return f"along {path_text(next(iter(along)))}" if len(along) == 1 else "along all arguments"


def _disagreement(
    problem: Problem,
    point: _Point,
    cotangents: Values,
    along: Values,
    mine: float,
    found: Estimate,
) -> str:
    lines = [
        f"the pullback disagrees with finite differences (seed={problem.seed})",
        f"  {_where(along)}: pullback {mine:.12g}, differences {_text(found)}",
    ]
    entry = _worst_entry(point, cotangents, along)
    if entry is not None:
        lines.append("  worst entry: " + entry)
    return "\n".join(lines)


def _text(found: Estimate) -> str:
    return f"{found.value:.12g} +- {found.error:.1g} (step {found.step:.1g})"


def _worst_entry(point: _Point, cotangents: Values, along: Values) -> str | None:
    """One entry at a time: the one that is furthest off, with both numbers."""
    entries = [(path, index) for path in along for index in np.ndindex(along[path].shape)]
    if len(entries) > _MOST_ENTRIES:
        chosen = np.random.default_rng(0).choice(len(entries), _MOST_ENTRIES, replace=False)
        entries = [entries[k] for k in sorted(chosen)]
    worst, text = 0.0, None
    leaves = {p: np.asarray(x) for k in point.case.wanted
              for p, x in active_leaves(point.args[k], (k,))}  # fmt: skip
    for path, index in entries:
        base = leaves[path]
        if not np.isfinite(base[index]):
            continue
        units = (1.0, 1j) if base.dtype.kind == "c" else (1.0,)
        for unit in units:
            size = max(float(abs(base[index])), 1e-3)
            step = np.zeros(base.shape, base.dtype)
            step[index] = unit * size
            found = point.estimate({path: step})
            mine = float((np.conj(cotangents[path][index]) * unit).real)
            there = Estimate(found.value / size, found.error / size, found.step * size)
            off = abs(mine - there.value)
            if not off <= worst and np.isfinite(there.value):
                worst = off if np.isfinite(off) else np.inf
                part = "" if len(units) == 1 else (".imag" if unit == 1j else ".real")
                where = path_text(path) + (str(list(index)) if index else "") + part
                text = f"{where}: pullback {mine:.12g}, differences {_text(there)}"
    return text
