"""A run of the benchmark as a table in Markdown; benchmarks/reference.json's stands in the README.

python benchmarks/markdown.py RESULTS.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file

from benchmarks.table import megabytes, milliseconds, times
from benchmarks.tools import OWN

Row = dict[str, Any]


def page(found: dict[str, Any]) -> str:
    """Where it was measured, and a line for each kernel: multiples of the njit primal of the same process."""
    rows = {(row["kernel"], row["tool"]): row for row in found["results"]}
    kernels = list(dict.fromkeys(row["kernel"] for row in found["results"]))
    peers = [tool for tool in found["tools"] if tool != OWN]
    head = ["kernel", "primal ms", "forward", "pullback", "**value and gradient**", "tape MB"]
    lines = [_line([*head, *peers]), "|" + "---|" * (len(head) + len(peers))]
    for kernel in kernels:
        mine = rows[kernel, OWN]
        ratio, tape = mine["ratio"], megabytes(mine.get("tape_bytes"))
        cells = [kernel, milliseconds(mine["seconds"]["primal"])]
        cells += [times(ratio["forward"]), times(ratio["pullback"])]
        cells += [f"**{times(ratio['value_and_grad'])}**", tape]
        lines.append(_line([*cells, *(_peer(rows.get((kernel, tool))) for tool in peers)]))
    versions = ", ".join(f"{name} {version}" for name, version in _versions(found))
    where = f"{found['cpu']}, one thread, {found['time'][:10]}; {versions}."
    return "\n".join([where, "", *lines])


def _peer(row: Row | None) -> str:
    """What value and gradient cost there; crossed out where they are wrong."""
    if row is None or "ratio" not in row:
        return "-"
    text = times(row["ratio"]["value_and_grad"])
    return f"~~{text}~~ wrong" if row["status"] == "wrong" else text


def _versions(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Of what was used; tools that are two programs of one package count once."""
    used = {"Python": found["python"], "Numba": found["numba"], "NumPy": found["numpy"]}
    names = {"jax": "JAX", "torch": "PyTorch", "autograd": "autograd", "warp": "Warp"}
    used |= {names[tool]: v for tool, v in found["tools"].items() if tool in names}
    return list(used.items())


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(page(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
