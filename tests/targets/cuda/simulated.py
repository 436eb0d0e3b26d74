"""Run by test_simulated.py, with numba's simulator: `NUMBA_ENABLE_CUDASIM=1 pytest <this file>`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.cuda.checking import check
from tests.targets.cuda.kernels import CASES


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    case = CASES[name]
    args = case.make(np.random.default_rng(1))
    check(case.kernel, case.launch, args, atomic=case.atomic)
