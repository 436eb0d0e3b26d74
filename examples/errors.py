"""What splitad's error messages look like.

What cannot be differentiated correctly is refused, naming the function and the line.
Faults of the code are found before anything is computed, faults of a shadow before it is written.

    python examples/errors.py
"""

import numpy as np
from numba import njit

import splitad as ad


@njit
def protected(x):
    try:
        y = 1.0 / x
    except Exception:
        y = 0.0
    return y


@njit
def first(x):
    return x[0]


@njit
def doubled(x):
    return 2.0 * x


@njit
def count(x):
    n = 0
    for value in x:
        if value > 0.0:
            n += 1
    return n


@njit
def shift(a, b):
    for i in range(1, a.shape[0]):
        a[i] = b[i - 1]


@njit
def square(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * x[i]


def unsupported_construct():
    ad.grad(protected)(1.0)


def integer_argument():
    ad.grad(first)(np.arange(3))


def integer_for_an_active_argument():
    ad.split(doubled, ad.Active)(1)


def result_that_is_no_scalar():
    ad.grad(doubled)(np.ones(3))


def result_that_is_an_integer():
    ad.grad(count)(np.ones(3))


def wrong_number_of_activities():
    ad.split(shift, ad.Duplicated)


def arguments_that_overlap():
    x = np.arange(4.0)
    _, pullback = ad.split(shift, ad.Duplicated, ad.Duplicated)(x, x)
    pullback(None, np.ones(4), np.ones(4))


def shadow_of_another_shape():
    _, pullback = ad.split(first, ad.Duplicated)(np.ones(3))
    pullback(1.0, np.zeros(4))


def shadow_that_is_the_argument():
    x = np.ones(3)
    _, pullback = ad.split(first, ad.Duplicated)(x)
    pullback(1.0, x)


def tape_over_its_limit():
    ad.split(square, ad.Duplicated, max_tape_bytes=1000)(np.ones(1000))


FAULTS = [
    unsupported_construct,
    integer_argument,
    integer_for_an_active_argument,
    result_that_is_no_scalar,
    result_that_is_an_integer,
    wrong_number_of_activities,
    arguments_that_overlap,
    shadow_of_another_shape,
    shadow_that_is_the_argument,
    tape_over_its_limit,
]


def main():
    for fault in FAULTS:
        print(f"--- {fault.__name__.replace('_', ' ')} ---")
        try:
            fault()
        except (ad.SplitadError, TypeError) as error:
            print(f"{type(error).__name__}: {error}\n")
        else:
            raise SystemExit(f"{fault.__name__} was not refused")


if __name__ == "__main__":
    main()
