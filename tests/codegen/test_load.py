"""Writing and importing generated files."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit

from splitad.codegen import load
from splitad.errors import SplitadError

SOURCE = '''"""Generated."""


@njit
def f(x):
    return helper(x) + 1.0
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPLITAD_CACHE_DIR", str(folder))
    yield folder
    for name in [n for n in sys.modules if n.startswith(load.PACKAGE + ".")]:
        del sys.modules[name]


@njit
def helper(x):
    return 2.0 * x


INJECTED = {"njit": njit, "helper": helper}


def test_load(folder: Path) -> None:
    module = load.load_source("burgers", SOURCE, INJECTED)
    assert module.f(3.0) == 7.0
    assert module.__name__ == load.module_name("burgers", SOURCE)
    assert sys.modules[module.__name__] is module
    (file,) = folder.iterdir()
    assert file.read_text() == SOURCE and file.name.startswith("burgers_")
    assert "helper(x)" in inspect.getsource(module.f.py_func)
    assert load.load_source("burgers", SOURCE, INJECTED) is module


def test_the_name_depends_on_the_content_only(folder: Path) -> None:
    one = load.module_name("f", SOURCE)
    assert one == load.module_name("f", SOURCE)
    assert one != load.module_name("f", SOURCE + "\n")
    assert (
        load.module_name("Solver.<locals>.step", "").split(".")[1].startswith("Solver_locals_step_")
    )


def test_permissions(folder: Path) -> None:
    load.load_source("f", "x = 1\n")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_write_to_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SplitadError, match=r"(?s)others may write to .*SPLITAD_CACHE_DIR"):
        load.load_source("f", "x = 1\n")
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPLITAD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(SplitadError, match="cannot make the cache folder"):
        load.load_source("f", "x = 1\n")


@pytest.mark.parametrize("broken", [b"", b"x = 1", b"raise SystemExit\n", b"\xff\xfe"])
def test_a_truncated_or_foreign_file_is_written_again(folder: Path, broken: bytes) -> None:
    text = "x = 12\n"
    file = load.cache_folder() / (load.module_name("f", text).split(".")[1] + ".py")
    file.write_bytes(broken)
    assert load.load_source("f", text).x == 12
    assert file.read_text() == text


def test_a_link_is_replaced_not_followed(folder: Path, tmp_path: Path) -> None:
    text = "x = 13\n"
    file = load.cache_folder() / (load.module_name("f", text).split(".")[1] + ".py")
    (tmp_path / "elsewhere").write_text("x = 0\n")
    file.symlink_to(tmp_path / "elsewhere")
    assert load.load_source("f", text).x == 13
    assert not file.is_symlink() and (tmp_path / "elsewhere").read_text() == "x = 0\n"


def test_a_text_that_fails_leaves_no_module(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        load.load_source("f", "1 / 0\n")
    assert load.module_name("f", "1 / 0\n") not in sys.modules


def test_numba_caches_a_generated_function(folder: Path) -> None:
    text = "from numba import njit\n\n\n@njit(cache=True)\ndef f(x):\n    return x + 1\n"
    program = (
        f"import sys; sys.path.insert(0, {str(Path(load.__file__).parents[2])!r})\n"
        f"from splitad.codegen.load import load_source\nf = load_source('f', {text!r}).f\n"
        "f(1.0); print(sum(f.stats.cache_hits.values()))"
    )
    run = [sys.executable, "-W", "error", "-c", program]
    hits = [subprocess.run(run, capture_output=True, text=True, check=True).stdout for _ in "ab"]
    assert hits == ["0\n", "1\n"]


def test_a_generated_module_is_found_by_name_in_a_new_process(folder: Path) -> None:
    module = load.load_source("f", "x = 14\n")
    program = (
        f"import sys; sys.path.insert(0, {str(Path(load.__file__).parents[2])!r})\n"
        f"import importlib, splitad.codegen.load\n"
        f"print(importlib.import_module({module.__name__!r}).x)"
    )
    run = [sys.executable, "-c", program]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "14\n"


def _load_many(start: int) -> bool:
    texts = [f"x = {k}\n" + "# filling\n" * 2000 for k in range(30)]
    return all(
        load.load_source("f", texts[k]).x == k for k in [(start + i) % 30 for i in range(30)]
    )


def test_several_processes_at_once(folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(_load_many, [0, 0, 7], chunksize=1) == [True] * 3
    assert len(list(folder.glob("*.py"))) == 30 and not list(folder.glob("*.tmp"))
