"""Rules of what picks elements by order, and of what leaves out NaN: differences, ties, holes."""

import numpy as np

from tests.rules.numpy_table import ARGUMENTS
from tests.rules.results import check_results, numbers, pull

CHECKED = {np.sort, np.partition, np.unique, np.median, np.nanmedian, np.percentile, np.quantile,
           np.nanpercentile, np.nanquantile, np.nanmin, np.nanmax, np.ptp, np.histogram, np.take,
           np.take_along_axis, np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd}  # fmt: skip
REAL = {key: make(np.float64) for key, make in ARGUMENTS.items()}
V, M, HOLES = REAL["v"], REAL["m"], REAL["h"]
ONE = lambda out: (1.0,)


def shadow(primal, *args, bars=ONE):
    return pull(primal, list(args), {}, bars)[0][0]


def test_permutations():
    for fn in (np.sort, np.unique):
        check_results(fn, [V])
    check_results(np.partition, [M, 2])


def test_equal_elements_are_taken_in_their_order():
    equal = np.array([2.0, 1.0, 2.0, 1.0])
    weights = lambda out: (np.arange(1.0, len(out) + 1),)
    assert shadow(np.sort, equal, bars=weights).tolist() == [3, 1, 4, 2]
    assert shadow(np.unique, equal, bars=weights).tolist() == [2, 1, 0, 0]
    assert shadow(np.median, np.array([1.0, 1.0, 1.0])).tolist() == [0, 1, 0]
    assert shadow(np.ptp, equal).tolist() == [1, -1, 0, 0]
    assert shadow(np.nanmax, equal).tolist() == [1, 0, 0, 0]
    assert shadow(np.percentile, equal, 100.0).tolist() == [1, 0, 0, 0]


def test_medians():
    for a in (V, V[:5], M):
        check_results(np.median, [a])


def test_percentiles():
    for q in (30.0, 0.0, 100.0, 40.0):
        check_results(np.percentile, [V, q])
    check_results(np.quantile, [M, np.array([0.31, 0.83])])
    _, (slope,) = pull(np.percentile, [V, 30.0], {}, ONE)
    h = 1e-5
    wanted = (np.percentile(V, 30 + h) - np.percentile(V, 30 - h)) / (2 * h)
    assert abs(slope - wanted) < 1e-8


def test_holes():
    h = 1e-4
    for fn, more in (
        (np.nansum, ()), (np.nanprod, ()), (np.nanmean, ()), (np.nanvar, ()), (np.nanstd, ()),
        (np.nanmin, ()), (np.nanmax, ()), (np.nanmedian, ()), (np.nanpercentile, (30.0,)),
        (np.nanquantile, (0.3,)),
    ):  # fmt: skip
        got = shadow(fn, HOLES, *more)
        for k in range(len(HOLES)):
            e = np.zeros(len(HOLES))
            e[k] = h
            wanted = (fn(HOLES + e, *more) - fn(HOLES - e, *more)) / (2 * h)
            assert abs(got[k] - (0 if np.isnan(HOLES[k]) else wanted)) < 1e-6, (fn, k)


def test_a_product_with_zeros():
    for zeros, wanted in (([2.0, 0.0, np.nan, 3.0], [0, 6, 0, 0]), ([0.0, 0.0, 5.0], [0, 0, 0])):
        assert shadow(np.nanprod, np.array(zeros)).tolist() == wanted


def test_a_deviation_of_equal_elements_has_derivative_zero():
    assert shadow(np.nanstd, np.ones(3)).tolist() == [0, 0, 0]


def test_edges_of_a_histogram():
    check_results(np.histogram, [V], {"bins": 4})


def test_take():
    check_results(np.take, [M, np.array([[3, -1], [3, 0]])])
    check_results(np.take, [V, -2])
    check_results(np.take_along_axis, [V, np.array([2, -1, 2])], {"axis": 0})


def test_float32_stays():
    for fn in (np.sort, np.median, np.nanvar):
        out = np.asarray(fn(V.astype(np.float32)))
        bars = lambda _, out=out: (numbers(0, out.shape, np.float32)[()],)
        assert shadow(fn, V.astype(np.float32), bars=bars).dtype == np.float32
