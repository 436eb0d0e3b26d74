"""markdown: the README's table of figures."""

from __future__ import annotations

from benchmarks.markdown import page


def row(tool: str, **ratios: float) -> dict:
    return {
        "kernel": "burgers",
        "tool": tool,
        "status": "ok",
        "ratio": ratios,
        "seconds": {"primal": 3e-4},
        "tape_bytes": 8.2e6,
    }


FOUND = {
    "cpu": "A CPU",
    "time": "2026-01-02T03:04:05",
    "python": "3.12.1",
    "numba": "0.62.1",
    "numpy": "2.3.0",
    "tools": {"splitad": "1", "jax": "0.9", "warp": "1.8", "warp_in_place": "1.8"},
    "results": [
        row("splitad", forward=2.0, pullback=3.0, value_and_grad=5.0),
        row("jax", value_and_grad=21.04),
        {"kernel": "burgers", "tool": "warp", "status": "none"},
        {**row("warp_in_place", value_and_grad=412.0), "status": "wrong"},
    ],
}


def test_page() -> None:
    assert page(FOUND).splitlines() == [
        "A CPU, one thread, 2026-01-02; Python 3.12.1, Numba 0.62.1, NumPy 2.3.0, JAX 0.9, Warp 1.8.",
        "",
        "| kernel | primal ms | forward | pullback | **value and gradient** | tape MB | jax | warp"
        " | warp_in_place |",
        "|---|---|---|---|---|---|---|---|---|",
        "| burgers | 0.3 | 2.00 | 3.00 | **5.00** | 8.2 | 21.0 | - | ~~412~~ wrong |",
    ]
