"""Arguments that overlap, some of them Const: the shadows that the pullback makes overlap likewise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitad as ad
from splitad.ir.activities import Activity

X = np.array([1.2, 2.0, 3.0, 4.0])


def mixed(u, w, v):
    """Writes through w what is read through u and v."""
    for i in range(w.size):
        w[i] = w[i] * v[i] + u[i]
    return w[0] * u[1] + v[1]


def views(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return x[:3], x[1:], x[::-1]


def by_hand() -> np.ndarray:
    """The gradient of mixed(*views(x)), by central differences of fourth order."""
    step, gradient = 1e-3, np.zeros(4)
    for k in range(4):
        values = []
        for n in (-2, -1, 1, 2):
            x = X.copy()
            x[k] += n * step
            values.append(mixed(*views(x)))
        gradient[k] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return gradient


WANT = by_hand()


@pytest.mark.parametrize("const", ["", "w", "u", "v", "uw"])
def test_every_choice_of_const(const: str) -> None:
    """The Const argument's own part of the memory is still seen through the others."""
    on = [Activity.Const if name in const else Activity.Duplicated for name in "uwv"]
    _, pullback = ad.split(mixed, *on)(*views(X.copy()))
    for _ in range(2):
        x_bar = np.zeros(4)
        shadows = [s for s, a in zip(views(x_bar), on, strict=True) if a is Activity.Duplicated]
        pullback(1.0, *shadows)
        seen = np.zeros(4, bool)
        for s, a in zip(views(seen), on, strict=True):
            s[...] |= a is Activity.Duplicated
        assert np.allclose(x_bar[seen], WANT[seen], rtol=1e-9), const


def test_the_exit_cotangent_is_the_callers() -> None:
    """w, which is Const, is x itself and is overwritten: only what it leaves of x is passed on."""

    def clear(x, w):
        w[1] = 0.0
        w[2] = 2.0 * x[3]

    _, pullback = ad.split(clear, ad.Duplicated, ad.Const)(x := X.copy(), x)
    x_bar = np.array([1.0, 10.0, 100.0, 1000.0])
    pullback(None, x_bar)
    assert x_bar.tolist() == [1.0, 0.0, 0.0, 1200.0]


def test_complex_and_its_real_part() -> None:
    def scale(z, r):
        r[0] = r[0] * r[1]
        return z[0].real * z[0].imag

    z = np.array([2.0 + 3.0j, 5.0 + 7.0j])
    _, pullback = ad.split(scale, ad.Duplicated, ad.Const)(z, z.real)  # x0 y0 x1
    z_bar = np.zeros(2, complex)
    pullback(1.0, z_bar)
    assert np.allclose(z_bar, [15.0 + 10.0j, 6.0])


def reinterprets(u, k):
    k[0] = 0
    return u[0] * u[1]


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.int8])
def test_numbers_are_not_taken_apart_into_bits(dtype: Any) -> None:
    u = X.copy()
    with pytest.raises(ad.AliasingError, match="of different types"):
        ad.split(reinterprets)(u, u.view(dtype))
