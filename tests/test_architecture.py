"""Which part may import which (DEPENDENCIES), and what the files may not contain.

The edges are read from the import statements, so that the picture in the README stays true:

    errors <- ir <- {frontend, rules} ; ir, rules <- analysis <- tape <- {codegen, runtime} <- transform ;
    transform <- {targets, explain} ; all of these <- pipeline <- cache <- gradients ;
    gradients <- {display, cuda} <- api <- __init__

A part may import the parts to the left of it, near or far. The forward and the pullback are written as
text through the printer, and name functions of tape and runtime: so transform stands on these.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "splitad"
FILES = sorted(PACKAGE.rglob("*.py"))

# Part -> the parts it stands on directly; what these stand on it may import as well.
STANDS_ON: dict[str, set[str]] = {
    "errors": set(),
    "store": {"errors"},
    "ir": {"errors"},
    "rules": {"ir"},
    "frontend": {"ir"},
    "analysis": {"ir", "rules"},
    "tape": {"analysis", "store"},
    "transform": {"codegen", "runtime"},
    "codegen": {"ir", "rules", "tape"},  # generated code calls what these two define
    "runtime": {"ir", "tape"},
    "targets": {"transform"},
    "pipeline": {"frontend", "transform", "targets"},
    "cache": {"pipeline"},
    "cuda": {"gradients"},
    "gradients": {"cache"},
    "explain": {"transform"},
    "display": {"gradients", "explain"},
    "api": {"display", "cuda"},
    "testing": {"api"},
    "interop": {"api"},
    "__init__": {"api", "testing", "interop"},
}

# Where names of numba.core (private, they change between releases) may be used.
NUMBA_PRIVATE = (
    "ir/types.py", "frontend/typing.py", "rules/vector_math.py", "runtime/", "targets/", "tape/",
)  # fmt: skip
# numba.extending and numba.types are public; numba.types has no public spelling of these few.
NUMBA_PUBLIC = {"types"}


@dataclass(frozen=True)
class Import:
    file: Path
    line: int
    module: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.module} {', '.join(self.names)}"


def imports(file: Path) -> Iterator[Import]:
    """Every import in a file, also those inside functions; relative ones made absolute."""
    package = ["splitad", *file.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield Import(file, node.lineno, module, tuple(a.name for a in node.names))


ALL_IMPORTS = [found for file in FILES for found in imports(file)]


def part_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(found: Import) -> set[str]:
    """The parts of splitad that an import statement reaches."""
    head, *rest = found.module.split(".")
    if head != "splitad":
        return set()
    if rest:
        return {rest[0]}
    # `from splitad import ir`: a part where there is one of that name, else the public list
    return {name if name in STANDS_ON else "__init__" for name in found.names} or {"__init__"}


def allowed(part: str) -> set[str]:
    """Every part that a part may import: what it stands on, all the way down."""
    below = STANDS_ON[part]
    return below.union(*(allowed(other) for other in below))


def test_every_part_has_its_place() -> None:
    assert {part_of(file) for file in FILES} <= set(STANDS_ON)


def test_the_picture_has_no_cycle() -> None:
    TopologicalSorter(STANDS_ON).prepare()


def test_imports_follow_the_picture() -> None:
    wrong = [
        f"{found}  ({part_of(found.file)} must not import {part})"
        for found in ALL_IMPORTS
        for part in sorted(imported_parts(found))
        if part != part_of(found.file) and part not in allowed(part_of(found.file))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def _module_name(file: Path) -> str:
    parts = ["splitad", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_cycle_between_modules() -> None:
    """Not within a package either, except where the import is made inside a function."""
    known = {_module_name(file) for file in FILES}
    graph: dict[str, set[str]] = {name: set() for name in known}
    for file in FILES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        top = {node.lineno for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))}
        for found in imports(file):
            if found.line not in top:
                continue
            submodules = {f"{found.module}.{name}" for name in found.names} & known
            if found.module in known and len(submodules) < max(len(found.names), 1):
                graph[_module_name(file)].add(found.module)
            graph[_module_name(file)] |= submodules
    TopologicalSorter(graph).prepare()


def _uses_private_numba(found: Import) -> bool:
    if found.module == "numba.core":
        return not set(found.names) <= NUMBA_PUBLIC
    return found.module.startswith(("numba.core.", "numba.np.", "numba.cpython."))


def test_private_numba_stays_in_its_places() -> None:
    wrong = [
        str(found)
        for found in ALL_IMPORTS
        if _uses_private_numba(found)
        and not found.file.relative_to(PACKAGE).as_posix().startswith(NUMBA_PRIVATE)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_nothing_else_is_imported() -> None:
    """numba (with its llvmlite) and numpy are the only dependencies; interop may ask for more."""
    known = sys.stdlib_module_names | {"splitad", "numba", "numpy", "llvmlite"}
    wrong = [
        str(found)
        for found in ALL_IMPORTS
        if found.module.split(".")[0] not in known and part_of(found.file) != "interop"
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(PACKAGE).as_posix())
def test_a_file_says_what_it_is(file: Path) -> None:
    """The README's map is made of these first lines."""
    text = file.read_text(encoding="utf-8")
    if file.name == "__init__.py" and not text.strip():
        return
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, f"{file.name} has no docstring"
    assert re.search(r"[.:?]$", docstring.split("\n\n")[0].strip()), docstring.split("\n")[0]


# Paths of one machine, and notes to oneself, have no business in the tree.
UNWANTED = re.compile(r"(?<![\w.])/(?:work|root|home)/|\bthis session\b|\bother session", re.I)


def test_no_machine_paths_or_notes() -> None:
    wrong = []
    for file in sorted(ROOT.rglob("*")):
        inner = file.relative_to(ROOT)
        hidden = any(p.startswith(".") and p != ".ci" for p in inner.parts)
        if hidden or file.suffix not in {".py", ".md", ".toml", ".txt", ""} or not file.is_file():
            continue
        if file == Path(__file__):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if UNWANTED.search(line):
                wrong.append(f"{inner}:{number}: {line.strip()}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_sizes(record_property: pytest.RecordProperty) -> None:
    """Sizes are taste, not law: they are listed (`pytest -rA`), and nothing fails."""
    sizes = {f: len(f.read_text(encoding="utf-8").splitlines()) for f in FILES}
    for file, lines in sorted(sizes.items(), key=lambda item: -item[1])[:15]:
        print(f"{lines:5}  {file.relative_to(ROOT)}")
    record_property("lines", sum(sizes.values()))
