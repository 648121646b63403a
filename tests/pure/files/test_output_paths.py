"""Output paths are checked before anything is written there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError, ResultWriteError
from airflow_provider_platform.files import whole_files
from airflow_provider_platform.files.whole_files import (
    check_place,
    files_below,
    storage_words,
    whole_file,
    write_whole,
    writing,
)


def place(path: Path) -> Any:
    return SimpleNamespace(protocol="file", path=str(path))


def in_storage(error: BaseException, protocol: str = "sftp") -> Any:
    """A path in a storage that fails when it is looked at."""

    class Storage:
        def info(self, path: str) -> None:
            raise error

    return SimpleNamespace(protocol=protocol, path="/lake/rows.csv", fs=Storage())


@pytest.mark.parametrize("length", [99, 240])
def test_file_with_a_long_name_is_written_and_its_remains_are_removed(
    length: int, tmp_path: Path
) -> None:
    path = tmp_path / ("n" * (length - 4) + ".csv")
    check_place("output_path", place(path))

    target = whole_files._LocalPart(path)
    target.file.write(b"half")
    target.file.close()
    assert len(list(tmp_path.iterdir())) == 1
    write_whole(place(path), b"rows")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"rows"


@pytest.mark.parametrize("folder", ["", "not/there/yet"])
@pytest.mark.parametrize("name", ["n" * 241, "ä" * 121])
def test_name_that_the_file_system_does_not_take_is_refused(
    name: str, folder: str, tmp_path: Path
) -> None:
    with pytest.raises(PlatformInputError, match=r"Nothing was sent: output_path .*240 bytes"):
        check_place("output_path", place(tmp_path / folder / name))
    long_folder = tmp_path / ("folder" * 50) / "rows.csv"
    with pytest.raises(PlatformInputError, match=r"Nothing was sent: output_path .*name too long"):
        check_place("output_path", place(long_folder))


def test_path_that_the_file_system_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlatformInputError, match="File name too long"):
        check_place("output_path", place(tmp_path.joinpath(*["folder"] * 800) / "rows.csv"))


@pytest.mark.parametrize("protocol", ["s3", "gs", "abfs"])
def test_unreachable_storage_is_a_retryable_error(protocol: str) -> None:
    error = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(ResultWriteError, match=r"Nothing was sent: .* Connection refused"):
        check_place("output_path", in_storage(error, protocol))


@pytest.mark.parametrize("protocol", ["sftp", "s3", "gs", "abfs"])
def test_storage_that_refuses_only_the_check_is_not_an_error(protocol: str) -> None:
    check_place("output_path", in_storage(PermissionError("Forbidden"), protocol))


def test_folder_that_a_storage_does_not_have_yet_is_not_an_error() -> None:
    check_place("output_path", in_storage(FileNotFoundError("/lake")))
    with pytest.raises(PlatformInputError, match="the bucket 'lake' does not exist"):
        check_place("output_path", in_storage(FileNotFoundError("lake"), "s3"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("lake", "this is a bucket, not a file in a bucket"),
        ("lake/" + "ä" * 513, "the object key has more than 1024 bytes"),
    ],
)
def test_key_that_no_bucket_takes_is_refused(path: str, said: str) -> None:
    with pytest.raises(PlatformInputError, match=said):
        check_place("output_path", SimpleNamespace(protocol="s3", path=path))


def test_files_of_a_folder_in_a_storage_are_named_below_it() -> None:
    """Also if others have written since the storage was last asked."""
    listed = {"lake/a": ["lake/a/1.csv"], "lake/none": None}

    class Storage:
        def invalidate_cache(self) -> None:
            listed["lake/a"] = ["lake/a/1.csv", "lake/a/day/2.csv", "lake/ab.csv"]

        def find(self, path: str) -> list[str]:
            found = listed[path.rstrip("/")]
            if found is None:
                raise FileNotFoundError(path)
            return found

    def folder(path: str) -> Any:
        return SimpleNamespace(protocol="s3", path=path, fs=Storage())

    assert files_below(folder("lake/a/")) == ["1.csv", "day/2.csv"]
    assert files_below(folder("lake/none")) == []


def test_full_disk_is_told_in_the_storages_words() -> None:
    device = Path("/dev/full")
    if not device.exists() or not os.access(device, os.W_OK):
        pytest.skip("there is no /dev/full here")

    def write() -> None:
        with writing(device), device.open("wb", buffering=0) as file:
            file.write(b"rows")

    with pytest.raises(ResultWriteError, match=r"could not be written: No space left on device"):
        write()


def test_words_of_a_storage_are_those_of_the_cause_without_credentials() -> None:
    error = PermissionError("Access Denied")
    error.__cause__ = ValueError(
        "An error (AccessDenied) at https://key:secret@s3.example.com/lake/a?X-Sig=abc.\nTry again."
    )
    said = storage_words(error)
    assert "An error (AccessDenied) at https://***@s3.example.com/lake/a?***" in said
    assert "secret" not in said
    assert "abc" not in said
    assert "\n" not in said


@pytest.mark.parametrize("target", ["real/rows.csv", "real/new.csv"])
def test_symbolic_link_is_followed_and_stays(target: str, tmp_path: Path) -> None:
    real, link = tmp_path / target, tmp_path / "links" / "rows.csv"
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "rows.csv").write_text("as it was")
    link.parent.mkdir()
    link.symlink_to(Path("..") / target)
    check_place("output_path", place(link))
    write_whole(place(link), b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert [one.name for one in link.parent.iterdir()] == ["rows.csv"]
    assert not list((tmp_path / "real").glob(".*"))


def test_place_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a file")
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("there/rows.csv", "is a file, not a folder"),
        ("pipe", "this is a device or a pipe, not a file"),
    ):
        with pytest.raises(PlatformInputError, match=said):
            check_place("output_path", place(tmp_path / name))


def test_link_to_a_folder_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "rows.csv"
    link.symlink_to("folder")
    with pytest.raises(PlatformInputError, match="this is a folder"):
        check_place("output_path", place(link))


class Upload:
    """An upload of a store: what is written is there once it is committed."""

    def __init__(self, objects: dict[str, bytes], path: str, failing: str) -> None:
        self.objects, self.path, self.failing = objects, path, failing
        self.data, self.closed, self.discarded = b"", False, False

    def write(self, data: bytes) -> None:
        if self.failing == "write" and self.data:
            raise OSError("refused")
        self.data += bytes(data)

    def close(self) -> None:
        self.closed = True
        if self.failing == "close":
            raise OSError("refused")

    def commit(self) -> None:
        if self.failing == "commit":
            raise OSError("refused")
        self.objects[self.path] = self.data

    def discard(self) -> None:
        self.discarded = True


@pytest.mark.parametrize("failing", ["", "write", "close", "commit", "block"])
def test_object_is_whole_or_not_there(failing: str) -> None:
    objects = {"lake/rows": b"as it was"}
    uploads: list[Upload] = []

    class Store:
        def open(self, path: str, mode: str, *, autocommit: bool, **_: Any) -> Upload:
            assert (mode, autocommit) == ("wb", False)
            uploads.append(Upload(objects, path, failing))
            return uploads[-1]

    def write() -> None:
        path = SimpleNamespace(protocol="s3", path="lake/rows", fs=Store())
        with whole_file(path) as file:
            file.write(b"half")
            assert objects == {"lake/rows": b"as it was"}
            if failing == "block":
                raise KeyboardInterrupt
            file.write(b" and half")

    if not failing:
        write()
        assert objects == {"lake/rows": b"half and half"}
        return
    with pytest.raises(KeyboardInterrupt if failing == "block" else ResultWriteError):
        write()
    assert objects == {"lake/rows": b"as it was"}
    assert (uploads[0].discarded, uploads[0].closed) == (True, True)
