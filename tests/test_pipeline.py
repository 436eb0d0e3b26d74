"""pipeline: the passes together; what `show` prints; modules that are shared."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from numba import types

import splitad as ad
from splitad import pipeline
from splitad.errors import NoRuleError
from splitad.explain.table import table
from splitad.ir import nodes as ir
from tests.conftest import Golden
from tests.ir_parse import LOC
from tests.transform.golden_programs import loop_with_break, three_buffers, undo_log
from tests.transform.pair_text import pair_text
from tests.transform.programs import ramp


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (loop_with_break, (ramp(), 1.0)),
        (three_buffers, (ramp(), ramp(), ramp(), 3)),
        (undo_log, (ramp(9).reshape(3, 3),)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_the_tape_as_shown(
    f: Callable[..., object], args: tuple[object, ...], golden: Golden,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shown = ad.show(f, *args)
    assert capsys.readouterr().out == f"{shown}\n"
    generated = f"{shown.forward_source}\n{shown.pullback_source}\n"
    assert str(shown) == f"{generated}{shown.tape}\n\n{table(shown.choices)}"
    golden(f"shown/{f.__name__}.txt", str(shown).removeprefix(generated))


def scaled(weights: np.ndarray) -> Callable[[np.ndarray], float]:
    def f(x):
        s = 0.0
        for i in range(x.size):
            s += weights[i] * x[i]
        return s

    return f


def test_closures_over_different_arrays() -> None:
    one, two = ramp(), ramp(5, 2.0)
    np.testing.assert_array_equal(ad.grad(scaled(one))(np.ones(5)), one)
    np.testing.assert_array_equal(ad.grad(scaled(two))(np.ones(5)), two)


def test_dump(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SPLITAD_DUMP", "identity")
    pair_text(three_buffers, ramp(), ramp(), ramp(), 3)
    out = capsys.readouterr().out
    assert out.startswith("three_buffers(") and "id_u_1 = 1, id_um_1 = 0, id_up_1 = 2]" in out


def test_a_faulty_pass_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline.simplify, "run", lambda fn, *rest: _without_first(fn))
    with pytest.raises(Exception, match="x_n0"):
        pair_text(loop_with_break, ramp(), 1.0)


def _without_first(fn):
    body = dataclasses.replace(fn.body, stmts=fn.body.stmts[1:])
    return dataclasses.replace(fn, body=body)


def test_the_text_is_the_same_in_every_process() -> None:
    """Names are made of what the code holds, not of addresses or hashes."""
    program = (
        "import numpy as np, splitad as ad\n"
        "from tests.transform.golden_programs import three_buffers as f\n"
        "r = np.zeros(3, np.dtype([('a', 'f8')]))\n"
        "ad.show(f, *[np.ones(4)] * 3, 2)\n"
        "from tests.test_pipeline import of_records\n"
        "ad.show(of_records, r)\n"
    )
    outs = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outs[0] == outs[1] and "record_dtype" in outs[0]


def of_records(r):
    s = np.zeros_like(r)
    for i in range(r.size):
        s[i].a = r[i].a * r[i].a
    t = 0.0
    for i in range(r.size):
        t += s[i].a
    return t


def test_no_rule() -> None:
    x, out = ir.Var("x", types.float64), ir.Var("out", types.float64)
    with pytest.raises(NoRuleError, match="math.frexp has no derivative rule; use math.log2"):
        pipeline.differentiable_args(ir.Prim(out, math.frexp, (x,), loc=LOC))
    with pytest.raises(NoRuleError, match="the function loop_with_break has no derivative rule"):
        pipeline.differentiable_args(ir.Prim(out, loop_with_break, (x,), loc=LOC))
