"""What is kept on disk from one process to the next: entries of bytes by key, in a folder of the user's own.

    cache_folder() -> Path           where generated files and entries are; made on first use
    load(key) -> bytes | None        what was saved under the key, if it is whole
    save(key, data)                  whole or not at all; a disk that is full or read-only is no error
    enabled() -> bool                SPLITAD_CACHE=0 keeps nothing (generated files are written all the same)

The folder is $SPLITAD_CACHE_DIR, or ~/.cache/splitad.  Code is run from there, so it must belong to the user
and nobody else may write to it; otherwise it is refused.  An entry is a file that says its key by a checksum;
one that is truncated, damaged, of another key, or not the user's own is passed over as if it were not there.
A key must name everything that the entry depends on: an entry is never brought up to date, only replaced.
When the entries take more than LIMIT bytes, the oldest go.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from splitad.errors import SplitadError

LIMIT = 1 << 30
_MAGIC = b"splitad entry 1\n"
_DAY = 86400.0
_OTHER_FOLDER = "set the environment variable SPLITAD_CACHE_DIR to a folder of your own"


# ---- the folder ------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """The folder of generated files and entries; made on first use."""
    given = os.environ.get("SPLITAD_CACHE_DIR")
    if given:
        folder = Path(given).expanduser()
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "splitad"
    return _own_folder(folder.absolute())


def _own_folder(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SplitadError(
            f"cannot make the cache folder {folder}: {error.strerror or error}", None, _OTHER_FOLDER
        ) from error
    _refuse_unsafe(folder)
    return folder


def _refuse_unsafe(folder: Path) -> None:
    if os.name != "posix":  # elsewhere the permission bits say nothing
        return
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise SplitadError(
            f"the cache folder {folder} belongs to another user", None, _OTHER_FOLDER
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SplitadError(
            f"others may write to the cache folder {folder}, and splitad runs code from there",
            None,
            f"chmod go-w {folder}, or {_OTHER_FOLDER}",
        )


def write_file(folder: Path, name: str, data: bytes) -> Path:
    """Make sure that folder/name holds exactly `data`; whole or not at all."""
    path = folder / name
    try:
        if not path.is_symlink() and path.read_bytes() == data:
            return path
    except OSError:
        pass
    _replace(path, data)
    return path


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


# ---- entries ---------------------------------------------------------------------------------------------


def enabled() -> bool:
    """Whether anything is kept; SPLITAD_CACHE=0 says no."""
    return os.environ.get("SPLITAD_CACHE", "1") != "0"


def load(key: str) -> bytes | None:
    """The entry of this key, or None."""
    if not enabled():
        return None
    path = _entries() / key
    try:
        data = _read_own(path)
    except OSError:
        return None
    head = _MAGIC + _checksum(key, data[len(_MAGIC) + 32 :])
    if data[: len(head)] != head:
        return None
    return data[len(head) :]


def save(key: str, data: bytes) -> None:
    """Keep an entry, in place of what has been there."""
    if not enabled():
        return
    folder = _entries()
    with suppress(OSError):
        _replace(folder / key, _MAGIC + _checksum(key, data) + data)
        _trim(folder)


def _entries() -> Path:
    return _own_folder(cache_folder() / "compiled")


def _checksum(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + data).digest()


def _read_own(path: Path) -> bytes:
    """The contents of a plain file that only its owner, this user, can write."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a file")
        if os.name == "posix" and (
            status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        ):
            raise OSError("not the user's own")
        data = file.read()
    _mark_used(path, status.st_mtime)
    return data


def _mark_used(path: Path, written: float) -> None:
    """The time of an entry is when it was last used, to a day."""
    if time.time() - written > _DAY:
        with suppress(OSError):
            os.utime(path)


_saved: dict[str, int] = {}  # how many entries this process saved in a folder


def _trim(folder: Path) -> None:
    """Now and then: if there is too much, remove the oldest down to three quarters."""
    name = str(folder)
    first = name not in _saved
    _saved[name] = _saved.get(name, 0) + 1
    if not first and _saved[name] % 64:
        return
    entries = []
    with os.scandir(folder) as found:
        for entry in found:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= LIMIT:
        return
    for _, size, path in sorted(entries):
        with suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= LIMIT * 3 // 4:
            return
