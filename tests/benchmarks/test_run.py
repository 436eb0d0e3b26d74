"""The benchmark suite: everything runs, wrong gradients are noticed, files come out.  No timing is tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import calls, compare, growth, run, stages, table, tools, worker
from benchmarks.agreement import disagreement
from benchmarks.kernels import KERNELS
from benchmarks.program import NotWritten, Program, as_they_are

PEER = "jax"  # its programs are replaced by made-up ones


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Path]:
    folder = tmp_path_factory.mktemp("gradients")
    names = ("rosenbrock", "cholesky")
    rows = [stages.measure("splitad", k, small=True, rounds=1, folder=folder) for k in names]
    return rows, folder


def found(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"time": "now", "results": rows, "growth": [], "calls": []}


def test_all_figures_are_there(measured) -> None:
    for row in measured[0]:
        assert row["status"] == "ok" and row["disagreement"] < 1e-6, row
        assert set(row["seconds"]) == {"primal", "value_and_grad", "forward", "pullback"}
        assert min(row["seconds"].values()) > 0 and row["seconds"].keys() > row["ratio"].keys()
        assert set(row["compile_seconds"]) == set(row["seconds"])
        assert row["tape_bytes"] > 0
        assert row["peak_bytes"] is None or row["peak_bytes"] >= 0
        assert row["note"] == ""
    kernel = KERNELS["rosenbrock"]
    assert measured[0][0]["value"] == pytest.approx(kernel.fn(*kernel.small()), rel=1e-13)


def test_gradients_are_kept_for_the_peers(measured) -> None:
    (gradient,) = stages.load_gradients(measured[1], "rosenbrock")
    (x,) = KERNELS["rosenbrock"].small()
    inner = x[1:] - x[:-1] ** 2
    expected = np.zeros_like(x)
    expected[:-1] = -400.0 * inner * x[:-1] - 2.0 * (1.0 - x[:-1])
    expected[1:] += 200.0 * inner
    np.testing.assert_allclose(gradient, expected, rtol=1e-13)


def peer(monkeypatch: pytest.MonkeyPatch, folder: Path, change: float) -> dict[str, Any]:
    """The row of a tool whose gradient is off by so much."""
    (gradient,) = stages.load_gradients(folder, "rosenbrock")
    gradient[2] += change * np.max(np.abs(gradient))

    def program(kernel: Any, args: Any) -> Program:
        if kernel.fn.__name__ != "rosenbrock":
            raise NotWritten("no loops")
        return Program(lambda x: (1.0, gradient), lambda out: (out[0], [out[1]]), as_they_are(args))

    fake = SimpleNamespace(program=program)
    monkeypatch.setattr(stages, "module_of", lambda tool: fake)
    return stages.measure(PEER, "rosenbrock", small=True, rounds=1, folder=folder)


@pytest.mark.parametrize(
    "change, status", [(0.0, "ok"), (1e-9, "ok"), (1e-4, "wrong"), (np.nan, "wrong")]
)
def test_a_wrong_gradient_is_noticed(measured, monkeypatch, change, status) -> None:
    row = peer(monkeypatch, measured[1], change)
    assert row["status"] == status
    assert ("wrong" in table.verdict(row)) == (status == "wrong")


def test_what_has_no_program_and_what_fails(measured, monkeypatch) -> None:
    peer(monkeypatch, measured[1], 0.0)
    row = stages.measure(PEER, "burgers", small=True, rounds=1, folder=measured[1])
    assert (row["status"], row["note"]) == ("none", "no loops")

    def fails(kernel: Any, args: Any) -> Program:
        raise RuntimeError("out of order\nmore")

    monkeypatch.setattr(stages, "module_of", lambda tool: SimpleNamespace(program=fails))
    row = stages.measure(PEER, "burgers", small=True, rounds=1, folder=measured[1])
    assert (row["status"], row["note"]) == ("error", "RuntimeError: out of order")


def test_wrong_gradients_of_its_own(measured, monkeypatch) -> None:
    monkeypatch.setattr(stages, "from_differences", lambda *args: (1e-3, 1e-9))
    kernel = KERNELS["rosenbrock"]
    row = stages._against_differences(kernel, kernel.small(), [np.ones(3)])
    assert row["status"] == "wrong"
    bad = run.failures(found([{"tool": "splitad", "kernel": "rosenbrock", **row}]))
    assert bad == ["rosenbrock: wrong "]


def test_disagreement() -> None:
    a = np.array([1.0, 2.0])
    assert disagreement([a], [a]) == 0.0
    assert disagreement([a + [0.0, 0.2]], [a]) == pytest.approx(0.1)
    assert disagreement([a[:1]], [a]) == np.inf


def test_files_and_comparison(measured, tmp_path, capsys) -> None:
    rows = [*measured[0], {"tool": PEER, "kernel": "cholesky", "status": "none", "note": "why"}]
    everything = found(rows)
    run.show(everything)
    run.save(everything, tmp_path / "new")
    assert (tmp_path / "new.png").stat().st_size > 1000
    text = capsys.readouterr().out
    assert all(word in text for word in ("rosenbrock", "splitad", "as it is", "why"))

    old = json.loads((tmp_path / "new.json").read_text())
    old["results"][0]["ratio"]["value_and_grad"] /= 2
    (tmp_path / "old.json").write_text(json.dumps(old))
    paths = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    assert compare.main(paths) == 0
    assert compare.main([*paths, "--limit", "1.5"]) == 1
    assert "worse: splitad rosenbrock" in capsys.readouterr().err
    assert compare.main([*reversed(paths), "--limit", "1.5"]) == 0


def test_growth_and_calls() -> None:
    row = growth.measure(growth.GROWTHS[0], (1000, 8000), rounds=1)
    assert row["tape_slope"] == pytest.approx(1.0, abs=0.02)
    points = [{"size": n, "bytes": 3 * n**2} for n in (10, 100, 1000)]
    assert growth.slope(points, "bytes") == pytest.approx(2.0)
    # Compiled by now.
    memory = calls.long_loop(growth.walk, 1_000_000)
    assert memory["status"] == "ok" and 0 < memory["tape_bytes"] < 100e6
    memory = calls.many_calls(20_000)
    assert memory["status"] == "ok", memory
    for table_of, rows in ((table.growth, [row]), (table.calls, [memory])):
        assert table_of(rows).row_count >= 1


def test_every_tool_is_found() -> None:
    for _, _, name in tools.TOOLS.values():
        assert (run.ROOT / f"{name.replace('.', '/')}.py").exists()
    assert tools.installed("splitad")


def test_options() -> None:
    options = run.parse(["--quick", "--tool", "splitad", "--kernel", "gmm"])
    assert (options.tool, options.kernel, options.rounds) == (["splitad"], ["gmm"], 3)
    assert run.parse(["--tool", "splitad"]).kernel == list(KERNELS)


def test_a_process_that_dies_leaves_a_row_for_each_kernel(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, returncode=-11)
    )
    options = run.parse(["--tool", "splitad", "--kernel", "gmm", "--kernel", "nbody"])
    rows = run.stage(tmp_path, "splitad", "measure", options)
    assert [(row["kernel"], row["status"]) for row in rows] == [
        ("gmm", "error"),
        ("nbody", "error"),
    ]


def test_compile_seconds_are_those_of_the_first_size(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(
        stages, "first_calls", lambda tool, name, small: {"kernel": name, "compile_seconds": 1.0}
    )
    options = SimpleNamespace(
        tool="splitad", stage="cached", kernels=["rnn_2x3", "gmm", "rnn_128x256"], small=True, folder=tmp_path
    )  # fmt: skip
    rows = list(worker.kernel_rows(options))
    assert [("compile_seconds" in row) for row in rows] == [True, True, False]


def test_rows_are_written_as_they_come(tmp_path) -> None:
    def rows():
        yield {"tool": "splitad", "kernel": "gmm", "status": "ok"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worker.write(tmp_path / "rows.json", rows())
    assert len(json.loads((tmp_path / "rows.json").read_text())) == 1


def test_the_command_says_what_it_does() -> None:
    for name in ("run.py", "compare.py"):
        path = run.ROOT / "benchmarks" / name
        out = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True)
        assert out.returncode == 0 and "benchmarks/" in out.stdout
