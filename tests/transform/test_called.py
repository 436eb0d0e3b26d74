"""What an error calls a view: nothing that the user did not write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import splitad as ad


@jitclass([("h", float64[:]), ("g", float64[:])])
class Held:
    def __init__(self, h, g):
        self.h = h
        self.g = g


@njit
def half(a):
    return a[: a.shape[0] // 2]


@njit
def even(a):
    part = a[::2]
    return part


@njit
def hand_over(s, given):
    s.h = given


def named(x, s):
    part = x[1:]
    s.h = part


def inlined(x, s):
    s.h = half(x)


def named_elsewhere(x, s):
    s.h = even(x)


def inside(x, s):
    hand_over(s, x[1:])


def of_what_has_no_name(x, s):
    s.h = (2.0 * x)[::2]


def chosen(x, s):
    y = half(x) if x[0] > 0 else s.h
    s.h = s.g
    y[0] *= 2.0


def chosen_twice(x, s):
    part = even(x)
    part[0] = 1.0
    part = half(x)
    for _ in range(2):
        part, s.h = s.h, part


@pytest.mark.parametrize(
    "f, text",
    [
        (named, "'part' is a view here, and the field 'h' is assigned it"),
        (inlined, "an array here is a view of 'x', and the field 'h'"),
        (named_elsewhere, "an array here is a view of 'x', and the field 'h'"),
        (inside, "an array here is a view of 'x', and the field 'h'"),
        (of_what_has_no_name, "an array here is a view, and the field 'h'"),
        (chosen, "an array here is a view of 'x', and control flow decides"),
        (chosen_twice, "'part' is a view here, and control flow decides"),
    ],
)
def test_text(f: Callable[..., Any], text: str) -> None:
    with pytest.raises(ad.UnsupportedError) as error:
        ad.split(f)(np.ones(8), Held(np.ones(4), np.ones(4)))
    assert str(error.value).startswith(text)
