"""Derivative rules.  Importing any part of the package registers all of the built-in ones."""

from splitad.rules import arrays as _arrays  # noqa: F401
from splitad.rules import linalg as _linalg  # noqa: F401
from splitad.rules import scalar as _scalar  # noqa: F401
