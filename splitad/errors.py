"""Every exception that splitad raises on purpose.

An error says which function and line, shows the line with a caret, says why, and what to do instead.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Loc:
    """A place in the user's source."""

    file: str
    line: int
    function: str
    column: int = 0

    def text(self) -> str:
        """The source line, without its newline; empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


class SplitadError(Exception):
    """Base of all errors of splitad.

    reason: one sentence, what is wrong.  loc: where, or None.  hint: what to do instead, or "".
    """

    def __init__(self, reason: str, loc: Loc | None = None, hint: str = "") -> None:
        self.reason, self.loc, self.hint = reason, loc, hint
        super().__init__(self._render())

    def _render(self) -> str:
        parts = [self.reason]
        if self.loc is not None:
            parts.append(f"  {self.loc}")
            text = self.loc.text()
            if text.strip():
                parts.append(f"    {text.strip()}")
                indent = len(text) - len(text.lstrip())
                parts.append("    " + " " * max(self.loc.column - indent, 0) + "^")
        if self.hint:
            parts.append(f"  {self.hint}")
        return "\n".join(parts)

    def placed(self, loc: Loc | None) -> SplitadError:
        """The error itself; it names this place if it named none."""
        if self.loc is None and loc is not None:
            self.loc = loc
            self.args = (self._render(),)
        return self

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return type(self), (self.reason, self.loc, self.hint)


class UnsupportedError(SplitadError):
    """A construct that splitad does not differentiate."""


class NoRuleError(SplitadError):
    """A function with neither a rule nor readable source."""


class NotDifferentiableError(SplitadError):
    """A derivative was asked of something that has none: an integer argument or result."""


class AliasingError(SplitadError):
    """Arguments overlap in memory in a way that their shadows do not."""


class ArgumentsOverlap(AliasingError):
    """Arguments overlap and one is written: the pair for distinct arguments does not apply."""


class ShadowError(SplitadError):
    """A shadow of the wrong shape or dtype, or one that overlaps what it must not."""


class TapeLimitError(SplitadError):
    """The tape would outgrow ``max_tape_bytes``."""


class InternalError(SplitadError):
    """splitad broke one of its own rules; please report it."""
