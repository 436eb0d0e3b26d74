"""The README's generated parts are up to date, its code runs, and its commands are those of CI.

``pytest tests/test_readme.py --update-golden`` rewrites the generated parts.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import splitad.rules
from benchmarks.markdown import page
from splitad.rules import registry

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def summary(file: Path) -> str:
    """The first sentence of a module's docstring, in one line."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(docstring.split("\n\n")[0].split())
    return re.sub(r"(?<=[a-z)`\]])\.( .*)?$", "", first).rstrip(".:?")


# From what a user sees down to what everything stands on.
ORDER = """__init__.py api.py gradients.py display.py explain cache.py pipeline.py frontend ir rules
analysis transform tape codegen runtime targets testing interop errors.py""".split()


def _place(file: Path) -> tuple[int, Path]:
    part = file.relative_to(ROOT).parts[1]
    return (ORDER.index(part) if part in ORDER else len(ORDER), file)


def _files(folder: str) -> Iterator[Path]:
    for file in sorted((ROOT / folder).rglob("*.py"), key=_place):
        if file.name != "__init__.py" or summary(file):
            yield file


def the_map() -> str:
    """One line per file: what its docstring says first."""
    lines = []
    for folder in ("splitad", "examples", "benchmarks"):
        for file in _files(folder):
            lines.append(f"- `{file.relative_to(ROOT).as_posix()}`: {summary(file)}")
    return "\n".join(lines)


def the_rules() -> str:
    """Every rule of the registry, by kind."""
    for found in pkgutil.iter_modules(splitad.rules.__path__):
        importlib.import_module(f"splitad.rules.{found.name}")
    names: dict[str, list[str]] = {}
    kinds = {
        "general": "a derivative",
        "linear": "a constant derivative",
        "zero": "derivative zero",
    }
    for rule in registry.scalar_rules():
        device = all(fn.__module__ == "splitad.ir.libdevice" for fn in rule.primals)
        what = "of CUDA's libdevice, beside these" if device else f"scalars, {kinds[rule.kind]}"
        names.setdefault(what, []).append(rule.name)
    names["arrays"] = [rule.name for rule in registry.array_rules()]
    return "\n".join(f"- {k}: {', '.join(sorted(set(v)))}" for k, v in names.items() if v)


def error_text() -> str:
    """What examples/errors.py prints for its first fault."""
    text = _run(str(ROOT / "examples" / "errors.py"))
    block = re.split(r"^--- .* ---\n", text, flags=re.M)[1].strip()
    return "\n".join("    " + line for line in block.replace(f"{ROOT}{os.sep}", "").splitlines())


def _run(file: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _hold(section: str, wanted: str, update: bool) -> None:
    """The text between the two comments of a section is what it should be."""
    text = README.read_text(encoding="utf-8")
    pattern = rf"(<!-- {section}\b[^>]*-->\n)(.*?)(<!-- /{section} -->)"
    found = re.search(pattern, text, flags=re.S)
    assert found, f"the README has no section {section}"
    gap = "\n" if wanted.startswith("    ") else ""  # an indented block needs empty lines around it
    wanted = f"{gap}{wanted}\n{gap}"
    if update:
        text = text[: found.start(2)] + wanted + text[found.end(2) :]
        README.write_text(text, encoding="utf-8")
    else:
        hint = "pytest tests/test_readme.py --update-golden"
        assert found.group(2).splitlines() == wanted.splitlines(), hint


def test_map(request: pytest.FixtureRequest) -> None:
    _hold("map", the_map(), request.config.getoption("--update-golden"))


def test_rules(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # in a process of its own: other tests register rules
    program = tmp_path / "rules.py"
    program.write_text("from tests.test_readme import the_rules\n\nprint(the_rules())\n")
    _hold("rules", _run(str(program)).rstrip("\n"), request.config.getoption("--update-golden"))


def test_numpy(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    program = tmp_path / "table.py"  # for the same reason
    program.write_text("from tests.rules.numpy_status import table\n\nprint(table())\n")
    _hold("numpy", _run(str(program)).rstrip("\n"), request.config.getoption("--update-golden"))


def test_figures(request: pytest.FixtureRequest) -> None:
    found = json.loads((ROOT / "benchmarks" / "reference.json").read_text(encoding="utf-8"))
    _hold("figures", f"\n{page(found)}\n", request.config.getoption("--update-golden"))


def test_error(request: pytest.FixtureRequest) -> None:
    _hold("error", error_text(), request.config.getoption("--update-golden"))


def test_every_code_block_runs(tmp_path: Path) -> None:
    """In order, as one program; what a `print(...)  # text` prints is text."""
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    program = tmp_path / "readme.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    promised = re.findall(r"^print\(.*\)  # (.*)$", program.read_text(encoding="utf-8"), re.M)
    assert promised
    assert _run(str(program)).splitlines() == promised


def test_paths_exist() -> None:
    """A file that the README names is there."""
    text = README.read_text(encoding="utf-8")
    for path in set(re.findall(r"\b(?:splitad|tests|examples|benchmarks)/[\w/]*\w\.py\b", text)):
        assert (ROOT / path).exists(), path


def test_ci_runs_the_readmes_command() -> None:
    install, test = re.findall(r'(pip install -e "\.\[test\]") && (\w+)', README.read_text())[0]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '-e ".[test]"' in install and '-e ".[test]"' in script
    assert re.search(rf'^{test} "\$@"$', script, re.M)
