"""The source that is found is the code that runs, wherever the function stands; or it is refused."""

from __future__ import annotations

import ast
import cProfile
import doctest
import functools
import importlib.util
import linecache
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.experimental import jitclass

from splitad.errors import NoRuleError, UnsupportedError
from splitad.frontend.read import read
from splitad.frontend.source import python_function, same_code, source_of


def text_of(fn: Any) -> str:
    return ast.unparse(source_of(fn).node)


def imported(path: Path, text: str, name: str = "a_module") -> types.ModuleType:
    path.write_text(textwrap.dedent(text))
    linecache.clearcache()
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- what is found ---------------------------------------------------------------------------


def plain(x: float) -> float:
    """A docstring."""
    return x


@numba.njit
def dispatched(x):
    return x + 1.0


@functools.lru_cache
@numba.njit(
    fastmath=True,
)
def decorated_over_lines(
    x,
):
    return x + 2.0


def factory(a):
    b = 2 * a

    @numba.njit
    def made(x):
        return a * x + b

    return made


def two(k):
    if k:

        def pick(x):
            return x + 1
    else:

        def pick(x):
            return x + 2

    return pick


pair = (lambda x: x + 1, lambda x: x + 2, lambda x: x + 1)
nested = lambda x: (lambda y: x + y)  # fmt: skip
default = lambda x, f=lambda: 1: x + f()  # fmt: skip


def test_plain() -> None:
    assert text_of(plain).startswith("def plain(x: float)")
    assert source_of(plain).node.lineno == plain.__code__.co_firstlineno


def test_dispatchers_and_decorators() -> None:
    assert "x + 1.0" in text_of(dispatched)
    assert "x + 2.0" in text_of(decorated_over_lines.__wrapped__)


def test_closures() -> None:
    assert "a * x + b" in text_of(factory(3.0))
    assert source_of(factory(1.0)) is source_of(factory(2.0))
    assert read(factory(1.0)).resolve("b") == 2.0
    assert read(factory(2.0)).resolve("b") == 4.0


def test_equal_names() -> None:
    assert "x + 1" in text_of(two(True))
    assert "x + 2" in text_of(two(False))


def test_lambdas_on_one_line() -> None:
    assert [text_of(f) for f in pair] == [
        "lambda x: x + 1",
        "lambda x: x + 2",
        "lambda x: x + 1",
    ]
    assert text_of(nested) == "lambda x: lambda y: x + y"
    assert text_of(nested(1)) == "lambda y: x + y"
    assert text_of(default) == "lambda x, f=lambda: 1: x + f()"
    assert text_of(default.__defaults__[0]) == "lambda: 1"


class Outer:
    class _Inner:
        def method(self, x):
            self.__x = x
            return self.__x

        @staticmethod
        def static(x):
            return x.__y

        @property
        def prop(self):
            return self.__x


def test_classes() -> None:
    inner = Outer._Inner
    for fn in (inner.method, inner().method, inner.static, inner.prop.fget):
        assert source_of(fn).class_name == "_Inner"  # type: ignore[arg-type]
    assert ast.unparse(read(inner.method).body[0]) == "self._Inner__x = x"


@jitclass([("x", numba.float64), ("__k", numba.int64)])
class Jitted:
    def __init__(self, x):
        self.x = x
        self.__k = 1

    def step(self, dt):
        self.x += dt * self.__k
        return self.x

    @property
    def twice(self):
        return 2.0 * self.x


def test_jitclass_methods() -> None:
    methods = Jitted.class_type.jit_methods
    assert ast.unparse(read(methods["__init__"]).body[1]) == "self._Jitted__k = 1"
    assert "self.__k" in text_of(methods["step"])
    assert "2.0 * self.x" in text_of(Jitted.class_type.jit_props["twice"]["get"])


def test_generics(tmp_path: Path) -> None:
    if sys.version_info < (3, 12):
        pytest.skip("syntax of Python 3.12")
    module = imported(tmp_path / "m.py", "def f[T](x: T) -> T:\n    return x\n")
    assert text_of(module.f).startswith("def f[T]")


def test_future_and_conditional_imports(tmp_path: Path) -> None:
    text = """
        from __future__ import annotations
        try:
            import numpy as np
        except ImportError:
            np = None
        if True:
            import math as m, os.path
            class C:
                def f(self, x):
                    def g(y: undefined): return np.sin(y) + m.sin(y) + os.getpid()
                    return np.linalg.norm(g(x))
    """
    module = imported(tmp_path / "m.py", text)
    assert "np.linalg" in text_of(module.C.f)
    assert "undefined" in text_of(module.C().f)


def test_doctest_and_notebook() -> None:
    """Both keep the source of a cell in linecache."""
    for filename in ("<doctest some.module[0]>", "/tmp/ipykernel_1/12.py", "<ipython-input-3-aa>"):
        text = "a = 1\ndef cell(x):\n    return x * a\n"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        scope: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text, filename, "exec"), scope)
        assert text_of(scope["cell"]) == "def cell(x):\n    return x * a"
        del linecache.cache[filename]


def run_doctest(example: str) -> doctest.TestResults:
    scope = {"read": read}
    test = doctest.DocTestParser().get_doctest(example, scope, "name", "name.py", 0)
    return doctest.DocTestRunner(verbose=False).run(test)


def test_real_doctest() -> None:
    example = """
    >>> def f(x):
    ...     return x + 1
    >>> read(f).args
    ['x']
    """
    assert run_doctest(example).failed == 0


# ---- what is refused -------------------------------------------------------------------------


def test_edited_file(tmp_path: Path) -> None:
    module = imported(tmp_path / "edited.py", "def f(x):\n    return x * 2.0\n")
    (tmp_path / "edited.py").write_text("def f(x):\n    return x * 3.0\n")
    with pytest.raises(UnsupportedError, match=r"source of f is not what was compiled") as error:
        read(module.f)
    assert "edited.py:1, in f" in str(error.value)
    assert "reload" in str(error.value)


EDITS = {
    "constant": "return np.sin(x) * 3",
    "type of a constant": "return np.sin(x) * 2.0",
    "sign of zero": "return np.sin(x) * 2 + -0.0",
    "name": "return np.cos(x) * 2",
    "operator": "return np.sin(x) / 2",
    "lambda": "return (lambda: np.sin(x) * 2)()",
    "gone": "return x",
    "syntax error": "return np.sin(",
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits(tmp_path: Path, edit: str) -> None:
    before = "import numpy as np\ndef f(x):\n    {}\n"
    original = "return np.sin(x) * 2 + 0.0" if edit == "sign of zero" else "return np.sin(x) * 2"
    module = imported(tmp_path / "e.py", before.format(original))
    (tmp_path / "e.py").write_text(before.format(EDITS[edit]))
    with pytest.raises(UnsupportedError):
        read(module.f)


def test_moved_function_is_found(tmp_path: Path) -> None:
    """Lines above it may change: what is found is still proven to be what runs."""
    module = imported(tmp_path / "moved.py", "def f(x):\n    return x * 2.0\n")
    (tmp_path / "moved.py").write_text("# new\n\ndef f(x):\n    return x * 2.0\n")
    normal = read(module.f)
    assert normal.loc_of(normal.body[0]).line == 4


def test_under_a_profiler(tmp_path: Path) -> None:
    """Numba marks the code of what it runs while a profiler is on."""
    module = imported(
        tmp_path / "profiled.py", "import numba\n@numba.njit\ndef f(x):\n    return x * 2.0\n"
    )
    profile = cProfile.Profile()
    profile.enable()
    module.f(1.5)
    profile.disable()
    assert "x * 2.0" in text_of(module.f)


def test_no_source() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x\n", scope)
    with pytest.raises(NoRuleError, match="source of f cannot be read") as error:
        read(scope["f"])
    assert "put the function in a file" in str(error.value)


def test_not_a_python_function() -> None:
    with pytest.raises(NoRuleError, match=r"sin \(ufunc\) has no Python source"):
        read(np.sin)
    vectorized = numba.vectorize(plain)
    with pytest.raises(UnsupportedError, match="made by @vectorize are not supported"):
        read(vectorized)
    with pytest.raises(UnsupportedError, match="made by @stencil are not supported"):
        read(numba.stencil(lambda a: a[0] + a[1]))


# ---- comparing code --------------------------------------------------------------------------


def code(text: str) -> types.CodeType:
    return compile(text, "file", "exec")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 0.0", "x = -0.0"),
        ("x = (1, 2)", "x = (1, 2.0)"),
        ("x in {1, 2}", "x in {1, 2.0}"),
        ("def f(a): pass", "def f(b): pass"),
        ("def f():\n  return 1", "def f():\n  return 2"),
        ("def f():\n  a = 1\n  def g(): return a", "def f():\n  a = 1\n  def g(): return b"),
        ("x = 0j", "x = -0j"),
    ],
)
def test_different_code(one: str, other: str) -> None:
    assert not same_code(code(one), code(other))
    assert same_code(code(one), code("\n\n" + one))


def test_python_function() -> None:
    assert python_function(dispatched) is dispatched.py_func


def test_no_second_warning(tmp_path: Path) -> None:
    """Python warns of `is` with a literal when it compiles; we compile again, and are silent."""
    with pytest.warns(SyntaxWarning):
        module = imported(tmp_path / "warns.py", "def f(x):\n    return x is 1\n")
    assert text_of(module.f) == "def f(x):\n    return x is 1"
