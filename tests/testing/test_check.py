"""The checker itself: it passes a right pair and names what is wrong with each wrong one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from splitad.testing import check_vjp

_spec = importlib.util.spec_from_file_location("fakes", Path(__file__).with_name("fakes.py"))
fakes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fakes)


def check(fault: str, **options):
    x = np.array([1.5, -2.0, 0.5])
    forward = fakes.make_forward(fault)
    return check_vjp(fakes.scale_and_square, x, 0.7, forward=forward, **options)


def test_a_right_pair_passes() -> None:
    report = check("")
    assert report.worst < 1e-9
    assert report.directions >= 4


@pytest.mark.parametrize(
    "fault, message",
    [
        ("primal", "result"),
        ("side effect", "argument 0"),
        ("keeps argument", "disagrees with finite differences"),
        ("writes argument", "wrote to the arguments"),
        ("assigns", "disagrees"),
        ("differs", "second call"),
        ("small entry", r"worst entry: argument 0\[1\]: pullback"),
        ("scalar", "along argument 1|along all"),
        ("forgets", "one entry for each of"),
        ("dtype", "zero shadow"),
        ("not zero", "not zero"),
        ("leaks", "left"),
    ],
)
def test_faults_are_found(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(fault)


def test_arguments_in_a_star_are_one_argument() -> None:
    def product(first: float, *rest: float) -> float:
        out = first
        for each in rest:
            out *= each
        return out

    check_vjp(product, 2.0, 3.0, 5.0)
