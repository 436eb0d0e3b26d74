"""The table of NumPy's functions is complete, and says what is so.  test_readme.py holds the README to it."""

import inspect
import re

import numpy as np
import pytest
from numba.core import types
from numba.core.registry import cpu_target

from tests.fuzz.interpreted import check_in_python
from tests.rules.numpy_status import forms, function_called, how, kept, status, supported
from tests.rules.numpy_table import ARGUMENTS, NUMPY, OTHER


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
    words = {word for parts in kept().values() for word in parts[1:4]}
    assert words <= {"yes", "no", "some", "-"}


# A few of each kind: all of them take many minutes.
SAMPLE = ["hypot", "argmin", "linalg.slogdet", "sort", "transpose", "broadcast_to", "where"]


@pytest.mark.parametrize("name", SAMPLE)
def test_the_status_of_a_few_is_so(name):
    if function_called(name) is None:
        pytest.skip("this NumPy does not have it")
    (calls,) = (calls for _, other, calls in forms() if other == name)
    found = status(name, calls[:1])[1:4]
    for word, before in zip(found, kept()[name][1:4], strict=True):
        assert word == before or before == "some"


# ---- methods and attributes of arrays ------------------------------------------------------------------

REFUSED = {"allclose", "ctypes", "flags", "strides", "tobytes"}  # by name


def every_method(v, m, i):
    u = v.copy()
    u.fill(v[0])
    w = v.astype(np.complex128)
    v.sort()
    total = m.T[0, 1] + v.flat[2] + w.real[0] + w.imag[1] + m[:1, :1].item() + m.max() + m.mean()
    total += m.min() + m.prod() + m.std() + m.var() + m.sum() + v.dot(u)
    counted = m.itemsize + m.nbytes + m.ndim + m.size + m.shape[0] + m.argmax() + m.argmin()
    counted += v.argsort()[0] + v.nonzero()[0][0] + m.all() + m.any()
    views = m.ravel(), m.reshape(12), m.transpose(), v.view(v.dtype)
    new = v.clip(-1.0, 1.0), w.conj(), w.conjugate(), v.cumprod(), v.cumsum(), m.flatten()
    return total * counted, views, new, v.repeat(2), v.take(i)


def test_every_method_that_numba_has_is_checked_or_refused():
    context = cpu_target.typing_context
    context.refresh()
    found = set()
    for template in context._get_attribute_templates(types.float64[:, ::1]):
        found.add(getattr(template, "_attr", None) or "_")
        found |= {name[8:] for name in dir(template) if name.startswith("resolve_")}
    used = set(re.findall(r"\.(\w+)", inspect.getsource(every_method)))
    assert {name for name in found if not name.startswith("_")} - used == REFUSED


def test_methods():
    check_in_python(every_method, *(ARGUMENTS[key](np.float64) for key in "vmi"), directions=1)
