"""Rules of functions that CUDA's libdevice has beside those of math (ir/libdevice.py)."""

from __future__ import annotations

import math

from splitad.ir import libdevice
from splitad.rules.registry import scalar

_HALF_ROOT_PI, _ROOT_2_PI = math.sqrt(math.pi) / 2, math.sqrt(2 * math.pi)

scalar("rsqrt", (libdevice.rsqrt,), "x", dx="-0.5 * out / x", samples=[(0.3,), (2.5,)])
scalar("rcbrt", (libdevice.rcbrt,), "x", dx="-out / (3.0 * x)", samples=[(0.3,), (-1.7,)])
scalar("exp10", (libdevice.exp10,), "x", dx=f"{math.log(10)} * out", samples=[(0.3,), (-1.7,)])
# (x % 2.0: the product with pi would lose digits where x is large)
scalar("sinpi", (libdevice.sinpi,), "x", dx=f"{math.pi} * math.cos({math.pi} * (x % 2.0))",
       samples=[(0.3,), (-1.7,), (20.4,)])  # fmt: skip
scalar("cospi", (libdevice.cospi,), "x", dx=f"{-math.pi} * math.sin({math.pi} * (x % 2.0))",
       samples=[(0.3,), (-1.7,), (20.4,)])  # fmt: skip
scalar("erfcx", (libdevice.erfcx,), "x", dx=f"2.0 * x * out - {1 / _HALF_ROOT_PI}",
       samples=[(0.3,), (-1.2,)])  # fmt: skip
scalar("erfinv", (libdevice.erfinv,), "y", dy=f"{_HALF_ROOT_PI} * math.exp(out * out)",
       samples=[(0.3,), (-0.6,)])  # fmt: skip
scalar("erfcinv", (libdevice.erfcinv,), "y", dy=f"{-_HALF_ROOT_PI} * math.exp(out * out)",
       samples=[(0.4,), (1.6,)])  # fmt: skip
scalar("normcdf", (libdevice.normcdf,), "x", dx=f"math.exp(-0.5 * x * x) / {_ROOT_2_PI}",
       samples=[(0.3,), (-1.2,)])  # fmt: skip
scalar("normcdfinv", (libdevice.normcdfinv,), "y", dy=f"{_ROOT_2_PI} * math.exp(0.5 * out * out)",
       samples=[(0.3,), (0.8,)])  # fmt: skip
scalar("saturate", (libdevice.saturate,), "x", dx="1.0 if x >= 0 and x <= 1 else 0.0",
       cheap=True, samples=[(0.3,), (-1.2,), (1.2,)])  # fmt: skip
scalar("fdim", (libdevice.fdim,), "x y", dx="1.0 if x > y else 0.0", dy="-1.0 if x > y else 0.0",
       cheap=True, samples=[(1.5, -0.7), (-2.0, 3.0)])  # fmt: skip
scalar("fma", (libdevice.fma,), "x y z", dx="y", dy="x", dz="1.0", cheap=True,
       samples=[(1.5, -0.7, 0.3), (1 + 2j, 0.5 - 1j, 0.3j)])  # fmt: skip
