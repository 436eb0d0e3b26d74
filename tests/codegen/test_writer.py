"""writer: lines, blocks, comments, names."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from splitad.codegen.writer import Writer, identifier, is_reserved
from splitad.errors import Loc


def test_blocks() -> None:
    w = Writer({})
    with w.indented("if a:"):
        with w.indented("for i in x:"):
            w.line("b = i")
    with w.indented("else:"):
        w.line("# nothing but a comment")
    assert (
        w.text()
        == "if a:\n    for i in x:\n        b = i\nelse:\n    # nothing but a comment\n    pass\n"
    )


def test_the_users_own_lines(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text("def f(x):\n    y = x\n    return y\n")
    w = Writer({})
    for line in (2, 2, 3, 2):
        w.at(Loc(str(file), line, "f"))
        w.line("...")
    comments = [line for line in w.lines if line.startswith("#")]
    assert comments == ["# 2: y = x", "# 3: return y", "# 2: y = x"]


def test_two_things_of_one_name() -> None:
    names: dict[str, object] = {}
    w, other = Writer(names), Writer(names)
    assert w.use("f", math.sin) == "f"
    assert other.use("f", math.sin) == "f"
    assert other.use("f", math.cos) == "f_"
    assert names == {"f": math.sin, "f_": math.cos}


@pytest.mark.parametrize("name", ["lambda", "tape", "np", "range"])
def test_names_that_are_taken(name: str) -> None:
    assert identifier(name) == name + "_"
    assert identifier("x_1") == "x_1"


def test_reserved() -> None:
    assert is_reserved("d_x") and is_reserved("cur") and is_reserved("tape_t")
    assert not is_reserved("dx") and not is_reserved("current") and not is_reserved("n_x")
