"""Entries on disk: whole or not at all, the user's own, and never trusted otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from splitad import store
from splitad.errors import SplitadError

KEY = "0123-pair"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPLITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SPLITAD_CACHE", raising=False)
    return tmp_path / "cache"


def entry(folder: Path) -> Path:
    return folder / "compiled" / KEY


def test_what_was_saved_is_loaded(folder: Path) -> None:
    assert store.load(KEY) is None
    store.save(KEY, b"one")
    store.save(KEY, b"two")
    assert store.load(KEY) == b"two" and store.load("another") is None
    assert os.name != "posix" or (folder / "compiled").stat().st_mode & 0o777 == 0o700
    assert [each.name for each in entry(folder).parent.iterdir()] == [KEY]  # nothing temporary


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other key", "link", "mode"])
def test_what_is_damaged_or_foreign_is_not_there(folder: Path, damage: str) -> None:
    store.save(KEY, b"contents" * 100)
    path = entry(folder)
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "flip":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "other key":
        store.save("other", b"contents")
        path.write_bytes(path.with_name("other").read_bytes())
    elif damage == "link":
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
    elif os.name == "posix":
        path.chmod(0o622)
    else:
        pytest.skip("permission bits")
    assert store.load(KEY) is None
    store.save(KEY, b"contents" * 100)  # and is replaced
    assert store.load(KEY) == b"contents" * 100


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_others_write_to_is_refused(folder: Path, inner: bool) -> None:
    store.save(KEY, b"contents")
    (folder / "compiled" if inner else folder).chmod(0o777)
    for use in (lambda: store.load(KEY), lambda: store.save(KEY, b"")):
        with pytest.raises(SplitadError, match=r"(?s)others may write to .*chmod go-w"):
            use()


def test_it_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(KEY, b"contents")
    monkeypatch.setenv("SPLITAD_CACHE", "0")
    store.save("other", b"contents")
    assert store.load(KEY) is None and not (folder / "compiled" / "other").exists()


def test_the_oldest_entries_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LIMIT", 10_000)
    for k in range(6):
        store.save(f"entry{k}", bytes(2_000))
        os.utime(folder / "compiled" / f"entry{k}", (k, k))
    monkeypatch.setattr(store, "_saved", {})
    store.save("last", b"")
    left = {each.name for each in (folder / "compiled").iterdir()}
    assert left == {"entry3", "entry4", "entry5", "last"}


def test_a_disk_that_cannot_be_written_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(store.os, "replace", full)
    store.save(KEY, b"contents")
    assert store.load(KEY) is None and list((folder / "compiled").iterdir()) == []
