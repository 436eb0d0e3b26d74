"""The pool of blocks: bounds, reuse, threads, other processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from splitad.tape import ops, pool
from splitad.tape.ops import column, tape_grow, tape_new

LIMIT = 1 << 40
MB = 1 << 20


@pytest.fixture(autouse=True)
def empty_pool() -> None:
    pool.release_memory()
    assert pool.pooled_bytes() == 0


def test_a_freed_block_is_used_again() -> None:
    tape = tape_new(MB, LIMIT)
    address = int(tape[0])
    del tape
    assert pool.pooled_bytes() == MB
    tape = tape_new(MB // 2, LIMIT)  # fits, less than 4 times too large
    assert tape[0] == address and tape[1] == MB and pool.pooled_bytes() == 0


def test_best_fit() -> None:
    tapes = [tape_new(n * MB, LIMIT) for n in (3, 2, 4)]
    address = int(tapes[1][0])
    tapes.clear()
    assert tape_new(2 * MB - 100, LIMIT)[0] == address


def test_a_block_much_too_large_stays_in_the_pool() -> None:
    del_me = tape_new(100 * MB, LIMIT)
    del del_me
    tape = tape_new(MB, LIMIT)
    assert tape[1] == MB and pool.pooled_bytes() == 100 * MB


def test_small_blocks_are_not_pooled() -> None:
    tape = tape_new(1000, LIMIT)
    assert tape[1] == 1024
    del tape
    assert pool.pooled_bytes() == 0


def test_bounds() -> None:
    tapes = [tape_new(MB, LIMIT) for _ in range(30)]
    tapes.clear()
    assert pool.pooled_bytes() == pool.MAX_BLOCKS * MB
    tapes = [tape_new(100 * MB, LIMIT) for _ in range(4)]  # never touched: costs address space only
    tapes.clear()
    assert 200 * MB <= pool.pooled_bytes() <= pool.MAX_POOLED
    huge = tape_new(300 * MB, LIMIT)
    del huge
    assert pool.pooled_bytes() <= pool.MAX_POOLED


def test_release_memory() -> None:
    tape = tape_new(MB, LIMIT)
    del tape
    pool.release_memory()
    assert pool.pooled_bytes() == 0


def test_threads() -> None:
    @njit(nogil=True)
    def work(seed, rounds):
        bad = 0
        for r in range(rounds):
            n = 8192 + 1024 * ((seed + r) % 5)
            tape = tape_new(8 * n, LIMIT)
            c = column(tape[0], 0, np.int64)
            for k in range(0, n, 64):
                c[k] = seed * 1000 + r
            if not tape_grow(tape, 8 * n, 12 * n):
                bad += 1
            c = column(tape[0], 0, np.int64)
            for k in range(0, n, 64):
                bad += c[k] != seed * 1000 + r
            tape[2] = 8 * n  # alive until here
        return bad

    work(0, 1)
    before = ops.live_tapes(), ops.live_bytes()  # other modules' pullbacks may live on
    faults: list[int] = []
    threads = [
        threading.Thread(target=lambda s=s: faults.append(work(s, 2000))) for s in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == [0] * 4
    assert (ops.live_tapes(), ops.live_bytes()) == before
    pool.release_memory()
    assert pool.pooled_bytes() == 0


def test_code_from_a_disk_cache_finds_the_pool(tmp_path: Path) -> None:
    module = tmp_path / "cached_tape_user.py"
    module.write_text(
        textwrap.dedent(
            """
            import numpy as np
            from numba import njit
            from splitad.tape.ops import tape_new, tape_grow, column

            @njit(cache=True)
            def run(n):
                tape = tape_new(0, 1 << 40)
                assert tape_grow(tape, 0, 8 * n)
                c = column(tape[0], 0, np.float64)
                for k in range(n):
                    c[k] = k
                last = c[n - 1]
                tape[2] = 8 * n  # alive until here
                return last

            if __name__ == "__main__":
                assert run(100000) == 99999.0
                print(sum(run.stats.cache_hits.values()))
            """
        )
    )
    root = str(Path(pool.__file__).parents[2])
    hits = [
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = [{root!r}, {str(tmp_path)!r}]\n"
             "import runpy; runpy.run_module('cached_tape_user', run_name='__main__')"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert hits == ["0", "1"]
