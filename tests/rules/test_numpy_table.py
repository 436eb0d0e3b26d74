"""The table of NumPy's functions is complete, and says what is so.  test_readme.py holds the README to it."""

import pytest

from tests.rules.numpy_status import forms, function_called, how, kept, status, supported
from tests.rules.numpy_table import NUMPY, OTHER


def test_every_function_that_numba_has_is_in_the_table():
    named = [name for section in NUMPY.values() for name in section]
    assert len(named) == len(set(named))
    there = [function_called(name) for name in (*named, *OTHER)]
    known = {id(fn) for fn in there if fn is not None}
    missing = sorted(name for name, fn in supported().items() if id(fn) not in known)
    assert not missing, "give them a call in numpy_table.py, then run numpy_status.py"


def test_every_function_in_the_table_has_its_status():
    assert set(kept()) == {name for _, name, _ in forms()}
    assert all(how(name) for name in kept())


# A few of each kind: all of them take many minutes.
SAMPLE = ["hypot", "argmin", "linalg.slogdet", "sort", "transpose", "broadcast_to", "where"]


@pytest.mark.parametrize("name", SAMPLE)
def test_the_status_of_a_few_is_so(name):
    if function_called(name) is None:
        pytest.skip("this NumPy does not have it")
    (calls,) = (calls for _, other, calls in forms() if other == name)
    found = status(name, calls[:1], ("float64", "complex128"))[1:3]
    written = kept()[name]
    for word, before in zip(found, (written[1], written[3]), strict=True):
        assert word == before or before in ("some", "?")
