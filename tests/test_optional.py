"""What makes derivatives fast can be left out, one by one and all together, and they stay the same."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

import splitad as ad
from benchmarks.kernels import KERNELS
from splitad.pipeline import OPTIONAL, Options
from splitad.testing import copy_args
from tests.fuzz.interpreted import Interpreted


def rows(m):
    """A view for each row."""
    total = 0.0
    for i in range(m.shape[0]):
        row = m[i]
        for j in range(row.shape[0]):
            total += row[j] * m[i, j] / m.shape[1]
    return total


def forces(x, v, steps):
    """Forces between all pairs, step after step."""
    for _ in range(steps):
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                v[i] += 0.1 * math.exp(-abs(x[i] - x[j]))
        for i in range(x.shape[0]):
            x[i] += 0.1 * v[i]
    return x[0] * x[1]


def neighbours(x, k):
    """Indices that are computed from the counter, and the same element by several of them."""
    total = 0.0
    for i in range(2, x.shape[0] - 2):
        total += x[i - k] * x[i + k] * x[i - k + 1]
    return total


PROGRAMS: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    name: (KERNELS[name].fn, KERNELS[name].small, KERNELS[name].wrt)
    for name in ["burgers", "cholesky", "gauss_seidel", "gmm", "lorenz96", "nbody"]
}
PROGRAMS["forces"] = (forces, lambda: (np.arange(1.0, 5.0), np.arange(4.0), 3), (0, 1))
PROGRAMS["rows"] = (rows, lambda: (np.arange(1.0, 7.0).reshape(2, 3),), (0,))
PROGRAMS["neighbours"] = (neighbours, lambda: (np.arange(1.0, 9.0), 2), (0,))


def _run(name: str) -> tuple[list[np.ndarray], str]:
    """The value and the gradients, from the pair run in plain Python, and the pair's text."""
    function, make, wrt = PROGRAMS[name]
    args = make()
    kinds = [ad.Const] * len(args)
    for k in wrt:
        kinds[k] = ad.Duplicated if isinstance(args[k], np.ndarray) else ad.Active
    forward = Interpreted(numba.njit(function), tuple(kinds), args, {"any_order": True})
    result, pullback = forward(*copy_args(args))
    shadows = pullback.make_zero()
    scalars = pullback(1.0, *shadows)
    text = forward.text.forward + forward.text.pullback
    return [np.asarray(g) for g in (result, *scalars, *shadows)], text


@pytest.fixture(scope="module")
def with_all() -> dict[str, tuple[list[np.ndarray], str]]:
    return {name: _run(name) for name in PROGRAMS}


# that of kernels is left out in tests/targets/cuda, that of value_and_grad in tests/analysis/test_sweeps.py
_ELSEWHERE = ("cuda_gather", "sweeps")


@pytest.mark.parametrize("without", [*(o for o in OPTIONAL if o not in _ELSEWHERE), "everything"])
def test_what_is_left_out_changes_nothing(without: str, with_all, monkeypatch) -> None:
    left_out = OPTIONAL if without == "everything" else (without,)
    monkeypatch.setenv("SPLITAD_WITHOUT", ",".join(left_out))
    assert Options().without == tuple(sorted(left_out))
    other_texts = 0
    for name, (expected, expected_text) in with_all.items():
        found, text = _run(name)
        other_texts += text != expected_text
        assert any(np.any(g != 0.0) for g in found[1:])
        for one, other in zip(found, expected, strict=True):
            # sums in another order: some hundred terms, which largely cancel in cholesky
            bound = 1e-10 * np.max(np.abs(other))
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=bound, err_msg=name)
    # fold has little to do in these: the front end does most of it
    assert other_texts or without == "fold", "it was not left out"


def test_a_name_that_is_none(monkeypatch) -> None:
    monkeypatch.setenv("SPLITAD_WITHOUT", "fold,folding")
    with pytest.raises(ValueError, match="SPLITAD_WITHOUT names folding"):
        Options()
