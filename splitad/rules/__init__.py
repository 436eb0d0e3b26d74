"""Derivative rules.  Importing any part of the package registers all of the built-in ones."""

from splitad.rules import arrays as _arrays  # noqa: F401
from splitad.rules import factorizations as _factorizations  # noqa: F401
from splitad.rules import libdevice as _libdevice  # noqa: F401
from splitad.rules import linalg as _linalg  # noqa: F401
from splitad.rules import nans as _nans  # noqa: F401
from splitad.rules import ordering as _ordering  # noqa: F401
from splitad.rules import scalar as _scalar  # noqa: F401
from splitad.rules import signals as _signals  # noqa: F401
