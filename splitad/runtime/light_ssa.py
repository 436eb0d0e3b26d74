"""Numba's static single assignment, for all statements that mention a variable instead of for all there are.

Numba goes over the whole function twice for each variable that is assigned more than once, or not before each
use.  Here it is known beforehand which statements mention which.  The versions of the variables, their names
and where they meet are Numba's, in the same order.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from copy import copy
from typing import Any

from numba.core import config, errors, ir, ir_utils
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.ssa import UndefinedVariable, _compute_phi_locations, _iterated_domfronts


class _Place:
    """Where a statement is, whatever it is replaced by."""

    __slots__ = ("label", "position", "stmt")

    def __init__(self, label: int, position: int, stmt: Any) -> None:
        self.label, self.position, self.stmt = label, position, stmt


def reconstruct(blocks: dict[int, Any]) -> dict[int, Any]:
    """The blocks in which each variable is assigned once."""
    cfg = compute_cfg_from_blocks(blocks)
    fronts = _iterated_domfronts(cfg)
    assigned: dict[str, list[_Place]] = defaultdict(list)
    used: dict[str, list[_Place]] = defaultdict(list)
    places: dict[int, list[_Place]] = {}
    for label, block in blocks.items():
        places[label] = [_Place(label, k, stmt) for k, stmt in enumerate(block.body)]
        for place in places[label]:
            if isinstance(place.stmt, ir.Assign):
                assigned[place.stmt.target.name].append(place)
            for name in dict.fromkeys(var.name for var in _reads(place.stmt)):
                used[name].append(place)

    scope = next(iter(blocks.values())).scope
    phis: dict[int, list[Any]] = {label: [] for label in blocks}
    for name in _to_be_split(assigned, used, cfg.dominators()):
        versions = _Versions(name, assigned[name], scope, cfg, fronts, blocks)
        for place in used[name]:
            place.stmt = versions.put_into(place)
        for label, found in versions.phis.items():
            phis[label][:0] = found

    made = {}
    for label, block in blocks.items():
        made[label] = ir.Block(scope=block.scope, loc=block.loc)
        made[label].body = phis[label] + [place.stmt for place in places[label]]
    return made


def _reads(stmt: Any) -> list[Any]:
    if not isinstance(stmt, ir.Assign):
        return stmt.list_vars()  # type: ignore[no-any-return]
    if isinstance(stmt.value, ir.Var):
        return [stmt.value]
    return stmt.value.list_vars() if isinstance(stmt.value, ir.Inst) else []


def _to_be_split(
    assigned: dict[str, list[_Place]], used: dict[str, list[_Place]], dominators: Any
) -> list[str]:
    """Variables that are assigned more than once, then those that are used where they may not be."""
    found = [name for name, places in assigned.items() if len(places) > 1]
    several = set(found)
    for name, places in used.items():
        if name not in several:
            homes = {place.label for place in assigned.get(name, ())}
            if any(homes.isdisjoint(dominators[place.label]) for place in places):
                found.append(name)
    return found


class _Versions:
    """One variable's."""

    def __init__(
        self, name: str, places: list[_Place], scope: Any, cfg: Any, fronts: Any, blocks: Any
    ) -> None:
        self.name, self.scope, self.cfg, self.blocks = name, scope, cfg, blocks
        self.phis: dict[int, list[Any]] = {}
        # (position, assignment) by block; phis are before all positions
        self.assigned: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for place in places:
            old = place.stmt
            target = old.target
            if self.assigned:
                target = scope.redefine(name, loc=old.loc)
            place.stmt = ir.Assign(target=target, value=old.value, loc=old.loc)
            self.assigned[place.label].append((place.position, place.stmt))
        self.loc: Any = (
            None  # of the block at hand: Numba gives it to what meets further up as well
        )
        self.meet = _compute_phi_locations(fronts, self.assigned)

    def put_into(self, place: _Place) -> Any:
        """The statement with the version that it reads."""
        stmt = place.stmt
        version = self._before(place).target
        if version is ir.UNDEFINED or version.name == self.name:
            return stmt
        if not isinstance(stmt, ir.Assign):
            stmt = copy(stmt)
            ir_utils.replace_vars_stmt(stmt, {self.name: version})
            return stmt
        value = version
        if not isinstance(stmt.value, ir.Var):
            value = copy(stmt.value)
            ir_utils.replace_vars_inner(value, {self.name: version})
        return ir.Assign(target=stmt.target, value=value, loc=stmt.loc)

    def _before(self, place: _Place) -> Any:
        for position, found in reversed(self.assigned.get(place.label, ())):
            if position < place.position:
                return found
        self.loc = self.blocks[place.label].loc
        return self._at_start(place.label, place.stmt.loc)

    def _at_start(self, label: int, loc: Any) -> Any:
        if label not in self.meet:
            above = self.cfg.immediate_dominators()[label]
            if above == label:
                if config.ALWAYS_WARN_UNINIT_VAR:
                    text = f"Detected uninitialized variable {self.name}"
                    warnings.warn(errors.NumbaWarning(text, loc=loc), stacklevel=1)
                return UndefinedVariable
            return self._at_end(above, loc)
        loc = self.loc
        target = self.scope.redefine(self.name, loc=loc)
        phi = ir.Assign(target=target, value=ir.Expr.phi(loc=loc), loc=loc)
        self.assigned[label].insert(0, (-1, phi))
        self.phis.setdefault(label, []).append(phi)
        for before, _ in self.cfg.predecessors(label):
            phi.value.incoming_values.append(self._at_end(before, loc).target)
            phi.value.incoming_blocks.append(before)
        return phi

    def _at_end(self, label: int, loc: Any) -> Any:
        found = self.assigned.get(label)
        return found[-1][1] if found else self._at_start(label, loc)
