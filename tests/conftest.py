"""What all tests share: the checks switched on, a private cache, and texts to compare with.

pytest                          everything, one process
pytest -n 2                     two of them (compiling is most of the time)
pytest --update-golden          rewrite the files in tests/golden, then read their diff
pytest --fuzz-profile=ci        the hypothesis profile: dev (few examples), ci, or long
"""

from __future__ import annotations

import difflib
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]

# Compiling takes longer than any deadline per example, and whether a function is compiled already
# says nothing about the example.
_SLOW = dict(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("dev", max_examples=10, **_SLOW)
settings.register_profile("ci", max_examples=25, derandomize=True, **_SLOW)
settings.register_profile("long", max_examples=5000, **_SLOW)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")
    parser.addoption(
        "--fuzz-profile",
        default=os.environ.get("SPLITAD_FUZZ_PROFILE", "ci"),
        choices=["dev", "ci", "long"],
        help="how long the fuzzers search",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Runs before any test module is imported, hence before splitad reads its environment."""
    os.environ["SPLITAD_CHECK"] = "1"  # the verifier runs after every pass
    os.environ.setdefault("MPLBACKEND", "Agg")
    # tests replace parts of splitad, which no key knows of; SPLITAD_CACHE=1 pytest runs what was kept
    os.environ.setdefault("SPLITAD_CACHE", "0")
    settings.load_profile(config.getoption("--fuzz-profile"))
    # pytest-xdist would start files with few tests last, but some of those are among the longest
    config.option.loadscopereorder = False
    if not hasattr(config, "workerinput"):  # xdist's workers inherit the first process's folder
        folder = tempfile.mkdtemp(prefix="splitad-tests-")
        config.stash[_CACHE] = folder
        os.environ["SPLITAD_CACHE_DIR"] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_CACHE, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


_CACHE = pytest.StashKey[str]()


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Compiled functions live on, some gigabytes of them by the end.  Leak checks collect garbage often, and
    so does what compiles: what is alive when a test is done is not looked through again."""
    result = yield
    gc.collect()
    gc.freeze()
    return result


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("errors/try.txt", text)`` holds text to the file tests/golden/errors/try.txt."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path} is missing; run pytest --update-golden and read what it wrote")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            diff = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm=""
            )
            pytest.fail("\n".join(diff) + "\n\nif this is meant: pytest --update-golden", False)

    return compare
