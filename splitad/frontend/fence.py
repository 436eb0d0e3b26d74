from __future__ import annotations
from splitad.frontend.source import Source
def check(source: Source, pyfunc: object) -> None:
    return None
