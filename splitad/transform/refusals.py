"""Generated code that refuses a call.

if list_id(xs) == list_id(ys):
    tape_release(tape)                               in a forward, which leaves nothing behind
    raise PlainAliasingError("'ys' and 'xs' ...")
"""

from __future__ import annotations

from splitad.codegen.writer import Writer
from splitad.errors import AliasingError, ShadowError
from splitad.tape.ops import tape_release


def refuse_arguments(w: Writer, test: str, reason: str) -> None:
    """In a forward: AliasingError where the test holds."""
    w.use("tape_release", tape_release)
    _refuse(w, test, AliasingError, reason, "tape_release(tape)")


def refuse_shadows(w: Writer, test: str, reason: str, error: type[Exception] = ShadowError) -> None:
    """In a pullback, before it writes anything."""
    _refuse(w, test, error, reason)


def _refuse(w: Writer, test: str, error: type[Exception], reason: str, *first: str) -> None:
    name = f"Plain{error.__name__}"
    w.use(name, error)
    with w.indented(f"if {test}:"):
        for line in first:
            w.line(line)
        w.line(f"raise {name}({reason!r})")
