"""The picture of a run: what a gradient costs, in primals, by kernel and tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws into files
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

MARKERS = "osD^vPX*"


def ratios(found: list[dict[str, Any]], path: Path) -> None:
    """One column for each kernel, a mark for each tool, crossed out where its gradient is wrong."""
    timed = [row for row in found if "ratio" in row]
    names = list(dict.fromkeys(row["kernel"] for row in found))
    tools = list(dict.fromkeys(row["tool"] for row in timed))
    figure, axes = plt.subplots(figsize=(max(5.0, 1.0 * len(names) + 2.0), 5.0))
    axes.axhline(1.0, color="0.6", linewidth=1)
    black: dict[str, Any] = {"color": "black", "zorder": 4}
    for k, tool in enumerate(tools):
        mine = {row["kernel"]: row for row in timed if row["tool"] == tool}
        shift = 0.08 * (k - (len(tools) - 1) / 2)
        x = [names.index(name) + shift for name in mine]
        y = [row["ratio"]["value_and_grad"] for row in mine.values()]
        size = 70 if k == 0 else 35
        axes.scatter(x, y, size, marker=MARKERS[k % len(MARKERS)], label=tool, zorder=3 - k / 10)
        wrong = [i for i, row in enumerate(mine.values()) if row["status"] == "wrong"]
        axes.scatter([x[i] for i in wrong], [y[i] for i in wrong], 110, marker="x", **black)
    axes.scatter([], [], 60, marker="x", label="wrong gradient", **black)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel("value and gradient / njit primal")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize="small", ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
