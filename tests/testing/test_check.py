"""The checker itself: it passes a right pair and names what is wrong with each wrong one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.typed import List

import splitad as ad
from splitad.testing import check_vjp
from tests.cases.chosen_views import Pair

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


@njit
def products(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit
def products_with_a_list(x, kept):
    return products(x, kept[0])


@njit
def doubled(x, y):
    y[1] *= 2.0
    return products(x, y)


@pytest.mark.parametrize("const", [0, 1])
def test_const_arguments_that_share_memory(const: int) -> None:
    """Unwritten, each has its own part, and that of a Const argument is nobody's; written, they are one."""
    x = np.array([0.3, -0.7, 1.1])
    kinds = tuple(ad.Const if k == const else ad.Duplicated for k in range(2))
    for other in (x, x[::-1]):
        check_vjp(products, x, other, activities=kinds)
        check_vjp(doubled, x, other, activities=kinds)
    check_vjp(products_with_a_list, x, List([x]), activities=kinds)


class Apart:
    """A pullback that gives a field's shadow memory of its own."""

    def __init__(self, pullback) -> None:
        self.pullback = pullback

    def __getattr__(self, name):
        return getattr(self.pullback, name)

    def __call__(self, result_bar, x_bar, s_bar):
        returned = self.pullback(result_bar, x_bar, s_bar)
        s_bar.x = s_bar.x.copy()
        return returned


def test_shadows_that_leave_the_pullback_apart_are_found() -> None:
    def rebound(x, s, c):
        s.x = x * c
        x[0] *= c
        return s.x[0]

    def forward(*args):
        result, pullback = right(*args)
        return result, Apart(pullback)

    right = ad.split(rebound)
    x = np.array([0.3, -0.7, 1.1])
    s = Pair(x, np.ones((1, 3)))
    check_vjp(rebound, x, s, 0.6, forward=right)
    with pytest.raises(AssertionError, match="share memory otherwise than the arguments at entry"):
        check_vjp(rebound, x, s, 0.6, forward=forward)


def test_what_a_field_has_from_an_argument_that_stays_is_not_overwritten() -> None:
    """s.x may be overwritten in between, but it is y then, which the caller promises to leave."""

    def taken(s, y, c):
        s.x = y
        return y[0] * y[1] * c

    s, y = Pair(np.ones(3), np.ones((1, 3))), np.array([0.3, -0.7, 1.1])
    check_vjp(taken, s, y, 0.6, modified_between=(True, False, True))
