"""Checking a derivative: `check_vjp`, and copies of arguments that keep their aliasing."""

from splitad.testing.check import check_vjp
from splitad.testing.compare import Report
from splitad.testing.copying import copy_args

__all__ = ["Report", "check_vjp", "copy_args"]
